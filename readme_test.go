package informer_test

import (
	"os"
	"strings"
	"testing"
)

// textBetween returns what stands in text after one mark, and up to another.
func textBetween(text, from, to string) (part string, found bool) {
	_, rest, found := strings.Cut(text, from)
	part, _, ended := strings.Cut(rest, to)
	return part, found && ended
}

// TestReadmeProgram: the first program of the README is the core of the
// quickstart, letter by letter, so that it compiles and does what it should.
func TestReadmeProgram(t *testing.T) {
	const lastLine = 25 // of the README, for the first line of its program

	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	quickstart, err := os.ReadFile("examples/quickstart/main.go")
	if err != nil {
		t.Fatal(err)
	}
	shown, found := textBetween(string(readme), "\n```go\n", "```\n")
	if !found {
		t.Fatal("the README has no program")
	}
	const begin, end = "func watchPods(", "\n}\n"
	core, found := textBetween(string(quickstart), begin, end)
	if !found {
		t.Fatalf("the quickstart has no %s…)", begin)
	}
	if core = begin + core + end; shown != core {
		t.Errorf("the README shows\n%s\nand the quickstart is\n%s", shown, core)
	}
	before, _, _ := strings.Cut(string(readme), shown)
	if line := strings.Count(before, "\n") + 1; line > lastLine {
		t.Errorf("the README's program begins at line %d, want line %d at the latest", line, lastLine)
	}
}
