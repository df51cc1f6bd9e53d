package informer

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
)

// A state is one state of the store: objects, indexes and the server's version
// belong together. It never changes from the moment that it is seen; before
// that, only its writer touches it (see [Indexer.begin]).
type state[T Object] struct {
	// seen says that a reader may hold the state. It is set under Indexer.mu
	// and never taken back.
	seen atomic.Bool

	epoch   epoch              // its writer's
	version string             // the server's resource version; empty if nothing told
	listed  bool               // a whole list has been applied
	layout  int                // changes when objects get other slots
	keys    table[Key, uint32] // the slot of each object
	slots   vec[chunk[T]]
	indexes []indexRoot[T] // in the order in which they were added; owned
}

const chunkSize = 32

// A chunk holds the objects of chunkSize slots: T may be a value type, so which
// of them are in use must be told apart. A value that is not live is zero.
type chunk[T any] struct {
	owner  epoch
	live   uint32
	values [chunkSize]T
}

// next returns a state to be written in epoch e, which begins as a copy of s.
func (s *state[T]) next(e epoch) *state[T] {
	return &state[T]{
		epoch: e, version: s.version, listed: s.listed, layout: s.layout,
		keys: s.keys, slots: s.slots, indexes: slices.Clone(s.indexes),
	}
}

// len returns the number of objects.
func (s *state[T]) len() int { return s.keys.n }

// get returns the object of key k with hash h, and its slot.
func (s *state[T]) get(h uint32, k Key) (obj T, slot uint32, ok bool) {
	if at := s.keys.find(h, k); at != nil {
		slot = *at
		return s.slots.at(int(slot / chunkSize)).values[slot%chunkSize], slot, true
	}
	return obj, 0, false
}

// object returns what is in slot. A slot that is not in use says false: an
// index may hold one if its function is not pure.
func (s *state[T]) object(slot uint32) (obj T, ok bool) {
	c := s.slots.at(int(slot / chunkSize))
	return c.values[slot%chunkSize], c.live>>(slot%chunkSize)&1 == 1
}

// all calls yield for every object, until it says false.
func (s *state[T]) all(yield func(T) bool) { s.some(0, s.slots.n, yield) }

// some calls yield for every object in a range of chunks, until it says false.
func (s *state[T]) some(from, to int, yield func(T) bool) {
	for i := from; i < to; i++ {
		c := s.slots.at(i)
		for live := c.live; live != 0; live &= live - 1 {
			if !yield(c.values[bits.TrailingZeros32(live)]) {
				return
			}
		}
	}
}

// fill puts obj into slot.
func (s *state[T]) fill(slot uint32, obj T) {
	c := s.edit(slot)
	c.values[slot%chunkSize] = obj
	c.live |= 1 << (slot % chunkSize)
}

// vacate empties slot.
func (s *state[T]) vacate(slot uint32) {
	var zero T
	c := s.edit(slot)
	c.values[slot%chunkSize] = zero
	c.live &^= 1 << (slot % chunkSize)
}

func (s *state[T]) edit(slot uint32) *chunk[T] {
	i := int(slot / chunkSize)
	c := s.slots.at(i)
	if c.owner != s.epoch {
		c = &chunk[T]{owner: s.epoch, live: c.live, values: c.values}
		*s.slots.place(s.epoch, i) = c
	}
	return c
}

// grow adds a chunk, and returns the slots of it, highest first, after those of
// free.
func (s *state[T]) grow(free []uint32) []uint32 {
	s.slots.push(s.epoch, &chunk[T]{owner: s.epoch})
	for i := range uint32(chunkSize) {
		free = append(free, uint32(s.slots.n)*chunkSize-1-i)
	}
	return free
}

// vacant returns the slots that are not in use, highest first.
func (s *state[T]) vacant() []uint32 {
	free := make([]uint32, 0, s.slots.n*chunkSize-s.len())
	for i := s.slots.n - 1; i >= 0; i-- {
		for idle := ^s.slots.at(i).live; idle != 0; {
			bit := bits.Len32(idle) - 1
			idle &^= 1 << bit
			free = append(free, uint32(i*chunkSize+bit))
		}
	}
	return free
}

// sparse says that so few slots are in use that it is time for compact. The
// deletions that led here pay for it.
func (s *state[T]) sparse() bool { return s.slots.n > 8+4*s.len()/chunkSize }

// compact gives the objects new slots, without gaps. s is being written, and
// its memory becomes that of a store which never held more.
func (s *state[T]) compact() {
	keys, slots := s.keys, s.slots
	s.layout++
	moved := make([]uint32, slots.n*chunkSize) // from old slot to new, plus 1
	s.keys, s.slots = table[Key, uint32]{}, vec[chunk[T]]{}
	var next uint32
	keys.each(func(c *cell[Key, uint32]) bool {
		if next%chunkSize == 0 {
			s.slots.push(s.epoch, &chunk[T]{owner: s.epoch})
		}
		s.fill(next, slots.at(int(c.value / chunkSize)).values[c.value%chunkSize])
		slot, _ := s.keys.put(s.epoch, c.hash, c.key)
		*slot = next
		next++
		moved[c.value] = next
		return true
	})
	for i, root := range s.indexes {
		s.indexes[i] = root.move(s.epoch, moved)
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
