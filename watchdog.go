package informer

import (
	"context"
	"errors"
	"fmt"
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

	silence time.Duration // that is allowed, if quiet is set
	quiet   *time.Timer   // nil: any silence is allowed
	total   *time.Timer   // nil: the request may take any time
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
	w.silence = d
	w.quiet = time.AfterFunc(d, func() {
		w.cancel(fmt.Errorf("%w: no event for %v", errOverdue, d))
	})
}

// hold says that an event has come. The time until listen is called is the
// consumer's, and no silence.
func (w *watchdog) hold() {
	if w.quiet != nil {
		w.quiet.Stop()
	}
}

// listen says that the next event may come.
func (w *watchdog) listen() {
	if w.quiet != nil {
		w.quiet.Reset(w.silence)
	}
}

// silenceAllowed lifts the bound of neverSilent.
func (w *watchdog) silenceAllowed() {
	stopTimer(w.quiet)
	w.quiet = nil
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
	stopTimer(w.quiet)
	stopTimer(w.total)
	w.cancel(nil)
}

// stopTimer stops t, which may be nil.
func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
