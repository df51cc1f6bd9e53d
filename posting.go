package informer

import (
	"math/bits"
	"slices"
)

const (
	// fewSlots is how many slots a posting keeps in one list, fewOffsets how
	// many a group does. Below half of that they go back to it.
	fewSlots, fewOffsets = 256, 128
	// groupSize is how many slots share a group of a large posting.
	groupSize = 4096
)

// A posting is a persistent set of slots that is never empty: the objects that
// are filed under one key of an index. It has three forms, by size:
//
//	one slot   inline
//	few        a list of slots, ascending
//	many       groups ─▶ │ group │ none │ group │ ...    one for groupSize slots
//	                        └─▶ few: a list of offsets, ascending; or
//	                            many: bits, in words that cover a chunk each
//
// The zero posting holds slot 0 alone.
type posting struct {
	one  uint32
	many *slotSet // nil: one is all; otherwise at least two slots
}

type slotSet struct {
	owner  epoch // of the arrays, too
	n      int
	few    []uint32 // nil while groups is in use
	groups []*group // by slot/groupSize; nil where there is no slot
}

type group struct {
	owner epoch // of the arrays, too
	n     int
	few   []uint16 // nil while words is in use
	words *[groupSize / chunkSize]uint32
}

func (p *posting) len() int {
	if p.many == nil {
		return 1
	}
	return p.many.n
}

// only reports that slot is all there is.
func (p *posting) only(slot uint32) bool { return p.many == nil && p.one == slot }

// add puts slot in, if it is not there.
func (p *posting) add(e epoch, slot uint32) {
	if p.many == nil {
		if p.one != slot {
			p.many = &slotSet{owner: e, n: 2, few: []uint32{min(p.one, slot), max(p.one, slot)}}
		}
		return
	}
	s := p.edit(e)
	if s.few == nil {
		s.n += s.group(e, slot).add(slot % groupSize)
		return
	}
	s.few = insert(s.few, slot)
	if s.n = len(s.few); s.n > fewSlots {
		*p = newPosting(e, s.few)
	}
}

// remove takes slot out, if it is there. It is not the only one.
func (p *posting) remove(e epoch, slot uint32) {
	if p.many == nil {
		return
	}
	s := p.edit(e)
	if s.few != nil {
		s.few = remove(s.few, slot)
		s.n = len(s.few)
	} else if i := int(slot / groupSize); i < len(s.groups) && s.groups[i] != nil {
		s.n -= s.group(e, slot).remove(slot % groupSize)
		if s.groups[i].n == 0 {
			s.groups[i] = nil
		}
		if s.n <= fewSlots/2 {
			s.few, s.groups = p.list(), nil
		}
	}
	if s.n == 1 {
		*p = posting{one: s.few[0]}
	}
}

// list returns all slots, ascending.
func (p *posting) list() []uint32 {
	if p.many != nil && p.many.few != nil {
		return slices.Clone(p.many.few)
	}
	list := make([]uint32, 0, p.len())
	for c := p.cursor(); c.next(); {
		for mask := c.mask; mask != 0; mask &= mask - 1 {
			list = append(list, uint32(c.chunk*chunkSize+bits.TrailingZeros32(mask)))
		}
	}
	return list
}

// moved returns a posting of epoch e in which each slot i is moved[i]-1 instead,
// in the same order; and whether it holds any. A slot for which moved is 0 goes.
func (p *posting) moved(e epoch, moved []uint32) (to posting, some bool) {
	if p.many == nil {
		at := moved[p.one]
		return posting{one: at - 1}, at != 0
	}
	slots := p.list()
	kept := slots[:0]
	for _, slot := range slots {
		if at := moved[slot]; at != 0 {
			kept = append(kept, at-1)
		}
	}
	return newPosting(e, fit(kept)), len(kept) > 0
}

// newPosting returns a posting of slots, which ascend, and which it keeps.
func newPosting(e epoch, slots []uint32) posting {
	switch {
	case len(slots) == 0:
		return posting{}
	case len(slots) == 1:
		return posting{one: slots[0]}
	case len(slots) <= fewSlots:
		return posting{many: &slotSet{owner: e, n: len(slots), few: slots}}
	}
	s := &slotSet{owner: e, n: len(slots), groups: make([]*group, slots[len(slots)-1]/groupSize+1)}
	for len(slots) > 0 {
		i, n := slots[0]/groupSize, 1
		for n < len(slots) && slots[n]/groupSize == i {
			n++
		}
		s.groups[i] = newGroup(e, slots[:n])
		slots = slots[n:]
	}
	return posting{many: s}
}

// newGroup returns a group of slots, which ascend.
func newGroup(e epoch, slots []uint32) *group {
	g := &group{owner: e, n: len(slots)}
	if g.n > fewOffsets {
		g.words = new([groupSize / chunkSize]uint32)
		for _, slot := range slots {
			g.words[slot%groupSize/chunkSize] |= 1 << (slot % chunkSize)
		}
		return g
	}
	g.few = make([]uint16, g.n)
	for i, slot := range slots {
		g.few[i] = uint16(slot % groupSize)
	}
	return g
}

func (p *posting) edit(e epoch) *slotSet {
	if s := p.many; s.owner < e {
		p.many = &slotSet{owner: e, n: s.n, few: slices.Clone(s.few), groups: slices.Clone(s.groups)}
	}
	return p.many
}

// group returns the group of slot, to be written in epoch e.
func (s *slotSet) group(e epoch, slot uint32) *group {
	i := int(slot / groupSize)
	if i >= len(s.groups) {
		s.groups = append(s.groups, make([]*group, i+1-len(s.groups))...)
	}
	g := s.groups[i]
	if g == nil {
		g = &group{owner: e, few: []uint16{}}
	} else if g.owner < e {
		g = &group{owner: e, n: g.n, few: slices.Clone(g.few), words: g.words}
		if g.words != nil {
			words := *g.words
			g.words = &words
		}
	}
	s.groups[i] = g
	return g
}

// add puts a slot of that offset in, and returns how many are new.
func (g *group) add(offset uint32) int {
	was := g.n
	if g.words == nil {
		g.few = insert(g.few, uint16(offset))
		if g.n = len(g.few); g.n > fewOffsets {
			g.words = new([groupSize / chunkSize]uint32)
			for _, offset := range g.few {
				g.words[offset/chunkSize] |= 1 << (offset % chunkSize)
			}
			g.few = nil
		}
	} else if word, bit := &g.words[offset/chunkSize], uint32(1)<<(offset%chunkSize); *word&bit == 0 {
		*word |= bit
		g.n++
	}
	return g.n - was
}

// remove takes a slot of that offset out, and returns how many were there.
func (g *group) remove(offset uint32) int {
	was := g.n
	if g.words == nil {
		g.few = remove(g.few, uint16(offset))
		g.n = len(g.few)
	} else if word, bit := &g.words[offset/chunkSize], uint32(1)<<(offset%chunkSize); *word&bit != 0 {
		*word &^= bit
		if g.n--; g.n <= fewOffsets/2 {
			g.few = make([]uint16, 0, g.n)
			for i, word := range g.words {
				for ; word != 0; word &= word - 1 {
					g.few = append(g.few, uint16(i*chunkSize+bits.TrailingZeros32(word)))
				}
			}
			g.words = nil
		}
	}
	return was - g.n
}

// A slotCursor walks over a posting, which must not change meanwhile, chunk by
// chunk of the store.
type slotCursor struct {
	// chunk is the number of the chunk, mask has a bit for each slot in it.
	chunk int
	mask  uint32

	one    bool     // chunk and mask are all, and still to come
	few    []uint32 // what is still to come
	groups []*group
	group  int // number of the first of groups
	at     int // place in it: in few or in words
}

func (p *posting) cursor() slotCursor {
	if p.many == nil {
		return slotCursor{one: true, chunk: int(p.one / chunkSize), mask: 1 << (p.one % chunkSize)}
	}
	return slotCursor{few: p.many.few, groups: p.many.groups}
}

// next goes to the next chunk, and reports whether there is one.
func (c *slotCursor) next() bool {
	if c.one {
		c.one = false
		return true
	}
	if len(c.few) > 0 {
		var n int
		c.chunk, c.mask, n = gather(c.few)
		c.few = c.few[n:]
		return true
	}
	for ; len(c.groups) > 0; c.groups, c.group, c.at = c.groups[1:], c.group+1, 0 {
		if g := c.groups[0]; g != nil && c.inside(g) {
			c.chunk += c.group * (groupSize / chunkSize)
			return true
		}
	}
	return false
}

// inside goes to the next chunk of g.
func (c *slotCursor) inside(g *group) bool {
	if g.words == nil {
		if c.at == len(g.few) {
			return false
		}
		var n int
		c.chunk, c.mask, n = gather(g.few[c.at:])
		c.at += n
		return true
	}
	for ; c.at < len(g.words); c.at++ {
		if c.mask = g.words[c.at]; c.mask != 0 {
			c.chunk = c.at
			c.at++
			return true
		}
	}
	return false
}

// gather returns the first chunk of list, with a bit for each slot in it, and
// how many these are.
func gather[E uint16 | uint32](list []E) (chunk int, mask uint32, n int) {
	first := list[0] / chunkSize
	for n < len(list) && list[n]/chunkSize == first {
		mask |= 1 << (list[n] % chunkSize)
		n++
	}
	return int(first), mask, n
}

// insert puts x into list, which ascends, if it is not there. It leaves little
// room: lists are what an index consists of.
func insert[E uint16 | uint32](list []E, x E) []E {
	i := len(list)
	if i > 0 && list[i-1] >= x {
		var there bool
		if i, there = slices.BinarySearch(list, x); there {
			return list
		}
	}
	if len(list) == cap(list) {
		list = append(make([]E, 0, len(list)+len(list)/4+4), list...)
	}
	return slices.Insert(list, i, x)
}

// remove takes x out of list, which ascends.
func remove[E uint16 | uint32](list []E, x E) []E {
	i, there := slices.BinarySearch(list, x)
	if !there {
		return list
	}
	return fit(slices.Delete(list, i, i+1))
}

// fit returns list without most of the room that it does not need.
func fit[E any](list []E) []E {
	if cap(list) > 2*len(list)+8 {
		return append(make([]E, 0, len(list)), list...)
	}
	return list
}
