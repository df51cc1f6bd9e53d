package informer

import (
	"math/bits"
	"sync/atomic"
)

// A keyTable proposes slots for the hash of a key. States find objects by it:
//
//	hash ─▶ bucket ─▶ bucket ─▶ ...    up to the first that is not full
//	        │ hash, slot │ hash, slot │ 0 │ ...
//	                └─▶ slot of the state: that key?
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
	buckets []bucket
	used    int // how many cells are not 0; known to the writer only
}

// A bucket is what a processor reads at once. Its cells are filled in order,
// each with a hash and, below it, a slot plus 1.
type bucket [bucketSize]atomic.Uint64

const bucketSize = 8

// newKeyTable returns an empty table for n keys, and a few more.
func newKeyTable(n int) *keyTable {
	return &keyTable{buckets: make([]bucket, 2+(n+n*5/8)/bucketSize)}
}

// takes reports whether there is room for n more cells: a table is never more
// than 4/5 full, or searches would become long.
func (t *keyTable) takes(n int) bool { return (t.used+n)*5 <= len(t.buckets)*bucketSize*4 }

// home returns where the search for hash h begins.
func (t *keyTable) home(h uint32) int { return int(uint64(h) * uint64(len(t.buckets)) >> 32) }

// after returns the bucket that follows bucket i.
func (t *keyTable) after(i int) int {
	if i++; i < len(t.buckets) {
		return i
	}
	return 0
}

// add files slot under hash h, unless that is done already. There must be room.
func (t *keyTable) add(h, slot uint32) {
	cell := uint64(h)<<32 | uint64(slot+1)
	for i := t.home(h); ; i = t.after(i) {
		b := &t.buckets[i]
		for j := range b {
			switch b[j].Load() {
			case cell:
				return
			case 0:
				b[j].Store(cell)
				t.used++
				return
			}
		}
	}
}

// matches returns a bit for each cell of hash h, and perhaps for some that are
// empty; and whether the search goes on in the next bucket. It does not branch:
// which cell it is would be a guess each time.
func (b *bucket) matches(h uint32) (found uint32, full bool) {
	for j := range b {
		differs := uint64(uint32(b[j].Load()>>32) ^ h)
		found |= uint32((differs-1)>>63) << j
	}
	return found, b[bucketSize-1].Load() != 0
}

// first returns the slot of the first cell in found, and the others. That of an
// empty cell is beyond all others.
func (b *bucket) first(found uint32) (slot, others uint32) {
	return uint32(b[bits.TrailingZeros32(found)].Load()) - 1, found & (found - 1)
}
