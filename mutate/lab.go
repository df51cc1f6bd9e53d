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
	checks int           // of a model test; 0: no test has a model
	limit  time.Duration // for the tests of one mutation
	repeat int           // how often they run
}

// newLab copies the module at root, without the modules inside it.
func newLab(root string) (*lab, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir}
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

// build builds the tests of a package, with the race detector or not.
func (l *lab) build(ctx context.Context, t target) (bin, output string, err error) {
	bin = filepath.Join(l.dir, "mutate.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-ldflags=-s -w",
		"-race="+strconv.FormatBool(t.race), "-o", bin, "./"+t.dir)
	cmd.Dir = l.dir
	out, err := cmd.CombinedOutput()
	return bin, string(out), err
}

// A verdict is what tests say of a mutation.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	flaky    verdict = "FLAKY"
	timeout  verdict = "TIME LIMIT"
	broken   verdict = "NO BUILD"
	untested verdict = "NO TEST"
	misfit   verdict = "NO FIT"
	crashed  verdict = "CRASHED"
)

// outcome is a verdict, and the first tests that failed or what was said.
type outcome struct {
	verdict verdict
	why     string
	took    time.Duration // for one run
	output  string
}

// A trial is a run of some tests.
type trial struct {
	bin, dir string // the tests of the package in dir
	names    []string
	mutant   int // 0: none
	limit    time.Duration
}

// try makes a trial of m as often as wanted.
func (l *lab) try(ctx context.Context, m *mutation, t trial) outcome {
	var first outcome
	for i := range max(l.repeat, 1) {
		o := l.test(ctx, t)
		if o.verdict == crashed && m.crash != "" && strings.Contains(o.why, m.crash) {
			o.verdict = killed
		}
		if i > 0 && o.verdict != first.verdict {
			o.verdict, o.why = flaky, fmt.Sprintf("run 1: %s, run %d: %s", first.verdict, i+1, o.verdict)
			return o
		}
		if i == 0 || o.took > first.took {
			first = o
		}
	}
	return first
}

// test makes a trial.
func (l *lab) test(ctx context.Context, t trial) outcome {
	ctx, cancel := context.WithTimeout(ctx, t.limit+10*time.Second)
	defer cancel()
	args := []string{"-test.run", pattern(t.names), "-test.failfast", "-test.timeout", t.limit.String()}
	if l.checks > 0 {
		// No time to shrink: in a bubble, none would pass.
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=-1s", "-rapid.checks="+strconv.Itoa(l.checks))
	}
	cmd := exec.CommandContext(ctx, t.bin, args...)
	cmd.Dir, cmd.WaitDelay = filepath.Join(l.dir, t.dir), time.Second
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(t.mutant))
	began := time.Now()
	out, err := cmd.CombinedOutput()
	o := outcome{took: time.Since(began), output: string(out)}
	o.verdict, o.why = judge(out, err)
	return o
}

// judge tells from the output of tests how they ended. A mutation counts as
// killed if a test says so, a bubble is deadlocked, or a goroutine is left. Any
// other panic may have nothing to do with what the test is for.
func judge(out []byte, err error) (verdict, string) {
	var exit *exec.ExitError
	message := find(out, `(?m)^(?:panic|fatal error): .*$`)
	switch {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return crashed, "no tests to run"
	case err == nil:
		return survived, ""
	case !errors.As(err, &exit) || strings.Contains(message, "test timed out"):
		return timeout, err.Error()
	case strings.Contains(message, "deadlock: "):
		return killed, message
	case message != "":
		return crashed, message
	case find(out, `(?m)^goleak: `) != "":
		return killed, "a goroutine is left"
	}
	if name, ok := strings.CutPrefix(find(out, `(?m)^--- FAIL: \S+`), "--- FAIL: "); ok {
		return killed, name
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return crashed, line
}

// find returns the first match of pattern.
func find(text []byte, pattern string) string {
	return string(regexp.MustCompile(pattern).Find(text))
}

// compileErrors returns, for each mutant that has a compile error, its text.
func compileErrors(output string, lines map[string]map[int]int) (map[int]string, error) {
	compileError := regexp.MustCompile(`(?m)^(?:\./)?(\S+\.go):(\d+)(?::\d+)?: (.*)$`)
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
