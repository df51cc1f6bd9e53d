package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// process is a running child. It ends at once when its standard input does, so
// it cannot outlive this process, not even one that is killed.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer

	done chan struct{} // closed when the process has ended
	err  error         // how it ended; valid once done is closed
}

// startProcess runs a program that appends what it says to a log file.
func startProcess(log, name string, args ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the child has its own handle
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = file, file
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() { // ends with the child; kill waits for it
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// terminate asks the process to end. It does not wait.
func (p *process) terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// kill ends the process without asking. It does not wait, and does no harm to
// a process that has ended.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// exit returns how the process ended, and never nil: for where it should not
// have ended at all. Call it when done is closed.
func (p *process) exit() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// TestServerDiesWithItsParent runs this test once more in a process of its own,
// which starts a server and is then killed.
func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	const parent = "E2E_PARENT"
	if os.Getenv(parent) != "" {
		fmt.Println(startServer(t, serverOptions{}).address())
		select {} // until killed
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsParent$")
	cmd.Env = append(os.Environ(), parent+"=1", "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // says that it was killed
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server is gone", func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimSpace(address))
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		if err == nil {
			_ = conn.Close()
			err = errors.New("it accepts connections")
		}
		return err
	})
}
