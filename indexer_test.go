package informer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-99a027e8/informer"
)

func newStore(t testing.TB) *informer.Indexer[*storeObj] {
	t.Helper()
	return informer.NewIndexer[*storeObj](informer.IndexerOptions{
		OnError: func(err error) { t.Errorf("OnError(%v)", err) },
	})
}

func byGroup(t testing.TB, x *informer.Indexer[*storeObj]) *informer.Index[string, *storeObj] {
	t.Helper()
	ix, err := informer.AddIndex(x, "group", func(o *storeObj) (string, bool) { return o.group, true })
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// generation returns n objects of one group, with a batch that brings them. In
// an odd generation every third object is missing.
func generation(n, g int) (b informer.Batch[*storeObj], present int) {
	b.Version = strconv.Itoa(g)
	for i := range n {
		o := &storeObj{key: storeKey("ns", fmt.Sprint("o", i)), uid: "u", version: b.Version, group: b.Version}
		d := informer.Delta[*storeObj]{Type: informer.Updated, Object: o}
		if g%2 == 1 && i%3 == 0 {
			d.Type = informer.Deleted
		} else {
			present++
		}
		b.Deltas = append(b.Deltas, informer.NewDeltas(o.key, false, d))
	}
	return b, present
}

func valid[T informer.Object](t testing.TB, x *informer.Indexer[T]) {
	t.Helper()
	if err := informer.Validate(x); err != nil {
		t.Fatal(err)
	}
}

// TestIndexerIsAtomic: promise 1. Readers beside batches find, by every query,
// either all of a batch or nothing of it.
func TestIndexerIsAtomic(t *testing.T) {
	for _, inPlace := range []int{-1, 0, informer.InPlaceDefault, 1 << 30} {
		for _, n := range []int{30, informer.Stride + 200} {
			t.Run(fmt.Sprintf("in place up to %d, %d keys", inPlace, n), func(t *testing.T) {
				x := newStore(t)
				ix := byGroup(t, x)
				informer.SetInPlace(x, inPlace)
				x.Apply(first(generation(n, 0)))
				beside(3, func() error { return oneGeneration(x, ix, n) }, t, func() {
					for g := 1; g < 4000/n; g++ {
						x.Apply(first(generation(n, g)))
						runtime.Gosched()
					}
				})
				valid(t, x)
			})
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// beside runs read in several goroutines, over and over, until write returns.
func beside(readers int, read func() error, t *testing.T, write func()) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for !stop.Load() {
				if err := read(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	write()
	stop.Store(true)
	wg.Wait()
}

// oneGeneration checks that each answer is of one generation.
func oneGeneration(x *informer.Indexer[*storeObj], ix *informer.Index[string, *storeObj], n int) error {
	same := func(what string, list []*storeObj) error {
		if len(list) == 0 {
			return fmt.Errorf("%s: no objects", what)
		}
		g, _ := strconv.Atoi(list[0].group)
		_, present := generation(n, g)
		for _, o := range list {
			if o.group != list[0].group || len(list) != present {
				return fmt.Errorf("%s: %d objects, of %s and %s", what, len(list), o.group, list[0].group)
			}
		}
		return nil
	}
	keys := 0
	for g, got := range ix.Keys() {
		number, _ := strconv.Atoi(g)
		if _, present := generation(n, number); got != present {
			return fmt.Errorf("Keys(): %d of %s", got, g)
		}
		keys++
	}
	s := x.Snapshot()
	var gets []*storeObj
	for i := range n {
		if o, ok := s.Get(storeKey("ns", fmt.Sprint("o", i))); ok {
			gets = append(gets, o)
		}
	}
	if keys != 1 || s.Len() != len(gets) || gets[0].group != s.Version() {
		return fmt.Errorf("%d keys, Len() = %d, %d by Get, of %s in %s", keys, s.Len(), len(gets), gets[0].group, s.Version())
	}
	return errors.Join(
		same("Get", gets),
		same("All", slices.Collect(x.All())),
		same("List", x.List()),
		same("In", slices.Collect(x.In("ns"))),
		same("Index.In", slices.Collect(ix.In(s, s.Version()))),
	)
}

// TestReaderStopsInTheMiddle: promise 1. A reader that is inside a loop holds
// up no writer, and sees the state in which the loop began.
func TestReaderStopsInTheMiddle(t *testing.T) {
	x := newStore(t)
	ix := byGroup(t, x)
	loops := map[string]func(yield func(*storeObj) bool){
		"All": x.All(), "In": x.In("ns"), "Index.Get": ix.Get("0"),
		"Keys": func(yield func(*storeObj) bool) {
			for range ix.Keys() {
				for o := range ix.Get("0") {
					if !yield(o) {
						return
					}
				}
			}
		},
	}
	for name, loop := range loops {
		x.Apply(first(generation(20, 0)))
		seen := 0
		for o := range loop {
			x.Apply(first(generation(20, 2+2*seen))) // on the goroutine of the loop: nothing may be locked
			if seen++; o.version != "0" {
				t.Fatalf("%s: the loop is shown version %s", name, o.version)
			}
		}
		if seen != 20 {
			t.Errorf("%s: %d objects, want 20", name, seen)
		}
	}
	valid(t, x)
}

// TestReadersNeverWaitForAWriter: promise 1. All queries answer while a writer
// is at work, also from inside index functions and OnError.
func TestReadersNeverWaitForAWriter(t *testing.T) {
	done := make(chan struct{})
	go func() { // ends with the test, unless somebody waits for ever
		defer close(done)
		readBesideWriter(t)
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		t.Fatal("a query waits for a writer")
	}
}

func readBesideWriter(t *testing.T) {
	var x *informer.Indexer[*storeObj]
	query := func() {
		x.Get(storeKey("ns", "o1"))
		x.List()
		x.Len()
		x.Snapshot().Version()
		_ = slices.Collect(x.In("ns"))
		informer.Between(x, func(informer.Reader[*storeObj]) {})
	}
	reported := 0
	x = informer.NewIndexer[*storeObj](informer.IndexerOptions{OnError: func(error) { query(); reported++ }})
	ix := byGroup(t, x)
	if _, err := informer.AddIndex(x, "curious", func(o *storeObj) (int, bool) {
		query()
		if o.mood == panicky {
			panic("boo")
		}
		return 0, true
	}); err != nil {
		t.Error(err)
	}
	x.Apply(first(generation(10, 0)))
	if err := x.Add(&storeObj{key: storeKey("ns", "x"), mood: panicky}); err != nil || reported != 1 {
		t.Errorf("Add() = %v, and %d reports, want 1", err, reported)
	}

	release := informer.HoldWriters(x)
	query()
	_ = slices.Collect(ix.Get("0"))
	ix.Len("0")
	for range ix.Keys() {
		break
	}
	release()
}

// TestIndexerMemoryComesBack: promise 30. After a burst, the store holds at
// most twice what a new one with the same content does.
func TestIndexerMemoryComesBack(t *testing.T) {
	const burst, rest = 20_000, 500
	var objs []*storeObj
	for i := range burst {
		objs = append(objs, &storeObj{key: storeKey(fmt.Sprint("ns", i%100), fmt.Sprint("o", i)), version: "1",
			group: fmt.Sprint("g", i%1000), tags: []int{i, i % 7, i % 3000}})
	}
	rand.Shuffle(burst, func(i, j int) { objs[i], objs[j] = objs[j], objs[i] })
	fill := func(objs []*storeObj) *informer.Indexer[*storeObj] {
		x := newStore(t)
		byGroup(t, x)
		if _, err := informer.AddMultiIndex(x, "tags", func(o *storeObj, file func(int)) {
			for _, tag := range o.tags {
				file(tag)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := x.Replace(objs, ""); err != nil {
			t.Fatal(err)
		}
		return x
	}
	fresh, want := heldBy(func() *informer.Indexer[*storeObj] { return fill(objs[:rest]) })
	for name, shrink := range map[string]func(x *informer.Indexer[*storeObj]){
		"one by one": func(x *informer.Indexer[*storeObj]) {
			for _, o := range objs[rest:] {
				if err := x.Delete(o); err != nil {
					t.Fatal(err)
				}
			}
		},
		"at once": func(x *informer.Indexer[*storeObj]) {
			if err := x.Replace(objs[:rest], ""); err != nil {
				t.Fatal(err)
			}
		},
	} {
		x, got := heldBy(func() *informer.Indexer[*storeObj] {
			x := fill(objs)
			shrink(x)
			return x
		})
		valid(t, x)
		if x.Len() != rest || got > 2*want {
			t.Errorf("%s: %d objects hold %d bytes, %d in a new store", name, x.Len(), got, want)
		}
	}
	runtime.KeepAlive(fresh)
	runtime.KeepAlive(objs)
}

// TestIndexMemoryOfFewKeys: promise 30. When a store was compacted, and then most
// keys of an index go while the objects stay, those that are left do not hold the
// memory of their neighbours.
func TestIndexMemoryOfFewKeys(t *testing.T) {
	const n, tags, keys = 1000, 100, 50_000
	many, few, more := make([]*storeObj, n), make([]*storeObj, n), make([]*storeObj, 3*n)
	for i := range more {
		more[i] = &storeObj{key: storeKey("", fmt.Sprint("o", i)), version: "1"}
	}
	for i := range n {
		many[i] = &storeObj{key: more[i].key, version: "2"}
		few[i] = &storeObj{key: more[i].key, version: "3"}
		for j := range tags {
			tag := (i*tags + j) % keys // each of two objects
			many[i].tags = append(many[i].tags, tag)
			if tag%300 == 0 {
				few[i].tags = append(few[i].tags, tag)
			}
		}
	}
	store := func(contents ...[]*storeObj) *informer.Indexer[*storeObj] {
		x := newStore(t)
		if _, err := informer.AddMultiIndex(x, "tags", func(o *storeObj, file func(int)) {
			for _, tag := range o.tags {
				file(tag)
			}
		}); err != nil {
			t.Fatal(err)
		}
		for _, objs := range contents {
			for _, o := range objs {
				if err := x.Update(o); err != nil {
					t.Fatal(err)
				}
			}
			if err := x.Replace(objs, ""); err != nil { // which compacts, if objects go
				t.Fatal(err)
			}
		}
		return x
	}
	fresh, want := heldBy(func() *informer.Indexer[*storeObj] { return store(few) })
	used, got := heldBy(func() *informer.Indexer[*storeObj] { return store(more, many, few) })
	valid(t, used)
	if got > 2*want {
		t.Errorf("an index that had %d keys holds %d bytes, %d in a new store", keys, got, want)
	}
	runtime.KeepAlive([]any{fresh, used, many, few, more})
}

// TestIndexerKeepsNoText: promise 30. A key outlives the object that brought
// it, and must not hold what that was cut out of; nor must buffers.
func TestIndexerKeepsNoText(t *testing.T) {
	x := newStore(t)
	byGroup(t, x)
	_, held := heldBy(func() error {
		text := strings.Repeat("x", 1<<24)
		return errors.Join(
			x.Add(&storeObj{key: storeKey("", text[:4]), group: text[:5]}),
			x.Add(&storeObj{key: storeKey("", "xxxx"), group: "xxx"}))
	})
	if _, ok := x.Get(storeKey("", "xxxx")); !ok || held > 1<<20 {
		t.Errorf("the object is there: %v; %d bytes are held", ok, held)
	}
}

// heldBy returns what build returns, and how many bytes of the heap that holds.
func heldBy[V any](build func() V) (V, int64) {
	before := heap()
	v := build()
	return v, heap() - before
}

// TestIndexerAllocations: an update that moves nothing makes no garbage while
// nobody looks, nor does a snapshot or a get.
func TestIndexerAllocations(t *testing.T) {
	x := newStore(t)
	byGroup(t, x)
	b, _ := generation(1000, 0)
	x.Apply(b)
	objs := [2]*storeObj{{key: storeKey("ns", "o5"), version: "a", group: "0"}, {key: storeKey("ns", "o5"), version: "b", group: "0"}}
	i := 0
	var keep informer.Reader[*storeObj]
	for _, row := range []struct {
		name string
		f    func()
	}{
		{"Update", func() { i++; _ = x.Update(objs[i%2]) }},
		{"Snapshot", func() { keep = x.Snapshot() }},
		{"Get", func() { keep.Get(storeKey("ns", "o5")) }},
	} {
		if got := testing.AllocsPerRun(1000, row.f); got > 0 {
			t.Errorf("%s: %v allocations, want 0", row.name, got)
		}
	}
}

func TestIndexerRefuses(t *testing.T) {
	x := newStore(t)
	good := &storeObj{key: storeKey("ns", "good"), version: "1"}
	nameless := &storeObj{key: storeKey("ns", "")}
	for name, write := range map[string]func() error{
		"Add":     func() error { return x.Add(nameless) },
		"Update":  func() error { return x.Update(nameless) },
		"Delete":  func() error { return x.Delete(nameless) },
		"Replace": func() error { return x.Replace([]*storeObj{good, nameless, good}, "9") },
	} {
		var object *informer.ObjectError
		if err := write(); !errors.As(err, &object) || object.Key != nameless.key {
			t.Errorf("%s() = %v, want an ObjectError of %q", name, err, nameless.key)
		} else if name == "Replace" && !strings.Contains(err.Error(), "ns/good") {
			t.Errorf("Replace() = %v, want both objects", err)
		}
		if x.Len() > 0 || x.Version() != "" {
			t.Errorf("%s() changed the store", name)
		}
	}
}

// TestZeroReader: a DeltaFIFO without a store reads one.
func TestZeroReader(t *testing.T) {
	var r informer.Reader[*storeObj]
	if err := checkReader(r, &naiveStore{}); err != nil {
		t.Error(err)
	}
	if err := checkReader(r.Snapshot(), &naiveStore{}); err != nil {
		t.Error(err)
	}
}

// TestIndexerSurvivesPanics (promise 1): a batch that a panic ends is not there
// at all, and the store goes on.
func TestIndexerSurvivesPanics(t *testing.T) {
	for _, n := range []int{10, informer.Stride + 100} {
		x := newStore(t)
		ix := byGroup(t, x)
		x.Apply(first(generation(n, 0)))
		b, _ := generation(n, 1) // deletes, too
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			left := n - 5
			informer.ApplyThen(x, b, func(informer.Change[*storeObj]) {
				if left--; left == 0 {
					panic("boo")
				}
			}, nil)
		}()
		valid(t, x)
		if x.Version() != "0" || x.Len() != n || ix.Len("0") != n {
			t.Errorf("version %s, %d objects, %d in the index, want 0, %d, %d", x.Version(), x.Len(), ix.Len("0"), n, n)
		}
		x.Apply(b)
		valid(t, x)
		if err := oneGeneration(x, ix, n); err != nil {
			t.Error(err)
		}
	}
}

// TestApplyTellsInOrder (promises 1 and 14): what is emitted comes before the
// switch, and what runs at the switch is given the new state.
func TestApplyTellsInOrder(t *testing.T) {
	x := newStore(t)
	for g, n := range []int{5, informer.Stride + 5, 5, 0} {
		b, present := generation(n, 2*g)
		emitted := 0
		before := x.Version()
		informer.ApplyThen(x, b, func(informer.Change[*storeObj]) {
			if emitted++; x.Version() != before {
				t.Errorf("emit is called when version %s is there already", x.Version())
			}
		}, func(r informer.Reader[*storeObj]) {
			if emitted != present || r.Version() != b.Version || r.Len() < n {
				t.Errorf("then is given version %s of %d objects after %d changes, want %s, %d, %d",
					r.Version(), r.Len(), emitted, b.Version, n, present)
			}
			emitted = -1
		})
		if emitted != -1 {
			t.Error("then was not called")
		}
	}
	var kept informer.Reader[*storeObj]
	informer.Between(x, func(r informer.Reader[*storeObj]) { kept = r })
	x.Apply(first(generation(5, 100)))
	if kept.Version() != "6" {
		t.Errorf("a state given by between has become version %s", kept.Version())
	}
}

// TestApplyOfJoinedBatches: two deltas of a key in one batch are not what a FIFO
// hands over, but they must not break the store.
func TestApplyOfJoinedBatches(t *testing.T) {
	for _, n := range []int{10, informer.Stride} {
		x := newStore(t)
		ix := byGroup(t, x)
		var joined informer.Batch[*storeObj]
		for g := range 4 {
			b, _ := generation(n, g)
			joined.Deltas = append(joined.Deltas, b.Deltas...)
			joined.Version = b.Version
		}
		x.Apply(joined)
		valid(t, x)
		if err := oneGeneration(x, ix, n); err != nil {
			t.Error(err)
		}
	}
}

// storeValue is an Object that is no pointer.
type storeValue struct{ name, version string }

func (v storeValue) GetNamespace() string       { return "" }
func (v storeValue) GetName() string            { return v.name }
func (v storeValue) GetUID() types.UID          { return "u" }
func (v storeValue) GetResourceVersion() string { return v.version }

// TestIndexerOfValues: promise 28. T needs to be no pointer, and a zero field
// is a value as any other.
func TestIndexerOfValues(t *testing.T) {
	x := informer.NewIndexer[storeValue](informer.IndexerOptions{})
	byVersion, err := informer.AddIndex(x, "version", func(v storeValue) (string, bool) { return v.version, true })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := x.Add(storeValue{name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		if err := x.Delete(storeValue{name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	valid(t, x)
	if got, ok := x.Get(storeKey("", "77")); !ok || got.name != "77" || len(x.List()) != 50 || byVersion.Len("") != 50 {
		t.Errorf("Get(77) = %v, %v of %d objects, %d in the index", got, ok, len(x.List()), byVersion.Len(""))
	}
}

// TestReaderBeforeTheWriter: promise 1. A state that is seen when a writer is
// about to write it in place stays as it is.
func TestReaderBeforeTheWriter(t *testing.T) {
	x := newStore(t)
	x.Apply(first(generation(5, 0)))
	done := make(chan struct{})
	kept := informer.LookLate(x, func() {
		go func() { // ends before the test
			defer close(done)
			x.Apply(first(generation(5, 2)))
		}()
		<-time.After(50 * time.Millisecond) // by then the writer waits
	})
	<-done
	if kept.Version() != "0" || x.Version() != "2" {
		t.Errorf("the state that was seen has version %s, the newest %s, want 0 and 2", kept.Version(), x.Version())
	}
	valid(t, x)
}
