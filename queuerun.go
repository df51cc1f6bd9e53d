package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// A panicError says that the function of a worker panicked, and where.
type panicError struct{ text string }

func (e *panicError) Error() string { return e.text }

// leaseContext is the key, in the context of a worker, of the worker's lease.
type leaseContext[K comparable] struct{ queue *WorkQueue[K] }

// Run leases keys and calls fn for each of them, on so many goroutines at a
// time, until ctx ends or the queue has been drained. Several Runs may share a
// queue.
//
// If fn returns nil, the lease is [Lease.Done], otherwise it ends in
// [Lease.Retry] with the error; unless fn has finished it itself, by way of
// [WorkQueue.LeaseOf]. The context of fn ends with ctx, or after the option
// Timeout. When ctx has ended, an error that wraps the one of ctx, or its cause,
// puts the key back as it was: nothing is reported, and it does not count as an
// attempt. Panics of fn are handled as OnPanic says.
//
// When ctx ends, Run leases no other key, waits for the calls of fn, and
// returns nil; the queue stays open, and can be run again. Run returns nil as
// well when [WorkQueue.Drain] was called and no key is left to be worked off.
// It returns [ErrStopped] if that was so before, as [WorkQueue.Get] does, and an
// error if workers is not above zero, if fn is nil, or if fn called
// [runtime.Goexit].
func (q *WorkQueue[K]) Run(ctx context.Context, workers int, fn func(ctx context.Context, key K) error) error {
	if workers <= 0 {
		return fmt.Errorf("informer: queue %s: run: workers is %d: must be above zero", q.opts.Name, workers)
	}
	if fn == nil {
		return fmt.Errorf("informer: queue %s: run: the function is nil", q.opts.Name)
	}
	q.mu.Lock()
	over := q.overLocked()
	q.mu.Unlock()
	if over {
		return q.stoppedError()
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	var exit error // of the first worker whose goroutine fn has ended
	stop := func(err error) {
		once.Do(func() { exit = err })
		cancel(err)
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				lease, err := q.Get(ctx)
				if err != nil {
					return
				}
				q.work(ctx, stop, lease, fn)
			}
		})
	}
	running.Wait()
	return exit
}

// LeaseOf returns the lease of the key that a function is called for by
// [WorkQueue.Run], from the context that it was given: how many attempts there
// were, how long ago the key was added. The function may finish the lease itself,
// by [Lease.Park], say; what it returns then counts no more. LeaseOf returns
// false if ctx does not come from this queue.
func (q *WorkQueue[K]) LeaseOf(ctx context.Context) (Lease[K], bool) {
	lease, ok := ctx.Value(leaseContext[K]{q}).(Lease[K])
	return lease, ok
}

// work calls fn for the key of lease, and finishes the lease.
func (q *WorkQueue[K]) work(
	ctx context.Context, stop func(error), lease Lease[K], fn func(context.Context, K) error,
) {
	err := q.call(ctx, stop, lease, fn)
	switch {
	case err == nil:
		lease.Done()
	case ctx.Err() != nil && !isDirective(err) &&
		(errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		// If fn has not finished the lease, only we can from here on.
		if q.takeOver(&lease) && !lease.release() {
			q.log(ctx, tooLate, &lease, false, err)
		}
	default:
		q.failed(ctx, lease, err)
	}
}

// tooLate says that a lease ended after the queue. Its key is lost, unless it was
// added meanwhile: the Drain that gave up told only how many such keys there are.
const tooLate = "the queue has ended, and does not take the key back"

// failed finishes the lease of an attempt because of err, and sees to it that
// somebody is told.
func (q *WorkQueue[K]) failed(ctx context.Context, lease Lease[K], err error) {
	how, taken := lease.fail(err, EndedRetry)
	_, panicked := errors.AsType[*panicError](err)
	switch {
	case how != 0 && !taken:
		q.log(ctx, tooLate, &lease, false, err)
	case how != 0 && isFailure(err):
		q.log(ctx, "attempt failed", &lease, how == EndedPark, err)
	case how == 0 && panicked: // fn has finished the lease, and not returned
		if q.opts.OnError != nil {
			q.opts.OnError(lease.Key, err)
		}
		q.log(ctx, "panic after the end of the lease", &lease, false, err)
	}
}

// log logs what became of the attempt of lease.
func (q *WorkQueue[K]) log(ctx context.Context, what string, lease *Lease[K], parked bool, err error) {
	if q.opts.Logger == nil {
		return
	}
	q.opts.Logger.LogAttrs(ctx, slog.LevelWarn, what, slog.String("queue", q.opts.Name),
		slog.String("key", fmt.Sprint(lease.Key)), slog.Int("attempt", lease.Attempt),
		slog.Bool("parked", parked), slog.String("err", shortText(err)))
}

// call calls fn. It makes a panic an error, or a crash that names the key. If fn
// calls runtime.Goexit, call never returns: it finishes the lease, and stops
// the run.
func (q *WorkQueue[K]) call(
	ctx context.Context, stop func(error), lease Lease[K], fn func(context.Context, K) error,
) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		cause := recover()
		if cause == nil {
			err := fmt.Errorf("informer: queue %s: key %v: the function called runtime.Goexit", q.opts.Name, lease.Key)
			stop(err)
			q.failed(ctx, lease, err)
			return
		}
		text := fmt.Sprintf("informer: queue %s: key %v: panic: %v", q.opts.Name, lease.Key, cause)
		if q.opts.OnPanic == PanicCrash {
			panic(text)
		}
		err = &panicError{fmt.Sprintf("%s\n\n%s", text, debug.Stack())}
	}()
	ctx = context.WithValue(ctx, leaseContext[K]{q}, lease)
	if q.opts.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, q.opts.Timeout)
		defer cancel()
		ctx = limited
	}
	err = fn(ctx, lease.Key)
	returned = true
	return err
}
