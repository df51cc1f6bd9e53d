package e2e_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/seed-99a027e8/informer"
)

// folder is a handler that keeps a copy of the cache from nothing but the
// changes it is told of, and checks that each fits what it was told before.
type folder[T informer.Object] struct {
	t testing.TB

	mu      sync.Mutex // guards the fields below
	objects map[informer.Key]T
	told    map[told]int
	deleted map[string]int // exact deletions by the version of their final state
}

// told is a kind of change.
type told struct {
	what  informer.DeltaType
	cause informer.Cause
}

func newFolder[T informer.Object](t testing.TB) *folder[T] {
	return &folder[T]{
		t:       t,
		objects: make(map[informer.Key]T),
		told:    make(map[told]int),
		deleted: make(map[string]int),
	}
}

// handle is the handler.
func (f *folder[T]) handle(c informer.Change[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[told{c.Type, c.Cause}]++
	have, known := f.objects[c.Key]
	switch c.Type {
	case informer.Added:
		if known {
			f.t.Errorf("added %v, which the handler has", c.Key)
		}
		f.store(c)
	case informer.Updated:
		switch {
		case !known:
			f.t.Errorf("updated %v, which the handler does not have", c.Key)
		case !sameVersion(c.Old, have):
			f.t.Errorf("updated %v from version %q, but the handler has %q",
				c.Key, c.Old.GetResourceVersion(), have.GetResourceVersion())
		case c.New.GetUID() != have.GetUID():
			f.t.Errorf("updated %v to another UID, want a deletion and an addition", c.Key)
		}
		f.store(c)
	case informer.Deleted:
		f.remove(c, have, known)
	default:
		f.t.Errorf("change of type %v", c.Type)
	}
}

// store takes c.New. The caller holds mu, or is handle.
func (f *folder[T]) store(c informer.Change[T]) {
	if informer.KeyOf(c.New) != c.Key {
		f.t.Errorf("change of %v has an object %v", c.Key, informer.KeyOf(c.New))
	}
	f.objects[c.Key] = c.New
}

// remove drops an object. Promise 14: its last state comes with the deletion,
// beside the one that the handler was given last.
func (f *folder[T]) remove(c informer.Change[T], have T, known bool) {
	switch {
	case !known:
		f.t.Errorf("deleted %v, which the handler does not have", c.Key)
	case informer.KeyOf(c.New) != c.Key || c.New.GetUID() != have.GetUID():
		f.t.Errorf("deleted %v with the object %v, UID %q, want UID %q",
			c.Key, informer.KeyOf(c.New), c.New.GetUID(), have.GetUID())
	case !sameVersion(c.Old, have):
		f.t.Errorf("deleted %v at version %q, but the handler has %q",
			c.Key, c.Old.GetResourceVersion(), have.GetResourceVersion())
	case c.Exact:
		f.deleted[c.New.GetResourceVersion()]++
	}
	delete(f.objects, c.Key)
}

// copied returns what the changes so far add up to.
func (f *folder[T]) copied() map[informer.Key]T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.objects)
}

// count returns how many changes of a kind there were.
func (f *folder[T]) count(what informer.DeltaType, cause informer.Cause) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[told{what, cause}]
}

// changes returns how many changes there were.
func (f *folder[T]) changes() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.told {
		n += of
	}
	return n
}

// mostDeletedAtOnce returns the largest number of deletions at one version.
func (f *folder[T]) mostDeletedAtOnce() (most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.deleted {
		most = max(most, n)
	}
	return most
}

// sameVersion reports that a and b are the same version of the same object.
func sameVersion[T informer.Object](a, b T) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}
