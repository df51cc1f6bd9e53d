package informer

import (
	"errors"
	"fmt"
	"slices"
)

// An indexRoot is what an index knows of one state, with the type of its keys
// erased: it is always a *root.
type indexRoot[T Object] interface {
	indexName() string
	// prepare runs the index function for changes, and returns how many keys
	// commit will have to file or take out.
	prepare(changes []change[T]) int
	// commit does what prepare found out, for the same changes, which have
	// their slots now. It returns the root to write in epoch e, which may be
	// itself.
	commit(e epoch, changes []change[T]) indexRoot[T]
	// trim ends a batch: it gives up buffers that are large.
	trim()
	// move returns a root of epoch e in which the object of each slot i is
	// that of slot moved[i]-1. Slots for which moved is 0 are not in use.
	move(e epoch, moved []uint32) indexRoot[T]
}

// A root is the content of an index in one state.
type root[K comparable, T Object] struct {
	of    *Index[K, T]
	owner epoch
	files table[K, posting] // the slots of the objects filed under each key
}

// A move files an object under a key, or takes it out there.
type move[K comparable] struct {
	change int // number of the change in its part of the batch
	out    bool
	hash   uint32
	key    K
}

// Buffers that have room for more elements are given up after a batch.
const maxMovesKept, maxKeysKept = maxMoves / 2, 128

func (r *root[K, T]) indexName() string { return r.of.name }

// prepare leaves in moves only what differs between the old and the new object,
// so an index costs nothing to objects that stay where they are.
func (r *root[K, T]) prepare(changes []change[T]) int {
	ix := r.of
	ix.moves = ix.moves[:0]
	for i := range changes {
		c := &changes[i]
		if ix.ofKey != nil && c.hasOld && c.hasNew {
			continue // it stays where it is
		}
		ix.found.keys = ix.found.keys[:0]
		if c.hasOld {
			// An error was told when this was the new object.
			_ = ix.collect(c.key, c.old)
		}
		n := len(ix.found.keys)
		if c.hasNew {
			if err := ix.collect(c.key, c.new); err != nil {
				ix.report(c.key, err)
			}
		}
		was, is := ix.found.keys[:n], ix.found.keys[n:]
		if !slices.Equal(was, is) {
			ix.plan(i, false, is, was)
			ix.plan(i, true, was, is)
		}
	}
	ix.found.trim()
	return len(ix.moves)
}

// collect finds out where an object is filed.
func (ix *Index[K, T]) collect(k Key, obj T) error {
	if ix.ofKey != nil {
		ix.ofKey(k, ix.found.file)
		return nil
	}
	return ix.found.collect(ix.keys, obj)
}

// plan adds a move of change for each key that is in these and not in those. A
// key that is in these twice may be moved twice, which does no harm.
func (ix *Index[K, T]) plan(change int, out bool, these, those []K) {
	const many = 32 // from where on a set is faster
	var set map[K]struct{}
	if len(those) > many {
		set = make(map[K]struct{}, len(those))
		for _, k := range those {
			set[k] = struct{}{}
		}
	}
	for _, k := range these {
		_, both := set[k]
		if both || set == nil && slices.Contains(those, k) {
			continue
		}
		ix.moves = append(ix.moves, move[K]{change: change, out: out, hash: hashOf(ix.x.seed, k), key: k})
	}
}

func (ix *Index[K, T]) report(key Key, err error) {
	if ix.x.onError != nil {
		ix.x.onError(fmt.Errorf("index %q: %w", ix.name, &ObjectError{Key: key, Err: err}))
	}
}

func (r *root[K, T]) commit(e epoch, changes []change[T]) indexRoot[T] {
	ix := r.of
	if len(ix.moves) == 0 {
		return r
	}
	if r.owner < e {
		r = &root[K, T]{of: ix, owner: e, files: r.files}
	}
	for i := range ix.moves {
		m := &ix.moves[i]
		if slot := changes[m.change].slot; m.out {
			r.takeOut(e, m.hash, m.key, slot)
		} else {
			r.file(e, m.hash, m.key, slot)
		}
	}
	clear(ix.moves)
	ix.moves = ix.moves[:0]
	return r
}

func (r *root[K, T]) trim() {
	if cap(r.of.moves) > maxMovesKept {
		r.of.moves = nil
	}
}

func (r *root[K, T]) file(e epoch, hash uint32, k K, slot uint32) {
	if p, had := r.files.put(e, hash, k); had {
		p.add(e, slot)
	} else {
		p.one = slot
	}
}

func (r *root[K, T]) takeOut(e epoch, hash uint32, k K, slot uint32) {
	p := r.files.find(hash, k)
	if p == nil {
		return
	}
	if p.only(slot) {
		r.files.remove(e, hash, k)
		return
	}
	p, _ = r.files.put(e, hash, k)
	p.remove(e, slot)
}

func (r *root[K, T]) move(e epoch, moved []uint32) indexRoot[T] {
	to := &root[K, T]{of: r.of, owner: e}
	var gone []cell[K, posting]
	to.files = r.files.renew(e, func(c *cell[K, posting]) posting {
		p, some := c.value.moved(e, moved)
		if !some {
			gone = append(gone, *c)
		}
		return p
	})
	for _, c := range gone {
		to.files.remove(e, c.hash, c.key)
	}
	return to
}

// A collector takes the keys that an index function files.
type collector[K comparable, T Object] struct {
	keys []K
	file func(K) // add, made once: a closure for each call would be garbage
}

func (c *collector[K, T]) add(k K) { c.keys = append(c.keys, k) }

// collect appends the keys of obj. If the function panics, or one of its keys
// could not be found again, it appends none and returns the reason.
func (c *collector[K, T]) collect(keys func(T, func(K)), obj T) (err error) {
	n := len(c.keys)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the index function panicked: %v", r)
		}
		if err != nil {
			clear(c.keys[n:])
			c.keys = c.keys[:n]
		}
	}()
	keys(obj, c.file)
	for _, k := range c.keys[n:] {
		if !findable(k) {
			return errors.New("the index function files a key that does not equal itself, or cannot be compared")
		}
	}
	return nil
}

// trim empties the collector, so that it keeps no key alive.
func (c *collector[K, T]) trim() {
	if cap(c.keys) > maxKeysKept {
		c.keys = nil
	}
	clear(c.keys[:cap(c.keys)])
	c.keys = c.keys[:0]
}

// findable says that k can be found in a table: it equals itself, as NaN does
// not, and can be compared at all. An interface value may hold something that
// cannot, such as a slice, for which a comparison panics.
func findable[K comparable](k K) (ok bool) {
	defer func() { _ = recover() }()
	other := k
	return k == other
}
