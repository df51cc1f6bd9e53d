package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// An Informer keeps a copy of all objects of a source up to date, and tells
// handlers what changes. Its embedded [Reader] reads that copy.
//
// It owns one pipeline, shared by any number of handlers, indexes and readers:
//
//	source ──▶ Reflector ──▶ DeltaFIFO ──▶ Indexer ──▶ log ──▶ handlers
//	           one goroutine ───────────▶  one ─────────────▶  one each
//
// Run does the work, and returns when its context ends. Before the first list
// is complete the copy is empty, and after Run it stays as it was last. Handlers
// and indexes may be added at any time before and meanwhile. All methods may be
// called from any goroutine. Objects are shared by everybody: they are
// read-only.
//
// New makes an Informer; the zero value is not usable.
type Informer[T Object] struct {
	Reader[T]

	opts      Options
	store     *Indexer[T]
	fifo      *DeltaFIFO[T]
	fan       *fanOut[T]
	reflector *Reflector[T]

	ended chan struct{} // closed when Run has begun to return

	failing sync.Mutex // held while OnFailure runs, which is called one at a time

	mu       sync.Mutex // guards the fields below
	life     lifecycle
	stop     context.CancelFunc               // of Run, while running
	err      error                            // why Run ends, if not because of its context
	handlers burstMap[*follower[T], struct{}] // those that have not ended
	names    int                              // handlers ever, for their names
}

// lifecycle is where an Informer stands. It only goes forward.
type lifecycle uint8

const (
	beforeRun lifecycle = iota
	inRun
	afterRun // Run has returned, or is about to
)

// New returns an informer of the objects of source. It starts nothing: see Run.
// It returns an error if source is nil or was made from a nil client, or if the
// options are wrong, naming each mistake.
func New[T Object](source ListerWatcher[T], opts Options) (*Informer[T], error) {
	inf := &Informer[T]{ended: make(chan struct{})}
	opts, err := opts.withDefaults(typeName[T]())
	if err != nil {
		return nil, err
	}
	inf.store = NewIndexer[T](IndexerOptions{OnError: func(err error) { inf.fail("index", err) }})
	inf.Reader = inf.store.Reader
	inf.fifo = NewDeltaFIFO(inf.Reader)
	inf.fan = newFanOut(inf.store)
	if opts.OnFailure != nil {
		onFailure := opts.OnFailure
		opts.OnFailure = func(f Failure) error {
			inf.failing.Lock()
			defer inf.failing.Unlock()
			return onFailure(f)
		}
	}
	inf.opts = opts
	if inf.reflector, err = newReflector(source, inf.fifo.apply, opts); err != nil {
		return nil, err
	}
	return inf, nil
}

// Run lists, watches and calls handlers until ctx ends, and then returns nil.
// All goroutines have ended by then, except those of user code that has not
// returned within [Options.Grace]: then it returns an error that says which.
//
// Before that it returns an error if no retry would help: a *[WrongTypeError],
// [ErrWatchNotSupported], or what Options.OnFailure returned. A second Run
// returns [ErrRunning] during the first one, and [ErrStopped] after it.
func (inf *Informer[T]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := inf.begin(cancel); err != nil {
		return err
	}
	tasks := []task{
		inf.spawn("the source or OnFailure", func() error { return inf.reflector.Run(ctx) }),
		inf.spawn("an index function or OnFailure", func() error { return inf.pump(ctx) }),
	}
	<-ctx.Done()
	tasks = append(tasks, inf.finish()...)
	// A variable of its own: the tasks may not have begun, and look at ctx.
	after := context.WithoutCancel(ctx)
	late := inf.await(after, tasks)
	inf.reflector.log.end(after)
	return errors.Join(inf.fatal(), late)
}

// begin starts the handlers that were added before Run.
func (inf *Informer[T]) begin(stop context.CancelFunc) error {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	switch inf.life {
	case inRun:
		return inf.errorf("%w", ErrRunning)
	case afterRun:
		return inf.errorf("%w", ErrStopped)
	}
	inf.life, inf.stop = inRun, stop
	for h := range inf.handlers.entries {
		h.start()
	}
	return nil
}

// pump brings batches from the queue to the store until ctx ends.
func (inf *Informer[T]) pump(ctx context.Context) error {
	for {
		err := inf.fifo.popParts(ctx, inf.fan.apply)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// end makes Run return, with err unless it has another reason already. With a
// nil error it does nothing.
func (inf *Informer[T]) end(err error) {
	if err == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.err == nil {
		inf.err = err
	}
	if inf.stop != nil {
		inf.stop()
	}
}

// fatal returns why Run ended, nil if because of its context.
func (inf *Informer[T]) fatal() error {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	return inf.err
}

// finish ends the life of the informer: it removes all handlers, and returns
// them as tasks, since their last call may not have returned yet.
func (inf *Informer[T]) finish() (tasks []task) {
	inf.mu.Lock()
	inf.life = afterRun
	handlers := inf.handlers.entries
	inf.handlers = burstMap[*follower[T], struct{}]{}
	inf.mu.Unlock()
	close(inf.ended)
	for h := range handlers {
		h.remove()
		tasks = append(tasks, task{h.opts.Name, h.done})
	}
	return tasks
}

// await waits for all tasks, together up to the grace, and returns an error for
// each that has not ended by then.
func (inf *Informer[T]) await(ctx context.Context, tasks []task) error {
	grace, cancel := context.WithTimeout(ctx, inf.opts.Grace)
	defer cancel()
	var late []error
	for _, t := range tasks {
		if t.wait(grace) != nil {
			late = append(late, inf.errorf("%s has not returned within %v after the end", t.what, inf.opts.Grace))
		}
	}
	return errors.Join(late...)
}

// task is a goroutine, with a name for it in terms of the user's code in it.
type task struct {
	what string
	done <-chan struct{}
}

// spawn starts a goroutine, whose error ends Run. So does user code that ends
// the goroutine, as a failed test does: nothing would work without it. The
// caller waits for the task.
func (inf *Informer[T]) spawn(what string, f func() error) task {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := inf.errorf("%s has ended its goroutine", what)
		defer func() { inf.end(err) }()
		err = f()
	}()
	return task{what, done}
}

// wait waits for the end of the task. It returns the error of ctx if that ends
// before.
func (t task) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	default:
	}
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status returns how the informer is doing. It may be called at any time.
func (inf *Informer[T]) Status() Status {
	s := inf.reflector.Status()
	select {
	case <-inf.Synced():
		s.Objects = inf.Len()
	default:
	}
	return s
}

// AddHandler registers a handler. It is called with the objects that are there,
// as additions with CauseInitial, then with every change after that: no gap and
// no duplicate. Its calls begin when Run does, and are made on one goroutine of
// its own. AddHandler may be called at any time, also by a handler.
//
// It returns an error if handler is nil or the options are wrong, and
// [ErrStopped] after the end of Run.
func (inf *Informer[T]) AddHandler(handler Handler[T], opts HandlerOptions) (*Registration, error) {
	if handler == nil {
		return nil, inf.errorf("the handler is nil")
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.life == afterRun {
		return nil, inf.errorf("%w", ErrStopped)
	}
	inf.names++
	opts, err := opts.withDefaults(fmt.Sprintf("handler %d", inf.names))
	if err != nil {
		return nil, err
	}
	h := newFollower(inf.fan, handler, opts)
	h.report = func(err error) { inf.fail(opts.Name, err) }
	h.forget = func() { inf.forget(h) }
	inf.fan.join(h)
	inf.handlers.put(h, struct{}{})
	if inf.life == inRun {
		h.start()
	}
	return h.registration(), nil
}

// forget says that h has ended.
func (inf *Informer[T]) forget(h *follower[T]) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	inf.handlers.remove(h)
}

// fail reports a failure of one object, and ends Run if OnFailure wants it.
func (inf *Informer[T]) fail(op string, err error) {
	inf.reflector.health.update(func(s *Status) { s.Faults++ })
	inf.reflector.log.failed(op, err)
	if inf.opts.OnFailure != nil {
		inf.end(inf.opts.OnFailure(Failure{Op: op, Err: err}))
	}
}

// indexTarget returns where an index on the informer is kept.
func (inf *Informer[T]) indexTarget() (*Indexer[T], error) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.life == afterRun {
		return nil, inf.errorf("%w", ErrStopped)
	}
	return inf.store, nil
}

// errorf returns an error that begins with the informer's name.
func (inf *Informer[T]) errorf(format string, args ...any) error {
	return fmt.Errorf("informer: %s: "+format, append([]any{inf.opts.Name}, args...)...)
}
