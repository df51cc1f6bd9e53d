package informer

import "slices"

// An epoch names a state of the store, in the order in which they are made.
//
// The structures of the store (vec, table, posting) are persistent: states
// share the nodes in which they do not differ. A node carries the epoch that
// made it. A writer brings an epoch from which on nodes belong to its state
// alone. It writes those in place, and copies every other one first, to be of
// its epoch; so a copy of the small struct at the top is a snapshot, if whatever
// writes next has an epoch above all nodes.
type epoch uint64

// fanout is how many blocks hang under one branch of a vec.
const fanout = 64

// A vec is a persistent array of blocks, on three levels: root, branch, block.
// The zero vec is empty.
//
// A vec owns its root and its branches; whether what a block points to may be
// written is for the block itself to know. There is a branch for every fanout
// blocks or part of it, and only places below n hold a block; others are zero.
type vec[B any] struct {
	n     int
	owner epoch // of the array behind root
	root  []*branch[B]
}

type branch[B any] struct {
	owner epoch
	kids  [fanout]B
}

// at returns block i, to be read only.
func (v *vec[B]) at(i int) *B { return &v.root[i/fanout].kids[i%fanout] }

// place returns block i, for a writer of epoch e to write.
func (v *vec[B]) place(e epoch, i int) *B {
	v.ownRoot(e)
	b := v.root[i/fanout]
	if b.owner < e {
		b = &branch[B]{owner: e, kids: b.kids}
		v.root[i/fanout] = b
	}
	return &b.kids[i%fanout]
}

func (v *vec[B]) ownRoot(e epoch) {
	if v.owner < e {
		v.root, v.owner = slices.Clone(v.root), e
	}
}

// push adds block b at the end.
func (v *vec[B]) push(e epoch, b B) {
	if v.n%fanout == 0 {
		v.ownRoot(e)
		v.root = append(v.root, &branch[B]{owner: e})
	}
	v.n++
	*v.place(e, v.n-1) = b
}

// pop takes the last block away. There is one.
func (v *vec[B]) pop(e epoch) (b B) {
	v.n--
	at := v.place(e, v.n)
	b, *at = *at, b
	if v.n%fanout == 0 {
		last := len(v.root) - 1
		v.root[last] = nil
		v.root = v.root[:last]
	}
	return b
}
