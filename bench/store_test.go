package bench

import (
	"sync"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/bench/fixture"
)

// ourStore is an Indexer with the indexes of the fixture; that by namespace is
// built in.
type ourStore[T fixture.Object] struct {
	*informer.Indexer[T]
	group *informer.Index[string, T]
	label *informer.Index[fixture.Label, T]
}

func newOurStore[T fixture.Object](tb testing.TB, kind fixture.Kind[T]) ourStore[T] {
	tb.Helper()
	x := informer.NewIndexer[T](informer.IndexerOptions{})
	group, err := informer.AddIndex(x, "group", groupKey(kind))
	must(tb, err)
	labels, err := informer.AddMultiIndex(x, "label", kind.Labels)
	must(tb, err)
	return ourStore[T]{x, group, labels}
}

func groupKey[T fixture.Object](kind fixture.Kind[T]) func(T) (string, bool) {
	return func(obj T) (string, bool) { return kind.Group(obj), true }
}

const (
	byGroup = "group"
	byLabel = "label"
)

// indexersOf are the indexes of the fixture as client-go has them.
func indexersOf[T fixture.Object](kind fixture.Kind[T]) cache.Indexers {
	return cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		byGroup:              func(obj any) ([]string, error) { return []string{kind.Group(obj.(T))}, nil },
		byLabel:              func(obj any) ([]string, error) { return kind.LabelValues(obj.(T)), nil },
	}
}

func newTheirStore[T fixture.Object](kind fixture.Kind[T]) cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexersOf(kind))
}

// fillTheirs puts objs into x.
func fillTheirs[T fixture.Object](tb testing.TB, x cache.Indexer, objs []T) {
	tb.Helper()
	must(tb, x.Replace(anys(objs), "1"))
}

func anys[T any](objs []T) []any {
	items := make([]any, len(objs))
	for i, obj := range objs {
		items[i] = obj
	}
	return items
}

func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}

// A made remembers objects that several rows use.
type made[T fixture.Object] struct {
	kind fixture.Kind[T]
	seed int64

	mu   sync.Mutex // guards objs
	objs []T
}

// whole is how many objects are complete in quick mode.
const whole = 1000

// first returns the first n objects, making those that are missing.
func (m *made[T]) first(n int) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.objs); i < n; i++ {
		if *quick && i >= whole && m.kind.Light != nil {
			m.objs = append(m.objs, m.kind.Light(m.seed, i, m.objs[i%whole]))
		} else {
			m.objs = append(m.objs, m.kind.New(m.seed, i))
		}
	}
	return m.objs[:n:n]
}

// standardSeed is that of the table; its second part has others.
const standardSeed = 42

// pods are the fixture of the table.
var pods = &made[*podT]{kind: fixture.Pods(), seed: standardSeed}
