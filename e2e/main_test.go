// Package e2e_test runs the informer against a real kube-apiserver and etcd.
package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// serverBinary is what TestMain builds and startServer runs. It lies in the
// module, not in a temporary directory, so that go build can see that it is up
// to date and need not link 150 MB again.
const serverBinary = "bin/apiserver"

// TestMain builds the server once, and fails the run when a test leaves a
// process behind.
func TestMain(m *testing.M) {
	if err := buildServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := noChildren(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildServer() error {
	// No symbols and no commit: both would only make the linker work longer.
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w",
		"-o", serverBinary, "./apiserver")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build of the server: %w\n%s", err, out)
	}
	return nil
}

// noChildren returns an error if this process has children, alive or not
// waited for.
func noChildren() error {
	pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	switch {
	case errors.Is(err, syscall.ECHILD):
		return nil
	case err != nil:
		return fmt.Errorf("looking for child processes: %w", err)
	case pid == 0:
		return errors.New("a test left a child process running")
	default:
		return fmt.Errorf("a test left child process %d behind", pid)
	}
}
