package informer

import (
	"context"
	"fmt"
	"time"
)

// A Handler is told of the changes of an informer's cache, one by one, each
// key's in order. It may block: other handlers are not held up, and what it
// misses meanwhile is coalesced. When it is called, the cache shows the change
// already, or something later. The objects are shared with the cache and with
// all other handlers, and must not be written to.
type Handler[T Object] func(Change[T])

// HandlerFuncs makes a [Handler] of three functions, of which any may be nil:
// pass its method Handle.
type HandlerFuncs[T Object] struct {
	// OnAdd is told of a new object. Initial says that the object was there
	// when the handler, or the informer, began.
	OnAdd func(obj T, initial bool)
	// OnUpdate is told of a new state; on a resync old and obj are the same.
	OnUpdate func(old, obj T)
	// OnDelete is told that an object is gone. Exact says that last is its
	// final state, otherwise it is the last one known.
	OnDelete func(last T, exact bool)
}

// Handle calls the function for c.
func (h HandlerFuncs[T]) Handle(c Change[T]) {
	switch {
	case c.Type == Added && h.OnAdd != nil:
		h.OnAdd(c.New, c.Cause == CauseInitial)
	case c.Type == Updated && h.OnUpdate != nil:
		h.OnUpdate(c.Old, c.New)
	case c.Type == Deleted && h.OnDelete != nil:
		h.OnDelete(c.New, c.Exact)
	}
}

// Filter returns a handler that sees only the objects that keep accepts: one
// that begins to be accepted is added for h; one that ceases to be is deleted,
// inexactly, with the last state that was accepted. Both functions are called on
// the handler's goroutine, and keep must give the same answer every time. If
// either is nil, so is the result, which AddHandler refuses.
func Filter[T Object](keep func(T) bool, h Handler[T]) Handler[T] {
	if keep == nil || h == nil {
		return nil
	}
	return func(c Change[T]) {
		had := c.Type != Added && keep(c.Old)
		keeps := c.Type != Deleted && keep(c.New)
		switch {
		case !had && !keeps:
			return
		case !had:
			var none T
			c.Type, c.Old = Added, none
		case !keeps && c.Type == Updated:
			c.Type, c.New = Deleted, c.Old
		}
		h(c)
	}
}

// PanicPolicy says what happens when a handler, or the function of a queue's
// workers, panics.
type PanicPolicy uint8

const (
	// PanicCrash lets the program crash, with the name of what panicked and the
	// key in the message. It is the default.
	PanicCrash PanicPolicy = iota
	// PanicReport reports the panic, with its stack, and goes on. A handler's is
	// a [Failure], and a line in the log.
	PanicReport
	// PanicDetach reports the panic and removes the handler.
	PanicDetach
)

// HandlerOptions tunes a handler. The zero value is ready to use.
type HandlerOptions struct {
	// Backlog is the number of changes that a handler may be behind before
	// they are coalesced to at most two a key. Where there are more objects
	// than that, their number counts instead.
	//
	// Default: 1024.
	Backlog int

	// Name is used in errors, and is the Op of a [Failure] for a panic.
	//
	// Default: "handler N".
	Name string

	// OnPanic says what happens when the handler panics.
	//
	// Default: PanicCrash.
	OnPanic PanicPolicy

	// Resync is the time in which the handler is told of each object once
	// more, as an update with CauseResync, spread over that time. It makes no
	// request. It is at least a millisecond.
	//
	// Default: never.
	Resync time.Duration
}

const defaultBacklog = 1024

// withDefaults returns a copy of o without zero values, or every mistake in o.
func (o HandlerOptions) withDefaults(name string) (HandlerOptions, error) {
	o.Name = orElse(o.Name, name)
	switch {
	case o.Backlog < 0:
		return o, fmt.Errorf("informer: options of %s: Backlog is %d: must not be negative", o.Name, o.Backlog)
	case o.Resync < 0:
		return o, fmt.Errorf("informer: options of %s: Resync is %v: must not be negative", o.Name, o.Resync)
	case o.Resync > 0 && o.Resync < time.Millisecond:
		return o, fmt.Errorf("informer: options of %s: Resync is %v: must be at least 1ms", o.Name, o.Resync)
	case o.OnPanic > PanicDetach:
		return o, fmt.Errorf("informer: options of %s: OnPanic is %d: no such policy", o.Name, o.OnPanic)
	}
	o.Backlog = orElse(o.Backlog, defaultBacklog)
	return o, nil
}

// A Registration is a handler's place at an informer. It comes from
// [Informer.AddHandler]. Its methods may be called from any goroutine, the
// handler included; but a call of WaitSynced by an initial call waits for itself.
type Registration struct {
	name         string
	synced, done <-chan struct{}
	remove       func()
	depth        func() (int, time.Duration)
}

// Synced returns a channel that is closed when the handler has returned from
// the last of its initial calls: those for the objects that were there when it
// was added or, if it was added before the informer's first list, for the
// objects of that list.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// WaitSynced waits until the channel of Synced is closed. It returns [ErrRemoved]
// if the handler is removed before, also by the end of the informer, and the
// cause of ctx if that ends before; both with the handler's name.
func (r *Registration) WaitSynced(ctx context.Context) error {
	select {
	case <-r.synced:
		return nil
	default:
	}
	select {
	case <-r.synced:
		return nil
	case <-r.done:
		return fmt.Errorf("informer: %s: not synced: %w", r.name, ErrRemoved)
	case <-ctx.Done():
		return fmt.Errorf("informer: %s: not synced: %w", r.name, context.Cause(ctx))
	}
}

// Remove ends the calls: after it has returned none starts. It does not wait
// for one that is running, or just beginning: see Done. So the handler itself
// may call it, and more than once.
func (r *Registration) Remove() { r.remove() }

// Done returns a channel that is closed when the handler was removed, by Remove
// or by the end of the informer, and its last call has returned.
func (r *Registration) Done() <-chan struct{} { return r.done }

// Backlog returns how many calls the handler has yet to return from, coalesced
// where it is far behind, and the age of the oldest change among them: how long
// ago the cache began to apply it, of an initial call when the handler was
// added. Where changes were coalesced it is the age of the first. Both are zero
// while the handler is idle.
func (r *Registration) Backlog() (changes int, age time.Duration) { return r.depth() }
