package informer

import "errors"

// TestBacklog is a backlog alone.
type TestBacklog[T Object] struct{ b backlog[T] }

// Record takes a change.
func (b *TestBacklog[T]) Record(c Change[T]) { b.b.record(&c, 0) }

// TestBadTable is a table of bad objects alone.
type TestBadTable struct{ h health }

var errTestBad = errors.New("bad")

// Bad says that an object is bad.
func (b *TestBadTable) Bad(key Key) { b.h.skip(key, badObject{err: &ObjectError{key, errTestBad}}) }

// Repair says that an object is good.
func (b *TestBadTable) Repair(key Key) { b.h.follow("9", true, key) }

// List is a list, of which items tells.
func (b *TestBadTable) List(items func()) {
	b.h.beginList()
	items()
	b.h.endList("9")
}
