package informer

import "sync/atomic"

// A keyTable proposes slots for the hash of a key. States find objects by it:
//
//	hash ─▶ cells: │ 0 │ hash, slot │ hash, slot │ 0 │ ...   (open addressing)
//	                         └─▶ slot of the state: that key?
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
	cells []atomic.Uint64 // the hash, then the slot plus 1; 0 if empty. Some are.
	used  int             // how many are not empty; known to the writer only
}

// newKeyTable returns an empty table for n keys, and a few more.
func newKeyTable(n int) *keyTable {
	return &keyTable{cells: make([]atomic.Uint64, 16+n+n*5/8)}
}

// takes reports whether there is room for n more cells: a table is never more
// than 4/5 full, or searches would become long.
func (t *keyTable) takes(n int) bool { return (t.used+n)*5 <= len(t.cells)*4 }

// home returns where the search for hash h begins.
func (t *keyTable) home(h uint32) int { return int(uint64(h) * uint64(len(t.cells)) >> 32) }

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

func (t *keyTable) after(i int) int {
	if i++; i < len(t.cells) {
		return i
	}
	return 0
}

// next returns the first slot for hash h at or after cell i, and the cell behind
// it; or says false if there is none.
func (t *keyTable) next(h uint32, i int) (slot uint32, behind int, ok bool) {
	for {
		cell := t.cells[i].Load()
		i = t.after(i)
		if uint32(cell>>32) == h && cell != 0 {
			return uint32(cell) - 1, i, true
		}
		if cell == 0 {
			return 0, i, false
		}
	}
}
