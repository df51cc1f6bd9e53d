package bench

import (
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/bench/fixture"
)

// Both sides of a row have to do the same work: after the same updates, both
// stores have the same objects under the same values.
func TestStoresAgree(t *testing.T) {
	kind, n := fixture.Pods(), 500
	objs := kind.Objects(standardSeed, n)
	ours, theirs := newOurStore(t, kind), newTheirStore(kind)
	for _, turn := range [][]*podT{objs, kind.TouchAll(objs, 10_000), moveAll(kind, objs, 20_000)} {
		for _, obj := range turn {
			must(t, ours.Update(obj))
			must(t, theirs.Update(obj))
		}
		if got, want := names(slices.Values(ours.List())), names(typed(theirs.List())); !maps.Equal(got, want) {
			t.Fatalf("%d and %d objects, or other versions", len(got), len(want))
		}
		for value := range theirs.GetIndexers() {
			agreeOn(t, kind, ours, theirs, value, turn)
		}
	}
}

func agreeOn(t *testing.T, kind fixture.Kind[*podT], ours ourStore[*podT], theirs cache.Indexer, index string, objs []*podT) {
	for _, obj := range objs {
		switch index {
		case byGroup:
			same(t, names(ours.group.Get(kind.Group(obj))), byIndex(t, theirs, index, kind.Group(obj)))
		case byLabel:
			kind.Labels(obj, func(l fixture.Label) {
				same(t, names(ours.label.Get(l)), byIndex(t, theirs, index, l.String()))
			})
		default:
			same(t, names(ours.In(obj.Namespace)), byIndex(t, theirs, index, obj.Namespace))
			return // one namespace is enough
		}
	}
}

func byIndex(t *testing.T, x cache.Indexer, index, value string) map[string]string {
	objs, err := x.ByIndex(index, value)
	must(t, err)
	return names(typed(objs))
}

func same(t *testing.T, ours, theirs map[string]string) {
	t.Helper()
	if len(ours) == 0 || !maps.Equal(ours, theirs) {
		t.Fatalf("ours has %d objects, theirs %d, or others", len(ours), len(theirs))
	}
}

func typed(objs []any) iter.Seq[*podT] {
	return func(yield func(*podT) bool) {
		for _, obj := range objs {
			if !yield(obj.(*podT)) {
				return
			}
		}
	}
}

// names are the versions by the name.
func names(objs iter.Seq[*podT]) map[string]string {
	versions := make(map[string]string)
	for obj := range objs {
		versions[obj.Namespace+"/"+obj.Name] = obj.ResourceVersion
	}
	return versions
}

// Both informers deliver every event of a stream, and end with the same objects.
func TestInformersAgree(t *testing.T) {
	kind := fixture.Pods()
	objs := kind.Objects(standardSeed, 300)
	stream := slices.Concat(kind.TouchAll(objs, 20_000_000), kind.TouchAll(objs, 20_001_000))
	watched := func(start func(s *script[*podT], onUpdate []func(*podT)) func()) {
		s := newScript(kind, objs)
		d := newDelivery(s, stream, 2, 10)
		stop := start(s, d.onUpdate)
		defer stop()
		close(s.begin)
		d.done.Wait()
	}
	var ours, theirs map[string]string
	watched(func(s *script[*podT], onUpdate []func(*podT)) func() {
		inf := startOurs(t, kind, ourSource[*podT]{s}, true, onUpdate...)
		return func() { ours = names(inf.list); inf.stop() }
	})
	watched(func(s *script[*podT], onUpdate []func(*podT)) func() {
		inf := startTheirs(t, kind, theirInformer(s, true), onUpdate...)
		return func() { theirs = names(inf.list); inf.stop() }
	})
	same(t, ours, theirs)
}

// Both queues ask the limiter once for each turn of Q6, and make it forget the
// key.
func TestLimitedAgree(t *testing.T) {
	key := keysOf(1)[0]
	ours, theirs := new(countedLimiter), new(countedLimiter)
	q := newOurQueue(t, ours)
	their := workqueue.NewTypedRateLimitingQueue(theirs)
	defer their.ShutDown()
	for turn := range 3 {
		limitOurs(q, key)
		limitTheirs(their, key)
		if want := (countedLimiter{turn + 1, turn + 1}); *ours != want || *theirs != want {
			t.Errorf("turn %d: ours %+v, theirs %+v, want %+v", turn, *ours, *theirs, want)
		}
	}
}

// countedLimiter counts its calls.
type countedLimiter struct{ whens, forgets int }

func (l *countedLimiter) When(informer.Key) time.Duration { l.whens++; return time.Hour }

func (l *countedLimiter) Forget(informer.Key) { l.forgets++ }

func (l *countedLimiter) NumRequeues(informer.Key) int { return l.whens - l.forgets }
