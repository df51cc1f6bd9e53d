package informer

import "hash/maphash"

// workTurns holds the keys that are ready, by group. Groups that have any take
// turns: they form a ring, and each lease is one of the group whose turn it is.
// A group that gets its first key comes last, so it waits for one turn of each
// of the others, however many keys they have.
//
//	first ─▶ tenant-a ─▶ tenant-b ─▶ tenant-f ─┐     tenant-c, d and e have keys,
//	             ▲                             │     but none is ready
//	             └─────────────────────────────┘
//
// Without a group function there is one group, and neither ring nor table.
type workTurns struct {
	len     int  // keys that are ready
	grouped bool // there is a group function

	one workLines // of all keys, if there are no groups

	seed   maphash.Seed
	groups slab[string, workGroup] // those of all keys in the queue
	of     []uint32                // the group of each slot
	first  uint32                  // whose turn it is, noSlot if no key is ready
}

// A workGroup is what a queue knows of a group.
type workGroup struct {
	workLines
	keys       int    // that are in the queue, ready or not
	next, prev uint32 // in the ring, while a key is ready
}

// lines returns the lines of the group of slot.
func (t *workTurns) lines(slot uint32) *workLines {
	if !t.grouped {
		return &t.one
	}
	return &t.groups.at(t.of[slot]).workLines
}

// next returns the lines of the group whose turn it is. A key is ready.
func (t *workTurns) next() *workLines {
	if !t.grouped {
		return &t.one
	}
	return &t.groups.at(t.first).workLines
}

// advance ends a turn.
func (t *workTurns) advance() {
	if t.grouped {
		t.first = t.groups.at(t.first).next
	}
}

// entered notes that the key in slot has got in line.
func (t *workTurns) entered(slot uint32) {
	t.len++
	if !t.grouped {
		return
	}
	number := t.of[slot]
	group := t.groups.at(number)
	switch {
	case group.len > 1:
	case t.first == noSlot:
		t.first, group.next, group.prev = number, number, number
	default: // last, before the first
		first := t.groups.at(t.first)
		group.next, group.prev = t.first, first.prev
		t.groups.at(first.prev).next = number
		first.prev = number
	}
}

// left notes that the key in slot has left its line.
func (t *workTurns) left(slot uint32) {
	t.len--
	if !t.grouped {
		return
	}
	number := t.of[slot]
	group := t.groups.at(number)
	switch {
	case group.len > 0:
	case group.next == number:
		t.first = noSlot
	default:
		t.groups.at(group.prev).next = group.next
		t.groups.at(group.next).prev = group.prev
		if t.first == number {
			t.first = group.next
		}
	}
}

// join puts a new key, in slot, into a group.
func (t *workTurns) join(slot uint32, name string) {
	hash := uint32(maphash.String(t.seed, name) >> 32)
	number := t.groups.find(hash, name)
	if number == noSlot {
		number = t.groups.put(hash, name)
		t.groups.at(number).clear()
	}
	t.groups.at(number).keys++
	for int(slot) >= len(t.of) {
		t.of = append(t.of, noSlot)
	}
	t.of[slot] = number
}

// quit takes the key in slot, which is not ready, out of its group.
func (t *workTurns) quit(slot uint32) {
	if !t.grouped {
		return
	}
	group := t.groups.at(t.of[slot])
	if group.keys--; group.keys == 0 {
		t.groups.remove(t.of[slot])
	}
	t.of[slot] = noSlot
}

// sparse reports that compact would give much memory back.
func (t *workTurns) sparse() bool { return t.grouped && t.groups.sparse() }

// compact gives memory of groups back, and renumbers them.
func (t *workTurns) compact() {
	moved := t.groups.compact()
	for i, number := range t.of {
		if number != noSlot {
			t.of[i] = moved[number]
		}
	}
	if t.first == noSlot {
		return
	}
	t.first = moved[t.first]
	for number := t.first; ; {
		group := t.groups.at(number)
		group.next, group.prev = moved[group.next], moved[group.prev]
		if number = group.next; number == t.first {
			return
		}
	}
}

// renumber follows keys to their new slots, of which there are so many.
func (t *workTurns) renumber(moved []uint32, slots int) {
	if !t.grouped {
		return
	}
	of := make([]uint32, slots)
	for slot, number := range t.of {
		if number != noSlot {
			of[moved[slot]] = number
		}
	}
	t.of = of
}

// name returns the name of the group of slot.
func (t *workTurns) name(slot uint32) string {
	if !t.grouped {
		return ""
	}
	return t.groups.key(t.of[slot])
}
