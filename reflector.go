package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Reflector turns a [ListerWatcher] into one endless stream of events, and
// recovers from every error on the way. It writes the stream to one function,
// in an order that failures obey too:
//
//	stream = { Begin { Added | Modified | Deleted | Bad }
//	         [ End { Added | Modified | Deleted | Bad | Bookmark } ] }
//
// What stands between Begin and End is a list: the whole state of the server at
// the version of End. A list may break off; then the next event is Begin again,
// and what the broken list said does not count. Within a list, Added names each
// object once, and a second Added of it is a mistake of the server; of Modified
// and Deleted, the later event of an object wins. Deleted may name objects that
// are not known.
//
// A reflector lists once, as a stream if the server can, and then watches. It
// lists again only if the server no longer has the version that has been
// reached, or never had it. No failure makes it ask more often than Options
// allow. Run is its only goroutine; Status may be called from any.
//
// An [Informer] has one inside. Use a Reflector alone to keep a store of your
// own.
type Reflector[T Object] struct {
	source ListerWatcher[T]
	apply  func(*Event[T]) error // does not keep the event
	opts   Options
	health health
	log    sparseLog

	// The fields below belong to Run.

	backoff backoff
	// refused says that the server does not understand streaming lists.
	refused bool
}

// NewReflector returns a reflector that reads from source and passes every event
// to apply, one call at a time. It returns an error that names every mistake in
// opts, or that source or apply is nil.
//
// If apply returns an *[ObjectError], the event counts as skipped and the stream
// goes on. Any other error ends Run. Grace has no meaning here: Run waits for
// apply.
func NewReflector[T Object](source ListerWatcher[T], apply func(Event[T]) error, opts Options) (*Reflector[T], error) {
	if apply == nil {
		return newReflector(source, nil, opts)
	}
	return newReflector(source, func(ev *Event[T]) error { return apply(*ev) }, opts)
}

func newReflector[T Object](source ListerWatcher[T], apply func(*Event[T]) error, opts Options) (*Reflector[T], error) {
	opts, err := opts.withDefaults(typeName[T]())
	err = errors.Join(err, sourceError(source))
	if apply == nil {
		err = errors.Join(err, fmt.Errorf("informer: %s: apply is nil", opts.Name))
	}
	if err != nil {
		return nil, err
	}
	return &Reflector[T]{
		source:  source,
		apply:   apply,
		opts:    opts,
		health:  health{clock: coarseClock{start: time.Now()}, status: Status{State: StateIdle}},
		log:     sparseLog{logger: opts.Logger, name: opts.Name},
		backoff: backoff{min: opts.MinBackoff, max: opts.MaxBackoff, random: rand.N[time.Duration]},
	}, nil
}

// Run lists and watches until ctx ends, and then returns nil. It works once: a
// second call returns [ErrRunning] while the first goes on, and [ErrStopped]
// after it.
//
// Every failure is retried, but for these, which Run returns: an error of apply
// or of OnFailure, [ErrWatchNotSupported], and a *[WrongTypeError]. The last two
// are not told to OnFailure.
func (r *Reflector[T]) Run(ctx context.Context) (err error) {
	if err := r.health.start(); err != nil {
		return r.named(err)
	}
	r.log.changed(ctx, stateChange{to: StateListing}, nil)
	defer func() { r.log.changed(ctx, r.health.stop(), err) }()

	at := r.listAgain(list{})
	for ctx.Err() == nil {
		r.log.sumUp(ctx)
		done := r.step(ctx, at)
		if done.next == nil {
			return r.fatal(ctx, done)
		}
		if ctx.Err() != nil {
			break
		}
		wait, err := r.settle(ctx, done)
		if err != nil {
			return r.named(err)
		}
		if !pause(ctx, wait) {
			break
		}
		at = done.next
	}
	return nil
}

// Status returns how the reflector is doing. Objects is how many came in the
// running or the last list. A watch from which nothing has come counts as a
// success when it has been open for a minute.
func (r *Reflector[T]) Status() Status { return r.health.read() }

// fatal returns what Run returns after done, which has no next phase.
func (r *Reflector[T]) fatal(ctx context.Context, done result) error {
	err := fmt.Errorf("%s: %w", done.op, done.err)
	if end, ok := errors.AsType[*endError](done.err); ok {
		err = end.err
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	r.health.fail(StateFailing, err)
	return r.named(err)
}

// settle records how a request went, tells of a failure, and returns the pause
// before the next one. An error ends Run.
func (r *Reflector[T]) settle(ctx context.Context, done result) (time.Duration, error) {
	if done.err == nil {
		return done.pause, nil
	}
	if expired(done.err) {
		// Routine, and neither success nor failure.
		r.log.changed(ctx, r.health.expire(), nil)
		return r.backoff.next(done.err), nil
	}
	r.backoff.attempt++
	state, wait := StateFailing, time.Duration(0)
	switch {
	case notFound(done.err):
		state, wait = StateGone, r.backoff.gone(done.err)
	case !done.atOnce:
		wait = r.backoff.next(done.err)
	}
	err := fmt.Errorf("%s: %w", done.op, done.err)
	r.log.changed(ctx, r.health.fail(state, err), err)
	return wait, r.tell(Failure{Op: done.op, Attempt: r.backoff.attempt, Next: wait, Err: done.err})
}

// tell calls OnFailure.
func (r *Reflector[T]) tell(f Failure) error {
	if r.opts.OnFailure == nil {
		return nil
	}
	return r.opts.OnFailure(f)
}

// succeeded records that a request has succeeded.
func (r *Reflector[T]) succeeded(ctx context.Context, state State) {
	r.log.changed(ctx, r.health.succeed(state), nil)
}

// named returns err with the name of the reflector.
func (r *Reflector[T]) named(err error) error {
	return fmt.Errorf("informer: %s: %w", r.opts.Name, err)
}

// An endError carries an error of user code, which ends Run, past those of the
// server, which do not. It has no Unwrap, so that it is not taken for one.
type endError struct{ err error }

// Error returns the text of the error inside.
func (e *endError) Error() string { return e.err.Error() }

// received is an event and, if it is EventBad, what is wrong with its object.
type received[T Object] struct {
	Event[T]
	bad *ObjectError
}

// events ranges over a request, and turns errors of one object into events. Each
// event is valid until the next.
func (r *Reflector[T]) events(ctx context.Context, request iter.Seq2[Event[T], error]) iter.Seq2[*received[T], error] {
	return func(yield func(*received[T], error) bool) {
		in := &received[T]{}
		for ev, err := range request {
			in.Event, in.bad = ev, nil
			if err != nil {
				in.bad, _ = errors.AsType[*ObjectError](err)
				if in.bad == nil {
					yield(in, err)
					return
				}
			}
			r.health.hear()
			r.log.sumUp(ctx)
			in.examine()
			if !yield(in, nil) {
				return
			}
		}
	}
}

// examine makes ev a bad event if it has an error or should have one, or if it
// is about an object that has no name or is not the one that comes with it. A
// deletion just loses such an object.
func (ev *received[T]) examine() {
	about := ev.Type == EventAdded || ev.Type == EventModified || ev.Type == EventDeleted
	switch {
	case ev.bad != nil:
		if ev.Key == (Key{}) {
			ev.Key = ev.bad.Key
		}
		ev.bad = &ObjectError{Key: ev.Key, Err: ev.bad.Err}
	case about && ev.Key.Name == "":
		ev.bad = &ObjectError{Key: ev.Key, Err: errNoName}
	case ev.Type == EventBad:
		ev.bad = &ObjectError{Key: ev.Key, Err: errNoReason}
	case !about || ev.Type == EventDeleted && !ev.Exact:
		return
	default:
		err := misnamed(&ev.Event)
		if err == nil {
			return
		}
		if ev.Type == EventDeleted {
			ev.Event = Event[T]{Type: EventDeleted, Key: ev.Key, UID: ev.UID, Version: ev.Version}
			return
		}
		ev.bad = &ObjectError{Key: ev.Key, Err: err}
	}
	ev.Event = Event[T]{Type: EventBad, Key: ev.Key, UID: ev.UID, Version: ev.Version}
}

// misnamed returns an error if the object of ev is not the one that ev names,
// or is a nil pointer. Sources that make their events by hand may send such, and
// a store in which one is filed would never be right again.
func misnamed[T Object](ev *Event[T]) error {
	return guarded("the object", func() error {
		if key, uid := KeyOf(ev.Object), ev.Object.GetUID(); key != ev.Key || !sameUID(uid, ev.UID) {
			return fmt.Errorf("is %q with UID %q, and the event names UID %q", key, uid, ev.UID)
		}
		return nil
	})
}

// deliver passes an event to apply, and reports whether an object was taken, or
// its deletion. What concerns one object is counted and told; an error ends Run.
// A bad object without a name is told of only, as nobody could file it.
func (r *Reflector[T]) deliver(ev *received[T]) (taken bool, err error) {
	if ev.bad != nil {
		if err := r.skip(ev, ev.bad); err != nil || ev.Key.Name == "" {
			return false, err
		}
	}
	if err := r.apply(&ev.Event); err != nil {
		if bad, ok := errors.AsType[*ObjectError](err); ok {
			r.health.update(func(s *Status) { s.Skipped++ })
			return false, r.decodeFailed(bad)
		}
		return false, &endError{err}
	}
	return ev.Type == EventAdded || ev.Type == EventModified || ev.Type == EventDeleted, nil
}

// skip remembers that an object is bad, and tells that once.
func (r *Reflector[T]) skip(ev *received[T], bad *ObjectError) error {
	if !r.health.skip(ev.Key, badObject{err: bad, uid: ev.UID, version: ev.Version}) {
		return nil
	}
	return r.decodeFailed(bad)
}

// decodeFailed tells that one object cannot be used.
func (r *Reflector[T]) decodeFailed(bad *ObjectError) error {
	r.log.failed(opDecode, bad)
	if err := r.tell(Failure{Op: opDecode, Err: bad}); err != nil {
		return &endError{err}
	}
	return nil
}

// notFound reports that the server does not know the resource.
func notFound(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// expired reports that the server no longer has a version, or has it not yet.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || tooLarge(err)
}

// tooLarge reports that the server has not reached a version.
func tooLarge(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
