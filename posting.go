package informer

import (
	"math/bits"
	"slices"
)

const (
	// fewSlots is how many slots a posting keeps in a plain list.
	fewSlots = 32
	// groupSize is how many slots share one word of a large posting.
	groupSize = 64
)

// A posting is a persistent set of slots that is never empty: the objects that
// are filed under one key of an index. It has three forms, by size: one slot
// inline; up to fewSlots in a list; more as bits, in words of groupSize slots.
//
// The zero posting holds slot 0 alone.
type posting struct {
	one  uint32
	many *slotSet // nil: one is all; otherwise at least two slots
}

type slotSet struct {
	owner  epoch
	n      int
	few    []uint32              // in no order; nil while groups is in use
	groups table[uint32, uint64] // by slot/groupSize; no word is zero
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
			p.many = &slotSet{owner: e, n: 2, few: []uint32{p.one, slot}}
		}
		return
	}
	s := p.edit(e)
	switch {
	case s.few == nil:
		s.set(e, slot)
	case slices.Contains(s.few, slot):
	case len(s.few) < fewSlots:
		s.few = append(s.few, slot)
		s.n++
	default:
		few := s.few
		s.few, s.n = nil, 0
		for _, x := range few {
			s.set(e, x)
		}
		s.set(e, slot)
	}
}

// remove takes slot out, if it is there. It is not the only one.
func (p *posting) remove(e epoch, slot uint32) {
	if p.many == nil {
		return
	}
	s := p.edit(e)
	if s.few == nil {
		s.unset(e, slot)
	} else if i := slices.Index(s.few, slot); i >= 0 {
		s.few[i] = s.few[s.n-1]
		s.n--
		s.few = s.few[:s.n]
	}
	if s.n == 1 {
		*p = posting{one: s.few[0]}
	}
}

// each calls yield for every slot, until it says false.
func (p *posting) each(yield func(slot uint32) bool) {
	if p.many == nil {
		yield(p.one)
		return
	}
	for _, slot := range p.many.few {
		if !yield(slot) {
			return
		}
	}
	p.many.groups.each(func(c *cell[uint32, uint64]) bool {
		for word := c.value; word != 0; word &= word - 1 {
			if !yield(c.key*groupSize + uint32(bits.TrailingZeros64(word))) {
				return false
			}
		}
		return true
	})
}

func (p *posting) edit(e epoch) *slotSet {
	if s := p.many; s.owner != e {
		p.many = &slotSet{owner: e, n: s.n, few: slices.Clone(s.few), groups: s.groups}
	}
	return p.many
}

// set puts slot into groups.
func (s *slotSet) set(e epoch, slot uint32) {
	group, bit := slot/groupSize, uint64(1)<<(slot%groupSize)
	word, _ := s.groups.put(e, hashGroup(group), group)
	if *word&bit == 0 {
		*word |= bit
		s.n++
	}
}

// unset takes slot out of groups, and goes back to a list when that has been
// due for a while.
func (s *slotSet) unset(e epoch, slot uint32) {
	group, bit := slot/groupSize, uint64(1)<<(slot%groupSize)
	h := hashGroup(group)
	word := s.groups.find(h, group)
	if word == nil || *word&bit == 0 {
		return
	}
	if s.n--; *word == bit {
		s.groups.remove(e, h, group)
	} else {
		word, _ = s.groups.put(e, h, group)
		*word &^= bit
	}
	if s.n <= fewSlots/2 {
		few := make([]uint32, 0, s.n)
		(&posting{many: s}).each(func(slot uint32) bool {
			few = append(few, slot)
			return true
		})
		s.few, s.groups = few, table[uint32, uint64]{}
	}
}

// hashGroup spreads the numbers of groups, which are dense.
func hashGroup(group uint32) uint32 {
	h := group * 0x9E3779B1
	return h ^ h>>15
}
