package informer

import "time"

// expect makes a key pending for a limited add of priority p, if it is not, and
// reports whether the queue takes it. If ask, the caller is the one to ask the
// limiter: until the answer has come, a key that was not pending is delayed
// without end, so that nothing is lost whatever happens meanwhile.
func (q *WorkQueue[K]) expect(hash uint32, key K, group string, p Priority) (ask, began, added bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stage != queueOpen {
		return false, false, false
	}
	slot, began := q.beginLocked(hash, key, group, p)
	w := q.keys.at(slot)
	ask = !w.needsNoLimiter()
	if began {
		// If this call does not ask, a Retry does, and its end sets the delay.
		q.moveLocked(slot, workDelayed, noTimer)
	}
	w.limited = w.limited || ask
	return ask, began, true
}

// ask asks the limiter when a key is to be ready that is expected, but not
// before after.
func (q *WorkQueue[K]) ask(hash uint32, key K, after time.Duration) {
	due := noDelay // unless the limiter returns
	defer func() { q.answer(hash, key, due) }()
	due = q.after(max(q.opts.Limiter.When(key), after))
}

// answer makes a key that is expected ready at due, or earlier if it is to be
// ready earlier. If it has been leased meanwhile, rescheduled or cancelled, its
// wait was over before. If it is not in the queue any more, there is no end of
// a lease to come at which the limiter would be told to forget it.
func (q *WorkQueue[K]) answer(hash uint32, key K, due int64) {
	q.mu.Lock()
	slot := q.keys.find(hash, key)
	if slot == noSlot {
		q.mu.Unlock()
		q.opts.Limiter.Forget(key)
		return
	}
	w := q.keys.at(slot)
	q.noteLocked(slot)
	w.asked = true
	if w.limited && w.at == workDelayed {
		q.scheduleLocked(slot, due, keepEarliest)
	}
	q.unlockAndWake()
}

// askAgain asks the limiter when the key of l is retried, if it is the one to
// decide.
func (q *WorkQueue[K]) askAgain(l *Lease[K], end *verdict) {
	if end.unasked = !q.mustAsk(l); end.unasked {
		return
	}
	end.due, end.limited = q.after(q.opts.Limiter.When(l.key)), true
}

// mustAsk reports whether the limiter decides when the key of l is retried, and
// notes that it is asked.
func (q *WorkQueue[K]) mustAsk(l *Lease[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.keys.at(q.heldLocked(l))
	if q.stage != queueOpen || w.needsNoLimiter() {
		return false
	}
	w.asked, w.limited = true, true
	return true
}
