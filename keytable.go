package informer

import (
	"strings"
	"sync/atomic"
)

// A keyTable proposes slots for a key. States find objects by it:
//
//	hash ─▶ cells: │ key, hash, slot │ key, hash, slot │ none │ ...
//	                            └─▶ slot of the state: is that cell its?
//
// It is one flat array, which the newest state shares with older ones, and the
// writer adds to it beside readers. They need no lock, because a table only
// proposes: a slot of a state says which cell names what is in it, and there is
// one such slot for a key. So all that a state needs of its table is a cell for
// each of its live slots; cells of a key that is gone, or that is not published
// yet, are passed over.
//
// Hence no cell is ever changed or taken out. When a table has become full, the
// writer makes another for the states to come, and leaves this one to those
// that have it.
type keyTable struct {
	cells []keyCell
	used  int // how many are in use; known to the writer only
}

// A keyCell is half of what a processor reads at once.
type keyCell struct {
	// mark is the hash and, below it, the slot plus 1; 0 if there is none. It is
	// stored last, so that who sees it may read the rest.
	mark  atomic.Uint64
	key   string // the namespace, then the name
	split uint32 // where the name begins
}

// newKeyTable returns an empty table for n keys, and more.
func newKeyTable(n int) *keyTable { return &keyTable{cells: make([]keyCell, 16+2*n)} }

// takes reports whether there is room for n more cells. A table is never more
// than 3/4 full: a search goes to one cell or two, which a processor can guess.
func (t *keyTable) takes(n int) bool { return (t.used+n)*4 <= len(t.cells)*3 }

// add files slot under k of hash h, unless that is done already, and returns
// the number of the cell. There must be room.
func (t *keyTable) add(h, slot uint32, k Key) (cell uint32) {
	mark := uint64(h)<<32 | uint64(slot+1)
	for i := t.home(h); ; i = t.after(i) {
		c := &t.cells[i]
		switch was := c.mark.Load(); {
		case was == 0:
			// The key outlives the object that it came with, and must not keep
			// alive what that was decoded from.
			c.key, c.split = strings.Join([]string{k.Namespace, k.Name}, ""), uint32(len(k.Namespace))
			c.mark.Store(mark)
			t.used++
			return uint32(i)
		case was == mark && c.is(k):
			return uint32(i)
		}
	}
}

// copy files slot as add does, for what cell c of another table files.
func (t *keyTable) copy(c *keyCell, slot uint32) (cell uint32) {
	h := uint32(c.mark.Load() >> 32)
	i := t.home(h)
	for t.cells[i].mark.Load() != 0 {
		i = t.after(i)
	}
	to := &t.cells[i]
	to.key, to.split = c.key, c.split
	to.mark.Store(uint64(h)<<32 | uint64(slot+1))
	t.used++
	return uint32(i)
}

// next returns the first slot for k of hash h at or after cell i, and that cell;
// or says false if there is none.
func (t *keyTable) next(h uint32, k Key, i int) (slot uint32, cell int, ok bool) {
	for ; ; i = t.after(i) {
		c := &t.cells[i]
		mark := c.mark.Load()
		if mark == 0 {
			return 0, i, false
		}
		if uint32(mark>>32) == h && c.is(k) {
			return uint32(mark) - 1, i, true
		}
	}
}

// home returns where the search for hash h begins. Cells are in the order of
// their hash, nearly, so that one table is copied into another from end to end.
func (t *keyTable) home(h uint32) int { return int(uint64(h) * uint64(len(t.cells)) >> 32) }

func (t *keyTable) after(i int) int {
	if i++; i < len(t.cells) {
		return i
	}
	return 0
}

func (c *keyCell) is(k Key) bool {
	n := len(k.Namespace)
	return int(c.split) == n && len(c.key) == n+len(k.Name) && c.key[n:] == k.Name && c.key[:n] == k.Namespace
}

// full returns the key, which is the store's own.
func (c *keyCell) full() Key { return Key{Namespace: c.key[:c.split], Name: c.key[c.split:]} }
