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
//	 ▲ ▲          │
//	 │ └───Get────┘
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
)

// work is what a queue knows of a key. It takes 28 bytes, so that a key of two
// strings and its hash fill a line of the processor's cache with it.
type work struct {
	lease    leaseNumber // zero if the key is not leased
	next     uint32      // the slot behind in line, while ready
	prev     uint32      // the slot before in line; place in the heap, while delayed
	rank     uint32      // while ready, see workLines
	attempts uint32      // failed ones in a row
	at       workState
	priority Priority // while pending
	asked    bool     // the limiter has been asked, and has not been told to forget
	limited  bool     // the limiter said when, or is being asked
}

// A leaseNumber counts leases, in halves because a work needs no other field of
// 64 bits.
type leaseNumber struct{ high, low uint32 }

// next returns the number after n.
func (n leaseNumber) next() leaseNumber {
	n.low++
	if n.low == 0 {
		n.high++
	}
	return n
}

// leased reports that the key is leased.
func (w *work) leased() bool { return w.lease != leaseNumber{} }

// limitless reports that the limiter need not be asked: the key is to be ready
// without it, by what it said before, or by what it is being asked for.
func (w *work) limitless() bool {
	return w.limited || w.at != workIdle && w.at != workDelayed
}

// dueWork is a delayed key and when it is due.
type dueWork struct {
	at   int64 // nanoseconds since the queue's start
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

// hash returns the hash of key.
func (q *WorkQueue[K]) hash(key K) uint32 {
	return uint32(maphash.Comparable(q.seed, key) >> 32)
}

// after returns the due time after delay.
func (q *WorkQueue[K]) after(delay time.Duration) int64 {
	if delay <= 0 {
		return noDelay
	}
	now := int64(time.Since(q.start))
	return now + min(int64(delay), noTimer-1-now)
}

// schedule adds key after delay, with priority p, and reports whether the queue
// takes it.
func (q *WorkQueue[K]) schedule(key K, delay time.Duration, how scheduling, p Priority) bool {
	if !usable(key) {
		return false
	}
	hash, due := q.hash(key), q.after(delay)
	q.mu.Lock()
	if q.stage != queueOpen {
		q.mu.Unlock()
		return false
	}
	q.scheduleLocked(q.slotLocked(hash, key), due, how, p)
	q.unlockAndWake()
	return true
}

// expect makes key pending for a limited add of priority p, if it is not, and
// reports whether the queue takes it. If ask, the caller is the one to ask the limiter: until the
// answer has come, a key that was not pending is delayed without end, so that
// nothing is lost whatever happens meanwhile.
func (q *WorkQueue[K]) expect(hash uint32, key K, p Priority) (ask, added bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stage != queueOpen {
		return false, false
	}
	slot := q.slotLocked(hash, key)
	w := q.keys.at(slot)
	ask = !w.limitless()
	if w.at == workIdle {
		// If this call does not ask, a Retry does, and its end sets the delay.
		w.priority = p
		q.moveLocked(slot, workDelayed, noTimer)
	}
	q.raiseLocked(slot, p)
	w.limited = w.limited || ask
	return ask, true
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
	w.asked = true
	if w.limited && w.at == workDelayed {
		q.scheduleLocked(slot, due, keepEarliest, w.priority)
	}
	q.unlockAndWake()
}

// slotLocked returns the slot of key, a new one if it has none. The caller
// holds mu, and makes a new key pending before it lets go.
func (q *WorkQueue[K]) slotLocked(hash uint32, key K) uint32 {
	if slot := q.keys.find(hash, key); slot != noSlot {
		return slot
	}
	return q.keys.put(hash, key)
}

// scheduleLocked makes the key in slot pending, ready at due, with priority p.
// The caller holds mu.
func (q *WorkQueue[K]) scheduleLocked(slot uint32, due int64, how scheduling, p Priority) {
	w := q.keys.at(slot)
	pending, delayed := w.at != workIdle, w.at == workDelayed
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
	case workReady:
		q.unlinkLocked(slot, w)
	case workDelayed:
		q.delays.remove(int(w.prev))
	}
	w.at = to
	switch to {
	case workIdle:
		q.pending--
	case workReady:
		q.linkLocked(slot, w)
	case workDelayed:
		q.delays.push(dueWork{due, slot})
		q.armLocked()
		return
	}
	w.limited = false
}

// dropLocked forgets the key in slot, which is neither pending nor leased. If
// that leaves much room, shrink runs soon: not now, or a queue that fills and
// empties all the time would do little else than grow and shrink. The caller
// holds mu.
func (q *WorkQueue[K]) dropLocked(slot uint32) {
	q.keys.remove(slot)
	if !q.shrinking && q.keys.sparse() {
		q.shrinking = true
		time.AfterFunc(shrinkDelay, q.shrink)
	}
}

// shrink gives memory back.
func (q *WorkQueue[K]) shrink() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shrinking = false
	q.shrinkLocked()
}

// shrinkLocked gives memory back if that is worth it, and then renumbers all
// slots. The caller holds mu.
func (q *WorkQueue[K]) shrinkLocked() {
	q.delays.shrink()
	if !q.keys.sparse() {
		return
	}
	moved := q.keys.compact()
	for i := range q.delays.elems {
		q.delays.elems[i].slot = moved[q.delays.elems[i].slot]
	}
	for i := range q.lines.ends {
		q.renumberLocked(&q.lines.ends[i], moved)
	}
}

// renumberLocked makes a line of old numbers of slots one of their new numbers.
// The caller holds mu.
func (q *WorkQueue[K]) renumberLocked(line *lineEnds, moved []uint32) {
	renumber := func(slot *uint32) {
		if *slot != noSlot {
			*slot = moved[*slot]
		}
	}
	renumber(&line.first)
	renumber(&line.last)
	for at := line.first; at != noSlot; at = q.keys.at(at).next {
		renumber(&q.keys.at(at).prev)
		renumber(&q.keys.at(at).next)
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
	wait := time.Duration(q.timerAt) - time.Since(q.start)
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
	now := int64(time.Since(q.start))
	for range promoteBatch {
		if q.stage != queueOpen || q.delays.len() == 0 || q.delays.elems[0].at > now {
			return false
		}
		slot := q.delays.elems[0].slot
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
	wake := q.waiting > 0 && !q.waking && (q.lines.len > 0 || q.stage != queueOpen)
	if wake {
		q.waking = true
	}
	q.mu.Unlock()
	if wake {
		q.wake <- struct{}{}
	}
}
