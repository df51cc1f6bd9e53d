package informer_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/seed-99a027e8/informer"
)

// churn adds objects of ever new names to x, in batches of that size, and takes
// the oldest out again, so that all slots go from key to key. Each object tells
// by its version that it is the last of its name.
func churn(x *informer.Indexer[*storeObj], rounds, size, keep int) {
	name := func(i int) informer.Key { return storeKey("ns", fmt.Sprint("o", i)) }
	for i := range rounds {
		var b informer.Batch[*storeObj]
		for j := i * size; j < (i+1)*size; j++ {
			o := &storeObj{key: name(j), uid: "u", version: "1"}
			b.Deltas = append(b.Deltas, informer.NewDeltas(o.key, false, informer.Delta[*storeObj]{Type: informer.Added, Object: o}))
			if gone := j - keep; gone >= 0 {
				o := &storeObj{key: name(gone), uid: "u", version: "1"}
				b.Deltas = append(b.Deltas, informer.NewDeltas(o.key, false, informer.Delta[*storeObj]{Type: informer.Deleted, Object: o}))
			}
		}
		b.Version = fmt.Sprint((i + 1) * size)
		x.Apply(b)
	}
}

// TestGetBesideNewKeys: promise 1. While keys come and go, and the table of keys
// with them, whoever asks for a key is given its object or none; and a snapshot
// finds all that is in it.
func TestGetBesideNewKeys(t *testing.T) {
	const keep = 300
	for _, size := range []int{1, 20, informer.Stride} {
		x := newStore(t)
		beside(2, func() error {
			s := x.Snapshot()
			end := 0
			_, _ = fmt.Sscan(s.Version(), &end)
			for i := max(0, end-2*keep); i < end+5; i++ {
				key := storeKey("ns", fmt.Sprint("o", i))
				o, ok := s.Get(key)
				if in := i >= end-keep && i < end; ok != in || ok && o.key != key {
					return fmt.Errorf("Get(%s) = %v, %v at %d", key, o, ok, end)
				}
				if o, ok := x.Get(key); ok && o.key != key {
					return fmt.Errorf("Get(%s) = %v", key, o)
				}
			}
			return nil
		}, t, func() { churn(x, 6000/size, size, keep) })
		valid(t, x)
	}
}

// TestOldSnapshotsFindTheirKeys: promise 1. A snapshot finds its keys, and no
// others, long after they are gone and their slots and cells are others'.
func TestOldSnapshotsFindTheirKeys(t *testing.T) {
	const keep, size = 100, 40
	x := newStore(t)
	var snapshots []informer.Reader[*storeObj]
	for range 30 {
		churn(x, 10, size, keep)
		snapshots = append(snapshots, x.Snapshot())
		if err := x.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		valid(t, x)
	}
	for n, s := range snapshots {
		for i := range 10 * size {
			key := storeKey("ns", fmt.Sprint("o", i))
			if o, ok := s.Get(key); ok != (i >= 10*size-keep) || ok && o.key != key {
				t.Fatalf("snapshot %d: Get(%s) = %v, %v", n, key, o, ok)
			}
		}
	}
}

// TestIndexerMemoryWithoutIndexes: promise 30, for what a store without indexes
// of the user's consists of: after names came and went, and after a burst.
func TestIndexerMemoryWithoutIndexes(t *testing.T) {
	const rest = 2000
	store := func(more int) *informer.Indexer[*storeObj] {
		x := newStore(t)
		churn(x, more, rest, rest)
		return x
	}
	fresh, want := heldBy(func() *informer.Indexer[*storeObj] { return store(1) })
	used, got := heldBy(func() *informer.Indexer[*storeObj] { return store(50) })
	if got > 2*want {
		t.Errorf("%d objects hold %d bytes after many others, %d in a new store", used.Len(), got, want)
	}
	if fresh.Len() != used.Len() {
		t.Errorf("%d objects, want %d", used.Len(), fresh.Len())
	}
}

// TestIndexerMemoryAfterDeletions: promise 30, where so many objects are left that
// they keep their slots.
func TestIndexerMemoryAfterDeletions(t *testing.T) {
	const rest, most = 2700, 10_000
	store := func(n int) *informer.Indexer[*storeObj] {
		x := newStore(t)
		churn(x, 1, n, n)
		for _, o := range x.List()[rest:] {
			if err := x.Delete(o); err != nil {
				t.Fatal(err)
			}
		}
		return x
	}
	fresh, want := heldBy(func() *informer.Indexer[*storeObj] { return store(rest) })
	used, got := heldBy(func() *informer.Indexer[*storeObj] { return store(most) })
	if got > 2*want {
		t.Errorf("%d objects of %d hold %d bytes, %d in a new store", used.Len(), most, got, want)
	}
	if fresh.Len() != used.Len() {
		t.Errorf("%d objects, want %d", used.Len(), fresh.Len())
	}
}

// TestIndexerMemoryOfKeys: promise 30. Just above half, where a store keeps its
// slots, it does not keep keys that are gone, nor a table for all of them.
func TestIndexerMemoryOfKeys(t *testing.T) {
	const most, gone, rest = 5866, 1955, 2991
	objs := make([]*storeObj, most+gone)
	for i := range objs {
		objs[i] = &storeObj{key: storeKey("ns", fmt.Sprint("o", i)), version: "1"}
	}
	store := func(n, renamed int) *informer.Indexer[*storeObj] {
		x := newStore(t)
		err := x.Replace(objs[:n], "")
		for i := range renamed {
			err = errors.Join(err, x.Delete(objs[i]), x.Add(objs[most+i]))
		}
		for _, o := range x.List()[rest:] {
			err = errors.Join(err, x.Delete(o))
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	fresh, want := heldBy(func() *informer.Indexer[*storeObj] { return store(rest, 0) })
	used, got := heldBy(func() *informer.Indexer[*storeObj] { return store(most, gone) })
	valid(t, used)
	if got > 2*want {
		t.Errorf("%d objects of %d hold %d bytes, %d in a new store", used.Len(), most, got, want)
	}
	runtime.KeepAlive([]any{fresh, used, objs})
}

// TestKeysOfOneHash: promise 1. A slot may go from a key to another one of the same
// hash.
func TestKeysOfOneHash(t *testing.T) {
	want := []informer.Key{{Namespace: "n", Name: "a"}, {Namespace: "n", Name: "b"}}
	if got := informer.KeysOfOneHash(want[0], want[1]); !slices.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
}

// TestBatchIsUnseenUntilItsEnd: promise 1. Who looks while a large batch is worked,
// as a key function may, sees the state before it.
func TestBatchIsUnseenUntilItsEnd(t *testing.T) {
	const n = 5000
	x := informer.NewIndexer[*storeObj](informer.IndexerOptions{})
	looks := map[int]int{}
	_, err := informer.AddIndex(x, "look", func(*storeObj) (int, bool) {
		looks[x.Len()]++
		return 0, false
	})
	if err != nil {
		t.Fatal(err)
	}
	churn(x, 1, n, n)
	if looks[0] != n {
		t.Errorf("key functions saw stores of these sizes, each so often: %v; want none but 0, %d times", looks, n)
	}
}
