package informertest

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// A Request is what a [Server] remembers of a request.
type Request struct {
	// Time is when it came.
	Time time.Time
	// Method is the HTTP method, Path the path of the URL.
	Method, Path string
	// Verb is what was asked: "list", "watch", "stream" for a streaming list,
	// "get", "create" and so on; Resource is of what, such as "pods". Both are
	// empty if the path names no resource.
	Verb, Resource string
	// Query holds the parameters of the URL.
	Query url.Values
	// UserAgent is the header of that name: by it a client says who it is, as
	// with rest.Config.UserAgent.
	UserAgent string
	// Status is the HTTP status of the answer, 0 while there is none.
	Status int
	// Ended is when the answer was complete or was given up; zero before.
	Ended time.Time
	// Fault is what has gone wrong on purpose, if anything has: of a stream that
	// ended before its fault was due, it is empty.
	Fault Fault
}

// Watch reports that r asks for a watch.
func (r Request) Watch() bool {
	watch := r.Query.Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// Requests is a sequence of requests, the oldest first.
type Requests []Request

// Of returns those of a kind, such as "watch"; see [Request].Verb.
func (r Requests) Of(verb string) Requests {
	var some Requests
	for _, request := range r {
		if request.Verb == verb {
			some = append(some, request)
		}
	}
	return some
}

// Struck returns those that a fault has struck.
func (r Requests) Struck() Requests {
	var some Requests
	for _, request := range r {
		if request.Fault != "" {
			some = append(some, request)
		}
	}
	return some
}

// Versions returns the resource version that each has asked for.
func (r Requests) Versions() []string {
	versions := make([]string, len(r))
	for i, request := range r {
		versions[i] = request.Query.Get("resourceVersion")
	}
	return versions
}

// Pauses returns the time from the end of each to the next: of a client that
// asks one thing at a time, how long it has waited.
func (r Requests) Pauses() []time.Duration {
	var pauses []time.Duration
	for i := 1; i < len(r); i++ {
		pauses = append(pauses, r[i].Time.Sub(r[i-1].Ended))
	}
	return pauses
}

// requestLog holds the last requests, the oldest first.
type requestLog struct {
	limit int
	about func(*http.Request) (asked, bool)

	mu       sync.Mutex // guards requests, and what they point to
	requests []*Request
}

func (l *requestLog) add(r *http.Request) *Request {
	entry := &Request{
		Time: time.Now(), Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), UserAgent: r.UserAgent(),
	}
	if q, ok := l.about(r); ok {
		entry.Verb, entry.Resource = q.verb, q.resource.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.requests) == l.limit {
		l.requests[0] = nil
		l.requests = l.requests[1:]
	}
	l.requests = append(l.requests, entry)
	return entry
}

func (l *requestLog) ended(entry *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Ended = time.Now()
}

func (l *requestLog) answered(entry *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if entry.Status == 0 {
		entry.Status = status
	}
}

// entryKey is the key of a request's entry in its context.
type entryKey struct{}

// struck notes that a fault has struck a request.
func (l *requestLog) struck(r *http.Request, fault Fault) {
	entry, ok := r.Context().Value(entryKey{}).(*Request)
	if !ok {
		return // nothing is recorded
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Fault = fault
}

// refused notes a request that has not come.
func (l *requestLog) refused(r *http.Request, fault Fault) {
	if l.limit <= 0 {
		return
	}
	entry := l.add(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Fault, entry.Ended = fault, entry.Time
}

func (l *requestLog) all() Requests {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(Requests, len(l.requests))
	for i, r := range l.requests {
		all[i] = *r
	}
	return all
}

// wrap returns a handler that remembers what next is asked and answers.
func (l *requestLog) wrap(next http.Handler) http.Handler {
	if l.limit <= 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entry := l.add(r)
		defer l.ended(entry) // also if the handler panics to close the connection
		r = r.WithContext(context.WithValue(r.Context(), entryKey{}, entry))
		next.ServeHTTP(&statusWriter{ResponseWriter: w, log: l, entry: entry}, r)
		l.answered(entry, http.StatusOK) // said nothing: net/http says 200
	})
}

// statusWriter tells the log of the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	log   *requestLog
	entry *Request
}

// WriteHeader notes the status.
func (w *statusWriter) WriteHeader(status int) {
	w.log.answered(w.entry, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write notes that the status is 200, if none was given.
func (w *statusWriter) Write(p []byte) (int, error) {
	w.log.answered(w.entry, http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find what the server's own writer can.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
