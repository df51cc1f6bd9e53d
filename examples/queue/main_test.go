package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// story is what the program prints, in this order, whatever the clock.
var story = []string{
	"msg=added key=noisy/job-1…1000",
	"key=quiet/broken attempt=1 parked=false",
	"key=quiet/broken attempt=2 parked=false",
	`key=quiet/broken attempt=3 parked=true err="no such image"`,
	`msg=parked key=quiet/broken attempts=3 err="no such image"`,
	"msg=done key=quiet/broken attempt=1",
	"msg=added key=noisy/job-1…100",
	"msg=draining ready=",
	"msg=drained left=[quiet/nightly] retries=2 parks=1",
}

// checkStory checks that the lines are in out, in order.
func checkStory(t *testing.T, out string) {
	t.Helper()
	rest := out
	for _, line := range story {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("the output lacks %s, or has it too early:\n%s", line, out)
		}
		rest = after
	}
}

// In virtual time everything is exact: the quiet tenant waits for one turn of the
// noisy one at each of its own, and what is ready at the end is worked off.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var out bytes.Buffer
		if err := run(ctx, &out); err != nil {
			t.Fatalf("run = %v", err)
		}
		checkStory(t, out.String())
		for _, line := range []string{
			"msg=done key=quiet/web attempt=1", "msg=done key=quiet/db attempt=1", `msg="all of noisy is done" keys=1000`, " delayed=1\n",
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("the output lacks %s:\n%s", line, out.String())
			}
		}
		// What is quiet was done before what is noisy.
		lines := strings.Split(out.String(), "\n")
		at := func(part string) int {
			return slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, part) })
		}
		if at("quiet/db") > at("all of noisy") {
			t.Errorf("the quiet tenant waited for the noisy one:\n%s", out.String())
		}
	})
}

// A program that is told to end before anything has happened ends.
func TestQueueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out bytes.Buffer
		if err := run(ctx, &out); err != nil || !strings.Contains(out.String(), "msg=drained") {
			t.Fatalf("run = %v\n%s", err, out.String())
		}
	})
}

// The program itself: SIGTERM makes it drain, and exit with 0.
func TestProgram(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "queue")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, binary)
	program.Stderr = os.Stderr
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "msg=done key=quiet/broken") {
			if err := program.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := program.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	checkStory(t, out.String())
}
