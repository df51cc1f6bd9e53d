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
	text, err := os.ReadFile("PROMISES.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := regexp.MustCompile("`(Test\\w+)`")
	next := 1
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue // a heading
		}
		if number != next {
			t.Errorf("promise %d follows promise %d", number, next-1)
		}
		next = number + 1
		kept, missing, names := strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4]), named.FindAllStringSubmatch(cells[5], -1)
		switch {
		case kept != "yes" && kept != "in part" && kept != "not yet":
			t.Errorf("promise %d is kept: %q", number, kept)
		case (kept == "yes") != (missing == ""):
			t.Errorf("promise %d is kept: %s; missing: %q", number, kept, missing)
		case (kept == "not yet") != (len(names) == 0):
			t.Errorf("promise %d is kept: %s; it names %d tests", number, kept, len(names))
		}
		for _, name := range names {
			doc, ok := tests[name[1]]
			if !ok {
				t.Errorf("promise %d names %s, which is no test", number, name[1])
			} else if !namesPromise(doc, number) {
				t.Errorf("the comment of %s does not name promise %d", name[1], number)
			}
		}
	}
	if next != 32 {
		t.Errorf("the last promise is %d, want 31", next-1)
	}
}

// namesPromise reports whether a comment has "promise 7" or "promises 3, 7 and 9".
func namesPromise(doc string, number int) bool {
	doc = strings.Join(strings.Fields(doc), " ")
	return regexp.MustCompile(`(?i)promises? (\d+(, | and ))*` + strconv.Itoa(number) + `\b`).MatchString(doc)
}

// testNames returns the comments of all test functions of this module, by name.
func testNames(t *testing.T) map[string]string {
	names := map[string]string{}
	for _, pattern := range []string{"*_test.go", "informertest/*_test.go"} {
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
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					names[f.Name.Name] = f.Doc.Text()
				}
			}
		}
	}
	return names
}
