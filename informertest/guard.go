package informertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-99a027e8/informer"
)

// A Guard finds out who changes objects of a cache, which are shared by all and
// read-only. It is a source in front of another one. Of each object it takes a
// copy before anybody has seen it, and a check compares the two:
//
//	guard := informertest.NewGuard(informer.FromClient[*corev1.Pod](client))
//	guard.Verify(t) // at the end of the test
//	pods, err := informer.New(guard, informer.Options{})
//
// A check finds every object that was changed and that anybody still has: in
// the cache, in a handler, wherever. Of those that nobody has any more, it finds
// the last few hundred that were replaced or deleted, which is where the old
// object of an update or of a deletion goes. Each is reported once.
//
// The guard keeps one copy of each object that is still in use, and forgets it
// with the object: what it takes does not grow with time, but it doubles the
// memory of a cache and copies whatever comes. It is for tests, and for finding
// a fault in a program.
//
// A [informer.Transform] may change objects, so it belongs behind the guard:
// NewGuard(informer.Transform(source, fn)). A check reads objects while others
// may write to them; that is the fault which it looks for, and the race detector
// may be the first to tell.
//
// Only pointers can be guarded. All methods may be called concurrently, at any
// time.
type Guard[E any, T interface {
	*E
	informer.Object
}] struct {
	source informer.ListerWatcher[T]

	mu sync.Mutex // guards the fields below; no object is copied or compared under it

	copies  map[weak.Pointer[E]]*original[T]
	sweepAt int // number of copies at which those without an object are dropped
	last    map[informer.Key]latest[T]
	list    uint64          // number of the list that runs, or ran last
	retired [recent]T       // the last objects that were replaced or deleted, a ring
	next    int             // index in retired
	found   []*MutatedError // and not reported yet
}

const (
	recent    = 256 // objects that were replaced or deleted, and are not let go
	fewCopies = 256 // below that nothing is swept
	mostFound = 100 // errors that wait for a check
)

// original is what is known of an object as it was.
type original[T any] struct {
	key     informer.Key
	version string
	copy    T
}

// latest is the object of a key that came last.
type latest[T any] struct {
	obj  T
	list uint64 // that had it, or during which it came
}

// A MutatedError says that an object was changed after it had come from its
// source.
type MutatedError struct {
	// Key names the object, as it was.
	Key informer.Key
	// Version is its resource version, as it was.
	Version string
	// Field is the first field that differs, as in JSON, such as
	// "spec.containers[0].image" or `metadata.labels["app.kubernetes.io/name"]`.
	// It is empty if the object itself is of another kind or nil.
	Field string
}

// Error names object and field.
func (e *MutatedError) Error() string {
	return fmt.Sprintf("informertest: object %q, version %q, was changed: %s", e.Key, e.Version, e.Field)
}

// NewGuard returns a guard in front of source.
func NewGuard[E any, T interface {
	*E
	informer.Object
}](source informer.ListerWatcher[T]) *Guard[E, T] {
	return &Guard[E, T]{
		source: source, copies: map[weak.Pointer[E]]*original[T]{}, sweepAt: fewCopies, last: map[informer.Key]latest[T]{},
	}
}

// List yields a page of the source.
func (g *Guard[E, T]) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	if opts.Continue == "" {
		g.beginList()
	}
	return g.guarded(g.source.List(ctx, opts))
}

// Watch yields what the source sends.
func (g *Guard[E, T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		g.beginList()
	}
	return g.guarded(g.source.Watch(ctx, opts))
}

// Check returns an error for each object that was changed since the last check,
// joined: each is a *[MutatedError].
func (g *Guard[E, T]) Check() error {
	g.mu.Lock()
	g.sweepLocked()
	objects := make([]T, 0, len(g.copies))
	for w := range g.copies {
		if obj := w.Value(); obj != nil {
			objects = append(objects, obj)
		}
	}
	g.mu.Unlock()

	for _, obj := range objects {
		g.compare(obj)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	errs := make([]error, len(g.found))
	for i, err := range g.found {
		errs[i] = err
	}
	g.found = nil
	return errors.Join(errs...)
}

// Verify makes a test fail at its end if an object was changed. The test's other
// cleanups that were added later have run by then.
func (g *Guard[E, T]) Verify(t TB) {
	t.Cleanup(func() {
		if err := g.Check(); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// Run checks again and again, with that time in between, until a check finds
// something, which Run returns, or ctx ends; then, after a last check, it
// returns what that finds, or nil. A time that is not positive is an error.
func (g *Guard[E, T]) Run(ctx context.Context, every time.Duration) error {
	if every <= 0 {
		return fmt.Errorf("informertest: Guard.Run every %v: must be positive", every)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return g.Check()
		case <-ticker.C:
		}
		if err := g.Check(); err != nil {
			return err
		}
	}
}

// guarded returns seq, with copies taken.
func (g *Guard[E, T]) guarded(seq iter.Seq2[informer.Event[T], error]) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		for ev, err := range seq {
			if err == nil {
				g.take(ev)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// take takes a copy of an event's object, and looks for the last time at one
// that has been out of use for long.
func (g *Guard[E, T]) take(ev informer.Event[T]) {
	var was *original[T]
	if ev.Object != nil {
		was = &original[T]{key: ev.Key, version: ev.Version, copy: deepCopy(ev.Object)}
	}
	var out []T
	g.mu.Lock()
	if was != nil {
		g.keepLocked(ev.Object, was)
	}
	switch ev.Type {
	case informer.EventAdded, informer.EventModified:
		out = g.retireLocked(g.last[ev.Key].obj)
		g.last[ev.Key] = latest[T]{obj: ev.Object, list: g.list}
	case informer.EventDeleted:
		out = append(g.retireLocked(g.last[ev.Key].obj), g.retireLocked(ev.Object)...)
		delete(g.last, ev.Key)
	case informer.EventEnd:
		if ev.Continue == "" {
			out = g.endListLocked()
		}
	}
	g.mu.Unlock()
	for _, obj := range out {
		g.compare(obj)
	}
}

// keepLocked remembers how obj was, unless it is known already. The caller holds
// g.mu.
func (g *Guard[E, T]) keepLocked(obj T, was *original[T]) {
	w := weak.Make((*E)(obj))
	if _, known := g.copies[w]; known {
		return
	}
	g.copies[w] = was
	if len(g.copies) >= g.sweepAt {
		g.sweepLocked()
	}
}

// sweepLocked drops the copies of objects that are gone. The caller holds g.mu.
func (g *Guard[E, T]) sweepLocked() {
	for w := range g.copies {
		if w.Value() == nil {
			delete(g.copies, w)
		}
	}
	g.sweepAt = 2*len(g.copies) + fewCopies
}

// retireLocked takes an object that was replaced or deleted, and returns the one
// that is let go for it, if there are any. The caller holds g.mu.
func (g *Guard[E, T]) retireLocked(obj T) []T {
	if obj == nil {
		return nil
	}
	gone := g.retired[g.next]
	g.retired[g.next] = obj
	g.next = (g.next + 1) % recent
	if gone == nil {
		return nil
	}
	return []T{gone}
}

// beginList marks the beginning of a list.
func (g *Guard[E, T]) beginList() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list++
}

// endListLocked retires the objects that the list does not have. The caller
// holds g.mu.
func (g *Guard[E, T]) endListLocked() (out []T) {
	for key, l := range g.last {
		if l.list != g.list {
			delete(g.last, key)
			out = append(out, g.retireLocked(l.obj)...)
		}
	}
	return out
}

// compare compares obj with its copy. An object that was changed is compared
// with what it is now from then on.
func (g *Guard[E, T]) compare(obj T) {
	w := weak.Make((*E)(obj))
	g.mu.Lock()
	was, known := g.copies[w]
	g.mu.Unlock()
	if !known {
		return
	}
	field, differs := firstDifference(reflect.ValueOf(was.copy), reflect.ValueOf(obj))
	if !differs {
		return
	}
	now := &original[T]{key: was.key, version: was.version, copy: deepCopy(obj)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.copies[w] != was { // somebody else has found it
		return
	}
	g.copies[w] = now
	if len(g.found) < mostFound {
		g.found = append(g.found, &MutatedError{Key: was.key, Version: was.version, Field: field})
	}
}

// deepCopy returns a copy of obj that shares nothing with it.
func deepCopy[T any](obj T) T {
	if known, ok := any(obj).(runtime.Object); ok {
		if out, ok := known.DeepCopyObject().(T); ok {
			return out
		}
	}
	return copied(reflect.ValueOf(obj)).Interface().(T)
}
