package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// request is one request of a client, and how it was answered.
type request struct {
	at     time.Time
	method string
	path   string
	query  url.Values // resourceVersion, sendInitialEvents, limit, …

	status int   // 0 as long as there is no answer
	err    error // why there is none

	// expired says that the server no longer had the version: the answer was
	// 410, or it was a watch and had such an error event in it.
	expired bool
	ended   bool // the answer was read to its end, failed, or was closed
}

// isWatch tells a watch that begins at a version from all else.
func (r request) isWatch() bool { return r.watches() && !r.streams() }

// isStreamingList tells a watch that begins with a list in its stream.
func (r request) isStreamingList() bool { return r.watches() && r.streams() }

// isList tells a plain list, or one page of one, from all else.
func (r request) isList() bool {
	return r.method == http.MethodGet && !r.watches() && isCollection(r.path)
}

func (r request) watches() bool {
	watch := r.query.Get("watch")
	return watch == "true" || watch == "1"
}

func (r request) streams() bool { return r.query.Get("sendInitialEvents") == "true" }

// isCollection tells .../pods from .../pods/web-0.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] { // drop the group and version
	case "api":
		parts = parts[min(2, len(parts)):]
	case "apis":
		parts = parts[min(3, len(parts)):]
	default:
		return false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return len(parts) == 1
}

// recorder keeps the requests of the clients whose configuration it was added
// to. The zero value is ready to use, from any goroutine.
type recorder struct {
	mu       sync.Mutex // guards the field below, and what it points to
	requests []*request
}

// record returns a copy of a client configuration whose requests r keeps.
func (r *recorder) record(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return recordingTransport{to: r, next: next}
	})
	return c
}

// all returns the requests so far, in the order in which they were sent.
func (r *recorder) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := make([]request, len(r.requests))
	for i, req := range r.requests {
		requests[i] = *req
	}
	return requests
}

// matching returns the requests so far for which keep is true.
func (r *recorder) matching(keep func(request) bool) []request {
	return slices.DeleteFunc(r.all(), func(req request) bool { return !keep(req) })
}

func (r *recorder) lists() []request          { return r.matching(request.isList) }
func (r *recorder) watches() []request        { return r.matching(request.isWatch) }
func (r *recorder) streamingLists() []request { return r.matching(request.isStreamingList) }

// probes returns how many lists of one object there were.
func (r *recorder) probes() int {
	return len(r.matching(func(req request) bool { return req.isList() && req.query.Get("limit") == "1" }))
}

// expired returns the requests that were answered with 410.
func (r *recorder) expired() []request {
	return r.matching(func(req request) bool { return req.expired })
}

// String returns the requests so far, a line each.
func (r *recorder) String() string {
	var lines strings.Builder
	for _, req := range r.all() {
		fmt.Fprintf(&lines, "%s %s %s?%s: %d expired=%v err=%v\n",
			req.at.Format("05.000"), req.method, req.path, req.query.Encode(), req.status, req.expired, req.err)
	}
	return lines.String()
}

// reset forgets the requests so far.
func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

type recordingTransport struct {
	to   *recorder
	next http.RoundTripper
}

// RoundTrip keeps what it passes on.
func (t recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	kept := &request{
		at:     time.Now(),
		method: req.Method,
		path:   req.URL.Path,
		query:  req.URL.Query(),
	}
	t.to.mu.Lock()
	t.to.requests = append(t.to.requests, kept)
	t.to.mu.Unlock()

	resp, err := t.next.RoundTrip(req)

	t.to.mu.Lock()
	defer t.to.mu.Unlock()
	if err != nil {
		kept.err, kept.ended = err, true
		return resp, err
	}
	kept.status = resp.StatusCode
	kept.expired = resp.StatusCode == http.StatusGone
	resp.Body = &recordedBody{ReadCloser: resp.Body, to: t.to, of: kept}
	return resp, nil
}

// recordedBody looks for the end of an answer, and for a 410 in a watch.
type recordedBody struct {
	io.ReadCloser
	to   *recorder
	of   *request
	tail []byte // the last bytes read: an event may come in two pieces
}

// Read passes bytes on and looks at them.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.tail = append(b.tail, p[:n]...)
	b.to.mu.Lock()
	b.of.expired = b.of.expired || b.of.watches() && hasExpiredEvent(b.tail)
	b.of.ended = b.of.ended || err != nil
	b.to.mu.Unlock()
	const longestError = 1 << 10
	b.tail = slices.Delete(b.tail, 0, max(0, len(b.tail)-longestError))
	return n, err
}

// Close ends the answer.
func (b *recordedBody) Close() error {
	b.to.mu.Lock()
	b.of.ended = true
	b.to.mu.Unlock()
	return b.ReadCloser.Close()
}

// hasExpiredEvent looks for an error event with reason Expired, in JSON or in
// protobuf, where field 1 of an event is its type.
func hasExpiredEvent(stream []byte) bool {
	for _, begin := range []string{`"type":"ERROR"`, "\x0a\x05ERROR"} {
		if _, event, found := bytes.Cut(stream, []byte(begin)); found {
			return bytes.Contains(event, []byte("Expired"))
		}
	}
	return false
}
