package informer

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// An Index finds objects by a key that a function gives them. It belongs to the
// [Indexer] or [Informer] that it was added to, changes together with it, and
// is safe for use by any number of goroutines. Make one with [AddIndex] or
// [AddMultiIndex]; the zero value is not usable.
//
// A key that cannot be found again is never filed: one that does not equal
// itself, such as NaN, or an interface value that cannot be compared.
type Index[K comparable, T Object] struct {
	x    *Indexer[T]
	name string
	keys func(T, func(K))
	// ofKey is of an index that files by what the key of an object says: it does
	// the same as keys, and asks no object. Else it is nil.
	ofKey func(Key, func(K))

	// The writer's buffers, guarded by Indexer.writing.
	found collector[K, T] // the keys of an old object, then of its new state
	moves []move[K]       // what commit is to do; empty between batches
}

// indexTarget is what an index can be added to.
type indexTarget[T Object] interface {
	indexTarget() (*Indexer[T], error)
}

// indexTarget says that an index can be added to x itself.
func (x *Indexer[T]) indexTarget() (*Indexer[T], error) {
	if x == nil || x.Reader.x == nil {
		return nil, errors.New("the Indexer was not made by NewIndexer")
	}
	return x, nil
}

// AddIndex adds an index to an [Indexer] or an [Informer]. It files each object
// under the key that the function returns, or not at all if that says false.
//
// The function must be quick, depend on nothing but the object, and not change
// it: it is called again with the same object to find out where that was filed.
// It may be called from several goroutines at once. It may read from the store,
// but must not write to it, and must not add or remove indexes. An object for
// which it panics is not in this index; see [IndexerOptions] and [Options] for
// where that is reported.
//
// AddIndex may be called at any time. The index is complete when AddIndex
// returns; writers wait meanwhile, readers do not. The name is for errors. It
// returns an error if the function is nil, if the name is empty or that of
// another index of the store, and [ErrStopped] after the end of the Informer.
func AddIndex[K comparable, T Object](to indexTarget[T], name string, key func(T) (K, bool)) (*Index[K, T], error) {
	if key == nil {
		return addIndex[K](to, name, nil)
	}
	return addIndex(to, name, func(obj T, file func(K)) {
		if k, ok := key(obj); ok {
			file(k)
		}
	})
}

// AddMultiIndex is [AddIndex] with any number of keys for an object: the
// function hands each of them to file, which it must not keep. It does not
// matter in which order, nor whether one comes twice.
func AddMultiIndex[K comparable, T Object](to indexTarget[T], name string, keys func(obj T, file func(K))) (*Index[K, T], error) {
	return addIndex(to, name, keys)
}

func addIndex[K comparable, T Object](to indexTarget[T], name string, keys func(T, func(K))) (*Index[K, T], error) {
	var errs []error
	if name == "" {
		errs = append(errs, errors.New("it has no name"))
	}
	if keys == nil {
		errs = append(errs, errors.New("its function is nil"))
	}
	if to == nil {
		errs = append(errs, errors.New("there is nothing to add it to"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("informer: index %q: %w", name, err)
	}
	x, err := to.indexTarget()
	if err != nil {
		return nil, fmt.Errorf("informer: index %q: %w", name, err)
	}
	ix := newIndex(x, name, keys)
	if err := ix.build(); err != nil {
		return nil, fmt.Errorf("informer: index %q: %w", name, err)
	}
	return ix, nil
}

func newIndex[K comparable, T Object](x *Indexer[T], name string, keys func(T, func(K))) *Index[K, T] {
	ix := &Index[K, T]{x: x, name: name, keys: keys}
	ix.found.file = ix.found.add
	return ix
}

// build files all objects of the store, a part at a time, and publishes the
// index with the state that it belongs to.
func (ix *Index[K, T]) build() error {
	x := ix.x
	x.writing.Lock()
	defer x.writing.Unlock()

	before := x.newest.Load()
	for _, other := range before.indexes {
		if other.indexName() == ix.name {
			return errors.New("there is one of this name")
		}
	}
	s := x.begin(false)
	var built indexRoot[T] = &root[K, T]{of: ix, owner: s.floor}
	part := make([]change[T], 0, stride)
	file := func() {
		built.prepare(part)
		built = built.commit(s.floor, part)
		part = part[:0]
	}
	for i := range s.slots.n {
		c := s.chunk(i)
		for live := c.live; live != 0; live &= live - 1 {
			bit := bits.TrailingZeros32(live)
			key := s.keys.cells[c.cells[bit]-1].full()
			part = append(part, change[T]{key: key, slot: uint32(i*chunkSize + bit), new: c.values[bit], hasNew: true})
		}
		if len(part)+chunkSize > cap(part) {
			file()
		}
	}
	file()
	built.trim()
	s.indexes = append(s.indexes, built)
	x.end(s, nil)
	return nil
}

// Get yields the objects filed under k, in no order, as they were when the loop
// began.
func (ix *Index[K, T]) Get(k K) iter.Seq[T] { return ix.In(ix.x.Reader, k) }

// In is Get for what r reads, which may be a snapshot. A snapshot that is older
// than the index, any state after Remove, and the state of another store, are
// searched by calling the index function with every object: slow, and right.
func (ix *Index[K, T]) In(r Reader[T], k K) iter.Seq[T] {
	return func(yield func(T) bool) {
		s := r.state()
		if s == nil || !findable(k) {
			return
		}
		r := ix.rootIn(s)
		if r == nil {
			ix.search(s, k, yield)
			return
		}
		if p := r.files.find(hashOf(ix.x.seed, k), k); p != nil {
			for c := p.cursor(); c.next() && s.chunk(c.chunk).each(c.mask, yield); {
			}
		}
	}
}

// List returns the objects filed under k, in no order. The slice is the
// caller's own.
func (ix *Index[K, T]) List(k K) []T {
	s := ix.x.look()
	if !findable(k) {
		return nil
	}
	r := ix.rootIn(s)
	if r == nil {
		return slices.Collect(ix.In(Reader[T]{ix.x, s}, k))
	}
	p := r.files.find(hashOf(ix.x.seed, k), k)
	if p == nil {
		return nil
	}
	list := make([]T, 0, p.len())
	for c := p.cursor(); c.next(); {
		list = s.chunk(c.chunk).appendTo(list, c.mask)
	}
	return list
}

// Len returns the number of objects filed under k.
func (ix *Index[K, T]) Len(k K) int {
	s := ix.x.look()
	if !findable(k) {
		return 0
	}
	if r := ix.rootIn(s); r != nil {
		if p := r.files.find(hashOf(ix.x.seed, k), k); p != nil {
			return p.len()
		}
		return 0
	}
	n := 0
	ix.search(s, k, func(T) bool { n++; return true })
	return n
}

// Keys yields every key under which there are objects, and their number, in no
// order, as they were when the loop began.
func (ix *Index[K, T]) Keys() iter.Seq2[K, int] {
	return func(yield func(K, int) bool) {
		s := ix.x.look()
		if r := ix.rootIn(s); r != nil {
			r.files.each(func(c *cell[K, posting]) bool { return yield(c.key, c.value.len()) })
			return
		}
		for k, n := range ix.count(s) {
			if !yield(k, n) {
				return
			}
		}
	}
}

// Remove takes the index out of the store, and frees its memory and its name.
// The Index can still be asked, as described at In. Once is enough; more often
// does no harm.
func (ix *Index[K, T]) Remove() {
	x := ix.x
	x.writing.Lock()
	defer x.writing.Unlock()
	r := ix.rootIn(x.newest.Load())
	if r == nil {
		return
	}
	s := x.begin(false)
	s.indexes = slices.DeleteFunc(s.indexes, func(other indexRoot[T]) bool { return other == indexRoot[T](r) })
	x.end(s, nil)
}

// rootIn returns the content of the index in state s, or nil if s has none: it
// is from before AddIndex, from after Remove, or of another store.
//
// A state holds indexes of any K, so K has to be asserted here.
func (ix *Index[K, T]) rootIn(s *state[T]) *root[K, T] {
	for _, other := range s.indexes {
		if r, ok := other.(*root[K, T]); ok && r.of == ix {
			return r
		}
	}
	return nil
}

// search yields the objects of s that the index function files under k.
func (ix *Index[K, T]) search(s *state[T], k K, yield func(T) bool) {
	var found collector[K, T]
	found.file = found.add
	s.all(func(obj T) bool {
		found.keys = found.keys[:0]
		if found.collect(ix.keys, obj) != nil {
			return true
		}
		for _, other := range found.keys {
			if other == k {
				return yield(obj)
			}
		}
		return true
	})
}

// count returns the keys that the index function files the objects of s under,
// with the number of their objects.
func (ix *Index[K, T]) count(s *state[T]) map[K]int {
	var found collector[K, T]
	found.file = found.add
	counts := make(map[K]int)
	s.all(func(obj T) bool {
		found.keys = found.keys[:0]
		if found.collect(ix.keys, obj) != nil {
			return true
		}
		for i, k := range found.keys {
			if !slices.Contains(found.keys[:i], k) {
				counts[k]++
			}
		}
		return true
	})
	return counts
}
