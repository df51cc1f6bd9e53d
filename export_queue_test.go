package informer

import (
	"errors"
	"fmt"
	"time"
)

// QueueWaiting tells how many calls wait in Get.
func QueueWaiting[K comparable](q *WorkQueue[K]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// QueueClockRuns tells whether the clock of the queue has a timer.
func QueueClockRuns[K comparable](q *WorkQueue[K]) bool { return q.clock.fresh.Load() }

// QueueRetry is Retry of l after a first failure, which asks the limiter, unless it
// need not, and lets others do something before the lease has ended.
func QueueRetry[K comparable](l Lease[K], err error, others func()) bool {
	q, end := l.queue, verdict{how: EndedRetry, failed: true, due: noDelay, err: err}
	q.takeOver(&l)
	q.askAgain(&l, &end)
	others()
	return q.finish(&l, &end)
}

// Slab opens a slab to the tests. Hash is the caller's, so that it can collide.
type Slab struct{ s slab[int, int] }

func (s *Slab) Len() int                  { return s.s.len() }
func (s *Slab) Rooms() (slots, cells int) { return cap(s.s.slots), len(s.s.cells) }

func (s *Slab) Put(hash uint32, key, value int) {
	slot := s.s.find(hash, key)
	if slot == noSlot {
		slot = s.s.put(hash, key)
	}
	*s.s.at(slot) = value
}

func (s *Slab) Get(hash uint32, key int) (int, bool) {
	slot := s.s.find(hash, key)
	if slot == noSlot {
		return 0, false
	}
	return *s.s.at(slot), true
}

func (s *Slab) Remove(hash uint32, key int) bool {
	slot := s.s.find(hash, key)
	if slot == noSlot {
		return false
	}
	s.s.remove(slot)
	if s.s.sparse() {
		s.s.compact()
	}
	return true
}

func (s *Slab) Validate() error {
	if s.s.sparse() {
		return fmt.Errorf("%d keys in room for %d", s.s.used, cap(s.s.slots))
	}
	return s.s.validate()
}

// validate checks that cells and slots agree.
func (s *slab[K, V]) validate() error {
	filed := map[uint32]bool{}
	for _, c := range s.cells {
		if c.slot == 0 {
			continue
		}
		slot := c.slot - 1
		if filed[slot] {
			return fmt.Errorf("slot %d is in two cells", slot)
		}
		filed[slot] = true
		if at := s.slots[slot]; at.hash != c.hash || s.find(at.hash, at.key) != slot {
			return fmt.Errorf("slot %d: key %v cannot be found", slot, at.key)
		}
	}
	if len(filed) != s.used {
		return fmt.Errorf("%d cells are used, want %d", len(filed), s.used)
	}
	free := 0
	for at := s.free; at != 0; at = s.slots[at-1].hash {
		if free++; filed[at-1] || free > len(s.slots) {
			return fmt.Errorf("the list of free slots is broken at %d", at-1)
		}
	}
	if free+s.used != len(s.slots) {
		return fmt.Errorf("%d slots free and %d used, want %d in all", free, s.used, len(s.slots))
	}
	return nil
}

// ValidateQueue checks every invariant that the comments of WorkQueue state.
func ValidateQueue[K comparable](q *WorkQueue[K]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.keys.validate(); err != nil {
		return err
	}
	if q.sparseLocked() && !q.shrinking {
		return fmt.Errorf("%d keys in room for %d, or failures or groups, for ever", q.keys.used, cap(q.keys.slots))
	}
	if err := errors.Join(q.failures.validate(), q.turns.groups.validate()); err != nil {
		return err
	}
	if err := q.validateLinesLocked(); err != nil {
		return err
	}
	if err := q.validateDelaysLocked(); err != nil {
		return err
	}
	counts, leased, failures := map[workState]int{}, 0, 0
	numbers := map[leaseNumber]bool{}
	for _, c := range q.keys.cells {
		if c.slot == 0 {
			continue
		}
		w := q.keys.at(c.slot - 1)
		counts[w.at]++
		if w.leased() {
			leased++
		}
		switch {
		case w.leased() && (numbers[w.lease()/leaseStep] || w.lease()/leaseStep > q.leases/leaseStep):
			return fmt.Errorf("lease %d is not the only one of its number", w.lease())
		case w.at == workIdle && !w.leased():
			return fmt.Errorf("slot %d is neither pending nor leased", c.slot-1)
		case w.leased() && (w.at == workReady || w.at == workKept):
			return fmt.Errorf("slot %d is leased and in state %d", c.slot-1, w.at)
		case !w.leased() && w.at == workAgain:
			return fmt.Errorf("slot %d is not leased, but %+v", c.slot-1, *w)
		case w.limited && w.at != workDelayed && (w.at != workIdle || !w.leased()):
			return fmt.Errorf("slot %d: limited, but %+v", c.slot-1, *w)
		case w.at == workKept && q.stage == queueOpen:
			return fmt.Errorf("slot %d is kept in an open queue", c.slot-1)
		case w.at == workParked && (w.leased() || q.stage == queueEnded):
			return fmt.Errorf("slot %d is parked, but %+v in stage %d", c.slot-1, *w, q.stage)
		}
		if w.attempts > 0 {
			failures++
			if slot := c.slot - 1; q.failures.find(c.hash, q.keys.key(slot)) == noSlot {
				return fmt.Errorf("slot %d has failed, and nobody knows why", slot)
			}
		}
		numbers[w.lease()/leaseStep] = true
	}
	for key, n := range q.drainers {
		if slot := q.keys.find(q.hash(key), key); n < 1 || slot == noSlot || !q.keys.at(slot).leased() {
			return fmt.Errorf("%v is not leased, but its holder drains", key)
		}
	}
	pending := q.keys.len() - counts[workIdle] - counts[workParked]
	switch {
	case counts[workReady] != q.turns.len, counts[workDelayed] != q.delays.len():
		return fmt.Errorf("states %v, but line %d and delays %d", counts, q.turns.len, q.delays.len())
	case failures != q.failures.len() || counts[workParked] != q.parked:
		return fmt.Errorf("%d keys failed, %d are parked, want %d, %d", q.failures.len(), q.parked, failures, counts[workParked])
	case pending != q.pending, leased != q.leased:
		return fmt.Errorf("pending, leased = %d, %d, want %d, %d", q.pending, q.leased, pending, leased)
	case q.stage == queueEnded && pending > 0:
		return fmt.Errorf("ended with %d pending", pending)
	case q.stage != queueOpen && q.turns.len == 0 && leased <= len(q.drainers) && !isClosed(q.settled):
		return fmt.Errorf("worked off, but not settled")
	case isClosed(q.finished) != (q.stage != queueOpen && q.turns.len == 0 && leased == 0):
		return fmt.Errorf("finished is closed: %v; stage %d, %d ready, %d leased", isClosed(q.finished), q.stage, q.turns.len, leased)
	case q.waiting > 0 && !q.waking && (q.turns.len > 0 || q.stage != queueOpen):
		return fmt.Errorf("%d calls wait in Get, and none is woken", q.waiting)
	}
	return nil
}

// validateLinesLocked checks the lines of each group, and the ring of groups.
func (q *WorkQueue[K]) validateLinesLocked() error {
	if !q.turns.grouped {
		return q.validateGroupLocked(&q.turns.one, q.turns.len)
	}
	keys, ready, inRing := make(map[uint32]int), 0, 0
	for _, c := range q.keys.cells {
		if c.slot != 0 {
			keys[q.turns.of[c.slot-1]]++
		}
	}
	for _, c := range q.turns.groups.cells {
		if c.slot == 0 {
			continue
		}
		group := q.turns.groups.at(c.slot - 1)
		if group.keys != keys[c.slot-1] || group.keys == 0 {
			return fmt.Errorf("group %d has %d keys, want %d", c.slot-1, group.keys, keys[c.slot-1])
		}
		if err := q.validateGroupLocked(&group.workLines, group.len); err != nil {
			return err
		}
		ready += group.len
		if group.len > 0 {
			inRing++
		}
	}
	for number, prev := q.turns.first, noSlot; number != noSlot; inRing-- {
		group := q.turns.groups.at(number)
		if group.len == 0 || inRing == 0 || prev != noSlot && group.prev != prev {
			return fmt.Errorf("the ring is broken at %d: %+v", number, *group)
		}
		if prev, number = number, group.next; number == q.turns.first {
			number = noSlot
		}
	}
	if ready != q.turns.len || inRing > 0 {
		return fmt.Errorf("%d keys are ready, want %d; %d groups are not in the ring", q.turns.len, ready, inRing)
	}
	return nil
}

func (q *WorkQueue[K]) validateGroupLocked(lines *workLines, want int) error {
	n := 0
	for i, line := range lines.ends {
		prev, rank := noSlot, q.rankLocked(PriorityLow+Priority(i))
		for at := line.first; at != noSlot; n++ {
			w := q.keys.at(at)
			switch {
			case n == lines.len:
				return fmt.Errorf("more than %d keys in line", n)
			case w.at != workReady || w.prev != prev || q.turns.lines(at) != lines:
				return fmt.Errorf("line %d: %+v after %d", i, *w, prev)
			case prev != noSlot && w.stamp.before(q.keys.at(prev).stamp), rank.before(w.stamp):
				return fmt.Errorf("line %d: a rank falls, or is of the future: %+v", i, *w)
			case w.priority < PriorityLow+Priority(i) || w.priority > PriorityHigh:
				return fmt.Errorf("line %d: priority %d", i, w.priority)
			}
			prev, at = at, w.next
		}
		if line.last != prev {
			return fmt.Errorf("line %d ends at %d, want %d", i, line.last, prev)
		}
	}
	if n != lines.len || n != want {
		return fmt.Errorf("%d keys are in line, want %d", n, lines.len)
	}
	return nil
}

func (q *WorkQueue[K]) validateDelaysLocked() error {
	for i, d := range q.delays.elems {
		w := q.keys.at(d.slot)
		if w.at != workDelayed || int(w.prev) != i {
			return fmt.Errorf("delay %d: %+v", i, *w)
		}
		if parent := (i - 1) / heapArity; i > 0 && q.delays.elems[parent].at > d.at {
			return fmt.Errorf("delay %d is before its parent", i)
		}
	}
	if q.stage == queueOpen && len(q.delays.elems) > 0 && q.delays.elems[0].at < q.timerAt {
		return fmt.Errorf("the timer is set to %d, the first delay ends at %d", q.timerAt, q.delays.elems[0].at)
	}
	return nil
}

// Heap is a heap of ints, which are all different, and where each is.
type Heap struct {
	h  minHeap[int]
	At map[int]int
}

func NewHeap() *Heap {
	h := &Heap{At: map[int]int{}}
	h.h.less = func(a, b int) bool { return a < b }
	h.h.moved = func(elem, i int) { h.At[elem] = i }
	return h
}
func (h *Heap) Len() int   { return h.h.len() }
func (h *Heap) Push(x int) { h.h.push(x) }
func (h *Heap) Remove(x int) bool {
	gone := h.h.remove(h.At[x])
	delete(h.At, x)
	return gone == x
}
func (h *Heap) Min() int { return h.h.elems[0] }

// QueueViewSpans goes through all keys as Items does, and tells for how long it
// held the lock each time, and the most slots that were read then.
func QueueViewSpans[K comparable](q *WorkQueue[K]) (spans []time.Duration, most uint32) {
	v := &queueView[K]{end: uint32(len(q.keys.slots)), noted: map[uint32]Item[K]{}}
	batch := make([]Item[K], 0, viewBatch)
	for v.next < v.end {
		q.mu.Lock()
		start, from := time.Now(), v.next
		batch = q.readLocked(v, batch[:0])
		spans, most = append(spans, time.Since(start)), max(most, v.next-from)
		q.mu.Unlock()
	}
	return spans, most
}

// QueueView calls look with each item, as Items reads them.
func QueueView[K comparable](q *WorkQueue[K], look func(Item[K])) { q.view(look) }

// QueueRoom tells for how many keys the queue has room.
func QueueRoom[K comparable](q *WorkQueue[K]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return cap(q.keys.slots)
}
