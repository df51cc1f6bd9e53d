package informer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// PROMISES.md tells of each promise whether it is kept, and names tests that
// exist for it.
func TestPromisesNameTests(t *testing.T) {
	tests := testNames(t)
	next := 1
	for _, row := range promisesTable(t, 0) {
		number, kept, missing, names := row.number, row.cells[1], row.cells[2], testsIn(row.cells[3])
		if number != next {
			t.Errorf("promise %d follows promise %d", number, next-1)
		}
		next = number + 1
		switch {
		case kept != "yes" && kept != "in part" && kept != "not yet":
			t.Errorf("promise %d is kept: %q", number, kept)
		case (kept == "yes") != (missing == ""):
			t.Errorf("promise %d is kept: %s; missing: %q", number, kept, missing)
		case (kept == "not yet") != (len(names) == 0):
			t.Errorf("promise %d is kept: %s; it names %d tests", number, kept, len(names))
		}
		for _, name := range names {
			doc, ok := tests[name]
			if !ok {
				t.Errorf("promise %d names %s, which is no test", number, name)
			} else if !namesPromise(doc, number) {
				t.Errorf("the comment of %s does not name promise %d", name, number)
			}
		}
	}
	if next != 32 {
		t.Errorf("the last promise is %d, want 31", next-1)
	}
}

// PROMISES.md names tests for the public reports, which exist and name them.
func TestPromisesNameReports(t *testing.T) {
	tests := testNames(t)
	rows := promisesTable(t, 1)
	for _, row := range rows {
		docs := ""
		for _, name := range testsIn(row.cells[2]) {
			doc, ok := tests[name]
			if !ok {
				t.Errorf("case %d names %s, which is no test", row.number, name)
			}
			docs += doc
		}
		for _, report := range strings.Fields(row.cells[1]) {
			if !strings.Contains(docs, report) {
				t.Errorf("case %d: no test names %s", row.number, report)
			}
		}
	}
	if len(rows) < 27 {
		t.Errorf("there are %d cases", len(rows))
	}
}

// A promisesRow is a row of a table in PROMISES.md: a number, and cells.
type promisesRow struct {
	number int
	cells  []string
}

// promisesTable returns the rows of a table, by its number.
func promisesTable(t *testing.T, table int) (rows []promisesRow) {
	t.Helper()
	text, err := os.ReadFile("PROMISES.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.Split(string(text), "\n# ")[table]) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if number, err := strconv.Atoi(cells[0]); err == nil { // else a heading
			rows = append(rows, promisesRow{number, cells[1:]})
		}
	}
	return rows
}

// testsIn returns the names of tests in a cell.
func testsIn(cell string) (names []string) {
	for _, match := range regexp.MustCompile("`([Tt]est\\w+)`").FindAllStringSubmatch(cell, -1) {
		names = append(names, match[1])
	}
	return names
}

// namesPromise reports whether a comment has "promise 7" or "promises 3, 7 and 9".
func namesPromise(doc string, number int) bool {
	doc = strings.Join(strings.Fields(doc), " ")
	return regexp.MustCompile(`(?i)promises? (\d+(, | and ))*` + strconv.Itoa(number) + `\b`).MatchString(doc)
}

// testNames returns the comments of all test functions, and of the parts of
// tests, by name.
func testNames(t *testing.T) map[string]string {
	names := map[string]string{}
	for _, pattern := range []string{"*_test.go", "informertest/*_test.go", "e2e/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(strings.ToLower(f.Name.Name), "test") {
					names[f.Name.Name] += f.Doc.Text()
				}
			}
		}
	}
	return names
}
