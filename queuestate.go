package informer

import (
	"hash/maphash"
	"math"
	"time"
)

// A queueStage says what a queue is ready to do. It only goes forward.
type queueStage uint8

const (
	queueOpen     queueStage = iota // takes keys
	queueDraining                   // takes none; what is ready is worked off
	queueEnded                      // the rest has been returned by Drain
)

// A workState says where a key is pending. Only moveLocked changes it; an arrow
// names what leads to it:
//
//	            ┌───────────AddAfter────────────┐
//	            │                               ▼
//	idle ──Add─▶ ready ◀──Add, due── delayed (also while leased)
//	 ▲ ▲          │  ▲
//	 │ └───Get────┘  └──Add── parked ◀─Park─ leased
//	 └──leased──Add, due─▶ again ──Done─▶ ready, or kept if the queue drains
//
// A key that is idle and not leased is not in the queue.
type workState uint8

const (
	workIdle    workState = iota // not pending: leased, or about to be dropped
	workReady                    // in line; not leased
	workDelayed                  // in the heap
	workAgain                    // leased, and ready once the lease is finished
	workKept                     // for Drain to return; not leased
	workParked                   // not pending: waits for an add; not leased
)

// work is what a queue knows of a key. It takes 28 bytes, so that a key of two
// strings and its hash fill a line of the processor's cache with it.
type work struct {
	leaseLow  uint32 // its lease, in two parts
	leaseHigh uint16
	attempts  uint16 // failed ones in a row; counts no further than it can
	next      uint32 // the slot behind in line, while ready
	prev      uint32 // the slot before in line; place in the heap, while delayed
	stamp     moment // while ready the rank, see workLines; while leased or parked, since when
	added     moment // when it became pending by an add
	at        workState
	priority  Priority // while pending
	asked     bool     // the limiter has been asked, and has not been told to forget
	limited   bool     // the limiter said when, or is being asked
}

// A leaseNumber counts leases, in 48 bits. Zero is no lease.
type leaseNumber uint64

// next returns the number after n.
func (n leaseNumber) next() leaseNumber { return max((n+1)%(1<<48), 1) }

// lease returns the lease of the key, zero if there is none.
func (w *work) lease() leaseNumber { return leaseNumber(w.leaseHigh)<<32 | leaseNumber(w.leaseLow) }

// setLease makes n the lease of the key.
func (w *work) setLease(n leaseNumber) { w.leaseLow, w.leaseHigh = uint32(n), uint16(n>>32) }

// leased reports that the key is leased.
func (w *work) leased() bool { return w.lease() != 0 }

// pending reports that the key is to be leased, or to be returned by Drain.
func (w *work) pending() bool { return w.at != workIdle && w.at != workParked }

// limitless reports that the limiter need not be asked: the key is to be ready
// without it, by what it said before, or by what it is being asked for.
func (w *work) limitless() bool {
	return w.limited || w.pending() && w.at != workDelayed
}

// dueWork is a delayed key and when it is due.
type dueWork struct {
	at   int64 // nanoseconds since the clock's start
	slot uint32
}

// A scheduling says which due time counts for a key that is pending already.
type scheduling bool

const (
	keepEarliest scheduling = false
	setExactly   scheduling = true
)

const (
	noDelay = int64(-1)            // a due time: at once
	noTimer = int64(math.MaxInt64) // later than any due time; a delay without end
)

// shrinkDelay is how long memory is kept that is not needed any more.
const shrinkDelay = time.Second

// promoteBatch is how many due keys are made ready under one lock.
const promoteBatch = 256

// usable reports that key can be found again. If K is an interface and the
// value in it cannot be compared, it panics as a map would, and does so before
// any lock is taken.
func usable[K comparable](key K) bool {
	same := func(a, b K) bool { return a == b }
	return same(key, key)
}

// file returns what is to be known of a key that is added before the lock is
// taken: its hash and the name of its group; and false if it cannot be found
// again. It calls the group function.
func (q *WorkQueue[K]) file(key K) (hash uint32, group string, ok bool) {
	if !usable(key) {
		return 0, "", false
	}
	if q.group != nil {
		group = q.group(key)
	}
	return q.hash(key), group, true
}

// hash returns the hash of key.
func (q *WorkQueue[K]) hash(key K) uint32 {
	return uint32(maphash.Comparable(q.seed, key) >> 32)
}

// after returns the due time after delay.
func (q *WorkQueue[K]) after(delay time.Duration) int64 {
	if delay <= 0 {
		return noDelay
	}
	now := int64(time.Since(q.clock.start))
	return now + min(int64(delay), noTimer-1-now)
}

// schedule adds key after delay, with priority p, and reports whether the queue
// takes it.
func (q *WorkQueue[K]) schedule(key K, delay time.Duration, how scheduling, p Priority) bool {
	hash, group, ok := q.file(key)
	if !ok {
		return false
	}
	quiet := delay <= 0 && q.debounce > 0
	if quiet {
		delay = q.debounce
	}
	due := q.after(delay)
	q.mu.Lock()
	if q.stage != queueOpen {
		q.mu.Unlock()
		return false
	}
	slot, began := q.beginLocked(hash, key, group, p)
	if quiet {
		due, how = q.quietLocked(slot, due), setExactly
	}
	q.scheduleLocked(slot, due, how, p)
	q.unlockAndWake()
	if began && q.onAdd != nil {
		q.onAdd(key)
	}
	return true
}

// quietLocked returns when the key in slot, which has just been added, is to be
// ready, if it is due when it has been quiet for long enough: then, or when it
// may not wait any longer. The caller holds mu.
func (q *WorkQueue[K]) quietLocked(slot uint32, due int64) int64 {
	now := due - int64(q.debounce)
	waits := q.keys.at(slot).added.until(q.clock.now())
	due = min(due, now+int64(q.debounceAtMost-waits))
	if due <= now {
		return noDelay
	}
	return due
}

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
	ask = !w.limitless()
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
	due = q.after(max(q.limiter.When(key), after))
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
		q.limiter.Forget(key)
		return
	}
	w := q.keys.at(slot)
	q.noteLocked(slot)
	w.asked = true
	if w.limited && w.at == workDelayed {
		q.scheduleLocked(slot, due, keepEarliest, w.priority)
	}
	q.unlockAndWake()
}

// beginLocked returns the slot of a key that is added with priority p, a new one
// if it has none, and reports whether it was not pending. Then the caller, who
// holds mu, makes it pending before it lets go; if it was parked, it starts anew.
func (q *WorkQueue[K]) beginLocked(hash uint32, key K, group string, p Priority) (slot uint32, began bool) {
	slot = q.keys.find(hash, key)
	if slot == noSlot {
		slot = q.keys.put(hash, key)
		q.noteNewLocked(slot)
		if q.group != nil {
			q.turns.join(slot, group)
		}
	} else {
		q.noteLocked(slot)
	}
	w := q.keys.at(slot)
	if w.pending() {
		q.raiseLocked(slot, p)
		return slot, false
	}
	q.resumeLocked(slot, p)
	return slot, true
}

// resumeLocked begins with the key in slot, which is not pending, as added with
// priority p. The caller holds mu, and makes it pending.
func (q *WorkQueue[K]) resumeLocked(slot uint32, p Priority) {
	w := q.keys.at(slot)
	if w.at == workParked && q.succeededLocked(slot) {
		q.shrinkSoonLocked()
	}
	w.priority, w.added = p, q.clock.now()
	q.stats.Adds++
}

// scheduleLocked makes the key in slot pending, ready at due, with priority p at
// least. The caller holds mu.
func (q *WorkQueue[K]) scheduleLocked(slot uint32, due int64, how scheduling, p Priority) {
	w := q.keys.at(slot)
	pending, delayed := w.pending(), w.at == workDelayed
	if pending {
		q.raiseLocked(slot, p)
	} else {
		w.priority = p
	}
	switch {
	case due == noDelay:
		if !pending || delayed {
			q.moveLocked(slot, q.nowLocked(w), 0)
		}
	case how == setExactly:
		w.limited = false
		q.moveLocked(slot, workDelayed, due)
	case !pending, delayed && due < q.delays.elems[w.prev].at:
		q.moveLocked(slot, workDelayed, due)
	}
}

// nowLocked returns the state of a key that is to be ready at once. The caller
// holds mu.
func (q *WorkQueue[K]) nowLocked(w *work) workState {
	switch {
	case w.leased():
		return workAgain
	case q.stage == queueOpen:
		return workReady
	default:
		return workKept
	}
}

// moveLocked takes the key in slot from the state in which it is to another.
// due counts if that is delayed. The caller holds mu.
func (q *WorkQueue[K]) moveLocked(slot uint32, to workState, due int64) {
	w := q.keys.at(slot)
	switch w.at {
	case workIdle:
		q.pending++
	case workParked:
		q.pending++
		q.parked--
	case workReady:
		q.unlinkLocked(slot, w)
	case workDelayed:
		q.delays.remove(int(w.prev))
	}
	w.at = to
	switch to {
	case workIdle:
		q.pending--
	case workParked:
		q.pending--
		q.parked++
		w.stamp = q.clock.now()
	case workReady:
		q.linkLocked(slot, w)
	case workDelayed:
		q.delays.push(dueWork{due, slot})
		q.armLocked()
		return
	}
	w.limited = false
}

// dropLocked forgets the key in slot, which is neither pending, parked nor
// leased. The caller holds mu.
func (q *WorkQueue[K]) dropLocked(slot uint32) {
	q.succeededLocked(slot)
	q.turns.quit(slot)
	q.keys.remove(slot)
}

// shrinkSoonLocked sees to it that shrink runs, if there is much room that is not
// needed: not now, or a queue that fills and empties all the time would do
// little else than grow and shrink. The caller holds mu.
func (q *WorkQueue[K]) shrinkSoonLocked() {
	if !q.shrinking && q.sparseLocked() {
		q.shrinking = true
		time.AfterFunc(shrinkDelay, q.shrink)
	}
}

// sparseLocked reports that much memory can be given back. The caller holds mu.
func (q *WorkQueue[K]) sparseLocked() bool {
	return q.keys.sparse() || q.failures.sparse() || q.turns.sparse()
}

// shrink gives memory back.
func (q *WorkQueue[K]) shrink() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shrinking = false
	q.shrinkLocked()
}

// shrinkLocked gives memory back if that is worth it, and then renumbers all
// slots; not while somebody goes through them. The caller holds mu.
func (q *WorkQueue[K]) shrinkLocked() {
	q.delays.shrink()
	if q.failures.sparse() {
		q.failures.compact()
	}
	if q.turns.sparse() {
		q.turns.compact()
	}
	if !q.keys.sparse() || len(q.views) > 0 {
		return
	}
	moved := q.keys.compact()
	for i := range q.delays.elems {
		q.delays.elems[i].slot = moved[q.delays.elems[i].slot]
	}
	q.turns.renumber(moved, q.keys.len())
	q.renumberLocked(&q.turns.one, moved)
	for number := range q.turns.groups.slots {
		if group := q.turns.groups.at(uint32(number)); group.len > 0 {
			q.renumberLocked(&group.workLines, moved)
		}
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
