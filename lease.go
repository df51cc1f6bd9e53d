package informer

import "time"

// A Lease is the right to work on a key, and no one else has it meanwhile. It
// comes from [WorkQueue.Get], and ends with the first call of Done, Retry,
// RetryAfter or Park; all later ones, also those on copies, do nothing and return
// false, even if the key has been leased again. Its methods may be called from
// any goroutine. The zero Lease counts as ended.
//
// A lease that is not ended keeps its key from everybody else, for ever:
// [WorkQueue.Items] shows for how long that has been so.
type Lease[K comparable] struct {
	// Key is the key that is leased. To change it changes nothing else.
	Key K
	// Attempt counts the leases of the key since one succeeded, or the key was
	// parked: it is 1, and one more after each failure.
	Attempt int
	// Priority is the highest one that the key was added with. Retry keeps it, or
	// takes the one that it is set to before.
	Priority Priority

	key     K           // Key, whatever the holder makes of that
	slot    uint32      // where the key was when it was leased: a good guess
	number  leaseNumber // never used twice in a queue
	added   moment
	waited  moment // how many it was in line
	started moment
	queue   *WorkQueue[K]
}

// Age returns how long ago the key was added that is leased: its first add since
// it was leased before, or, if it failed then and was not added meanwhile, the
// first before that. A RetryAfter with nothing gone wrong counts as an add. Age
// counts to 52 days, in steps of about a millisecond.
func (l Lease[K]) Age() time.Duration {
	if l.queue == nil {
		return 0
	}
	return l.added.until(momentsOf(time.Since(l.queue.clock.start)))
}

// Waited returns how long the key was ready before it was leased, in steps of
// about a millisecond. If a higher priority moved it to the end of another line
// meanwhile, it counts from then.
func (l Lease[K]) Waited() time.Duration { return moment(0).until(l.waited) }

// Done finishes the lease: what there was to do has been done. If the key was
// added meanwhile, it becomes ready, otherwise the queue forgets it. The limiter
// forgets it, unless it is what the key waits for, as it was added by AddLimited.
//
// Done returns false if the lease was finished before.
func (l Lease[K]) Done() bool {
	if l.queue == nil {
		return false
	}
	return l.queue.finish(&l, &verdict{how: EndedDone})
}

// Retry finishes the lease: what there was to do has not been done, because of
// err. The key becomes ready again after the delay that the limiter gives, or
// the one that err asks for, be it of [RetryAfter] or an answer of an API server
// with a Retry-After; earlier if it is pending already. err is reported to
// OnError first, unless it is nil or does not say what went wrong.
//
// If err is [Terminal], or this was the last attempt that MaxAttempts or MaxAge
// allow, the key is parked instead, as by Park.
//
// While the queue drains, the key is not retried but kept for [WorkQueue.Drain]
// to return. Retry returns false if the lease was finished before, or if Drain
// has returned, so that no one is left who would get the key.
func (l Lease[K]) Retry(err error) bool {
	_, taken := l.fail(err, EndedRetry)
	return taken
}

// RetryAfter finishes the lease: the key is to be looked at again after delay,
// though nothing went wrong. It is Retry with [RetryAfter] of no error.
func (l Lease[K]) RetryAfter(delay time.Duration) bool { return l.Retry(RetryAfter(delay, nil)) }

// Park finishes the lease: what there was to do has not been done, because of
// err, and trying again would not help. The key is not pending any more; it
// stays in the queue, for [WorkQueue.Items] to show, until it is added again in
// whatever way, or [WorkQueue.Unpark] is called; then its next attempt is the
// first. If it has been added during the lease, that is at once. err is reported
// to OnError, as by Retry.
//
// While the queue drains, the key is kept for [WorkQueue.Drain] to return, as
// are those that have been parked before. Park returns false when Retry does.
func (l Lease[K]) Park(err error) bool {
	_, taken := l.fail(err, EndedPark)
	return taken
}

// fail finishes the lease because of err. It returns how, zero if it was finished
// before, and whether the queue has taken the key back.
func (l Lease[K]) fail(err error, how End) (ended End, taken bool) {
	q := l.queue
	if q == nil {
		return 0, false
	}
	// From here on the lease is ours: a second call fails, and the code of the
	// user can run without the lock. If it panics, the key is not lost.
	if !q.takeOver(&l) {
		return 0, false
	}
	end := verdict{how: EndedRetry, failed: true, due: noDelay, priority: l.Priority.known(), err: err}
	defer func() { taken = q.finish(&l, &end) }()

	if q.opts.OnError != nil && isFailure(err) {
		q.opts.OnError(l.key, err)
	}
	switch delay, asked := delayOf(err); {
	case how == EndedPark || isTerminal(err):
		end.how = EndedPark
	case err != nil && !isFailure(err):
		end.failed, end.due = false, q.after(delay)
	case q.exhausted(&l):
		end.how = EndedPark
	case asked:
		end.due = q.after(delay)
	default:
		q.askAgain(&l, &end)
	}
	return end.how, taken // which finish sets
}

// An End says how a lease ended.
type End uint8

const (
	// EndedDone means that there is no more to do.
	EndedDone End = iota + 1
	// EndedRetry means that there is to be another attempt; while the queue
	// drains, it is left to the caller of Drain, and afterwards to nobody.
	EndedRetry
	// EndedPark means that there is to be none, until the key is added again.
	EndedPark
	// EndedEarly means that the attempt was given up, as the context of
	// [WorkQueue.Run] has ended: it does not count.
	EndedEarly
)

// String returns the name of e, such as "Done".
func (e End) String() string {
	return nameOf("End", e, "None", "Done", "Retry", "Park", "Early")
}

// An Ending says how a lease ended.
type Ending struct {
	// How says what becomes of the key.
	How End
	// Held is how long it was leased, to about a millisecond.
	Held time.Duration
	// Err is what [Lease.Retry] or [Lease.Park] was called with.
	Err error
}

// A verdict is what is to become of the key of a lease.
type verdict struct {
	how     End
	failed  bool  // it counts as an attempt
	limited bool  // due came from the limiter
	unasked bool  // the limiter was not asked for due, as the key was pending
	due     int64 // when it is to be ready again
	err     error // why it failed
	// The priority with which it is pending at least.
	priority Priority
}

// again reports that the key is to be ready again.
func (v *verdict) again() bool { return v.how == EndedRetry || v.how == EndedEarly }

// forgets reports that the limiter is to begin anew with the key.
func (v *verdict) forgets() bool { return v.how != EndedEarly && (!v.failed || v.how == EndedPark) }

// release finishes the lease as if it had not been: the key is ready again.
func (l Lease[K]) release() bool {
	return l.queue.finish(&l, &verdict{how: EndedEarly, due: noDelay, priority: l.Priority.known()})
}

// leaseLocked leases the next key in line to l, which is zero. There is one. The
// caller holds mu.
func (q *WorkQueue[K]) leaseLocked(l *Lease[K]) {
	slot, since := q.nextLocked()
	q.noteLocked(slot)
	q.turns.advance()
	q.moveLocked(slot, workIdle, 0)
	q.leases = q.leases.next()
	q.leased++
	now, w := q.clock.now(), q.keys.at(slot)
	w.setLease(q.leases)
	w.stamp = now
	q.counts.Waited.count(since.until(now))
	l.Key, l.Attempt, l.Priority = q.keys.key(slot), int(w.attempts)+1, w.priority
	l.key, l.queue, l.number, l.slot = l.Key, q, q.leases, slot
	l.added, l.waited, l.started = w.added, now-since, now
}

// heldLocked returns the slot of the key that l leases, noSlot if l has been
// finished. The caller holds mu.
func (q *WorkQueue[K]) heldLocked(l *Lease[K]) uint32 {
	if l.number == 0 {
		return noSlot // the zero Lease
	}
	if int(l.slot) < len(q.keys.slots) && q.keys.at(l.slot).lease() == l.number {
		return l.slot
	}
	slot := q.keys.find(q.hash(l.key), l.key)
	if slot == noSlot || q.keys.at(slot).lease() != l.number {
		return noSlot
	}
	return slot
}

// openLocked reports that the lease that l tells of has not ended, though it may be
// about to. The caller holds mu.
func (q *WorkQueue[K]) openLocked(l *Lease[K]) bool {
	if l.number == 0 {
		return false // the zero Lease
	}
	slot := q.keys.find(q.hash(l.key), l.key)
	return slot != noSlot && q.keys.at(slot).lease().same(l.number)
}

// takeOver gives l a new number, so that only the caller can finish it. It
// reports false if l has been finished.
func (q *WorkQueue[K]) takeOver(l *Lease[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	slot := q.heldLocked(l)
	if slot == noSlot {
		return false
	}
	q.takeOverLocked(l, slot)
	return true
}

// takeOverLocked gives l, which is that of the key in slot, a new number. The
// caller holds mu.
func (q *WorkQueue[K]) takeOverLocked(l *Lease[K], slot uint32) {
	l.slot, l.number = slot, l.number+1
	q.keys.at(slot).setLease(l.number)
}

// finish ends l. It returns false if l has been ended before, or if the key was
// to be leased again and the queue has ended.
func (q *WorkQueue[K]) finish(l *Lease[K], end *verdict) bool {
	q.lock()
	slot := q.heldLocked(l)
	if slot == noSlot {
		q.mu.Unlock()
		return false
	}
	if w := q.keys.at(slot); w.asked && !w.limited && end.forgets() {
		w.asked = false // not later: it may be asked anew before it has forgotten
		q.takeOverLocked(l, slot)
		q.mu.Unlock()
		return q.forget(l, end)
	}
	return q.finishAndUnlock(l, slot, end)
}

// forget makes the limiter forget the key of l, while no one else can have it,
// and ends l, which the caller has taken over.
func (q *WorkQueue[K]) forget(l *Lease[K], end *verdict) (taken bool) {
	defer func() {
		q.mu.Lock()
		taken = q.finishAndUnlock(l, q.heldLocked(l), end)
	}()
	q.opts.Limiter.Forget(l.key)
	return
}

// finishAndUnlock ends l, which is that of the key in slot, and tells OnEnd. It
// reports false if the key was to be leased again and the queue has ended. The
// caller holds mu.
func (q *WorkQueue[K]) finishAndUnlock(l *Lease[K], slot uint32, end *verdict) bool {
	took := l.started.until(q.clock.now())
	// If the key has been cancelled since, it does need the limiter: until that
	// has answered, the key waits without end, as in expect.
	ask := end.unasked && q.stage == queueOpen && !q.keys.at(slot).pending()
	if ask {
		end.due, end.limited = noTimer, true
	}
	taken := q.finishLocked(slot, end, took)
	q.unlockAndWake()
	if ask {
		defer q.ask(q.hash(l.key), l.key, 0) // also if OnEnd panics
	}
	if q.opts.OnEnd != nil {
		l.Key = l.key
		q.opts.OnEnd(*l, Ending{end.how, took, end.err})
	}
	return taken
}

// finishLocked ends the lease of the key in slot, which took so long. It reports
// false if the key was to be leased again and the queue has ended. The caller
// holds mu.
func (q *WorkQueue[K]) finishLocked(slot uint32, end *verdict, took time.Duration) bool {
	q.noteLocked(slot)
	w := q.keys.at(slot)
	taken := end.how == EndedDone || q.stage != queueEnded
	if len(q.drainers) > 0 {
		delete(q.drainers, q.keys.key(slot))
	}
	w.setLease(0)
	q.leased--
	q.countLocked(slot, end, took)
	switch {
	case end.again():
		q.againLocked(slot, end, taken)
	case w.at == workAgain:
		q.moveLocked(slot, q.nowLocked(w), 0)
	case end.how == EndedPark && taken && w.at == workIdle:
		q.moveLocked(slot, q.parkedLocked(), 0)
	}
	if w.at == workIdle {
		q.dropLocked(slot)
		q.shrinkSoonLocked()
	}
	q.settleLocked()
	return taken
}

// againLocked makes the key in slot, whose lease has ended, ready again, unless
// the queue did not take it. The caller holds mu.
func (q *WorkQueue[K]) againLocked(slot uint32, end *verdict, taken bool) {
	w := q.keys.at(slot)
	if w.pending() {
		q.raiseLocked(slot, end.priority)
	} else {
		w.priority = end.priority
	}
	switch {
	case w.at == workAgain:
		q.moveLocked(slot, q.nowLocked(w), 0)
	case w.at == workDelayed && end.unasked:
	case taken:
		if end.how == EndedRetry && !end.failed && !w.pending() {
			w.added = q.clock.now() // a new beginning
		}
		q.scheduleLocked(slot, q.dueLocked(end), keepEarliest)
		w.limited = w.at == workDelayed && (w.limited || end.limited)
	}
}

// countLocked counts how a lease of the key in slot ended. The caller holds mu.
func (q *WorkQueue[K]) countLocked(slot uint32, end *verdict, took time.Duration) {
	q.counts.Worked.count(took)
	added := q.keys.at(slot).pending() // meanwhile
	switch {
	case end.how == EndedEarly:
		return
	case end.how == EndedPark:
		q.counts.Parks++
	case end.how == EndedRetry && !added && q.stage != queueEnded:
		q.counts.Retries++
	}
	if end.failed && !(end.how == EndedPark && added) {
		q.failedLocked(slot, end.err)
	} else if q.succeededLocked(slot) {
		q.shrinkSoonLocked()
	}
}

// parkedLocked returns the state of a key that is parked. The caller holds mu.
func (q *WorkQueue[K]) parkedLocked() workState {
	if q.stage == queueOpen {
		return workParked
	}
	return workKept
}

// dueLocked returns when a retried key is due. While the queue drains, that is
// at once, which means that it is kept. The caller holds mu.
func (q *WorkQueue[K]) dueLocked(end *verdict) int64 {
	if q.stage != queueOpen {
		return noDelay
	}
	return end.due
}
