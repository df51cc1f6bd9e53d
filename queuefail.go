package informer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RetryAfter returns an error that asks for another attempt after delay, instead
// of the one that the limiter gives. A negative delay counts as none. err is
// what went wrong, and can be told by [errors.Is] and [errors.As]; it may be
// nil if nothing did, and then it is no failure: nothing is reported, the next
// attempt is the first one again, and the limiter forgets the key.
func RetryAfter(delay time.Duration, err error) error {
	return &retryAfterError{max(delay, 0), err}
}

// Terminal returns an error that says that no other attempt would help: the key
// is parked, as by [Lease.Park]. It wins over [RetryAfter], and is a failure even
// of one that is not. err is what went wrong, and can be told by [errors.Is] and
// [errors.As]; if it is nil, so is the result.
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

// isTerminal reports that no other attempt would help.
func isTerminal(err error) bool {
	_, ok := errors.AsType[*terminalError](err)
	return ok
}

// isFailure reports that err says what went wrong, and does not merely ask for
// another attempt, as one that is Terminal does not. Of several errors that are
// joined, one that does is enough.
func isFailure(err error) bool {
	after, ok := errors.AsType[*retryAfterError](err)
	if !ok || after.err != nil || isTerminal(err) {
		return err != nil
	}
	joined, ok := errors.AsType[joinedErrors](err)
	return ok && slices.ContainsFunc(joined.Unwrap(), isFailure)
}

// joinedErrors is an error of several, as of [errors.Join].
type joinedErrors interface {
	error
	Unwrap() []error
}

// isDirective reports that err says what is to be done with the key.
func isDirective(err error) bool {
	_, after := errors.AsType[*retryAfterError](err)
	return after || isTerminal(err)
}

// delayOf returns the delay that err asks for, if it does: by RetryAfter, or in
// the Retry-After of an API server's answer.
func delayOf(err error) (time.Duration, bool) {
	if after, ok := errors.AsType[*retryAfterError](err); ok {
		return after.delay, true
	}
	seconds, ok := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second, ok && seconds > 0
}

// exhausted reports that there are to be no more attempts after that of l.
func (q *WorkQueue[K]) exhausted(l *Lease[K]) bool {
	return q.opts.MaxAttempts > 0 && l.Attempt >= q.opts.MaxAttempts || q.opts.MaxAge > 0 && l.Age() >= q.opts.MaxAge
}

// failedLocked counts a failed attempt of the key in slot, and remembers why.
// The caller holds mu.
func (q *WorkQueue[K]) failedLocked(slot uint32, err error) {
	at := &q.keys.slots[slot]
	if at.value.attempts < math.MaxUint16 {
		at.value.attempts++
	}
	failure := q.failures.find(at.hash, at.key)
	if failure == noSlot {
		failure = q.failures.put(at.hash, at.key)
	}
	*q.failures.at(failure) = err
}

// succeededLocked forgets the failed attempts of the key in slot, and reports
// whether there were any. The caller holds mu.
func (q *WorkQueue[K]) succeededLocked(slot uint32) bool {
	at := &q.keys.slots[slot]
	if at.value.attempts == 0 {
		return false
	}
	at.value.attempts = 0
	q.failures.remove(q.failures.find(at.hash, at.key))
	return true
}

// failureLocked returns why the last attempt of the key in slot failed, nil if it
// did not. The caller holds mu.
func (q *WorkQueue[K]) failureLocked(slot uint32) error {
	at := &q.keys.slots[slot]
	if at.value.attempts == 0 {
		return nil
	}
	return *q.failures.at(q.failures.find(at.hash, at.key))
}
