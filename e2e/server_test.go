package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	readyTimeout = 2 * time.Minute
	stopTimeout  = 90 * time.Second
	adminToken   = "admin-token"
)

// serverOptions tunes one server. The zero value is ready to use.
type serverOptions struct {
	// flags are given to kube-apiserver after the harness's own, so they win.
	// Example: --watch-cache=false, --event-ttl=20s.
	flags []string

	// users are the names that server.user knows, beside the admin. They have
	// no rights but those that a test binds to them.
	users []string
}

// server is a real kube-apiserver with its own etcd, in a process of its own.
// It keeps its ports and its data over kill, stop and start.
//
// A server belongs to the test's goroutine: only admin, user and address may
// be called from others. Whatever goes wrong fails the test, and shows the
// server's last errors.
type server struct {
	t        testing.TB
	dir      string // all data, and the log
	port     int
	etcdPort int
	opts     serverOptions
	ca       []byte   // the certificate that the server made on its first start
	trusted  bool     // ca is complete, and does not change any more
	process  *process // nil while the server is down
}

// startServer returns a server that is ready. It ends with the test.
func startServer(t testing.TB, opts serverOptions) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), etcdPort: freePort(t), opts: opts}
	s.writeTokens()
	t.Cleanup(func() {
		if s.process != nil {
			s.kill()
		}
		if t.Failed() {
			t.Logf("the server at %s said last:\n%s", s.address(), s.logTail())
		}
	})
	s.start()
	return s
}

// start runs the server again after stop or kill, and returns when it is ready.
func (s *server) start() {
	s.t.Helper()
	if s.process != nil {
		s.t.Fatal("start: the server is running")
	}
	args := []string{
		"-data-dir", s.dir,
		"-port", fmt.Sprint(s.port),
		"-etcd-port", fmt.Sprint(s.etcdPort),
		"--",
	}
	p, err := startProcess(s.logPath(), serverBinary, append(args, s.opts.flags...)...)
	if err != nil {
		s.t.Fatalf("start: %v", err)
	}
	s.process = p
	if err := s.waitReady(); err != nil {
		s.t.Fatalf("start: %v", err)
	}
}

// stop ends the server as an administrator does: it finishes its work first.
// Watches that are open end.
func (s *server) stop() {
	s.t.Helper()
	s.mustRun("stop")
	p := s.process
	if err := p.terminate(); err != nil {
		s.t.Fatalf("stop: %v", err)
	}
	select {
	case <-p.done:
		s.process = nil
	case <-time.After(stopTimeout):
		s.t.Fatalf("stop: still running after %v", stopTimeout)
	}
	if p.err != nil {
		s.t.Fatalf("stop: %v", p.err)
	}
}

// kill ends the server without a warning, as a crash does.
func (s *server) kill() {
	s.t.Helper()
	s.mustRun("kill")
	p := s.process
	s.process = nil
	p.kill()
	<-p.done
}

// address returns host and port of the API server; they never change.
func (s *server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// admin returns a client configuration without limits: it may do everything,
// and as fast as it can.
func (s *server) admin() *rest.Config { return s.config(adminToken) }

// user returns the same for one of serverOptions.users.
func (s *server) user(name string) *rest.Config { return s.config(userToken(name)) }

// config returns the configuration of a client that shows the given token.
func (s *server) config(token string) *rest.Config {
	return &rest.Config{
		Host:            "https://" + s.address(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca},
		QPS:             -1,
	}
}

// waitReady returns when the server answers /readyz with 200 and has made the
// namespace default, or with the reason why it never will.
func (s *server) waitReady() error {
	p := s.process
	var last error
	try := func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("the process ended: %w", p.exit())
		default:
			last = s.probe(ctx)
			return last == nil, nil
		}
	}
	const every = 25 * time.Millisecond
	if err := wait.PollUntilContextTimeout(s.t.Context(), every, readyTimeout, true, try); err != nil {
		return fmt.Errorf("not ready: %w; last answer: %w", err, last)
	}
	return nil
}

// probe returns nil if the server is ready.
func (s *server) probe(ctx context.Context) error {
	if !s.trusted { // until the first answer, the file may be half written
		ca, err := os.ReadFile(filepath.Join(s.dir, "certs", "apiserver.crt"))
		if err != nil {
			return err
		}
		s.ca = ca
	}
	client, err := kubernetes.NewForConfig(s.admin())
	if err != nil {
		return err
	}
	if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return err
	}
	s.trusted = true
	_, err = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
	return err
}

func (s *server) writeTokens() {
	s.t.Helper()
	file := adminToken + `,admin,1,"system:masters"` + "\n"
	for i, name := range s.opts.users {
		file += fmt.Sprintf("%s,%s,%d\n", userToken(name), name, i+2)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "tokens.csv"), []byte(file), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) mustRun(what string) {
	s.t.Helper()
	if s.process == nil {
		s.t.Fatalf("%s: the server is not running", what)
	}
}

func (s *server) logPath() string { return filepath.Join(s.dir, "log") }

// logTail returns the last errors of the log.
func (s *server) logTail() string {
	const most = 30
	log, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range bytes.Lines(log) {
		// klog's lines begin with their severity; every start warns at length
		// of APIs that are not served.
		if line[0] != 'I' && line[0] != 'W' {
			lines = append(lines, string(line))
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], "")
}

func userToken(name string) string { return "token-of-" + name }

// freePort returns a loopback port that nobody listens on. It lies below the
// ports that the kernel gives to outgoing connections: else a client that
// dials while the server is down could be given the very port it dials, be
// connected to itself, and keep the server from coming back.
func freePort(t testing.TB) int {
	t.Helper()
	const lowest, tooHigh = 10000, 32768
	for range 100 {
		port := lowest + rand.IntN(tooHigh-lowest)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("freePort: found none")
	return 0
}
