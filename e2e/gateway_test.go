package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
)

// testNetworkThrottles has a line so slow that a list takes seconds. Promises 3
// and 8: it is waited for, once, and nothing of it is a failure.
func testNetworkThrottles(t *testing.T, s *server) {
	const perSecond = 40_000
	namespace := s.namespace("throttled")
	s.putMaps(namespace, 0, 300)
	p := startProxy(t, s.address())
	p.throttle(perSecond)
	var seen recorder
	config := seen.record(p.through(s.admin()))
	config.DisableCompression = true // or the list is small
	began := time.Now()
	r := run(t, restMapsOf(t, config, namespace), impatient())
	r.waitSynced()
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("synced after %v: the line is not slow enough to show anything", took)
	}
	s.putMaps(namespace, 250, 350)
	convergesToMaps(r, s, namespace)
	listsFollowExpiries(r, &seen)
	if failures := r.failures(); len(failures) != 0 {
		t.Errorf("failures = %v, want none", failures)
	}
}

// testNetworkClosesOften resets all connections every two seconds, in the middle
// of lists and watches. Promises 3, 9, 11 and 20: each end of a watch is one
// watch more and, as far as a source is told, one report, and no list. A
// clientset hides a reset: to its user, the watch ended in order.
func testNetworkClosesOften(t *testing.T, s *server) {
	const times = 6
	namespace := s.namespace("closed-often")
	s.putMaps(namespace, 0, 20)
	p := startProxy(t, s.address())
	var seen, seenREST recorder
	r := runMaps(t, seen.record(p.through(s.admin())), namespace, impatient())
	rest := run(t, restMapsOf(t, seenREST.record(p.through(s.admin())), namespace), impatient())
	r.waitSynced()
	rest.waitSynced()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for i := range times {
		s.putMaps(namespace, i*5, i*5+20)
		<-tick.C
		p.cut()
	}
	convergesToMaps(r, s, namespace)
	convergesToMaps(rest, s, namespace)
	listsFollowExpiries(r, &seen)
	listsFollowExpiries(rest, &seenREST)
	for _, of := range []*recorder{&seen, &seenREST} {
		// The first watch is the streaming list, which goes on as one.
		if got := len(of.watches()); got > 2*times {
			t.Errorf("%d watches after %d cuts, want about as many\n%s", got, times, of)
		}
	}
	if failures := r.failures(); len(failures) > times {
		t.Errorf("%d failures after %d cuts, want at most as many: %v", len(failures), times, failures)
	}
	failures := rest.failures()
	if got := len(failures); got < times/2 || got > times+2 {
		t.Errorf("FromREST: %d failures after %d cuts, want about as many: %v", got, times, failures)
	}
	for _, f := range failures {
		if f.Err == nil || f.Next <= 0 {
			t.Errorf("failure %+v, want an error, and a wait before the next attempt", f)
		}
	}
}

// testGatewayCloses has a gateway that ends each watch in order, two seconds
// after it began. Promises 9 and 11; case 28 (kubespawner#920, k8s#67350): at
// most ten watches in ten seconds, nothing is listed anew, nothing is reported.
func testGatewayCloses(t *testing.T, s *server) {
	namespace := s.namespace("gateway")
	s.putMaps(namespace, 0, 20)
	var seen recorder
	r := runMaps(t, behindGateway(seen.record(s.admin()), 2*time.Second), namespace, impatient())
	r.waitSynced()
	began := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for i := 0; time.Since(began) < 10*time.Second; i++ {
		<-tick.C
		s.putMaps(namespace, i, i+5)
	}
	watches := len(seen.watches())
	if watches < 3 || watches > 10 {
		t.Errorf("%d watches in ten seconds, want one every two seconds\n%s", watches, &seen)
	}
	convergesToMaps(r, s, namespace)
	listsFollowExpiries(r, &seen)
	if failures := r.failures(); len(failures) != 0 {
		t.Errorf("failures = %v, want none", failures)
	}
	if status := r.Status(); status.Dropped != 0 {
		t.Errorf("%d events were dropped, want none", status.Dropped)
	}
}

// behindGateway returns a copy of a client configuration whose watches end, as
// if the server had ended them, after some time.
func behindGateway(config *rest.Config, most time.Duration) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("watch") == "" {
				return next.RoundTrip(req)
			}
			ctx, cancel := context.WithTimeout(req.Context(), most)
			resp, err := next.RoundTrip(req.WithContext(ctx))
			if err != nil {
				cancel()
				return resp, err
			}
			resp.Body = &gatewayBody{ReadCloser: resp.Body, request: req.Context(), gateway: ctx, cancel: cancel}
			return resp, nil
		})
	})
	return c
}

// gatewayBody ends in order when the gateway's time is over.
type gatewayBody struct {
	io.ReadCloser
	request, gateway context.Context
	cancel           context.CancelFunc
}

// Read reads until the time is over.
func (b *gatewayBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.gateway.Err() != nil && b.request.Err() == nil {
		err = io.EOF
	}
	return n, err
}

// Close closes the body.
func (b *gatewayBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// testServerTooBusy answers 429, with a time to come back after, to watches and
// lists in turn. Promises 9 and 20: the time is kept to, each answer is reported
// once, and what was watched is resumed.
func testServerTooBusy(t *testing.T, s *server) {
	namespace := s.namespace("busy")
	s.putMaps(namespace, 0, 20)
	p := startProxy(t, s.address())
	var seen recorder
	var busy atomic.Bool
	busy.Store(true)
	config := seen.record(tooBusy(p.through(s.admin()), &busy))
	r := run(t, restMapsOf(t, config, namespace), impatient())
	eventually(t, "the informer is told to come back", func(context.Context) error { return saysTooMany(r.failures(), 2) })
	if got := len(seen.all()); got > 4 {
		t.Errorf("%d requests while each was told to wait a second, want 2 or 3\n%s", got, &seen)
	}
	busy.Store(false)
	r.waitSynced()
	convergesToMaps(r, s, namespace)

	before := len(seen.lists()) + len(seen.streamingLists())
	told := len(r.failures())
	busy.Store(true)
	p.cut()
	s.putMaps(namespace, 10, 30)
	eventually(t, "the watch is told to come back", func(context.Context) error { return saysTooMany(r.failures()[told:], 1) })
	busy.Store(false)
	convergesToMaps(r, s, namespace)
	if got := len(seen.lists()) + len(seen.streamingLists()); got != before {
		t.Errorf("%d lists after the watch was told to wait, want it resumed\n%s", got-before, &seen)
	}
}

func saysTooMany(failures []informer.Failure, least int) error {
	n := 0
	for _, f := range failures {
		if apierrors.IsTooManyRequests(f.Err) {
			n++
		}
	}
	if n < least {
		return fmt.Errorf("%d of %v, want %d", n, failures, least)
	}
	return nil
}

// tooBusy returns a copy of a client configuration whose requests are answered
// 429 as long as busy is set.
func tooBusy(config *rest.Config, busy *atomic.Bool) *rest.Config {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too busy",` +
		`"reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if !busy.Load() {
				return next.RoundTrip(req)
			}
			return &http.Response{
				StatusCode: http.StatusTooManyRequests, Status: "429 Too Many Requests", Request: req,
				Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}},
				Body:   io.NopCloser(strings.NewReader(status)),
			}, nil
		})
	})
	return c
}
