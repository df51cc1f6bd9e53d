package informer_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// storeObj is what the tests of the store keep in it.
type storeObj struct {
	key     informer.Key
	uid     string
	version string
	group   string
	tags    []int
	mood    int // see moods
}

func (o *storeObj) GetNamespace() string       { return o.key.Namespace }
func (o *storeObj) GetName() string            { return o.key.Name }
func (o *storeObj) GetUID() types.UID          { return types.UID(o.uid) }
func (o *storeObj) GetResourceVersion() string { return o.version }
func (o *storeObj) String() string {
	return fmt.Sprintf("%s %s@%s %s%v%d", o.key, o.uid, o.version, o.group, o.tags, o.mood)
}

// What is wrong with an object of some mood.
const (
	calm = iota
	panicky
	notANumber
	incomparable
	moods
)

func storeKey(namespace, name string) informer.Key {
	return informer.Key{Namespace: namespace, Name: name}
}

// ---- the naive store

type naiveStore struct {
	objects map[informer.Key]*storeObj
	version string
	listed  bool
}

func (m *naiveStore) clone() *naiveStore {
	return &naiveStore{maps.Clone(m.objects), m.version, m.listed}
}

// apply is Indexer.Apply, rule by rule.
func (m *naiveStore) apply(b informer.Batch[*storeObj]) (changes []informer.Change[*storeObj]) {
	initial := b.Replaced && !m.listed
	for _, d := range b.Deltas {
		list := slices.Collect(d.All())
		if len(list) == 0 {
			continue
		}
		final := list[len(list)-1]
		old, known := m.objects[d.Key]
		cause := informer.CauseWatch
		if final.Type == informer.Sync {
			cause = informer.CauseResync
		} else if d.Listed {
			cause = informer.CauseRelist
		}
		gone := func() {
			c := informer.Change[*storeObj]{Type: informer.Deleted, Key: d.Key, Cause: cause, Old: old, New: old}
			if f := list[0]; f.Type == informer.Deleted && f.Exact && naiveSame(f.Object, old) {
				c.New, c.Exact = f.Object, true
			}
			changes = append(changes, c)
		}
		add := func() {
			c := informer.Change[*storeObj]{Type: informer.Added, Key: d.Key, Cause: cause, New: final.Object}
			if initial {
				c.Cause = informer.CauseInitial
			}
			changes = append(changes, c)
			m.objects[d.Key] = final.Object
		}
		switch {
		case !known && (final.Type == informer.Deleted || final.Type == informer.Sync):
		case !known:
			add()
		case final.Type == informer.Deleted:
			gone()
			delete(m.objects, d.Key)
		case !naiveSame(old, final.Object):
			gone()
			add()
		default:
			c := informer.Change[*storeObj]{Type: informer.Updated, Key: d.Key, Cause: cause, Old: old, New: final.Object}
			if old.version == final.Object.version && old.version != "" && old.uid != "" && old.uid == final.Object.uid {
				if final.Type != informer.Sync {
					continue
				}
				c.New = old
			}
			changes = append(changes, c)
			m.objects[d.Key] = c.New
		}
	}
	if b.Version != "" {
		m.version = b.Version
	}
	m.listed = m.listed || b.Replaced
	return changes
}

func naiveSame(a, b *storeObj) bool { return a.uid == b.uid || a.uid == "" || b.uid == "" }

// ---- the indexes

// storeIndex is an index of any key type, as the model sees it.
type storeIndex struct {
	name   string
	bad    func(*storeObj) bool // is to be reported
	check  func(r informer.Reader[*storeObj], objects map[informer.Key]*storeObj) error
	live   func(objects map[informer.Key]*storeObj) error
	remove func()
}

// indexKinds make an index with a function each that behaves in its own way.
var indexKinds = []func(x *informer.Indexer[*storeObj], name string) (*storeIndex, error){
	func(x *informer.Indexer[*storeObj], name string) (*storeIndex, error) { // one key
		ix, err := informer.AddIndex(x, name, func(o *storeObj) (string, bool) { return o.group, o.group != "" })
		return watchIndex(ix, name, err, nil, []string{"", "none"}, func(o *storeObj) []string {
			return slices.DeleteFunc([]string{o.group}, func(g string) bool { return g == "" })
		})
	},
	func(x *informer.Indexer[*storeObj], name string) (*storeIndex, error) { // many, some of them twice
		ix, err := informer.AddMultiIndex(x, name, func(o *storeObj, file func(int)) {
			for _, tag := range o.tags {
				file(tag)
			}
		})
		return watchIndex(ix, name, err, nil, []int{-1}, func(o *storeObj) []int { return o.tags })
	},
	func(x *informer.Indexer[*storeObj], name string) (*storeIndex, error) { // panics half way
		ix, err := informer.AddMultiIndex(x, name, func(o *storeObj, file func(string)) {
			file(o.group)
			if o.mood == panicky {
				panic(errors.New("boo"))
			}
			file(o.uid)
		})
		bad := func(o *storeObj) bool { return o.mood == panicky }
		return watchIndex(ix, name, err, bad, []string{"none"}, func(o *storeObj) []string { return []string{o.group, o.uid} })
	},
	func(x *informer.Indexer[*storeObj], name string) (*storeIndex, error) { // NaN
		ix, err := informer.AddMultiIndex(x, name, func(o *storeObj, file func(float64)) {
			file(float64(len(o.tags)))
			if o.mood == notANumber {
				file(math.NaN())
			}
		})
		bad := func(o *storeObj) bool { return o.mood == notANumber }
		return watchIndex(ix, name, err, bad, []float64{math.NaN(), -1}, func(o *storeObj) []float64 { return []float64{float64(len(o.tags))} })
	},
	func(x *informer.Indexer[*storeObj], name string) (*storeIndex, error) { // interface keys of several types
		type pair struct{ a, b any }
		ix, err := informer.AddIndex(x, name, func(o *storeObj) (any, bool) {
			switch o.mood {
			case incomparable:
				return pair{1, o.tags}, true
			case calm:
				return o.group, true
			}
			return pair{o.group, len(o.tags)}, true
		})
		bad := func(o *storeObj) bool { return o.mood == incomparable }
		return watchIndex(ix, name, err, bad, []any{nil, []int{1}, pair{1, []int{}}}, func(o *storeObj) []any {
			if o.mood == calm {
				return []any{o.group}
			}
			return []any{pair{o.group, len(o.tags)}}
		})
	},
}

func watchIndex[K comparable](ix *informer.Index[K, *storeObj], name string, err error, bad func(*storeObj) bool,
	absent []K, keys func(*storeObj) []K) (*storeIndex, error) {
	if err != nil {
		return nil, err
	}
	if bad == nil {
		bad = func(*storeObj) bool { return false }
	}
	want := func(objects map[informer.Key]*storeObj) map[K]map[*storeObj]bool {
		m := map[K]map[*storeObj]bool{}
		for _, o := range objects {
			if !bad(o) {
				for _, k := range keys(o) {
					if m[k] == nil {
						m[k] = map[*storeObj]bool{}
					}
					m[k][o] = true
				}
			}
		}
		return m
	}
	return &storeIndex{
		name: name, bad: bad, remove: ix.Remove,
		check: func(r informer.Reader[*storeObj], objects map[informer.Key]*storeObj) error {
			want := want(objects)
			for _, k := range slices.AppendSeq(slices.Clone(absent), maps.Keys(want)) {
				var set map[*storeObj]bool
				if !slices.ContainsFunc(absent, func(a K) bool { return fmt.Sprint(a) == fmt.Sprint(k) }) {
					set = want[k]
				}
				if err := sameObjects(slices.Collect(ix.In(r, k)), set); err != nil {
					return fmt.Errorf("index %q: In(%v): %w", name, k, err)
				}
			}
			return nil
		},
		live: func(objects map[informer.Key]*storeObj) error {
			want, n := want(objects), 0
			for k, got := range ix.Keys() {
				if n++; got != len(want[k]) || ix.Len(k) != got {
					return fmt.Errorf("index %q: Keys() has %v: %d, Len = %d, want %d", name, k, got, ix.Len(k), len(want[k]))
				}
				if err := sameObjects(slices.Collect(ix.Get(k)), want[k]); err != nil {
					return fmt.Errorf("index %q: Get(%v): %w", name, k, err)
				}
			}
			if n != len(want) {
				return fmt.Errorf("index %q: Keys() has %d keys, want %d", name, n, len(want))
			}
			for _, k := range absent {
				if n := ix.Len(k); n != 0 {
					return fmt.Errorf("index %q: Len(%v) = %d", name, k, n)
				}
			}
			return nil
		},
	}, nil
}

func sameObjects(got []*storeObj, want map[*storeObj]bool) error {
	set := map[*storeObj]bool{}
	for _, o := range got {
		set[o] = true
	}
	if len(set) != len(got) || !maps.Equal(set, want) {
		return fmt.Errorf("= %v, want %v", got, slices.Collect(maps.Keys(want)))
	}
	return nil
}

// checkReader compares all that r answers with the naive store.
func checkReader(r informer.Reader[*storeObj], m *naiveStore) error {
	if err := informer.ValidateReader(r); err != nil {
		return err
	}
	all := map[*storeObj]bool{}
	spaces := map[string]map[*storeObj]bool{"nowhere": nil, "n0": nil}
	for key, o := range m.objects {
		all[o] = true
		if spaces[key.Namespace] == nil {
			spaces[key.Namespace] = map[*storeObj]bool{}
		}
		spaces[key.Namespace][o] = true
		if got, ok := r.Get(key); !ok || got != o {
			return fmt.Errorf("Get(%s) = %v, %v, want %v", key, got, ok, o)
		}
	}
	spaces[""] = all
	for _, key := range []informer.Key{{}, storeKey("n0", "never"), storeKey("never", "o1")} {
		if got, ok := r.Get(key); ok || got != nil {
			return fmt.Errorf("Get(%s) = %v, %v", key, got, ok)
		}
	}
	for namespace, want := range spaces {
		if err := sameObjects(slices.Collect(r.In(namespace)), want); err != nil {
			return fmt.Errorf("In(%q): %w", namespace, err)
		}
	}
	return errors.Join(
		sameObjects(slices.Collect(r.All()), all), sameObjects(r.List(), all),
		expectEqual("Len()", r.Len(), len(m.objects)), expectEqual("Version()", r.Version(), m.version))
}

func expectEqual[V comparable](what string, got, want V) error {
	if got != want {
		return fmt.Errorf("%s = %v, want %v", what, got, want)
	}
	return nil
}

// ---- the model

// storeModel drives an Indexer and a naive store side by side.
type storeModel struct {
	t        *rapid.T
	x        *informer.Indexer[*storeObj]
	want     *naiveStore
	versions int

	reported, bad []string // by OnError, and what should be
	indexes       []*storeIndex
	removed       []*storeIndex
	snapshots     []informer.Reader[*storeObj]
	models        []*naiveStore
}

// TestIndexerModel: promises 1, 2, 5, 6, 7 and 14 for the store, over any
// sequence of writes, with every snapshot kept for ever.
func TestIndexerModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &storeModel{t: t, want: &naiveStore{objects: map[informer.Key]*storeObj{}}}
		m.x = informer.NewIndexer[*storeObj](informer.IndexerOptions{OnError: m.onError})
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"one":      m.one,
			"batch":    m.batch,
			"replace":  m.replace,
			"index":    m.index,
			"remove":   m.remove,
			"snapshot": m.snapshot,
			"in place": func(t *rapid.T) {
				informer.SetInPlace(m.x, rapid.SampledFrom([]int{-1, 0, 3, informer.InPlaceDefault, 1 << 30}).Draw(t, "in place"))
			},
		})
		for i, s := range m.snapshots {
			if err := m.checkAll(s, m.models[i]); err != nil {
				t.Fatalf("snapshot %d of %d: %v", i, len(m.snapshots), err)
			}
		}
	})
}

func (m *storeModel) onError(err error) {
	var object *informer.ObjectError
	if !errors.As(err, &object) {
		m.t.Fatalf("OnError(%v): want an *ObjectError", err)
	}
	index, _, _ := strings.Cut(err.Error(), ":")
	m.reported = append(m.reported, index+object.Key.String())
}

// expectReport notes that objects are shown to an index.
func (m *storeModel) expectReport(ix *storeIndex, o *storeObj) {
	if ix.bad(o) {
		m.bad = append(m.bad, fmt.Sprintf("index %q", ix.name)+o.key.String())
	}
}

func (m *storeModel) check(t *rapid.T) {
	if err := informer.Validate(m.x); err != nil {
		t.Fatal(err)
	}
	if err := m.checkAll(m.x.Reader, m.want); err != nil {
		t.Fatal(err)
	}
	for _, ix := range append(m.indexes, m.removed...) {
		if err := ix.live(m.want.objects); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(m.bad)
	slices.Sort(m.reported)
	if !slices.Equal(m.bad, m.reported) {
		t.Fatalf("OnError was told of %q, want %q", m.reported, m.bad)
	}
	if n := len(m.snapshots); n > 0 { // all of them at the end
		i := rapid.IntRange(0, n-1).Draw(t, "snapshot")
		if err := m.checkAll(m.snapshots[i], m.models[i]); err != nil {
			t.Fatalf("snapshot %d of %d: %v", i, n, err)
		}
	}
}

func (m *storeModel) checkAll(r informer.Reader[*storeObj], want *naiveStore) error {
	if err := checkReader(r, want); err != nil {
		return err
	}
	for _, ix := range append(m.indexes, m.removed...) {
		if err := ix.check(r, want.objects); err != nil {
			return err
		}
	}
	return nil
}

// object draws the next state of the object called key.
func (m *storeModel) object(t *rapid.T, key informer.Key) *storeObj {
	m.versions++
	o := &storeObj{key: key, version: fmt.Sprint(m.versions)}
	if old, known := m.want.objects[key]; known && rapid.IntRange(0, 5).Draw(t, "again") == 0 {
		again := *old // as a list brings it: equal, at another address
		return &again
	}
	o.uid = rapid.SampledFrom([]string{"", "u1", "u1", "u1", "u2"}).Draw(t, "uid")
	if rapid.IntRange(0, 9).Draw(t, "versioned") == 0 {
		o.version = ""
	}
	o.group = rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(t, "group")
	o.tags = rapid.SliceOfN(rapid.IntRange(0, 3), 0, 4).Draw(t, "tags")
	o.mood = rapid.IntRange(0, moods+1).Draw(t, "mood") % moods
	return o
}

func drawKey(t *rapid.T) informer.Key {
	return storeKey(rapid.SampledFrom([]string{"", "n0", "n1"}).Draw(t, "namespace"), rapid.StringMatching(`o[0-9]`).Draw(t, "name"))
}

// applied has the naive store apply b, and notes which reports that must lead to.
func (m *storeModel) applied(b informer.Batch[*storeObj]) []informer.Change[*storeObj] {
	before := maps.Clone(m.want.objects)
	changes := m.want.apply(b)
	for key, o := range m.want.objects {
		if before[key] != o {
			for _, ix := range m.indexes {
				m.expectReport(ix, o)
			}
		}
	}
	return changes
}

func (m *storeModel) one(t *rapid.T) {
	o := m.object(t, drawKey(t))
	typ, write := informer.Added, m.x.Add
	switch rapid.SampledFrom([]string{"add", "update", "delete"}).Draw(t, "op") {
	case "update":
		typ, write = informer.Updated, m.x.Update
	case "delete":
		typ, write = informer.Deleted, m.x.Delete
	}
	if err := write(o); err != nil {
		t.Fatal(err)
	}
	m.applied(informer.Batch[*storeObj]{Deltas: []informer.Deltas[*storeObj]{
		informer.NewDeltas(o.key, false, informer.Delta[*storeObj]{Type: typ, Object: o}),
	}})
}

func (m *storeModel) deltas(t *rapid.T, key informer.Key) informer.Deltas[*storeObj] {
	type delta = informer.Delta[*storeObj]
	listed := rapid.Bool().Draw(t, "listed")
	last := delta{Type: rapid.SampledFrom([]informer.DeltaType{
		informer.Added, informer.Updated, informer.Deleted, informer.Replaced, informer.Sync,
	}).Draw(t, "type"), Object: m.object(t, key)}
	last.Exact = last.Type == informer.Deleted && rapid.Bool().Draw(t, "exact")
	if last.Type == informer.Added && rapid.Bool().Draw(t, "after delete") {
		first := delta{Type: informer.Deleted, Exact: rapid.Bool().Draw(t, "exact"), Object: m.object(t, key)}
		return informer.NewDeltas(key, listed, first, last)
	}
	return informer.NewDeltas(key, listed, last)
}

func (m *storeModel) batch(t *rapid.T) {
	b := informer.Batch[*storeObj]{Replaced: rapid.IntRange(0, 3).Draw(t, "replaced") == 0}
	if rapid.Bool().Draw(t, "version") {
		m.versions++
		b.Version = fmt.Sprint(m.versions)
	}
	for range rapid.IntRange(0, 30).Draw(t, "deltas") {
		key := drawKey(t)
		b.Deltas = append(b.Deltas, m.deltas(t, key))
	}
	twice := map[informer.Key]bool{}
	b.Deltas = slices.DeleteFunc(b.Deltas, func(d informer.Deltas[*storeObj]) bool {
		was := twice[d.Key]
		twice[d.Key] = true
		return was
	})
	got, want := m.x.Apply(b), m.applied(b)
	if !slices.Equal(got, want) {
		t.Fatalf("Apply() = %v, want %v", got, want)
	}
}

// replace lists a few objects or, to make the store grow and shrink, very many.
func (m *storeModel) replace(t *rapid.T) {
	n := rapid.SampledFrom([]int{0, 3, 3, 10, 10, 10, 70, 70, informer.Stride + 100}).Draw(t, "n")
	var objs []*storeObj
	b := informer.Batch[*storeObj]{Replaced: true, Version: fmt.Sprint(m.versions)}
	listed := map[informer.Key]bool{}
	for i := range n {
		key := storeKey("n1", fmt.Sprint("o", i))
		o := &storeObj{key: key, uid: "u1", version: "1", group: "g1", tags: []int{i % 4}}
		if i < 10 {
			o = m.object(t, key)
		}
		objs = append(objs, o)
		listed[key] = true
		b.Deltas = append(b.Deltas, informer.NewDeltas(key, true, informer.Delta[*storeObj]{Type: informer.Replaced, Object: o}))
	}
	for key, o := range m.want.objects {
		if !listed[key] {
			b.Deltas = append(b.Deltas, informer.NewDeltas(key, true, informer.Delta[*storeObj]{Type: informer.Deleted, Object: o}))
		}
	}
	if err := m.x.Replace(objs, b.Version); err != nil {
		t.Fatal(err)
	}
	m.applied(b)
}

func (m *storeModel) index(t *rapid.T) {
	kind := rapid.IntRange(0, len(indexKinds)-1).Draw(t, "kind")
	name := fmt.Sprint("kind ", kind)
	ix, err := indexKinds[kind](m.x, name)
	if taken := slices.ContainsFunc(m.indexes, func(ix *storeIndex) bool { return ix.name == name }); taken != (err != nil) {
		t.Fatalf("adding %q: error %v, and the name is taken: %v", name, err, taken)
	}
	if err == nil {
		m.indexes = append(m.indexes, ix)
		for _, o := range m.want.objects {
			m.expectReport(ix, o)
		}
	}
}

func (m *storeModel) remove(t *rapid.T) {
	if len(m.indexes) == 0 || len(m.removed) > 3 {
		t.Skip("nothing to remove")
	}
	i := rapid.IntRange(0, len(m.indexes)-1).Draw(t, "index")
	m.indexes[i].remove()
	m.removed = append(m.removed, m.indexes[i])
	m.indexes = slices.Delete(m.indexes, i, i+1)
}

func (m *storeModel) snapshot(*rapid.T) {
	m.snapshots = append(m.snapshots, m.x.Snapshot())
	m.models = append(m.models, m.want.clone())
}
