package informer

import (
	"errors"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// An Indexer is a store of objects by key, with any number of indexes: see
// [AddIndex]. It has two halves: the [Reader] that it embeds, which may be
// shared, and the methods below, which write.
//
// Every write is one batch. It becomes visible at once, with all indexes, and
// readers wait for it a short constant time at most, however large it is. What
// comes is taken to be right: an Indexer does not compare versions to find out
// which object is newer. An object whose UID and version are both set and equal
// to those of the stored one is not stored again.
//
// All methods may be called from any goroutine; writers wait for each other, and
// index functions run while one writes. Make one with [NewIndexer]; the zero
// value is not usable.
type Indexer[T Object] struct {
	Reader[T]

	// Two locks are taken in this order: writing, for the whole of a batch,
	// under which index functions and OnError run; then mu, for a short
	// constant time, under which no code of the user's runs.

	seed        maphash.Seed
	onError     func(error)
	byNamespace *Index[string, T]
	inPlace     int // the most keys of a batch that is written in place

	writing sync.Mutex   // held by the one writer; guards the fields up to mu
	epochs  epoch        // the last one used
	free    []uint32     // the slots of the newest state that are not in use
	changes []change[T]  // what part of a batch does; empty between batches
	single  [1]Deltas[T] // the batch of Add, Update and Delete

	// mu guards the switch from one state to the next, and the claim of a
	// state: see usage.
	mu     sync.Mutex
	newest atomic.Pointer[state[T]] // never nil; stored under both locks
}

const (
	// maxInPlace bounds the keys of a batch that is written under mu, and
	// maxMoves its changes to indexes: readers wait for it.
	maxInPlace, maxMoves = 64, 512
	// stride is how many keys of a larger batch are worked at a time, which
	// keeps the buffers small.
	stride = 512
	// maxChangesKept is the room of the writer's buffer that is kept from one
	// batch to the next.
	maxChangesKept = 2 * partSize
)

// IndexerOptions tunes an [Indexer]. The zero value is ready to use.
type IndexerOptions struct {
	// OnError is told of every object that an index cannot file, because its
	// function panics or its key does not equal itself: an error that names
	// the index and wraps an *[ObjectError]. It is called by the goroutine that
	// writes, and must not write to the same Indexer or change its indexes.
	//
	// Default: such an object is missing in that index, and nothing more.
	OnError func(error)
}

// NewIndexer returns an empty Indexer.
func NewIndexer[T Object](opts IndexerOptions) *Indexer[T] {
	x := &Indexer[T]{seed: maphash.MakeSeed(), onError: opts.OnError, inPlace: maxInPlace}
	x.Reader.x = x
	x.byNamespace = newIndex(x, "the built-in namespace index", func(obj T, file func(string)) { namespaceOf(KeyOf(obj), file) })
	x.byNamespace.ofKey = namespaceOf
	x.newest.Store(&state[T]{keys: newKeyTable(0), indexes: []indexRoot[T]{&root[string, T]{of: x.byNamespace}}})
	return x
}

// namespaceOf is the function of the built-in index.
func namespaceOf(k Key, file func(string)) {
	if k.Namespace != "" {
		file(k.Namespace)
	}
}

// Add stores obj in place of any object of the same key. It returns an
// *[ObjectError] if obj has no name.
func (x *Indexer[T]) Add(obj T) error { return x.write(Added, obj) }

// Update is the same as Add: an Indexer makes no difference between the two.
func (x *Indexer[T]) Update(obj T) error { return x.write(Updated, obj) }

// Delete removes the object of the same key as obj, if there is one. It returns
// an *[ObjectError] if obj has no name.
func (x *Indexer[T]) Delete(obj T) error { return x.write(Deleted, obj) }

func (x *Indexer[T]) write(t DeltaType, obj T) error {
	key := KeyOf(obj)
	if key.Name == "" {
		return &ObjectError{Key: key, Err: errNoName}
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	x.single[0] = Deltas[T]{Key: key, first: Delta[T]{Type: t, Object: obj}}
	x.work(Batch[T]{Deltas: x.single[:]}, nil, nil, nil)
	x.single[0] = Deltas[T]{}
	return nil
}

// Replace makes objs, which may be in any order, the whole content, in one
// batch. If version is not empty it is what Version returns from then on. If
// objects have no name, or the same key as an earlier one, Replace changes
// nothing and returns an error that wraps an *[ObjectError] for each of them.
func (x *Indexer[T]) Replace(objs []T, version string) error {
	x.writing.Lock()
	defer x.writing.Unlock()

	var errs []error
	b := Batch[T]{Version: version, Replaced: true, Deltas: make([]Deltas[T], 0, len(objs))}
	listed := make(map[Key]struct{}, len(objs))
	for _, obj := range objs {
		key := KeyOf(obj)
		if _, twice := listed[key]; twice {
			errs = append(errs, &ObjectError{Key: key, Err: errTwice})
		} else if key.Name == "" {
			errs = append(errs, &ObjectError{Key: key, Err: errNoName})
		}
		listed[key] = struct{}{}
		b.Deltas = append(b.Deltas, Deltas[T]{Key: key, Listed: true, first: Delta[T]{Type: Replaced, Object: obj}})
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	x.newest.Load().all(func(obj T) bool {
		key := KeyOf(obj)
		if _, stays := listed[key]; !stays {
			b.Deltas = append(b.Deltas, Deltas[T]{Key: key, Listed: true, first: Delta[T]{Type: Deleted, Object: obj}})
		}
		return true
	})
	x.work(b, nil, nil, nil)
	return nil
}

// Apply brings the store to the state after b, as [DeltaFIFO.PopAll] hands it
// over, and returns what that changed, in the order of b.
func (x *Indexer[T]) Apply(b Batch[T]) []Change[T] {
	var changes []Change[T]
	var parts iter.Seq[[]Deltas[T]]
	if repeats(b.Deltas) {
		parts = slices.Chunk(b.Deltas, 1)
	}
	x.apply(b, parts, func(c Change[T]) { changes = append(changes, c) }, nil)
	return changes
}

// repeats reports whether a key is there twice, as in batches that were joined
// by hand: such deltas must not be worked together.
func repeats[T Object](deltas []Deltas[T]) bool {
	if len(deltas) < 2 {
		return false
	}
	keys := make(map[Key]struct{}, len(deltas))
	for i := range deltas {
		keys[deltas[i].Key] = struct{}{}
	}
	return len(keys) < len(deltas)
}

// apply brings the store to the state after b, which must hold one entry a key.
// If parts is not nil it yields the deltas instead of b.
//
// It calls emit for every change, in order, while the batch is worked and under
// no lock that readers take; and then, at the moment of the switch and under
// mu, with the new state, which must not be kept. Either may be nil.
func (x *Indexer[T]) apply(b Batch[T], parts iter.Seq[[]Deltas[T]], emit func(Change[T]), then func(*state[T])) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.work(b, parts, emit, then)
}

// between runs f between two states, under mu: it must be short. The state that
// it is given never changes: under mu none is claimed, so it is kept.
func (x *Indexer[T]) between(f func(*state[T])) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.newest.Load()
	s.use.keep()
	f(s)
}

// look returns the newest state, which never changes from then on. It waits
// for nobody but a writer that writes in place.
func (x *Indexer[T]) look() *state[T] {
	for try := 0; ; try++ {
		if s := x.newest.Load(); s.use.keep() {
			return s
		}
		x.pause(try)
	}
}

// get returns the object of key k with hash h. Unlike look it leaves a state
// that few have read as it is, to be written in place.
func (x *Indexer[T]) get(h uint32, k Key) (obj T, ok bool) {
	for try := 0; ; try++ {
		s := x.newest.Load()
		switch s.use.enter() {
		case entryKept:
			obj, _, ok = s.get(h, k)
			return obj, ok
		case entryCounted:
			obj, _, ok = s.get(h, k)
			s.use.leave()
			return obj, ok
		}
		x.pause(try)
	}
}

// pause waits for a writer that has claimed the newest state.
func (x *Indexer[T]) pause(try int) {
	if try >= maxTries {
		x.mu.Lock()
		defer x.mu.Unlock()
	}
}

// work is apply for the holder of writing. The order of its steps is what makes
// a batch atomic: all code of the user's runs in prepare, before anything is
// written that readers could see, and commit cannot fail.
func (x *Indexer[T]) work(b Batch[T], parts iter.Seq[[]Deltas[T]], emit func(Change[T]), then func(*state[T])) {
	finished := false
	defer func() {
		if !finished { // a method of T panicked, or emit
			x.abandon()
		}
	}()

	s := x.newest.Load()
	initial := b.Replaced && !s.listed
	if parts == nil && x.fits(s, len(b.Deltas)) {
		moves := x.prepare(s, b.Deltas, initial, emit)
		s = x.begin(moves <= maxMoves)
		x.commit(s)
	} else {
		if parts == nil {
			parts = slices.Chunk(b.Deltas, stride)
		}
		s = x.begin(false)
		x.workParts(s, parts, initial, emit)
	}
	if b.Version != "" {
		s.version = b.Version
	}
	s.listed = s.listed || b.Replaced
	x.end(s, then)
	finished = true
	if cap(x.changes) > maxChangesKept {
		x.changes = nil
	}
	for _, root := range s.indexes {
		root.trim()
	}
}

// fits reports whether n deltas may be worked at once, into s if nobody sees it.
func (x *Indexer[T]) fits(s *state[T], n int) bool {
	return n <= min(x.inPlace, stride) && s.keys.takes(n) && !s.sparse() && !s.roomy()
}

// workParts works a batch into s, which nobody else knows, part by part, and
// gives back memory that s has too much of.
func (x *Indexer[T]) workParts(s *state[T], parts iter.Seq[[]Deltas[T]], initial bool, emit func(Change[T])) {
	for part := range parts {
		x.prepare(s, part, initial, emit)
		if !s.keys.takes(len(part)) {
			s.rekey(len(part))
		}
		x.commit(s)
	}
	if s.sparse() {
		s.compact()
		x.free = s.vacant()
	} else if s.roomy() {
		s.rekey(0)
	}
}

// begin returns the state that the next batch is written to; end makes it the
// newest.
//
// Normally that is a copy which nobody else knows, and which shares all nodes
// but those that will be touched; readers stay with the old state meanwhile. A
// small batch, however, is written into the newest state itself if nobody keeps
// that: begin then holds mu and the claim, which end gives back, and so holds up
// who looks.
func (x *Indexer[T]) begin(small bool) *state[T] {
	s := x.newest.Load()
	if small && !s.use.kept() {
		x.mu.Lock()
		if s.use.claim() {
			return s
		}
		x.mu.Unlock()
	}
	x.epochs++
	return s.next(x.epochs)
}

func (x *Indexer[T]) end(s *state[T], then func(*state[T])) {
	last := x.newest.Load()
	if s != last {
		x.mu.Lock()
		if last.use.claim() { // for good: its nodes are those of s alone
			s.floor = last.floor
		}
		x.newest.Store(s)
	}
	if then != nil {
		then(s)
	}
	if s == last {
		s.use.release()
	}
	x.mu.Unlock()
}

// abandon makes good for a batch that ended half way, which no reader will see.
func (x *Indexer[T]) abandon() {
	clear(x.changes)
	x.changes = x.changes[:0]
	x.single[0] = Deltas[T]{}
	x.free = x.newest.Load().vacant()
}
