package informer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-99a027e8/informer"
)

// TestIndexComesAndGoes: promise 6. An index is complete whenever it appears,
// and right after it was removed, while writers and readers go on.
func TestIndexComesAndGoes(t *testing.T) {
	const n = 40
	x := newStore(t)
	forever := byGroup(t, x)
	x.Apply(first(generation(n, 0)))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for g := 2; !stop.Load(); g += 2 {
			x.Apply(first(generation(n, g)))
		}
	})
	wg.Go(func() {
		for !stop.Load() {
			if err := oneGeneration(x, forever, n); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		before := x.Snapshot()
		ix, err := informer.AddIndex(x, "passing", func(o *storeObj) (string, bool) { return o.version, true })
		if err != nil {
			t.Fatal(err)
		}
		complete := func(when string, r informer.Reader[*storeObj]) {
			s := r.Snapshot()
			if got := len(slices.Collect(ix.In(s, s.Version()))); got != n {
				t.Errorf("%s: %d objects, want %d", when, got, n)
			}
		}
		complete("before AddIndex", before)
		complete("after AddIndex", x.Reader)
		during := x.Snapshot()
		ix.Remove()
		ix.Remove()
		complete("in a snapshot with it", during)
		complete("after Remove", x.Reader)
		for _, got := range ix.Keys() {
			if got != n {
				t.Errorf("after Remove: %d objects, want %d", got, n)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	valid(t, x)
}

// TestIndexOfAnotherStore (promise 6): an Index asked about a Reader that it
// knows nothing of looks there, and not into its own store.
func TestIndexOfAnotherStore(t *testing.T) {
	here, there := newStore(t), newStore(t)
	ix, _ := byGroup(t, here), byGroup(t, there)
	here.Apply(first(generation(5, 0)))
	there.Apply(first(generation(7, 0)))
	if got := len(slices.Collect(ix.In(there.Reader, "0"))); got != 7 {
		t.Errorf("In(there) has %d objects, want 7", got)
	}
	if got := len(slices.Collect(ix.In(informer.Reader[*storeObj]{}, "0"))); got != 0 {
		t.Errorf("In(zero Reader) has %d objects, want 0", got)
	}
}

// TestIndexManyKeys: promise 6, with more keys an object than are compared one
// by one, or moved in place.
func TestIndexManyKeys(t *testing.T) {
	x := newStore(t)
	if _, err := informer.AddMultiIndex(x, "tags", func(o *storeObj, file func(int)) {
		for _, tag := range o.tags {
			file(tag)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		o := &storeObj{key: storeKey("", fmt.Sprint("o", i%3)), version: fmt.Sprint(i)}
		for range rand.IntN(1000) {
			o.tags = append(o.tags, rand.IntN(1200))
		}
		if err := x.Add(o); err != nil {
			t.Fatal(err)
		}
		valid(t, x)
	}
}

// TestIndexOfImpureFunction (promise 6): a function that breaks the rules
// leaves a mess, but never yields what is not there.
func TestIndexOfImpureFunction(t *testing.T) {
	x := newStore(t)
	group := "before"
	ix, err := informer.AddIndex(x, "impure", func(*storeObj) (string, bool) { return group, true })
	if err != nil {
		t.Fatal(err)
	}
	x.Apply(first(generation(20, 0)))
	group = "after"
	for _, o := range x.List() {
		if err := x.Delete(o); err != nil {
			t.Fatal(err)
		}
	}
	for o := range ix.Get("before") {
		t.Errorf("Get yields %v of an empty store", o)
	}
}

// TestAddIndexRefuses is for promise 6.
func TestAddIndexRefuses(t *testing.T) {
	x := newStore(t)
	byGroup(t, x)
	group := func(o *storeObj) (string, bool) { return o.group, true }
	for want, add := range map[string]func() error{
		"there is one of this name":    func() error { _, err := informer.AddIndex(x, "group", group); return err },
		"has no name":                  func() error { _, err := informer.AddIndex(x, "", group); return err },
		"function is nil":              func() error { _, err := informer.AddIndex[string](x, "a", nil); return err },
		"nothing to add it to":         func() error { _, err := informer.AddIndex(nil, "a", group); return err },
		"not made by NewIndexer":       func() error { _, err := informer.AddIndex((*informer.Indexer[*storeObj])(nil), "a", group); return err },
		"not made by NewIndexer ":      func() error { _, err := informer.AddIndex(&informer.Indexer[*storeObj]{}, "a", group); return err },
		`informer: index "": its func`: func() error { _, err := informer.AddMultiIndex[int](x, "", nil); return err },
	} {
		if err := add(); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "it has no name\n", ""), strings.TrimSpace(want)) {
			t.Errorf("adding an index = %v, want an error with %q", err, want)
		}
	}
	if got := first(informer.AddIndex(x, "", group)); got != nil {
		t.Errorf("AddIndex returned %v with an error", got)
	}
}
