package informer

import (
	"errors"
	"fmt"
	"time"
)

// A Lease is the right to work on a key, and no one else has it meanwhile. It
// comes from [WorkQueue.Get], and ends with the first call of Done or Retry; all
// later ones, also those on copies, do nothing and return false, even if the
// key has been leased again. Its methods may be called from any goroutine. The
// zero Lease counts as ended.
type Lease[K comparable] struct {
	// Key is the key that is leased.
	Key K
	// Attempt counts the leases of the key since one ended in Done: it is 1,
	// and one more after each Retry.
	Attempt int
	// Priority is the highest one that the key was added with. Retry keeps it.
	Priority Priority

	slot   uint32      // where the key was when it was leased: a good guess
	number leaseNumber // never used twice in a queue
	queue  *WorkQueue[K]
}

// Done finishes the lease: what there was to do has been done. If the key was
// added meanwhile, it becomes ready, otherwise the queue, limiter included,
// forgets it.
//
// Done returns false if the lease was finished before.
func (l Lease[K]) Done() bool {
	if l.queue == nil {
		return false
	}
	return l.queue.finish(l, outcome{})
}

// Retry finishes the lease: what there was to do has not been done, because of
// err. The key becomes ready again after the delay that the limiter gives, or
// the one that err asks for by way of [RetryAfter]; earlier if it is pending
// already. It is not retried if err is [Terminal]: then Retry is Done. In each
// case err is reported to OnError first, unless it is nil or does not say what
// went wrong.
//
// While the queue drains, the key is not retried but kept for [WorkQueue.Drain]
// to return. Retry returns false if the lease was finished before, or if Drain
// has returned, so that no one is left who would get the key.
func (l Lease[K]) Retry(err error) (taken bool) {
	q := l.queue
	if q == nil {
		return false
	}
	// From here on the lease is ours: a second call fails, and the code of the
	// user can run without the lock. If it panics, the key is not lost.
	l, ok := q.takeOver(l)
	if !ok {
		return false
	}
	out := l.again()
	out.failed = true
	defer func() { taken = q.finish(l, out) }()

	if q.onError != nil && isFailure(err) {
		q.onError(l.Key, err)
	}
	if _, terminal := errors.AsType[*terminalError](err); terminal {
		out = outcome{}
		return
	}
	if after, ok := errors.AsType[*retryAfterError](err); ok {
		out.due = q.after(after.delay)
		return
	}
	ask := false
	if ask, out.stays = q.mustAsk(l); ask {
		out.due, out.limited = q.after(q.limiter.When(l.Key)), true
	}
	return
}

// An outcome says how a lease ends. The zero value means that all is done.
type outcome struct {
	again   bool  // the key is to be leased again
	failed  bool  // and that counts as an attempt
	limited bool  // due came from the limiter
	stays   bool  // if it is delayed, then because the limiter said so before
	due     int64 // when
	// The priority with which it is pending at least.
	priority Priority
}

// again returns the outcome that the key is ready again.
func (l Lease[K]) again() outcome {
	return outcome{again: true, due: noDelay, priority: l.Priority.known()}
}

// release finishes the lease as if it had not been: the key is ready again.
func (l Lease[K]) release() bool {
	return l.queue.finish(l, l.again())
}

// leaseLocked leases the next key in line. There is one. The caller holds mu.
func (q *WorkQueue[K]) leaseLocked() Lease[K] {
	slot := q.nextLocked()
	q.moveLocked(slot, workIdle, 0)
	q.leases = q.leases.next()
	q.leased++
	w := q.keys.at(slot)
	w.lease = q.leases
	return Lease[K]{
		Key:      q.keys.key(slot),
		Attempt:  int(w.attempts) + 1,
		Priority: w.priority,
		queue:    q,
		number:   q.leases,
		slot:     slot,
	}
}

// heldLocked returns the slot of the key that l leases, noSlot if l has been
// finished. The caller holds mu.
func (q *WorkQueue[K]) heldLocked(l Lease[K]) uint32 {
	if l.number == (leaseNumber{}) {
		return noSlot // the zero Lease
	}
	if int(l.slot) < len(q.keys.slots) && q.keys.at(l.slot).lease == l.number {
		return l.slot
	}
	if !usable(l.Key) {
		return noSlot
	}
	slot := q.keys.find(q.hash(l.Key), l.Key)
	if slot == noSlot || q.keys.at(slot).lease != l.number {
		return noSlot
	}
	return slot
}

// takeOver gives l a new number, so that only the caller can finish it. It
// reports false if l has been finished.
func (q *WorkQueue[K]) takeOver(l Lease[K]) (Lease[K], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	slot := q.heldLocked(l)
	if slot == noSlot {
		return l, false
	}
	q.leases = q.leases.next()
	q.keys.at(slot).lease = q.leases
	l.slot, l.number = slot, q.leases
	return l, true
}

// mustAsk reports whether the limiter decides when the key of l is retried, and
// notes that it is asked; or whether it has done so before.
func (q *WorkQueue[K]) mustAsk(l Lease[K]) (ask, has bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.keys.at(q.heldLocked(l))
	if q.stage != queueOpen || w.limitless() {
		return false, w.limited
	}
	w.asked, w.limited = true, true
	return true, false
}

// finish ends l. It returns false if l has been ended before, or if the key was
// to be leased again and the queue has ended.
func (q *WorkQueue[K]) finish(l Lease[K], out outcome) bool {
	q.mu.Lock()
	slot := q.heldLocked(l)
	if slot == noSlot {
		q.mu.Unlock()
		return false
	}
	if q.keys.at(slot).asked && !out.again {
		q.mu.Unlock()
		return q.forget(l)
	}
	taken := q.finishLocked(slot, out)
	q.unlockAndWake()
	return taken
}

// forget ends l, whose work is done, and makes the limiter forget the key, while
// no one else can have it.
func (q *WorkQueue[K]) forget(l Lease[K]) bool {
	l, ok := q.takeOver(l)
	if !ok {
		return false
	}
	defer func() {
		q.mu.Lock()
		slot := q.heldLocked(l)
		q.keys.at(slot).asked = false
		q.finishLocked(slot, outcome{})
		q.unlockAndWake()
	}()
	q.limiter.Forget(l.Key)
	return true
}

// finishLocked ends the lease of the key in slot. It reports false if the key
// was to be leased again and the queue has ended. The caller holds mu.
func (q *WorkQueue[K]) finishLocked(slot uint32, out outcome) bool {
	w := q.keys.at(slot)
	taken := !out.again || q.stage != queueEnded
	if len(q.drainers) > 0 {
		delete(q.drainers, q.keys.key(slot))
	}
	w.lease = leaseNumber{}
	q.leased--
	switch {
	case !out.again:
		w.attempts = 0
	case out.failed:
		w.attempts++
	}
	if out.again && w.at != workIdle {
		q.raiseLocked(slot, out.priority)
	}
	switch {
	case w.at == workAgain:
		q.moveLocked(slot, q.nowLocked(w), 0)
	case w.at == workDelayed && out.stays:
	case out.again && taken:
		q.scheduleLocked(slot, q.dueLocked(out), keepEarliest, out.priority)
		w.limited = w.at == workDelayed && (w.limited || out.limited)
	}
	if w.at == workIdle {
		q.dropLocked(slot)
	}
	q.settleLocked()
	return taken
}

// dueLocked returns when a retried key is due. While the queue drains, that is
// at once, which means that it is kept. The caller holds mu.
func (q *WorkQueue[K]) dueLocked(out outcome) int64 {
	if q.stage != queueOpen {
		return noDelay
	}
	return out.due
}

// RetryAfter returns an error that asks for another attempt after delay, instead
// of the one that the limiter gives. A negative delay counts as none. err is
// what went wrong, and can be told by [errors.Is] and [errors.As]; it may be
// nil if nothing did, and then nothing is reported.
func RetryAfter(delay time.Duration, err error) error {
	return &retryAfterError{max(delay, 0), err}
}

// Terminal returns an error that says that no other attempt would help: the key
// is not retried, until it is added again. It wins over [RetryAfter]. err is
// what went wrong, and can be told by [errors.Is] and [errors.As]; if it is
// nil, so is the result.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

// retryAfterError is what RetryAfter returns.
type retryAfterError struct {
	delay time.Duration
	err   error // may be nil
}

func (e *retryAfterError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("retry after %v", e.delay)
	}
	return fmt.Sprintf("%v (retry after %v)", e.err, e.delay)
}

func (e *retryAfterError) Unwrap() error { return e.err }

// terminalError is what Terminal returns.
type terminalError struct{ err error }

func (e *terminalError) Error() string { return fmt.Sprintf("%v (not retried)", e.err) }

func (e *terminalError) Unwrap() error { return e.err }

// isFailure reports that err says what went wrong, and does not merely ask for
// another attempt.
func isFailure(err error) bool {
	after, ok := errors.AsType[*retryAfterError](err)
	return err != nil && !(ok && after.err == nil)
}

// isDirective reports that err says what is to be done with the key.
func isDirective(err error) bool {
	_, after := errors.AsType[*retryAfterError](err)
	_, terminal := errors.AsType[*terminalError](err)
	return after || terminal
}
