package informer

import "strings"

// A change is what a batch does to one key: hasOld and hasNew say which of old
// and new there are, at least one of them.
type change[T Object] struct {
	key            Key
	hash, slot     uint32
	hasOld, hasNew bool
	old, new       T
}

// prepare finds out what deltas mean to s, tells emit, and lets the indexes
// make ready. It returns how many keys will have to be filed in indexes or taken
// out.
func (x *Indexer[T]) prepare(s *state[T], deltas []Deltas[T], initial bool, emit func(Change[T])) (moves int) {
	x.changes = x.changes[:0]
	for i := range deltas {
		if c, changed := x.resolve(s, &deltas[i], initial, emit); changed {
			x.changes = append(x.changes, c)
		}
	}
	for _, root := range s.indexes {
		moves += root.prepare(x.changes)
	}
	return moves
}

// commit writes to s what prepare found out. It runs no code of the user's.
func (x *Indexer[T]) commit(s *state[T]) {
	for i := range x.changes {
		x.store(s, &x.changes[i])
	}
	for i, root := range s.indexes {
		s.indexes[i] = root.commit(s.epoch, x.changes)
	}
	clear(x.changes)
	x.changes = x.changes[:0]
}

func (x *Indexer[T]) store(s *state[T], c *change[T]) {
	switch {
	case !c.hasNew:
		s.vacate(c.slot)
		s.keys.remove(s.epoch, c.hash, c.key)
		x.free = append(x.free, c.slot)
	case c.hasOld:
		s.fill(c.slot, c.new)
	default:
		if len(x.free) == 0 {
			x.free = s.grow(x.free)
		}
		last := len(x.free) - 1
		c.slot, x.free = x.free[last], x.free[:last]
		s.fill(c.slot, c.new)
		slot, _ := s.keys.put(s.epoch, c.hash, cloneKey(c.key))
		*slot = c.slot
	}
}

// cloneKey gives the store bytes of its own. The key outlives the object that
// it came with, and must not keep alive what that was decoded from.
func cloneKey(k Key) Key {
	both := strings.Join([]string{k.Namespace, k.Name}, "") // + may not copy
	return Key{Namespace: both[:len(k.Namespace)], Name: both[len(k.Namespace):]}
}

// resolve decides what d means to s: whether anything changes there, and of
// what changes handlers are to be told. It is the one place where versions are
// found equal and new UIDs are recognised.
func (x *Indexer[T]) resolve(s *state[T], d *Deltas[T], initial bool, emit func(Change[T])) (c change[T], changed bool) {
	final := d.final()
	if final.Type == 0 {
		return c, false
	}
	c = change[T]{key: d.Key, hash: d.hash}
	if d.hash == 0 {
		c.hash = hashKey(x.seed, d.Key)
	}
	c.old, c.slot, c.hasOld = s.get(c.hash, d.Key)
	if final.Type != Deleted {
		c.new, c.hasNew = final.Object, true
	}
	tell := Change[T]{Key: c.key, Old: c.old, New: c.new, Cause: causeOf(d)}

	switch {
	case !c.hasOld && (!c.hasNew || final.Type == Sync):
		return c, false // of something unknown, there is nothing to tell
	case c.hasOld && c.hasNew && sameUID(c.old.GetUID(), c.new.GetUID()):
		changed = !unchanged(c.old, c.new)
		if !changed && final.Type != Sync {
			return c, false
		}
		if !changed {
			tell.New = c.old
		}
		tell.Type = Updated
		emitTo(emit, tell)
		return c, changed
	}
	if c.hasOld {
		emitTo(emit, deleted(tell, d.first))
	}
	if c.hasNew {
		emitTo(emit, added(tell, initial))
	}
	return c, true
}

// causeOf returns why a handler is told of d, if it knows the object.
func causeOf[T Object](d *Deltas[T]) Cause {
	switch {
	case d.final().Type == Sync:
		return CauseResync
	case d.Listed:
		return CauseRelist
	}
	return CauseWatch
}

// added makes tell the addition of its New; initial says that the first list
// brings it.
func added[T Object](tell Change[T], initial bool) Change[T] {
	var none T
	tell.Type, tell.Old = Added, none
	if initial {
		tell.Cause = CauseInitial
	}
	return tell
}

// deleted makes tell the deletion of its Old, of which first may hold the final
// state.
func deleted[T Object](tell Change[T], first Delta[T]) Change[T] {
	tell.Type, tell.New = Deleted, tell.Old
	if first.Type == Deleted && first.Exact &&
		isFinalOf(first.Object, tell.Old.GetUID(), tell.Old.GetResourceVersion()) {
		tell.New, tell.Exact = first.Object, true
	}
	return tell
}

func emitTo[T Object](emit func(Change[T]), c Change[T]) {
	if emit != nil {
		emit(c)
	}
}
