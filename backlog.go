package informer

import (
	"hash/maphash"
	"time"
)

// missed is what a handler that is behind has to be told of one key: at most a
// deletion, then a state.
type missed[T Object] struct {
	old     T     // what the handler has, if had
	had     bool  // the handler has the key
	gone    T     // the last state of that object, if ended
	ended   bool  // old was deleted
	exact   bool  // gone is the final state
	end     Cause // of the deletion
	live    T     // the last state, if there is one
	lives   bool  // there is one
	cause   Cause // of live
	initial bool  // live was there when the handler, or the informer, began

	since time.Duration // when the first of the changes came
}

// backlog coalesces the changes that a handler is behind with, to at most two a
// key: first old, last new. Unlike in a [DeltaFIFO], a deletion and an addition
// of one object stay two: the deletion brings the final state, which the
// handler was never given, and which could not be the Old of an update.
//
//	has \ then    change                       delete
//	old           update old → last            delete
//	nothing       add                          nothing
//	old, deleted  delete, add                  delete
type backlog[T Object] struct {
	line[missed[T]]
	seed maphash.Seed // of the hashes of keys
}

// record takes the next change, which came at that time.
func (b *backlog[T]) record(c *Change[T], at time.Duration) {
	if b.len() == 0 {
		b.seed = maphash.MakeSeed()
	}
	h := hashKey(b.seed, c.Key)
	isNew := !b.has(h, c.Key)
	m := b.enter(h, c.Key)
	if isNew {
		m.since = at
	}
	if isNew && c.Type != Added {
		m.had, m.old = true, c.Old
	}
	if c.Type != Deleted {
		m.initial = c.Cause == CauseInitial || m.initial && m.lives
		m.live, m.lives, m.cause = c.New, true, c.Cause
		return
	}
	if !m.had {
		b.leave(h, c.Key)
		return
	}
	if !m.ended {
		m.ended, m.gone, m.exact, m.end = true, c.New, c.Exact, c.Cause
	}
	var none T
	m.live, m.lives = none, false
}

// oldest returns when the change came that has waited longest; false if there
// is none. Entries keep their place in line, so it is the first one's.
func (b *backlog[T]) oldest() (since time.Duration, ok bool) {
	if p := b.first(); p != nil {
		return p.entry.since, true
	}
	return 0, false
}

// tell yields the changes of key, and reports whether yield did every time.
// What came back to where it was is no change.
func (m *missed[T]) tell(key Key, yield func(Change[T]) bool) bool {
	if m.ended && !yield(Change[T]{Type: Deleted, Key: key, Old: m.old, New: m.gone, Exact: m.exact, Cause: m.end}) {
		return false
	}
	c := Change[T]{Type: Added, Key: key, New: m.live, Cause: m.cause}
	switch {
	case !m.lives:
		return true
	case m.had && !m.ended && unchanged(m.old, m.live):
		return true
	case m.had && !m.ended:
		c.Type, c.Old = Updated, m.old
	case m.initial:
		c.Cause = CauseInitial
	}
	return yield(c)
}
