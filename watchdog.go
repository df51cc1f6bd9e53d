package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// errOverdue is behind every end of a request by its watchdog.
var errOverdue = errors.New("given up")

// A watchdog ends a request from outside, as who ranges over its events is
// blocked while none come. It has no bounds at first. It belongs to one
// goroutine; its timers only cancel.
type watchdog struct {
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	start  time.Time

	total *time.Timer // nil: the request may take any time

	// To set a timer for each event would cost more than all else about it. So
	// quiet looks when it is due whether anything came meanwhile.
	silence time.Duration // that is allowed; zero: any
	since   atomic.Int64  // when it began, as an age; negative: there is none now

	mu    sync.Mutex  // guards the field below
	quiet *time.Timer // nil: any silence is allowed
}

// newWatchdog returns a watchdog for a request that begins now.
func newWatchdog(ctx context.Context) *watchdog {
	ctx, cancel := context.WithCancelCause(ctx)
	return &watchdog{ctx: ctx, cancel: cancel, start: time.Now()}
}

// age returns how long the request has taken so far.
func (w *watchdog) age() time.Duration { return time.Since(w.start) }

// within ends the request when it has taken d in all. It replaces an earlier
// such bound.
func (w *watchdog) within(d time.Duration) {
	stopTimer(w.total)
	w.total = time.AfterFunc(d-w.age(), func() {
		w.cancel(fmt.Errorf("%w: not complete after %v", errOverdue, d))
	})
}

// neverSilent ends the request when nothing is heard for d.
func (w *watchdog) neverSilent(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silence = d
	w.since.Store(int64(w.age()))
	w.quiet = time.AfterFunc(d, w.check)
}

// check ends the request if nothing was heard for too long, or else sees to it
// that this is asked again when it may be so.
func (w *watchdog) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quiet == nil {
		return
	}
	left := w.silence // if there is no silence now, it will not be over earlier
	if since := time.Duration(w.since.Load()); since >= 0 {
		left -= w.age() - since
	}
	if left > 0 {
		w.quiet.Reset(left)
		return
	}
	w.cancel(fmt.Errorf("%w: no event for %v", errOverdue, w.silence))
}

// hold says that an event has come. The time until listen is called is the
// consumer's, and no silence.
func (w *watchdog) hold() {
	if w.silence > 0 {
		w.since.Store(-1)
	}
}

// listen says that the next event may come.
func (w *watchdog) listen() {
	if w.silence > 0 {
		w.since.Store(int64(w.age()))
	}
}

// silenceAllowed lifts the bound of neverSilent.
func (w *watchdog) silenceAllowed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	stopTimer(w.quiet)
	w.quiet, w.silence = nil, 0
}

// reason returns why the request has ended: by the watchdog if that is so, or
// else by err. An error of user code is never hidden.
func (w *watchdog) reason(err error) error {
	if _, end := errors.AsType[*endError](err); end {
		return err
	}
	if cause := context.Cause(w.ctx); errors.Is(cause, errOverdue) {
		return cause
	}
	return err
}

// stop lets go of everything.
func (w *watchdog) stop() {
	w.silenceAllowed()
	stopTimer(w.total)
	w.cancel(nil)
}

// stopTimer stops t, which may be nil.
func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
