package informertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errFault is the reason in the errors that faults are.
var errFault = errors.New("informertest: a fault, as the test wants it")

// exchange is a request that a fault has struck, and its answer.
type exchange struct {
	strike
	asked  asked
	server *Server
	w      http.ResponseWriter
	r      *http.Request
}

// serveFaulty answers a request, with the fault that strikes it if one does.
func (s *Server) serveFaulty(w http.ResponseWriter, r *http.Request) {
	q, ok := s.asked(r)
	if !ok {
		s.serve(w, r)
		return
	}
	struck, ok := s.faults.take(q, false)
	if !ok {
		s.serve(w, r)
		return
	}
	x := exchange{strike: struck, asked: q, server: s, w: w, r: r}
	if struck.After == 0 || verbsOf(q.verb)&onStreams == 0 {
		x.note()
	}
	struck.word.serve(x)
}

// note records that the fault has struck.
func (x exchange) note() { x.server.requests.struck(x.r, x.Fault) }

// drop closes the connection. If nothing had been sent, a transport would try
// again by itself, and its user would not notice.
func (x exchange) drop() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}

func (x exchange) hang() {
	<-x.r.Context().Done()
	panic(http.ErrAbortHandler)
}

func (x exchange) delay() {
	if !sleep(x.r.Context(), x.wait) {
		panic(http.ErrAbortHandler)
	}
	x.server.serve(x.w, x.r)
}

func (x exchange) gateway() {
	ctx, cancel := context.WithTimeout(x.r.Context(), x.wait)
	defer cancel()
	x.server.serve(x.w, x.r.WithContext(ctx))
}

// refuse answers with an error, or has it told in the stream.
func (x exchange) refuse() {
	if verbsOf(x.asked.verb)&onStreams != 0 && (x.After > 0 || x.InStream) {
		x.alter()
		return
	}
	err := x.status()
	if x.asked.page > 1 && x.word.fault == FaultExpired {
		err = x.tokenExpired()
	}
	writeError(x.w, err)
}

// tokenExpired is what a server says whose state for a page is gone. It knows
// how to go on from there with another state.
func (x exchange) tokenExpired() error {
	t, err := decodeToken(x.asked.query.Get("continue"))
	if err != nil {
		return err
	}
	q := listQuery{start: t.Start, number: t.Page, continued: true}
	return q.expired()
}

// alter answers as the server would, but for the fault.
func (x exchange) alter() {
	if verbsOf(x.asked.verb)&onStreams != 0 {
		x.alterStream()
	} else {
		x.alterList()
	}
}

// change does something to the server before it answers.
func (x exchange) change() {
	var err error
	switch x.word.fault {
	case FaultRestored:
		err = x.server.Restore(x.Version)
	case FaultReborn:
		_, err = x.server.recreate(target{resource: x.asked.resource, namespace: x.Key.Namespace, name: x.Key.Name})
	default:
		x.server.Compact()
	}
	if err != nil {
		writeError(x.w, fmt.Errorf("informertest: %s: %w", x.Fault, err))
		return
	}
	x.server.serve(x.w, x.r)
}

// stale answers a list with an older state.
func (x exchange) stale() {
	if x.asked.verb == "stream" {
		point, err := strconv.ParseInt(x.Version, 10, 64)
		if err != nil {
			writeError(x.w, err)
			return
		}
		x.server.serve(x.w, x.r.WithContext(context.WithValue(x.r.Context(), staleKey{}, point)))
		return
	}
	query := x.r.URL.Query()
	if query.Get("resourceVersion") == "0" {
		query.Del("limit") // as the server's cache does
	}
	query.Set("resourceVersion", x.Version)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	r := x.r.Clone(x.r.Context())
	r.URL.RawQuery = query.Encode()
	x.server.serve(x.w, r)
}

// staleKey is the key in a request's context of the version that a streaming
// list is to show.
type staleKey struct{}

// status returns the error that the fault is, or nil.
func (x exchange) status() error { return statusOfFault(x.word.fault, x.wait, x.asked) }

// statusOfFault returns the error that a fault is, or nil if it is none.
func statusOfFault(fault Fault, wait time.Duration, q asked) error {
	resource := schema.GroupResource{Resource: "scripted"}
	if q.resource != nil {
		resource = q.resource.groupResource()
	}
	message := errFault.Error()
	switch fault {
	case FaultExpired:
		return apierrors.NewResourceExpired(listTooOld)
	case FaultTooLarge:
		return tooLarge(2, 1)
	case FaultTooMany:
		return apierrors.NewTooManyRequests(message, int(wait.Seconds()))
	case FaultInternal:
		return apierrors.NewInternalError(errFault)
	case FaultUnavailable:
		return apierrors.NewServiceUnavailable(message)
	case FaultTimeout:
		return apierrors.NewTimeoutError(message, 0)
	case FaultUnauthorized:
		return apierrors.NewUnauthorized(message)
	case FaultForbidden:
		return apierrors.NewForbidden(resource, "", errFault)
	case FaultNotFound:
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "", "", 0, true)
	case FaultNotAllowed:
		return apierrors.NewMethodNotSupported(resource, q.verb)
	case FaultInvalid:
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", nil)
	}
	return nil
}

// sleep waits, and reports whether ctx has not ended meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// clientTransport sends the requests of clients, but for those that are to be
// refused.
type clientTransport struct{ server *Server }

// RoundTrip refuses the connection, or sends the request.
func (t clientTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	q, ok := t.server.asked(r)
	if !ok {
		return t.server.transport.RoundTrip(r)
	}
	struck, ok := t.server.faults.take(q, true)
	if !ok {
		return t.server.transport.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	t.server.requests.refused(r, struck.Fault)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: t.server.listener.Addr(), Err: syscall.ECONNREFUSED}
}

// CloseIdleConnections closes the connections that nobody uses now.
func (t clientTransport) CloseIdleConnections() { t.server.transport.CloseIdleConnections() }
