package informertest

import (
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
	// Query holds the parameters of the URL.
	Query url.Values
	// UserAgent is the header of that name: by it a client says who it is, as
	// with rest.Config.UserAgent.
	UserAgent string
	// Status is the HTTP status of the answer, 0 while there is none.
	Status int
}

// Watch reports that r asks for a watch.
func (r Request) Watch() bool {
	watch := r.Query.Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// requestLog holds the last requests, the oldest first.
type requestLog struct {
	limit int

	mu       sync.Mutex // guards requests, and what they point to
	requests []*Request
}

func (l *requestLog) add(r *http.Request) *Request {
	entry := &Request{
		Time: time.Now(), Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), UserAgent: r.UserAgent(),
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

func (l *requestLog) answered(entry *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if entry.Status == 0 {
		entry.Status = status
	}
}

func (l *requestLog) all() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Request, len(l.requests))
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
