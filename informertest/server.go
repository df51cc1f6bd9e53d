package informertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Options tunes a [Server]. The zero value is ready to use.
type Options struct {
	// BookmarkInterval is the time between two bookmarks of a watch that asked
	// for them. As long as nothing is written after the start of the watch they
	// are left out; another one comes two seconds before a watch ends by its
	// timeout.
	//
	// Default: 1min.
	BookmarkInterval time.Duration

	// Chaos lets faults strike by chance. Rules for faults are given to
	// [Server.Inject].
	//
	// Default: no faults.
	Chaos Chaos

	// History is how many writes are remembered. Watches, exact lists and
	// continue tokens that need an older state are answered 410.
	//
	// Default: 4096.
	History int

	// Intercept wraps the handler of all requests, faults included, so that a
	// test can do what no fault does. http.NewResponseController works on the
	// writer that it gets. Requests shows what the wrapped handler says.
	//
	// Default: nothing is intercepted.
	Intercept func(http.Handler) http.Handler

	// Record is how many requests are remembered for Requests, the last ones.
	//
	// Default: none.
	Record int

	// Resources are the resources that are known beside the built-in ones.
	//
	// Default: none.
	Resources []Resource

	// Socket makes the server listen on a port of 127.0.0.1. In a synctest
	// bubble this cannot work.
	//
	// Default: connections in memory, for clients made of Config only.
	Socket bool
}

const (
	defaultBookmarkInterval = time.Minute
	defaultHistory          = 4096
	maxIdle                 = 64       // connections that a client keeps
	readBuffer              = 64 << 10 // bytes; of a pipe it is the unit of transfer
)

func (o Options) withDefaults() (Options, error) {
	if o.BookmarkInterval < 0 || o.History < 0 || o.Record < 0 {
		return o, fmt.Errorf("informertest: negative option: BookmarkInterval %v, History %d, Record %d",
			o.BookmarkInterval, o.History, o.Record)
	}
	var err error
	if o.Chaos, err = o.Chaos.withDefaults(); err != nil {
		return o, fmt.Errorf("informertest: %w", err)
	}
	if o.BookmarkInterval == 0 {
		o.BookmarkInterval = defaultBookmarkInterval
	}
	if o.History == 0 {
		o.History = defaultHistory
	}
	return o, nil
}

// Server is an API server for tests and demonstrations. It keeps its objects in
// memory and serves them over HTTP while Run runs; see the package's
// documentation for what it can do. The namespaces default, kube-node-lease,
// kube-public and kube-system exist from the start.
//
// All methods may be called concurrently, and all but Run at any time: objects
// can be written before Run and read after it.
type Server struct {
	opts      Options
	known     catalog
	store     *store
	requests  *requestLog
	faults    *faults
	initial   int64 // the version at the start
	listener  net.Listener
	host      string
	transport *http.Transport
	handler   http.Handler

	mu  sync.Mutex // guards ran
	ran bool
}

// NewServer returns a server that starts to answer when Run is called. With
// [Options].Socket it listens at once; Run closes the socket. It returns an
// error if an option makes no sense or the socket cannot be opened.
func NewServer(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	known, err := newCatalog(opts.Resources)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, known: known, store: newStore(opts.History), faults: &faults{chaos: opts.Chaos},
		transport: &http.Transport{
			DisableCompression: true, MaxIdleConnsPerHost: maxIdle, ReadBufferSize: readBuffer,
		},
	}
	if err := s.addNamespaces("default", "kube-node-lease", "kube-public", "kube-system"); err != nil {
		return nil, err
	}
	s.initial = s.store.current()
	s.requests = &requestLog{limit: opts.Record, about: s.asked}
	s.handler = http.HandlerFunc(s.serveFaulty)
	if opts.Intercept != nil {
		s.handler = opts.Intercept(s.handler)
	}
	s.handler = s.requests.wrap(s.handler)
	return s, s.listen()
}

func (s *Server) listen() error {
	if !s.opts.Socket {
		pipes := newPipeListener()
		s.listener, s.host, s.transport.DialContext = pipes, "http://informertest", pipes.dial
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("informertest: %w", err)
	}
	s.listener, s.host = listener, "http://"+listener.Addr().String()
	return nil
}

// Run serves until the context ends, and returns nil then. By that time all
// connections are closed and all goroutines of the server have ended. A second
// Run is an error.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	again := s.ran
	s.ran = true
	s.mu.Unlock()
	if again {
		return errors.New("informertest: the server has been run before")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns sync.WaitGroup
	server := &http.Server{
		Handler:     s.handler,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				conns.Done()
			case http.StateActive, http.StateIdle:
			}
		},
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = server.Close() // all it can say is that something was closed already
	})
	err := server.Serve(s.listener)
	if stop() {
		close(closed) // Serve failed by itself
	}
	<-closed
	_ = s.listener.Close()
	conns.Wait()
	s.transport.CloseIdleConnections()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("informertest: %w", err)
}

// Config returns what a client needs to talk to the server, for the typed,
// dynamic, metadata and discovery clients alike. It sets no limit on the rate
// of requests. The caller owns it.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: s.host, Transport: clientTransport{s}, QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType: "application/json", AcceptContentTypes: "application/json",
		},
	}
}

// ServeHTTP answers a request, also while Run does not run.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Version returns the version of the last write.
func (s *Server) Version() string { return formatVersion(s.store.current()) }

// Compact forgets all history: watches, exact lists and continue tokens that
// need a state of before now are answered 410. Watches that are open and up to
// date go on.
func (s *Server) Compact() { s.store.compact() }

// Requests returns the last requests in the order in which they came, as many
// as Options.Record says. Their maps are not to be changed.
func (s *Server) Requests() Requests { return s.requests.all() }

// serve answers a request that nobody intercepts.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	t, ok := s.known.parsePath(r.URL.Path)
	if !ok {
		if !s.serveDiscovery(w, r.URL.Path) {
			s.serveNotFound(w, r)
		}
		return
	}
	verb := t.verb(r.Method)
	if verb == "list" {
		s.serveList(w, r, t) // or a watch
		return
	}
	if verb == "" || !t.resource.allows(verb) {
		writeError(w, apierrors.NewGenericServerResponse(
			http.StatusMethodNotAllowed, r.Method, schema.GroupResource{}, "", "", 0, false))
		return
	}
	v, err := viewOf(r, t.resource, verb == "deletecollection")
	if err != nil {
		writeError(w, err)
		return
	}
	s.serveObject(w, r, t, v, verb)
}

// serveNotFound answers what there is no handler for: as a real server does,
// in two ways, for known groups and for unknown ones.
func (s *Server) serveNotFound(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	known := parts[0] == "api" || len(parts) > 2 && parts[0] == "apis" && slices.ContainsFunc(s.known, func(res *Resource) bool {
		return res.Group == parts[1]
	})
	if !known {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	writeError(w, apierrors.NewGenericServerResponse(
		http.StatusNotFound, r.Method, schema.GroupResource{}, "", "", 0, false))
}

func (s *Server) serveObject(w http.ResponseWriter, r *http.Request, t target, v view, verb string) {
	switch verb {
	case "get":
		s.serveGet(w, r, t, v)
	case "create":
		s.serveCreate(w, r, t, v)
	case "update":
		s.serveUpdate(w, r, t, v)
	case "patch":
		s.servePatch(w, r, t, v)
	case "delete":
		s.serveDelete(w, r, t, v)
	default:
		s.serveDeleteCollection(w, r, t, v)
	}
}

func (s *Server) serveGet(w http.ResponseWriter, r *http.Request, t target, v view) {
	version, bad := parseVersion(r.URL.Query().Get("resourceVersion"))
	if bad != nil {
		writeError(w, bad)
		return
	}
	if err := s.store.waitFor(r.Context(), version); err != nil {
		writeError(w, err)
		return
	}
	found, err := s.get(t)
	if err != nil {
		writeError(w, err)
		return
	}
	writeRecord(w, http.StatusOK, v, found)
}

func (s *Server) get(t target) (*record, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	found := s.store.getLocked(t.resource, t.resource.key(t.namespace, t.name))
	if found == nil {
		return nil, apierrors.NewNotFound(t.resource.groupResource(), t.name)
	}
	return found, nil
}
