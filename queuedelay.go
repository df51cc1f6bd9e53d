package informer

import (
	"math"
	"time"
)

// dueWork is a delayed key and when it is due.
type dueWork struct {
	at   int64 // nanoseconds since the clock's start
	slot uint32
}

const (
	noDelay = int64(-1)            // a due time: at once
	noTimer = int64(math.MaxInt64) // later than any due time; a delay without end
)

// promoteBatch is how many due keys are made ready under one lock.
const promoteBatch = 256

// after returns the due time after delay.
func (q *WorkQueue[K]) after(delay time.Duration) int64 {
	if delay <= 0 {
		return noDelay
	}
	now := int64(time.Since(q.clock.start))
	return now + min(int64(delay), noTimer-1-now)
}

// quietLocked returns when the key in slot, which has just been added, is to be
// ready, if it is due when it has been quiet for long enough: then, or when it
// may not wait any longer. The caller holds mu.
func (q *WorkQueue[K]) quietLocked(slot uint32, due int64) int64 {
	rest := q.opts.DebounceAtMost - q.keys.at(slot).added.until(q.clock.now())
	switch {
	case rest <= 0:
		return noDelay
	case rest < q.opts.Debounce:
		return due - int64(q.opts.Debounce-rest)
	default:
		return due
	}
}

// armLocked sees to it that promote runs when the first delayed key is due. A
// timer that is set too early, because that key has been taken out, is left:
// promote sets it anew. The caller holds mu.
func (q *WorkQueue[K]) armLocked() {
	if q.stage != queueOpen || q.delays.len() == 0 || q.delays.elems[0].at >= q.timerAt {
		return
	}
	q.timerAt = q.delays.elems[0].at
	wait := time.Duration(q.timerAt) - time.Since(q.clock.start)
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.promote)
		return
	}
	q.timer.Reset(wait)
}

// promote makes the keys that are due ready, or to be ready once their lease
// is finished. The timer runs it, on a goroutine that ends with it.
func (q *WorkQueue[K]) promote() {
	q.mu.Lock()
	q.timerAt = noTimer
	for q.promoteLocked() {
		q.unlockAndWake() // let others pass
		q.mu.Lock()
	}
	q.armLocked()
	q.unlockAndWake()
}

// promoteLocked promotes a batch, and reports whether more may be due. The
// caller holds mu.
func (q *WorkQueue[K]) promoteLocked() bool {
	now := int64(time.Since(q.clock.start))
	for range promoteBatch {
		if q.stage != queueOpen || q.delays.len() == 0 || q.delays.elems[0].at > now {
			return false
		}
		slot := q.delays.elems[0].slot
		q.noteLocked(slot)
		q.moveLocked(slot, q.nowLocked(q.keys.at(slot)), 0)
	}
	return true
}
