package informer

import "fmt"

// QueueWaiting tells how many calls wait in Get.
func QueueWaiting[K comparable](q *WorkQueue[K]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// QueueAges tells whether keys age.
func QueueAges[K comparable](q *WorkQueue[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines.runs
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
	if q.keys.sparse() && !q.shrinking {
		return fmt.Errorf("%d keys in room for %d, for ever", q.keys.used, cap(q.keys.slots))
	}
	if err := q.validateLinesLocked(); err != nil {
		return err
	}
	if err := q.validateDelaysLocked(); err != nil {
		return err
	}
	counts, leased := map[workState]int{}, 0
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
		case w.leased() && (numbers[w.lease] || later(w.lease, q.leases)):
			return fmt.Errorf("lease %d is not the only one of its number", w.lease)
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
		}
		numbers[w.lease] = true
	}
	for key, n := range q.drainers {
		if slot := q.keys.find(q.hash(key), key); n < 1 || slot == noSlot || !q.keys.at(slot).leased() {
			return fmt.Errorf("%v is not leased, but its holder drains", key)
		}
	}
	pending := q.keys.len() - counts[workIdle]
	switch {
	case counts[workReady] != q.lines.len, counts[workDelayed] != q.delays.len():
		return fmt.Errorf("states %v, but line %d and delays %d", counts, q.lines.len, q.delays.len())
	case pending != q.pending, leased != q.leased:
		return fmt.Errorf("pending, leased = %d, %d, want %d, %d", q.pending, q.leased, pending, leased)
	case q.stage == queueEnded && pending > 0:
		return fmt.Errorf("ended with %d pending", pending)
	case q.stage != queueOpen && q.lines.len == 0 && leased <= len(q.drainers) && !q.hasSettled():
		return fmt.Errorf("worked off, but not settled")
	case q.waiting > 0 && !q.waking && (q.lines.len > 0 || q.stage != queueOpen):
		return fmt.Errorf("%d calls wait in Get, and none is woken", q.waiting)
	}
	return nil
}

func later(a, b leaseNumber) bool { return a.high > b.high || a.high == b.high && a.low > b.low }

func (q *WorkQueue[K]) validateLinesLocked() error {
	n := 0
	for i, line := range q.lines.ends {
		prev, rank := noSlot, q.lines.rank(PriorityLow+Priority(i))
		for at := line.first; at != noSlot; n++ {
			w := q.keys.at(at)
			switch {
			case n == q.lines.len:
				return fmt.Errorf("more than %d keys in line", n)
			case w.at != workReady || w.prev != prev:
				return fmt.Errorf("line %d: %+v after %d", i, *w, prev)
			case prev != noSlot && before(w.rank, q.keys.at(prev).rank), before(rank, w.rank):
				return fmt.Errorf("line %d: a rank falls, or is of the future: %+v, clock %d", i, *w, q.lines.clock)
			case w.priority < PriorityLow+Priority(i) || w.priority > PriorityHigh:
				return fmt.Errorf("line %d: priority %d", i, w.priority)
			}
			prev, at = at, w.next
		}
		if line.last != prev {
			return fmt.Errorf("line %d ends at %d, want %d", i, line.last, prev)
		}
	}
	switch {
	case n != q.lines.len:
		return fmt.Errorf("%d keys are in line, want %d", n, q.lines.len)
	case !q.lines.runs && !q.lines.aged():
		return fmt.Errorf("keys do not age: %+v", q.lines)
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
