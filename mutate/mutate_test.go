package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// source is a small module: one file, one test, which names promise 1.
var source = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"a.go": `package example

type pair[T any] struct{ a, b T }

func (p *pair[T]) swap() (T, T) {
	p.a, p.b = p.b, p.a
	return p.a, p.b
}

func sum(first int, rest ...int) (n int) {
	n = first
	for _, x := range rest {
		n += x
	}
	return n
}

func loop() {
	for range 3 {
	}
}

func crash(n int) int {
	s := []int{1, 2}
	return s[n-n]
}

var limit = 3
`,
	"a_test.go": `package example

import "testing"

// TestSum is for promise 1.
func TestSum(t *testing.T) {
	if n := sum(1, 2, 3); n != 6 {
		t.Errorf("sum = %d", n)
	}
}

// TestSwap is for promises 2, 3 and 4.
func TestSwap(t *testing.T) {
	p := &pair[int]{1, 2}
	if a, b := p.swap(); a != 2 || b != 1 || limit != 3 {
		t.Errorf("%d, %d", a, b)
	}
}

// TestRest: promise 5.
func TestRest(t *testing.T) {
	loop()
	crash(2)
}
`,
}

const list = `
# a comment
= 1 the sum is wrong
run Sum
file a.go
-		n += x
+		n -= x

= 1 nobody notices
run Sum
file a.go
|	n = first
+	n += 0

= 3 the pair is not swapped
run Swap
file a.go
-	p.a, p.b = p.b, p.a

= 4 a variable, not in a function
run Swap
file a.go
-var limit = 3
+var limit = 4

= 5 for ever
run Rest
file a.go
-	for range 3 {
+	for {

= 5 out of range
run Rest
file a.go
-	return s[n-n]
+	return s[n]

= 5 out of range, as expected
run Rest
file a.go
crash index out of range [2]
-	return s[n-n]
+	return s[n+0]

= 5 not Go
run Rest
file a.go
-	return s[n-n]
+	return s[n-n] + ""

= 5 the code has changed
run Rest
file a.go
-	return s[n-m]

= 6 no test names it
run Rest
file a.go
-	return s[n-n]
+	return 0
`

// TestRound runs mutations of every kind, in one module.
func TestRound(t *testing.T) {
	root := t.TempDir()
	for name, text := range source {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(root, "mutations.txt")
	if err := os.WriteFile(name, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := readTable(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLab(root)
	if err != nil {
		t.Fatal(err)
	}
	l.limit, l.repeat = time.Second, 2
	var out strings.Builder
	r := newRound(l, &out)
	for i, m := range all {
		r.chosen[i+1] = m
	}
	if err := r.run(t.Context()); err == nil {
		t.Error("no error, although mutations survived")
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	want := map[string]verdict{
		"the sum is wrong": killed, "nobody notices": survived, "the pair is not swapped": killed,
		"a variable, not in a function": killed, "for ever": timeout, "out of range": crashed,
		"out of range, as expected": killed, "not Go": broken, "no test names it": untested,
		"the code has changed": misfit,
	}
	for m, o := range r.report.outcomes {
		if o.verdict != want[m.name] {
			t.Errorf("%s: %s %s, want %s", m.name, o.verdict, o.why, want[m.name])
		}
		delete(want, m.name)
	}
	if len(want) > 0 {
		t.Errorf("nothing is said of %v; the output is\n%s", want, out.String())
	}
	if !slices.Equal(r.alone, []int{4}) {
		t.Errorf("built alone: %v, want the fourth", r.alone)
	}
}

// TestReadTable: what is wrong in a list is told with its line.
func TestReadTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	for text, want := range map[string]string{
		"= one x\n":                  "list:1: ",
		"= 1 x\nrun (\n":             "list:2: ",
		"= 1 x\nwalk y\n":            `list:2: unknown line "walk y"`,
		"= 1 x\nrun y\nfile z\n":     "lacks run, file or lines",
		"= 1 x\nrun y\n-z\n":         "lacks run, file or lines",
		"= 1 x\nrun y\nfile z\n-a\n": "",
		"# = 1\n\n= 1 x\nrun y\nfile z\nrace\nalone\nin q\n|a\n": "",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readTable(name)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestApply: the lines of a mutation stand in the file once.
func TestApply(t *testing.T) {
	m := &mutation{file: "f", old: []string{"a", "b"}, new: []string{"c"}}
	for text, want := range map[string]string{"x\n\ta\nb\ny": "x\nc\ny", "a\nx\nb": "", "a\nb\na\nb": ""} {
		if got, err := m.apply(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q became %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestJudge: what the output of tests says.
func TestJudge(t *testing.T) {
	exit := exec.CommandContext(t.Context(), "false").Run()
	for text, want := range map[string]verdict{
		"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b":           killed,
		"goleak: Errors on successful test run":                    killed,
		"panic: deadlock: all goroutines in bubble are blocked":    killed,
		"--- FAIL: TestA (0.00s)\npanic: runtime error: index":     crashed,
		"fatal error: concurrent map writes":                       crashed,
		"panic: test timed out after 20s\nrunning tests:\n\tTestA": timeout,
		"flag provided but not defined":                            crashed,
	} {
		if got, why := judge([]byte(text), exit); got != want {
			t.Errorf("%q: %s %s, want %s", text, got, why, want)
		}
	}
	if got, _ := judge(nil, errors.New("killed")); got != timeout {
		t.Errorf("a program that was killed: %s", got)
	}
	if got, _ := judge([]byte("PASS"), nil); got != survived {
		t.Errorf("tests that passed: %s", got)
	}
}
