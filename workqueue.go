package informer

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// A WorkQueue hands keys to workers: a key that was added, once or often, is
// leased to one worker, which looks up what there is to do for it. Most programs
// have [Enqueue] add the keys, and [WorkQueue.Run] work them off; those who want
// a loop of their own call [WorkQueue.Get] and finish each [Lease]. What else is
// told here is for those who ask for it.
//
// Two laws hold for each key. It is never leased twice at a time: what is added
// while it is leased waits until the lease is finished. And it is pending at
// most once, be it ready or delayed: adding a key that is ready changes
// nothing, [WorkQueue.Add] ends a delay, [WorkQueue.AddAfter] can only make it
// shorter, [WorkQueue.Reschedule] sets it, and [WorkQueue.Cancel] takes the key
// out.
//
// Nothing is lost silently. Each call that added a key, and said so, is
// followed by a lease of that key, by its cancel, or by its return from
// [WorkQueue.Drain]. Neither is a key lost whose lease fails: it is retried, or
// parked.
//
// Keys that are ready are leased in the order in which they became so. Keys
// that become due at the same instant do so in no order.
//
// With priorities, given by [WorkQueue.AddWith], higher ones go first, and those
// of one [Priority] in order. None of them starves: a key rises by one priority
// each time it has waited for [QueueOptions].Ageing. So with w workers who take s
// for a key, a key is leased at most
//
//	4 * Ageing + n * s / w
//
// after it became ready, where n keys were ahead of it, or leased, when it had
// risen to the highest priority (or within 2 ms after that). That is about queues
// that are worked on: which goes first of two keys of different priorities cannot
// be told any more if one has been ready for 26 days longer.
//
// With a function [QueueOptions].Group, groups that have keys ready take turns,
// and order and priorities are those within a group. So a thousand keys of one
// tenant hold back the key of another by one turn. Above, n is then about the keys
// of the group, and with up to g groups g * (n + 1) takes its place.
//
// A key that fails is leased again after the delay that the limiter gives, or the
// error asks for. When MaxAttempts or MaxAge are used up, or for a [Terminal]
// error, it is parked: kept with its error, but not leased, until it is added
// again, or [WorkQueue.Unpark] is called.
//
// What goes on can be seen: [WorkQueue.Items] lists all keys, with their state,
// age and last error; [WorkQueue.Stats] counts them; and the functions OnAdd,
// OnLease, OnEnd and OnError of [QueueOptions] are told as it happens.
//
// A WorkQueue is made by [NewWorkQueue]. All methods may be called from any
// goroutine. A queue has no goroutine of its own, and memory that a burst took
// is given back within a second or so after it.
type WorkQueue[K comparable] struct {
	opts   QueueOptions[K] // with defaults
	ageing moment
	seed   maphash.Seed

	// wake has one slot. See unlockAndWake for why a send never blocks.
	wake chan struct{}

	// settled is closed once the queue is closed to adds, no key is ready, and
	// no key is leased but to those who wait in Drain: they wait for it. finished
	// is closed once no key is leased at all: all others who drain wait for it.
	settled, finished chan struct{}

	mu sync.Mutex // guards the fields below

	stage    queueStage
	clock    queueClock
	keys     slab[K, work]    // every key that is pending, leased or parked
	turns    workTurns        // those that are ready
	delays   minHeap[dueWork] // those that are delayed
	failures slab[K, error]   // why the last attempt failed, where there are such
	views    []*queueView[K]  // of those who go through all keys now
	counts   QueueCounts

	leases   leaseNumber // the last one given
	leased   int         // keys that are leased now
	pending  int         // keys that are pending, leased or not
	parked   int         // keys that are parked
	drains   int         // calls that wait in Drain
	drainers map[K]int   // how many of those are by the holder of a key's lease

	waiting int  // calls that wait in Get
	waking  bool // one of them has been woken, and has not locked mu since

	shrinking bool // shrink will run

	timer   *time.Timer // runs promote; nil until a key is delayed
	timerAt int64       // when it will; noTimer if it will not
}

// NewWorkQueue returns an empty queue. It starts no goroutine.
//
// It returns an error that names each option that is out of range, or contradicts
// another one.
func NewWorkQueue[K comparable](options QueueOptions[K]) (*WorkQueue[K], error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	q := &WorkQueue[K]{
		opts:     options,
		ageing:   momentsOf(min(options.Ageing, mostAgeing)-1) + 1, // rounded up
		seed:     maphash.MakeSeed(),
		clock:    queueClock{coarseClock{start: time.Now()}},
		wake:     make(chan struct{}, 1),
		settled:  make(chan struct{}),
		finished: make(chan struct{}),
		timerAt:  noTimer,
	}
	q.turns = workTurns{grouped: q.opts.Group != nil, seed: q.seed, first: noSlot}
	q.turns.one.clear()
	q.delays.less = func(a, b dueWork) bool { return a.at < b.at }
	q.delays.moved = func(d dueWork, i int) { q.keys.at(d.slot).prev = uint32(i) }
	return q, nil
}

// Add makes key ready. If key is delayed, the delay ends; if it is leased, it
// becomes ready when the lease is finished.
//
// Add returns false, and does nothing, once Drain has been called. It also
// refuses a key that does not equal itself, such as NaN: it could never be
// found again.
func (q *WorkQueue[K]) Add(key K) bool { return q.schedule(key, 0, keepEarliest, PriorityNormal) }

// AddAfter makes key ready after a delay, which begins now, also if key is
// leased. If key is pending already, the earlier of both times counts. A delay
// that is not above zero is none: AddAfter is Add then.
//
// It returns false when Add does.
func (q *WorkQueue[K]) AddAfter(key K, delay time.Duration) bool {
	return q.schedule(key, delay, keepEarliest, PriorityNormal)
}

// Reschedule makes key ready after a delay, which begins now, whenever it was to
// be ready before: it can postpone a key, and even a key that is ready. With a
// delay that is not above zero it is Add.
//
// It returns false when Add does.
func (q *WorkQueue[K]) Reschedule(key K, delay time.Duration) bool {
	return q.schedule(key, delay, setExactly, PriorityNormal)
}

// AddLimited is AddAfter with the delay that the limiter gives. A key that is
// pending already, be it ready or delayed by the limiter, stays as it is, and
// the limiter is not asked: however often a key is added, also by several calls
// at the same instant, it counts once. While the limiter is asked, the key is
// pending. If the limiter panics, the key becomes ready.
//
// It returns false when Add does.
func (q *WorkQueue[K]) AddLimited(key K) bool {
	return q.AddWith(key, AddOptions{Limited: true})
}

// AddWith is Add, AddAfter or AddLimited, as options say, with a priority. A key
// that is pending keeps the higher of both priorities, whenever it is to be
// ready; the other methods add with PriorityNormal. It keeps its place as well,
// if it has come as far by waiting.
//
// It returns false when Add does.
func (q *WorkQueue[K]) AddWith(key K, options AddOptions) bool {
	p := options.Priority.known()
	if !options.Limited {
		return q.schedule(key, options.After, keepEarliest, p)
	}
	hash, group, ok := q.file(key)
	if !ok {
		return false
	}
	ask, began, added := q.expect(hash, key, group, p)
	if began && q.opts.OnAdd != nil {
		defer q.opts.OnAdd(key) // also if the limiter panics: the key is pending
	}
	if ask {
		q.ask(hash, key, options.After)
	}
	return added
}

// Cancel takes key out if it is pending: ready, delayed, or added again while it
// is leased; or if it is parked. It reports whether it was. A lease of the key
// is not affected.
func (q *WorkQueue[K]) Cancel(key K) bool {
	slot := q.lockAt(key)
	if slot == noSlot || q.keys.at(slot).at == workIdle {
		q.mu.Unlock()
		return false
	}
	q.noteLocked(slot)
	q.moveLocked(slot, workIdle, 0)
	forget := false
	if w := q.keys.at(slot); !w.leased() {
		forget = w.asked
		q.dropLocked(slot)
		q.shrinkSoonLocked()
	}
	q.settleLocked()
	q.mu.Unlock()
	if forget {
		q.opts.Limiter.Forget(key)
	}
	return true
}

// Unpark makes key ready if it is parked, as an add would, but at once,
// whatever Debounce says: its next attempt is the first. It reports whether it
// was parked. [WorkQueue.Items] lists the keys that are. Once Drain has been
// called, Unpark returns false.
func (q *WorkQueue[K]) Unpark(key K) bool {
	slot := q.lockAt(key)
	if slot == noSlot || q.keys.at(slot).at != workParked || q.stage != queueOpen {
		q.mu.Unlock()
		return false
	}
	q.noteLocked(slot)
	q.resumeLocked(slot, q.keys.at(slot).priority)
	q.moveLocked(slot, workReady, 0)
	q.unlockAndWake()
	if q.opts.OnAdd != nil {
		q.opts.OnAdd(key)
	}
	return true
}

// lockAt locks mu, and returns the slot of key, noSlot if it is not in the queue.
func (q *WorkQueue[K]) lockAt(key K) uint32 {
	hash := q.hash(key) // panics before the lock, if a value in K has no hash
	q.mu.Lock()
	return q.keys.find(hash, key)
}

// Len returns how many keys are pending: ready, delayed, or added again while
// they are leased.
func (q *WorkQueue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending
}

// Get waits until a key is ready, and leases it: until the lease is finished, no
// one else gets this key. So finish every lease, by [Lease.Done] or
// [Lease.Retry].
//
// It returns [ErrStopped] when the queue drains, or has been drained, and no
// key is left to be worked off. When ctx ends, it returns the cause of that,
// wrapped, and leases nothing.
func (q *WorkQueue[K]) Get(ctx context.Context) (lease Lease[K], err error) {
	waited, woken := false, false
	for {
		ended := ctx.Err() != nil
		q.lock()
		if waited {
			q.waiting--
		}
		if woken {
			q.waking = false
		}
		switch {
		case ended:
			q.unlockAndWake() // another one, if this one was woken
			return lease, fmt.Errorf("informer: queue %s: %w", q.opts.Name, context.Cause(ctx))
		case q.turns.len > 0:
			q.leaseLocked(&lease)
			q.unlockAndWake()
			if q.opts.OnLease != nil {
				q.tellLease(lease)
			}
			return lease, nil
		case q.overLocked():
			q.unlockAndWake()
			return lease, q.stoppedError()
		}
		q.waiting++
		q.mu.Unlock()

		waited, woken = true, false
		select {
		case <-q.wake:
			woken = true
		case <-ctx.Done():
		}
	}
}

// tellLease tells OnLease. If that panics, the key is not lost.
func (q *WorkQueue[K]) tellLease(lease Lease[K]) {
	told := false
	defer func() {
		if !told {
			lease.release()
		}
	}()
	q.opts.OnLease(lease)
	told = true
}

// overLocked reports that no key will be leased any more. The caller holds mu.
func (q *WorkQueue[K]) overLocked() bool { return q.stage != queueOpen && q.turns.len == 0 }

// stoppedError returns ErrStopped with the name of the queue.
func (q *WorkQueue[K]) stoppedError() error {
	return fmt.Errorf("informer: queue %s: %w", q.opts.Name, ErrStopped)
}
