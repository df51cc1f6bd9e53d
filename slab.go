package informer

// A slab maps keys to values that live in numbered slots. It hashes a key once
// for a look-up and an insertion together and never for a removal, it allocates
// nothing while it neither grows nor shrinks, and, unlike Go's map, it gives
// memory back.
//
// The keys are in slots; cells is a table over their hashes, with linear
// probing. The zero value is empty and ready to use. A slab does not lock, and
// the caller hashes.
type slab[K comparable, V any] struct {
	slots []slabSlot[K, V]
	cells []slabCell // as many as a power of two, or none
	free  uint32     // number + 1 of the first free slot, 0 if there is none
	used  int        // slots that hold a key
}

// slabSlot holds a key and its value. In a free slot, hash is the number + 1 of
// the next free one, and the rest is zero.
type slabSlot[K comparable, V any] struct {
	key   K
	hash  uint32
	value V
}

// slabCell says where a key is. Its slot is the number + 1, 0 if it is empty.
type slabCell struct{ hash, slot uint32 }

// noSlot is the number of no slot.
const noSlot = ^uint32(0)

// minRoom is the smallest capacity worth having, and worth giving back from.
const minRoom = 16

// moreRoom returns the capacity that follows capacity n.
func moreRoom(n int) int { return max(minRoom, n+n/2) }

// lessRoom returns the capacity that is right for n elements in room for
// capacity: the same, unless it is more than twice too large. What it gives is
// neither nearly full nor nearly too large again, so that growing and shrinking
// do not chase each other.
func lessRoom(n, capacity int) int {
	if capacity <= minRoom || n > capacity/2 {
		return capacity
	}
	return max(minRoom, n+n/4)
}

// len returns the number of keys.
func (s *slab[K, V]) len() int { return s.used }

// at returns the value in a slot. It is valid until the next put or compact.
func (s *slab[K, V]) at(slot uint32) *V { return &s.slots[slot].value }

// key returns the key in a slot.
func (s *slab[K, V]) key(slot uint32) K { return s.slots[slot].key }

// find returns the slot of key, or noSlot.
func (s *slab[K, V]) find(hash uint32, key K) uint32 {
	if s.used == 0 {
		return noSlot
	}
	mask := uint32(len(s.cells) - 1)
	for i := hash & mask; s.cells[i].slot != 0; i = (i + 1) & mask {
		c := s.cells[i]
		if c.hash == hash && s.slots[c.slot-1].key == key {
			return c.slot - 1
		}
	}
	return noSlot
}

// put gives key, which is not in the slab, a slot with a zero value.
func (s *slab[K, V]) put(hash uint32, key K) uint32 {
	if s.free == 0 && len(s.slots) == cap(s.slots) {
		s.slots = append(make([]slabSlot[K, V], 0, moreRoom(cap(s.slots))), s.slots...)
	}
	if tooFull(s.used+1, len(s.cells)) {
		s.rehash(max(minRoom, 2*len(s.cells)))
	}
	slot := uint32(len(s.slots))
	if s.free != 0 {
		slot = s.free - 1
		s.free = s.slots[slot].hash
	} else {
		s.slots = s.slots[:slot+1]
	}
	at := &s.slots[slot]
	at.key, at.hash = key, hash
	s.used++
	s.file(slabCell{hash, slot + 1})
	return slot
}

// remove frees a slot. It keeps the room: see sparse.
func (s *slab[K, V]) remove(slot uint32) {
	at := &s.slots[slot]
	s.unfile(at.hash, slot)
	*at = slabSlot[K, V]{hash: s.free}
	s.free = slot + 1
	s.used--
}

// sparse reports that compact would give much memory back.
func (s *slab[K, V]) sparse() bool {
	return lessRoom(s.used, cap(s.slots)) != cap(s.slots) ||
		fewerCells(s.used, len(s.cells)) != len(s.cells)
}

// compact moves the keys to the front of a smaller slab. It returns, for each
// slot of before that held a key, the number that it has now.
func (s *slab[K, V]) compact() (moved []uint32) {
	moved = make([]uint32, len(s.slots))
	slots := make([]slabSlot[K, V], 0, lessRoom(s.used, cap(s.slots)))
	for i, c := range s.cells {
		if c.slot == 0 {
			continue
		}
		moved[c.slot-1] = uint32(len(slots))
		slots = append(slots, s.slots[c.slot-1])
		s.cells[i].slot = uint32(len(slots))
	}
	s.slots, s.free = slots, 0
	if cells := fewerCells(s.used, len(s.cells)); cells != len(s.cells) {
		s.rehash(cells)
	}
	return moved
}

// tooFull reports that n keys are too many for so many cells: more than 13 in
// 16, where probing gets long.
func tooFull(n, cells int) bool { return n > cells*13/16 }

// fewerCells returns how many cells are right for n keys in a table of so many:
// the same, unless those keys alone would have led to a quarter of them.
func fewerCells(n, cells int) int {
	for cells > minRoom && !tooFull(n, cells/4) {
		cells /= 2
	}
	return cells
}

// rehash files every key in a new table of so many cells.
func (s *slab[K, V]) rehash(cells int) {
	old := s.cells
	s.cells = make([]slabCell, cells)
	for _, c := range old {
		if c.slot != 0 {
			s.file(c)
		}
	}
}

// file puts c into the first empty cell from its place on.
func (s *slab[K, V]) file(c slabCell) {
	mask := uint32(len(s.cells) - 1)
	i := c.hash & mask
	for s.cells[i].slot != 0 {
		i = (i + 1) & mask
	}
	s.cells[i] = c
}

// unfile empties the cell of slot, and moves those behind it up, so that no
// search stops at the gap too early.
func (s *slab[K, V]) unfile(hash, slot uint32) {
	mask := uint32(len(s.cells) - 1)
	gap := hash & mask
	for s.cells[gap].slot != slot+1 {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; s.cells[i].slot != 0; i = (i + 1) & mask {
		// The cell may move up if the gap is not before its own place, which
		// is so if it is as far from that place as from the gap, or farther.
		if (i-s.cells[i].hash)&mask >= (i-gap)&mask {
			s.cells[gap] = s.cells[i]
			gap = i
		}
	}
	s.cells[gap] = slabCell{}
}
