package informer

import "iter"

// A Reader is the half of an [Indexer] that may be shared. It is a small value,
// cheap to copy, and safe for use by any number of goroutines. The zero Reader
// reads an empty store.
//
// A Reader is live or a snapshot. A live one, as an Indexer or an Informer is,
// answers each query from the newest state. A snapshot, as [Reader.Snapshot]
// returns it, answers all of them from one state that never changes. Either
// way a query, or a loop over one of the sequences, sees one state and never
// part of a batch, and holds up nobody however long it takes.
//
// Objects are shared: treat every object you receive as read-only, and copy it
// before you change it.
type Reader[T Object] struct {
	x  *Indexer[T]
	at *state[T] // nil: live
}

// Get returns the object of that key, and whether there is one.
func (r Reader[T]) Get(key Key) (T, bool) {
	if r.x == nil {
		var zero T
		return zero, false
	}
	return r.get(r.hash(key), key)
}

// hash returns the hash of key in the store, which there must be.
func (r Reader[T]) hash(key Key) uint32 { return hashKey(r.x.seed, key) }

// get is Get for who knows the hash of the key.
func (r Reader[T]) get(h uint32, key Key) (obj T, ok bool) {
	switch {
	case r.at != nil:
		obj, _, ok = r.at.get(h, key)
	case r.x != nil:
		obj, ok = r.x.get(h, key)
	}
	return obj, ok
}

// peek is get for who asks about one object, and then writes: it never makes the
// state one that is kept, so that it can be written in place.
func (r Reader[T]) peek(h uint32, key Key) (obj T, ok bool) {
	if r.at != nil || r.x == nil {
		return r.get(h, key)
	}
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	obj, _, ok = r.x.newest.Load().get(h, key)
	return obj, ok
}

// All yields every object, in no order, as they were when the loop began.
func (r Reader[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		if s := r.state(); s != nil {
			s.all(yield)
		}
	}
}

// In yields the objects of a namespace, in no order, as they were when the loop
// began. It looks at no others. The empty namespace stands for all objects,
// those without a namespace included.
func (r Reader[T]) In(namespace string) iter.Seq[T] {
	if namespace == "" || r.x == nil {
		return r.All()
	}
	return r.x.byNamespace.In(r, namespace)
}

// List returns every object, in no order. The slice is the caller's own.
func (r Reader[T]) List() []T {
	s := r.state()
	if s == nil {
		return nil
	}
	list := make([]T, 0, s.n)
	for i := range s.slots.n {
		list = s.chunk(i).appendTo(list, ^uint32(0))
	}
	return list
}

// Len returns the number of objects.
func (r Reader[T]) Len() int {
	if s := r.state(); s != nil {
		return s.n
	}
	return 0
}

// Version returns the server's resource version of the state, empty if none is
// known yet.
func (r Reader[T]) Version() string {
	if s := r.state(); s != nil {
		return s.version
	}
	return ""
}

// Snapshot returns a Reader of the present state, which takes constant time.
// What the snapshot holds and later states do not is kept in memory for as long
// as the snapshot is.
func (r Reader[T]) Snapshot() Reader[T] { return Reader[T]{x: r.x, at: r.state()} }

// state returns the state to answer one query from, nil for an empty one.
func (r Reader[T]) state() *state[T] {
	if r.at != nil || r.x == nil {
		return r.at
	}
	return r.x.look()
}
