package informer

// lockPause is how many steps a call that finds mu taken stays away from it:
// a microsecond or so, in which some calls come and go.
const lockPause = 4000

// lock locks mu, for the calls that each key needs. Between processors mu, and
// all that it guards, moves from cache to cache, which takes longer than the
// work that is done under it. So who finds it taken neither waits in line at
// once, as each unlock then has someone to wake, nor keeps looking, but lets
// the other processor go on for a moment with what it has at hand.
func (q *WorkQueue[K]) lock() {
	if q.mu.TryLock() {
		return
	}
	for range lockPause { // in which nothing is called: other work would delay us
	}
	q.mu.Lock()
}

// unlockAndWake unlocks mu, which the caller holds, and wakes a call that waits
// in Get if there is something for it: a key, or the end of the queue.
//
// One is woken at a time; the next is woken by that one, when it has locked
// mu. A call whose context ends passes the baton in the same way, if it holds
// it. So while there is something for those who wait, one of them has been
// woken or is about to be, and as waking is set from before the send until
// after the receive, the slot of wake is empty here: the send does not block.
func (q *WorkQueue[K]) unlockAndWake() {
	wake := q.waiting > 0 && !q.waking && (q.turns.len > 0 || q.stage != queueOpen)
	if wake {
		q.waking = true
	}
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
}
