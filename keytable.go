package informer

import "sync/atomic"

// A keyTable proposes slots for the hash of a key. States find objects by it:
//
//	hash ─▶ cells: │ hash, slot │ hash, slot │ 0 │ ...    up to the first 0
//	                       └─▶ slot of the state: that key?
//
// It is one flat array, which the newest state shares with older ones, and the
// writer adds to it beside readers. They need no lock, because a table only
// proposes: whether a slot holds a key in some state is for that state to say,
// and there a key has at most one slot. So all that a state needs of its table
// is a cell for each of its live slots; cells of a key that is gone, or that is
// not published yet, are passed over.
//
// Hence no cell is ever changed or taken out. When a table has become full, the
// writer makes another for the states to come, and leaves this one to those
// that have it.
type keyTable struct {
	cells []atomic.Uint64 // a hash and, below it, a slot plus 1; 0 if empty
	used  int             // how many are not; known to the writer only
}

// newKeyTable returns an empty table for n keys, and more.
func newKeyTable(n int) *keyTable {
	return &keyTable{cells: make([]atomic.Uint64, 16+n*5/2)}
}

// takes reports whether there is room for n more cells. A table is never more
// than 2/3 full: a search goes to one cell or two, which a processor can guess.
func (t *keyTable) takes(n int) bool { return (t.used+n)*3 <= len(t.cells)*2 }

// add files slot under hash h, unless that is done already. There must be room.
func (t *keyTable) add(h, slot uint32) {
	cell := uint64(h)<<32 | uint64(slot+1)
	for i := t.home(h); ; i = t.after(i) {
		switch t.cells[i].Load() {
		case cell:
			return
		case 0:
			t.cells[i].Store(cell)
			t.used++
			return
		}
	}
}

// next returns the first slot for hash h at or after cell i, and the cell behind
// it; or says false if there is none.
func (t *keyTable) next(h uint32, i int) (slot uint32, behind int, ok bool) {
	for {
		cell := t.cells[i].Load()
		if i = t.after(i); cell == 0 || uint32(cell>>32) == h {
			return uint32(cell) - 1, i, cell != 0
		}
	}
}

// home returns where the search for hash h begins.
func (t *keyTable) home(h uint32) int { return int(uint64(h) * uint64(len(t.cells)) >> 32) }

func (t *keyTable) after(i int) int {
	if i++; i < len(t.cells) {
		return i
	}
	return 0
}
