package informer

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// A state is one state of the store: objects, indexes and the server's version
// belong together. It never changes from the moment that it is kept; before
// that, its writer may (see [Indexer.begin]).
type state[T Object] struct {
	use usage // the only field that readers change

	epoch   epoch  // in which it was made
	floor   epoch  // no state that is kept has nodes of this epoch or a later one
	version string // the server's resource version; empty if nothing told
	listed  bool   // a whole list has been applied
	layout  int    // changes when objects get other slots
	n       int    // how many objects there are
	keys    *keyTable
	slots   vec[*chunk[T]]
	indexes []indexRoot[T] // in the order in which they were added; owned
}

const chunkSize = 32

// A chunk holds the objects of chunkSize slots: T may be a value type, so which
// of them are in use must be told apart. A value that is not live is zero.
type chunk[T Object] struct {
	owner  epoch
	live   uint32
	cells  [chunkSize]uint32 // of the table of keys, plus 1; 0 where nothing is live
	values [chunkSize]T
}

// next returns a state to be written in epoch e, which begins as a copy of s.
func (s *state[T]) next(e epoch) *state[T] {
	return &state[T]{
		epoch: e, floor: e, version: s.version, listed: s.listed, layout: s.layout,
		n: s.n, keys: s.keys, slots: s.slots, indexes: slices.Clone(s.indexes),
	}
}

// get returns the object of key k with hash h, and its slot.
func (s *state[T]) get(h uint32, k Key) (obj T, slot uint32, ok bool) {
	t := s.keys
	for cell := t.home(h); ; cell = t.after(cell) {
		if slot, cell, ok = t.next(h, k, cell); !ok {
			return obj, 0, false
		}
		if n := int(slot / chunkSize); n < s.slots.n { // or it is of a later state
			if c, bit := s.chunk(n), slot%chunkSize; c.cells[bit] == uint32(cell)+1 {
				return c.values[bit], slot, true
			}
		}
	}
}

// chunk returns chunk i, to be read only.
func (s *state[T]) chunk(i int) *chunk[T] { return *s.slots.at(i) }

// cellOf returns the cell, plus 1, that names what is in slot; 0 if it is empty.
func (s *state[T]) cellOf(slot uint32) uint32 {
	return s.chunk(int(slot / chunkSize)).cells[slot%chunkSize]
}

// all calls yield for every object, until it says false.
func (s *state[T]) all(yield func(T) bool) { s.some(0, s.slots.n, yield) }

// some calls yield for every object in a range of chunks, until it says false.
func (s *state[T]) some(from, to int, yield func(T) bool) {
	for i := from; i < to; i++ {
		if !s.chunk(i).each(^uint32(0), yield) {
			return
		}
	}
}

// each calls yield for the live objects among those of mask, until it says
// false, and reports whether it never did.
//
// A slot that is not in use is passed over: an index may hold one if its
// function is not pure.
func (c *chunk[T]) each(mask uint32, yield func(T) bool) bool {
	for mask &= c.live; mask != 0; mask &= mask - 1 {
		if !yield(c.values[bits.TrailingZeros32(mask)]) {
			return false
		}
	}
	return true
}

// appendTo is each for who takes them all.
func (c *chunk[T]) appendTo(list []T, mask uint32) []T {
	if mask &= c.live; mask == ^uint32(0) {
		return append(list, c.values[:]...)
	}
	for ; mask != 0; mask &= mask - 1 {
		list = append(list, c.values[bits.TrailingZeros32(mask)])
	}
	return list
}

// enter puts obj, which is new, into slot. The table of keys must have filed
// that in cell.
func (s *state[T]) enter(slot, cell uint32, obj T) {
	c, bit := s.edit(slot), slot%chunkSize
	c.values[bit], c.cells[bit] = obj, cell+1
	c.live |= 1 << bit
	s.n++
}

// swap puts obj into slot in place of an object of the same key.
func (s *state[T]) swap(slot uint32, obj T) { s.edit(slot).values[slot%chunkSize] = obj }

// vacate empties slot.
func (s *state[T]) vacate(slot uint32) {
	var zero T
	c, bit := s.edit(slot), slot%chunkSize
	c.values[bit], c.cells[bit] = zero, 0
	c.live &^= 1 << bit
	s.n--
}

func (s *state[T]) edit(slot uint32) *chunk[T] {
	i := int(slot / chunkSize)
	c := s.chunk(i)
	if c.owner < s.floor {
		c = &chunk[T]{owner: s.floor, live: c.live, cells: c.cells, values: c.values}
		*s.slots.place(s.floor, i) = c
	}
	return c
}

// grow adds a chunk, and returns the slots of it, highest first, after those of
// free.
func (s *state[T]) grow(free []uint32) []uint32 {
	s.slots.push(s.floor, &chunk[T]{owner: s.floor})
	for i := range uint32(chunkSize) {
		free = append(free, uint32(s.slots.n)*chunkSize-1-i)
	}
	return free
}

// vacant returns the slots that are not in use, highest first.
func (s *state[T]) vacant() []uint32 {
	free := make([]uint32, 0, s.slots.n*chunkSize-s.n)
	for i := s.slots.n - 1; i >= 0; i-- {
		for idle := ^s.chunk(i).live; idle != 0; {
			bit := bits.Len32(idle) - 1
			idle &^= 1 << bit
			free = append(free, uint32(i*chunkSize+bit))
		}
	}
	return free
}

// rekey gives s, which is being written, a table of keys with room for more.
func (s *state[T]) rekey(more int) {
	from := s.keys
	s.keys = newKeyTable(s.n + more)
	done := make([]bool, s.slots.n*chunkSize)
	for i := range from.cells { // and not slot by slot, all over the tables
		cell := &from.cells[i]
		slot := cell.mark.Load()&(1<<32-1) - 1 // beyond all others if there is none
		if slot < uint64(len(done)) && !done[slot] && s.cellOf(uint32(slot)) == uint32(i)+1 {
			s.edit(uint32(slot)).cells[slot%chunkSize] = s.keys.copy(cell, uint32(slot)) + 1
			done[slot] = true
		}
	}
}

// sparse says that so few slots are in use that it is time for compact. The
// deletions that led here pay for it.
func (s *state[T]) sparse() bool { return s.slots.n > 4+2*s.n/chunkSize }

// roomy says that the table of keys is so large that it is time for rekey. Slots
// do not tell that: it grows in steps, and also holds keys that are gone.
func (s *state[T]) roomy() bool { return len(s.keys.cells) > 512+3*s.n }

// compact gives the objects new slots, in the same order and without gaps. s is
// being written, and its memory becomes that of a store which never held more.
func (s *state[T]) compact() {
	keys, slots := s.keys, s.slots
	s.layout++
	s.n, s.keys, s.slots = 0, newKeyTable(s.n), vec[*chunk[T]]{}
	moved := make([]uint32, slots.n*chunkSize) // from old slot to new, plus 1
	for i := range slots.n {
		c := *slots.at(i)
		for live := c.live; live != 0; live &= live - 1 {
			bit, next := bits.TrailingZeros32(live), uint32(s.n)
			if next%chunkSize == 0 {
				s.slots.push(s.floor, &chunk[T]{owner: s.floor})
			}
			s.enter(next, s.keys.copy(&keys.cells[c.cells[bit]-1], next), c.values[bit])
			moved[i*chunkSize+bit] = next + 1
		}
	}
	for i, root := range s.indexes {
		s.indexes[i] = root.move(s.floor, moved)
	}
}

func hashKey(seed maphash.Seed, k Key) uint32 {
	h := maphash.String(seed, k.Name) + maphash.String(seed, k.Namespace)*0x9E3779B97F4A7C15
	return uint32(h ^ h>>32)
}

func hashOf[K comparable](seed maphash.Seed, k K) uint32 {
	h := maphash.Comparable(seed, k)
	return uint32(h ^ h>>32)
}
