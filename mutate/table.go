package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A mutation breaks a promise by a change of a few lines.
type mutation struct {
	promise int
	name    string   // what is broken
	run     string   // -run of the tests that are to notice
	file    string   // where
	old     []string // whole lines, which stand there once
	new     []string // what takes their place
	race    bool     // the tests run with the race detector
	alone   bool     // the tests read the source: no other mutation may be in it
}

// String returns the promise and the name.
func (m *mutation) String() string { return fmt.Sprintf("%2d %s", m.promise, m.name) }

// readTable reads a list of mutations. Each begins with a line "= PROMISE NAME",
// then come lines "run REGEXP" and "file NAME", maybe "race" and "alone", and the
// change: lines that begin with "-" go, those with "+" come, those with "|" stay.
// Empty lines and those that begin with "#" are ignored.
func readTable(path string) ([]*mutation, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []*mutation
	m := new(mutation)
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "= ") {
			m = new(mutation)
			all = append(all, m)
		}
		if err := m.read(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	for _, m := range all {
		if m.run == "" || m.file == "" || len(m.old) == 0 {
			return nil, fmt.Errorf("%s: mutation %q lacks run, file or lines", path, m)
		}
	}
	return all, nil
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
		switch word {
		case "=":
			number, name, _ := strings.Cut(rest, " ")
			m.name = name
			m.promise, err = strconv.Atoi(number)
		case "run":
			m.run = rest
		case "file":
			m.file = rest
		case "race":
			m.race = true
		case "alone":
			m.alone = true
		default:
			err = fmt.Errorf("unknown line %q", line)
		}
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

// errNotOne means that a mutation is not within one function, or in one that
// cannot be called by another of the same signature.
var errNotOne = errors.New("not within one function")
