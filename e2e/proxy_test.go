package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// proxy is a network between clients and a server that fails on demand. It
// carries the bytes of TCP connections on loopback and knows nothing of what
// they mean.
//
// It is in one of these modes, and starts with pass:
//
//	pass      bytes are delivered at once
//	delay     bytes are delivered, in order, a while after they were sent
//	throttle  bytes are delivered, but so many a second on each connection
//	swallow   connections are accepted, but no byte and no end arrives
//	refuse    new connections are refused; open ones are carried as before
//
// A connection that lost a byte, or was opened in mode swallow, stays dead for
// ever, as with a router that forgot it; pass brings life to new ones only.
// cut ends what is open, in every mode.
//
// All methods may be called at any time, from any goroutine.
type proxy struct {
	t       testing.TB
	target  string
	address string
	running sync.WaitGroup // every goroutine of the proxy

	mu         sync.Mutex // guards the fields below
	listener   net.Listener
	refusing   bool
	swallowing bool
	latency    time.Duration
	perSecond  int // bytes; 0 for no limit
	accepted   int
	links      map[*link]struct{}
}

// link is a client's connection and the one that continues it to the server.
type link struct {
	ctx    context.Context // its end resets both connections
	cut    context.CancelFunc
	client *net.TCPConn
	dead   atomic.Bool // nothing is delivered any more, in either direction
}

// startProxy returns a proxy in front of target ("host:port"). It ends with
// the test, and all its connections do.
func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	if err != nil {
		t.Fatalf("startProxy: %v", err)
	}
	p := &proxy{
		t:        t,
		target:   target,
		address:  l.Addr().String(),
		listener: l,
		links:    make(map[*link]struct{}),
	}
	p.running.Go(func() { p.serve(l) })
	t.Cleanup(func() {
		p.refuse()
		p.cut()
		p.running.Wait()
	})
	return p
}

// through returns a copy of a client configuration that leads through p.
func (p *proxy) through(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Host = "https://" + p.address
	return c
}

// pass delivers bytes at once, and accepts connections again.
func (p *proxy) pass() {
	p.t.Helper()
	p.set(false, 0, 0)
}

// throttle delivers so many bytes a second, on each connection each way.
func (p *proxy) throttle(perSecond int) {
	p.t.Helper()
	p.set(false, 0, perSecond)
}

// delay delivers each byte d after it was sent.
func (p *proxy) delay(d time.Duration) {
	p.t.Helper()
	p.set(false, d, 0)
}

// swallow takes bytes and connections from both sides, and gives nothing.
func (p *proxy) swallow() {
	p.t.Helper()
	p.set(true, 0, 0)
}

// refuse lets dialing fail. What is open goes on: cut it as well to play a
// host that has no server.
func (p *proxy) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refusing {
		p.refusing = true
		_ = p.listener.Close()
	}
}

// cut resets all open connections, and returns how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	return len(p.links)
}

// dials returns how many connections clients have opened so far.
func (p *proxy) dials() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// open returns how many connections are open.
func (p *proxy) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// set changes the mode, and listens again if connections were refused.
func (p *proxy) set(swallow bool, latency time.Duration, perSecond int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallowing, p.latency, p.perSecond = swallow, latency, perSecond
	if !p.refusing {
		return
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Errorf("proxy: listening again: %v", err)
		return
	}
	p.refusing, p.listener = false, l
	p.running.Go(func() { p.serve(l) })
}

func (p *proxy) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.t.Errorf("proxy: accept: %v", err)
			return
		}
		l := p.add(conn.(*net.TCPConn))
		p.running.Go(func() { p.carry(l) })
	}
}

func (p *proxy) add(client *net.TCPConn) *link {
	ctx, cut := context.WithCancel(context.Background())
	l := &link{ctx: ctx, cut: cut, client: client}
	context.AfterFunc(ctx, func() { reset(client) })
	p.mu.Lock()
	defer p.mu.Unlock()
	l.dead.Store(p.swallowing)
	p.accepted++
	p.links[l] = struct{}{}
	if p.refusing {
		l.cut() // accepted just before the listener closed
	}
	return l
}

func (p *proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	l.cut()
}

// carry owns l until both of its directions have ended.
func (p *proxy) carry(l *link) {
	defer p.remove(l)
	if l.dead.Load() {
		_, _ = io.Copy(io.Discard, l.client)
		return
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(l.ctx, "tcp", p.target)
	if err != nil {
		return // the client is reset: the server is not there
	}
	server := conn.(*net.TCPConn)
	context.AfterFunc(l.ctx, func() { reset(server) })
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, server, l.client) })
	both.Go(func() { p.pump(l, l.client, server) })
	both.Wait()
}

// parcel is a piece of a stream, and when it is to be delivered.
type parcel struct {
	due  time.Time
	data []byte
}

// pump carries one direction of l to its end.
func (p *proxy) pump(l *link, to, from *net.TCPConn) {
	parcels := make(chan parcel, 64)
	p.running.Go(func() {
		defer close(parcels)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n == 0 && err != nil {
				if !errors.Is(err, io.EOF) && !p.lost(l) {
					l.cut() // the sender reset it: so do we
				}
				return
			}
			p.mu.Lock()
			due := time.Now().Add(p.latency)
			p.mu.Unlock()
			parcels <- parcel{due, data[:n]} // pump takes until the channel closes
		}
	})
	for parcel := range parcels {
		select {
		case <-time.After(time.Until(parcel.due)):
		case <-l.ctx.Done():
		}
		if p.lost(l) {
			continue
		}
		if err := p.deliver(l, to, parcel.data); err != nil {
			l.cut()
		}
	}
	if !p.lost(l) && l.ctx.Err() == nil { // one that is cut has no orderly end
		_ = to.CloseWrite()
	}
}

// deliver writes data, as fast as it may.
func (p *proxy) deliver(l *link, to *net.TCPConn, data []byte) error {
	const slices = 20 // of a second
	for len(data) > 0 {
		n := len(data)
		p.mu.Lock()
		perSecond := p.perSecond
		p.mu.Unlock()
		if perSecond > 0 {
			n = min(n, max(1, perSecond/slices))
			select {
			case <-time.After(time.Second / slices):
			case <-l.ctx.Done():
				return l.ctx.Err()
			}
		}
		if _, err := to.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// lost returns whether what l carries now gets lost. Once it is, it stays.
func (p *proxy) lost(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swallowing {
		l.dead.Store(true)
	}
	return l.dead.Load()
}

// reset closes a connection in the way that tells the peer of an accident.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
