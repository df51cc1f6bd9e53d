package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A lab is a copy of the module in which mutants live.
type lab struct {
	dir    string
	checks int
	limit  time.Duration     // for the tests of one mutation
	bins   map[string]string // test binaries, by what they are for
}

// newLab copies the module at root, without the modules inside it.
func newLab(root string) (*lab, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, bins: map[string]string{}}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return copyFile(path, filepath.Join(dir, name))
		case name != "." && (strings.HasPrefix(d.Name(), ".") || isModule(path)):
			return fs.SkipDir
		}
		return os.MkdirAll(filepath.Join(dir, name), 0o700)
	})
	return l, err
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

func (l *lab) close() error { return os.RemoveAll(l.dir) }

func (l *lab) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(l.dir, name))
	return string(text), err
}

func (l *lab) write(name, text string) error {
	return os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600)
}

// build builds the tests, with the race detector or not.
func (l *lab) build(ctx context.Context, race bool) (bin, output string, err error) {
	bin = filepath.Join(l.dir, "mutate.test")
	args := []string{"test", "-c", "-vet=off", "-gcflags=-e", "-ldflags=-s -w", "-o", bin}
	if race {
		bin = filepath.Join(l.dir, "mutate.race.test")
		args[len(args)-1] = bin
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = l.dir
	out, err := cmd.CombinedOutput()
	return bin, string(out), err
}

// A verdict is what tests say of a mutation.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	timeout  verdict = "TIMEOUT"
	broken   verdict = "DOES NOT COMPILE"
	crashed  verdict = "CRASHED"
)

// outcome is a verdict, and the first tests that failed or what was said.
type outcome struct {
	verdict verdict
	why     string
	took    time.Duration
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs the tests that match run with mutant number.
func (l *lab) test(ctx context.Context, bin, run string, number int) outcome {
	ctx, cancel := context.WithTimeout(ctx, l.limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-test.run", run, "-test.failfast", "-test.timeout", l.limit.String(),
		"-rapid.nofailfile", "-rapid.shrinktime=100ms", "-rapid.checks="+strconv.Itoa(l.checks))
	cmd.Dir, cmd.WaitDelay = l.dir, time.Second
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(number))
	began := time.Now()
	out, err := cmd.CombinedOutput()
	o := outcome{took: time.Since(began)}
	o.verdict, o.why = judge(out, err)
	return o
}

// judge tells from the output of tests how they ended. A mutation counts as
// killed only if a test fails, a goroutine is left, or the program crashes; a
// time limit or a compile error does not count.
func judge(out []byte, err error) (verdict, string) {
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return crashed, "no tests to run"
	case err == nil:
		return survived, ""
	case !errors.As(err, &exit) || bytes.Contains(out, []byte("panic: test timed out")):
		return timeout, err.Error()
	}
	var names []string
	for _, match := range failed.FindAllSubmatch(out, 3) {
		names = append(names, string(match[1]))
	}
	switch {
	case len(names) > 0:
		return killed, strings.Join(names, " ")
	case bytes.Contains(out, []byte("goleak: ")):
		return killed, "goleak"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		return killed, line // by itself, in a goroutine that is no test's
	}
	return crashed, line
}

var compileError = regexp.MustCompile(`(?m)^(?:\./)?(\S+\.go):(\d+)(?::\d+)?: (.*)$`)

// compileErrors returns, for each mutant that has a compile error, its text.
func compileErrors(output string, lines map[string]map[int]int) (map[int]string, error) {
	bad := map[int]string{}
	for _, match := range compileError.FindAllStringSubmatch(output, -1) {
		line, _ := strconv.Atoi(match[2])
		number, begin := 0, 0
		for n, at := range lines[match[1]] {
			if at <= line && at > begin {
				number, begin = n, at
			}
		}
		if number == 0 {
			return nil, fmt.Errorf("cannot build: %s", match[0])
		}
		bad[number] = match[3]
	}
	if len(bad) == 0 {
		return nil, fmt.Errorf("cannot build:\n%s", output)
	}
	return bad, nil
}
