package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// A mutation breaks a promise by a change of a few lines.
type mutation struct {
	promise int
	name    string         // what is broken
	run     *regexp.Regexp // the tests that are to notice, among those that name the promise
	file    string         // where
	dir     string         // of the package whose tests run
	old     []string       // whole lines, which stand there once
	new     []string       // what takes their place
	race    bool           // the tests run with the race detector
	alone   bool           // the tests read the source: no other mutation may be in it
	crash   string         // the program may end in a crash that says this
}

// String returns the promise and the name.
func (m *mutation) String() string { return fmt.Sprintf("%2d %s", m.promise, m.name) }

// readTable reads a list of mutations, in the format that the package comment
// tells of.
func readTable(name string) ([]*mutation, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []*mutation
	var errs []error
	m := new(mutation)
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "= ") {
			m = new(mutation)
			all = append(all, m)
		}
		if err := m.read(line); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, i+1, err))
		}
	}
	for _, m := range all {
		if m.run == nil || m.file == "" || len(m.old) == 0 {
			errs = append(errs, fmt.Errorf("%s: mutation %q lacks run, file or lines", name, m))
		}
		if m.dir == "" {
			m.dir = path.Dir(m.file)
		}
	}
	return all, errors.Join(errs...)
}

// read takes one line of the table.
func (m *mutation) read(line string) (err error) {
	if line == "" {
		return nil
	}
	switch rest := line[1:]; line[0] {
	case '#':
	case '-':
		m.old = append(m.old, rest)
	case '+':
		m.new = append(m.new, rest)
	case '|':
		m.old, m.new = append(m.old, rest), append(m.new, rest)
	default:
		word, rest, _ := strings.Cut(line, " ")
		return m.set(word, rest)
	}
	return nil
}

// set takes a line that begins with a word.
func (m *mutation) set(word, rest string) (err error) {
	switch word {
	case "=":
		number, name, _ := strings.Cut(rest, " ")
		m.name = name
		m.promise, err = strconv.Atoi(number)
	case "run":
		m.run, err = regexp.Compile(rest)
	case "file":
		m.file = path.Clean(rest)
	case "in":
		m.dir = path.Clean(rest)
	case "race":
		m.race = true
	case "alone":
		m.alone = true
	case "crash":
		m.crash = rest
	default:
		err = fmt.Errorf("unknown line %q", word+" "+rest)
	}
	return err
}

// apply returns source with the lines of m replaced.
func (m *mutation) apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	at := -1
	for i := range lines {
		if !begins(lines[i:], m.old) {
			continue
		}
		if at >= 0 {
			return "", fmt.Errorf("its lines are in %s more than once", m.file)
		}
		at = i
	}
	if at < 0 {
		return "", fmt.Errorf("its lines are not in %s", m.file)
	}
	changed := append(append(append([]string(nil), lines[:at]...), m.new...), lines[at+len(m.old):]...)
	return strings.Join(changed, "\n"), nil
}

// begins reports whether lines begin with want, whatever the indentation.
func begins(lines, want []string) bool {
	if len(lines) < len(want) {
		return false
	}
	for i := range want {
		if strings.TrimLeft(lines[i], "\t") != strings.TrimLeft(want[i], "\t") {
			return false
		}
	}
	return true
}
