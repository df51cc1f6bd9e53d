package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The tests of this file prove the proxy: first with a server of one line,
// then with the real one.

func TestProxyPasses(t *testing.T) {
	t.Parallel()
	p := startProxy(t, echoServer(t))
	conn := dial(t, p)
	exchange(t, conn, strings.Repeat("a long message ", 100_000))
	if got := p.dials(); got != 1 {
		t.Errorf("dials() = %d, want 1", got)
	}
	// The end of one direction arrives as such, and then that of the other.
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read after the end = %v, want EOF", err)
	}
	eventually(t, "the connection is forgotten", func(context.Context) error { return openIs(p, 0) })
}

func TestProxySwallows(t *testing.T) {
	t.Parallel()
	p := startProxy(t, echoServer(t))
	used, idle := dial(t, p), dial(t, p)
	exchange(t, used, "before")
	exchange(t, idle, "before")

	p.swallow()
	send(t, used, "lost")
	silent(t, used)
	born := dial(t, p)
	send(t, born, "lost")
	silent(t, born)

	p.pass()
	exchange(t, idle, "nothing of it was lost")
	exchange(t, dial(t, p), "a new one")
	send(t, used, "still dead")
	silent(t, used)
	send(t, born, "still dead")
	silent(t, born)

	if got := p.cut(); got != 4 {
		t.Errorf("cut() = %d, want 4", got)
	}
	broken(t, used)
}

func TestProxySwallowsTheEndOfConnections(t *testing.T) {
	t.Parallel()
	p := startProxy(t, echoServer(t))
	conn := dial(t, p)
	exchange(t, conn, "before")
	p.swallow()
	if err := conn.CloseWrite(); err != nil { // would make the server close, too
		t.Fatal(err)
	}
	silent(t, conn)
	if err := openIs(p, 1); err != nil {
		t.Error(err)
	}
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	p := startProxy(t, echoServer(t))
	conn := dial(t, p)
	const d = 150 * time.Millisecond
	p.delay(d)
	began := time.Now()
	exchange(t, conn, strings.Repeat("a long message ", 50_000)) // many pieces, delayed at once
	if took := time.Since(began); took < 2*d || took > 20*d {
		t.Errorf("there and back took %v, want at least %v and not a multiple", took, 2*d)
	}
}

func TestProxyThrottles(t *testing.T) {
	t.Parallel()
	p := startProxy(t, echoServer(t))
	conn := dial(t, p)
	const perSecond = 100_000
	p.throttle(perSecond)
	began := time.Now()
	exchange(t, conn, strings.Repeat("x", perSecond/2))
	if took := time.Since(began); took < time.Second/2 || took > 20*time.Second {
		t.Errorf("there and back took %v, want at least half a second and not a multiple", took)
	}
	p.pass()
	began = time.Now()
	exchange(t, conn, strings.Repeat("x", 100*perSecond))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("with no limit it took %v", took)
	}
}

func TestProxyCutsAndRefuses(t *testing.T) {
	t.Parallel()
	p := startProxy(t, echoServer(t))
	cut, kept := dial(t, p), dial(t, p)
	exchange(t, cut, "before")
	exchange(t, kept, "before")
	p.cut()
	broken(t, cut)
	broken(t, kept)
	kept = dial(t, p)
	exchange(t, kept, "new ones pass")

	p.refuse()
	if conn, err := net.Dial("tcp", p.address); err == nil {
		_ = conn.Close()
		t.Error("a connection was accepted, want it refused")
	}
	exchange(t, kept, "open ones pass")
	p.pass()
	exchange(t, dial(t, p), "and new ones again")
}

func TestProxyResetsClientsOfADeadServer(t *testing.T) {
	t.Parallel()
	p := startProxy(t, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	conn, err := net.Dial("tcp", p.address)
	if errors.Is(err, syscall.ECONNRESET) {
		return // the reset was faster than the dialer
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	broken(t, conn)
}

func TestProxyBeforeRealServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	p := startProxy(t, s.address())
	config := p.through(s.admin())
	config.Timeout = time.Second
	get := func(config *rest.Config) error {
		_, err := clientset(t, config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}
	if err := get(config); err != nil {
		t.Fatal(err)
	}
	p.swallow()
	if err := get(config); !isTimeout(err) {
		t.Errorf("get through a network that swallows = %v, want a timeout", err)
	}
	p.pass()
	p.cut()
	eventually(t, "the client is back", func(context.Context) error { return get(config) })
	p.refuse()
	p.cut()
	eventually(t, "the client is refused", func(context.Context) error {
		if err := get(config); !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("get = %w, want refused", err)
		}
		return nil
	})
	p.pass()
	if err := get(config); err != nil {
		t.Errorf("get after that = %v, want none", err)
	}
}

// echoServer returns the address of a server that sends back what it gets, and
// closes when its client does. It ends with the test.
func echoServer(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends when the proxy does
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t testing.TB, p *proxy) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

func send(t testing.TB, conn net.Conn, message string) {
	t.Helper()
	if _, err := io.WriteString(conn, message); err != nil {
		t.Errorf("send: %v", err)
	}
}

// exchange sends a message and wants it back.
func exchange(t testing.TB, conn net.Conn, message string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	go send(t, conn, message) // ends before the echo is complete
	got := make([]byte, len(message))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatalf("exchange: %v", err)
	}
	if string(got) != message {
		t.Errorf("exchange: got another message back")
	}
}

// silent fails the test if anything arrives for a while, an end included.
func silent(t testing.TB, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("read = %d bytes, %v, want silence", n, err)
	}
}

// broken fails the test if the connection does not end with an error.
func broken(t testing.TB, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, err := conn.Read(make([]byte, 1))
	if err == nil || errors.Is(err, io.EOF) || isTimeout(err) {
		t.Errorf("read = %v, want a reset", err)
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func openIs(p *proxy, want int) error {
	if got := p.open(); got != want {
		return fmt.Errorf("open() = %d, want %d", got, want)
	}
	return nil
}
