package informer

import (
	"slices"
	"time"
)

// An ItemState says where a key of a [WorkQueue] is.
type ItemState uint8

const (
	// ItemReady means that the key waits for someone to lease it.
	ItemReady ItemState = iota + 1
	// ItemDelayed means that it will be ready later.
	ItemDelayed
	// ItemLeased means that it is being worked on.
	ItemLeased
	// ItemParked means that it waits to be added again, or for Unpark.
	ItemParked
	// ItemKept means that it waits for Drain to return it, as a key does that is
	// delayed when the queue drains.
	ItemKept
)

// String returns the name of s, such as "Ready".
func (s ItemState) String() string {
	return nameOf("ItemState", s, "None", "Ready", "Delayed", "Leased", "Parked", "Kept")
}

// An Item is what a [WorkQueue] knows of a key. Times are to about a millisecond,
// and count to 52 days.
type Item[K comparable] struct {
	// Key is the key.
	Key K
	// State says where it is.
	State ItemState
	// Again says that it was added while it is leased: it will be ready when
	// the lease is finished, or at Due; or kept, if the queue drains.
	Again bool
	// Priority is that of the key, or, if it is only leased, of the lease.
	Priority Priority
	// Group is the name of its group, empty without a group function.
	Group string
	// Attempts is how many attempts have failed in a row.
	Attempts int
	// Age is how long ago it was added, as by [Lease.Age].
	Age time.Duration
	// Held is how long it has been leased, or parked; zero if it is neither.
	Held time.Duration
	// Due is when it will be ready, if that is known; zero if it is not delayed,
	// and once the queue drains.
	Due time.Time
	// Err is why the last attempt failed, nil if it did not.
	Err error
}

// Items returns every key that is in the queue: pending, leased or parked. All
// items are of one instant, that of the call; they come in no order. The queue is
// at work meanwhile: it is never held up for longer than it takes to read some
// hundred keys.
func (q *WorkQueue[K]) Items() []Item[K] {
	var items []Item[K]
	q.view(func(item Item[K]) { items = append(items, item) })
	return items
}

// Item returns what there is to tell of key, and whether it is in the queue.
func (q *WorkQueue[K]) Item(key K) (Item[K], bool) {
	slot := q.lockAt(key)
	defer q.mu.Unlock()
	if slot == noSlot {
		return Item[K]{}, false
	}
	return q.itemLocked(slot, &queueView[K]{stage: q.stage, now: q.clock.now()}), true
}

// viewBatch is how many slots are read under one lock.
const viewBatch = 512

// A queueView is a look at all keys as they were when it began, while others go
// on. It reads the slots from the first to the last, a batch at a time. Whoever
// is about to change a slot that it has not come to yet, notes before what is
// there.
//
//	read │ not read yet            │ new since it began
//	─────┼─────────────────────────┼───────────
//	     next     noted: 17, 23    end
type queueView[K comparable] struct {
	stage queueStage
	now   moment
	next  uint32
	end   uint32
	noted map[uint32]Item[K] // with no state, if nothing was there
}

// view calls look with each item, without the lock, and returns what was counted
// when it began.
func (q *WorkQueue[K]) view(look func(Item[K])) QueueCounts {
	q.mu.Lock()
	v := &queueView[K]{stage: q.stage, now: q.clock.now(), end: uint32(len(q.keys.slots)), noted: map[uint32]Item[K]{}}
	q.views = append(q.views, v)
	counts := q.counts
	batch := make([]Item[K], 0, min(viewBatch, v.end))
	for v.next < v.end {
		batch = q.readLocked(v, batch[:0])
		q.mu.Unlock()
		for _, item := range batch {
			look(item)
		}
		q.mu.Lock()
	}
	q.views = slices.DeleteFunc(q.views, func(other *queueView[K]) bool { return other == v })
	q.shrinkSoonLocked()
	q.mu.Unlock()
	return counts
}

// readLocked appends the items of the next slots. The caller holds mu.
func (q *WorkQueue[K]) readLocked(v *queueView[K], to []Item[K]) []Item[K] {
	for range viewBatch {
		if v.next == v.end {
			break
		}
		item, ok := v.noted[v.next]
		if !ok {
			item = q.itemLocked(v.next, v)
		}
		if item.State != 0 {
			to = append(to, item)
		}
		v.next++
	}
	return to
}

// noteLocked tells those who go through all keys what is in slot, before that is
// changed. The caller holds mu.
func (q *WorkQueue[K]) noteLocked(slot uint32) {
	for _, v := range q.views {
		if _, ok := v.noted[slot]; !ok && v.covers(slot) {
			v.noted[slot] = q.itemLocked(slot, v)
		}
	}
}

// noteNewLocked tells those who go through all keys that nothing was in slot. The
// caller holds mu.
func (q *WorkQueue[K]) noteNewLocked(slot uint32) {
	for _, v := range q.views {
		if _, ok := v.noted[slot]; !ok && v.covers(slot) {
			v.noted[slot] = Item[K]{}
		}
	}
}

// covers reports that slot is still to be read.
func (v *queueView[K]) covers(slot uint32) bool { return slot >= v.next && slot < v.end }

// itemLocked returns what there is to tell v of the key in slot, without a state
// if there is none. The caller holds mu.
func (q *WorkQueue[K]) itemLocked(slot uint32, v *queueView[K]) Item[K] {
	w := q.keys.at(slot)
	state := w.state()
	if state == 0 {
		return Item[K]{}
	}
	item := Item[K]{
		Key:      q.keys.key(slot),
		State:    state,
		Again:    w.leased() && w.pending(),
		Priority: w.priority,
		Group:    q.turns.name(slot),
		Attempts: int(w.attempts),
		Age:      w.added.until(v.now),
		Err:      q.failureLocked(slot),
	}
	if state == ItemLeased || state == ItemParked {
		item.Held = w.stamp.until(v.now)
	}
	switch {
	case w.at != workDelayed:
	case v.stage == queueOpen:
		if due := q.delays.elems[w.prev].at; due != noTimer {
			item.Due = q.clock.start.Add(time.Duration(due))
		}
	case state == ItemDelayed: // it will not be ready any more
		item.State = ItemKept
	}
	return item
}

// state returns the state to tell of w, none if it is that of a free slot.
func (w *work) state() ItemState {
	if w.leased() {
		return ItemLeased
	}
	return [...]ItemState{
		workReady: ItemReady, workDelayed: ItemDelayed, workKept: ItemKept, workParked: ItemParked,
	}[w.at]
}
