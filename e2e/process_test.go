package e2e_test

import (
	"io"
	"os"
	"os/exec"
	"syscall"
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

func (p *process) pid() int { return p.cmd.Process.Pid }
