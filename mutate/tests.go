package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// tests are the tests of a package: their comments, by name.
type tests map[string]string

// readTests reads the test files in a directory. A TestMain is among the tests:
// it is what fails if a goroutine is left.
func readTests(dir string) (tests, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	all := tests{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				all[f.Name.Name] = f.Doc.Text()
			}
		}
	}
	return all, nil
}

// of returns the tests that are to notice m: those that match, and say in their
// comment that they are for its promise.
func (t tests) of(m *mutation) (names []string) {
	for name := range t {
		if name != "TestMain" && m.run.MatchString(name) && t.name(name, m.promise) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// name reports whether the comment of a test names a promise, as "promise 7" or
// "promises 3, 7 and 9" does.
func (t tests) name(test string, promise int) bool {
	doc := strings.Join(strings.Fields(t[test]), " ")
	return regexp.MustCompile(`(?i)promises? (\d+(, | and ))*` + strconv.Itoa(promise) + `\b`).MatchString(doc)
}

// pattern returns the -run of exactly these tests.
func pattern(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
