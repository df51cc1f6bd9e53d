package informer

import (
	"hash/maphash"
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
// names what leads to it. Of a key that is not leased:
//
//	  ┌──────AddAfter, AddLimited, Retry──────┐
//	  │                                       ▼
//	idle ─Add, Retry─▶ ready ─Reschedule─▶ delayed ◀─AddAfter─ parked ◀─Park─ leased
//	  ▲                │ ▲ ▲                  │                   │
//	  └─────Get────────┘ │ └─────Add, due─────┘                   │
//	                     └──────────────Add, Unpark───────────────┘
//
// And of one that is leased, which is ready, or parked, only when the lease ends:
//
//	idle ─Add─▶ again ─Reschedule─▶ delayed ─Add, due─▶ again ─end─▶ ready
//	  └─────AddAfter, AddLimited───────▲
//
// With Debounce, Add is Reschedule. Cancel leads from everywhere to idle. When the
// queue drains, a lease that ends leads to kept, not to ready or parked, and Drain
// at last to idle.
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

// A leaseNumber counts leases, in 48 bits and in steps of leaseStep. Between them
// are the numbers that a lease has which is about to end: then only those who end
// it can. Zero is no lease.
type leaseNumber uint64

// leaseStep leaves room for a lease to be taken over twice, by fail and by finish.
const leaseStep = 4

// next returns the number of the lease after the one of n.
func (n leaseNumber) next() leaseNumber { return max((n+leaseStep)%(1<<48), leaseStep) }

// same reports that n and other are numbers of one lease.
func (n leaseNumber) same(other leaseNumber) bool { return n/leaseStep == other/leaseStep }

// lease returns the lease of the key, zero if there is none.
func (w *work) lease() leaseNumber { return leaseNumber(w.leaseHigh)<<32 | leaseNumber(w.leaseLow) }

// setLease makes n the lease of the key.
func (w *work) setLease(n leaseNumber) { w.leaseLow, w.leaseHigh = uint32(n), uint16(n>>32) }

// leased reports that the key is leased.
func (w *work) leased() bool { return w.lease() != 0 }

// pending reports that the key is to be leased, or to be returned by Drain.
func (w *work) pending() bool { return w.at != workIdle && w.at != workParked }

// needsNoLimiter reports that the limiter need not be asked when the key is to be
// ready: it has been, or is being asked, or the key is ready already.
func (w *work) needsNoLimiter() bool {
	return w.limited || w.pending() && w.at != workDelayed
}

// A scheduling says which due time counts for a key that is pending already.
type scheduling bool

const (
	keepEarliest scheduling = false
	setExactly   scheduling = true
)

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
	if q.opts.Group != nil {
		group = q.opts.Group(key)
	}
	return q.hash(key), group, true
}

// hash returns the hash of key.
func (q *WorkQueue[K]) hash(key K) uint32 {
	return uint32(maphash.Comparable(q.seed, key) >> 32)
}

// schedule adds key after delay, with priority p, and reports whether the queue
// takes it.
func (q *WorkQueue[K]) schedule(key K, delay time.Duration, how scheduling, p Priority) bool {
	hash, group, ok := q.file(key)
	if !ok {
		return false
	}
	quiet := delay <= 0 && q.opts.Debounce > 0
	if quiet {
		delay = q.opts.Debounce
	}
	due := q.after(delay)
	q.lock()
	if q.stage != queueOpen {
		q.mu.Unlock()
		return false
	}
	slot, began := q.beginLocked(hash, key, group, p)
	if quiet {
		due, how = q.quietLocked(slot, due), setExactly
	}
	q.scheduleLocked(slot, due, how)
	q.unlockAndWake()
	if began && q.opts.OnAdd != nil {
		q.opts.OnAdd(key)
	}
	return true
}

// beginLocked returns the slot of a key that is added with priority p, a new one
// if it has none, and reports whether it was not pending. Then the caller, who
// holds mu, makes it pending before it lets go; if it was parked, it starts anew.
func (q *WorkQueue[K]) beginLocked(hash uint32, key K, group string, p Priority) (slot uint32, began bool) {
	slot = q.keys.find(hash, key)
	if slot == noSlot {
		slot = q.keys.put(hash, key)
		q.noteNewLocked(slot)
		if q.opts.Group != nil {
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
	q.counts.Adds++
}

// scheduleLocked makes the key in slot pending, ready at due. The caller holds mu,
// and has seen to its priority.
func (q *WorkQueue[K]) scheduleLocked(slot uint32, due int64, how scheduling) {
	w := q.keys.at(slot)
	pending, delayed := w.pending(), w.at == workDelayed
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
