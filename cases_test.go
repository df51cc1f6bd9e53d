package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// Case 9 (k8s#79610; promises 19 and 29): each informer stops alone, with all of
// its goroutines, while others go on and while its kind is gone; a kind that is
// gone is asked for slowly.
func TestCase9StopsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := newLiveSource()
		gone.fail(apierrors.NewNotFound(corev1.Resource("things"), ""))
		sources := []*liveSource{newLiveSource(), newLiveSource(), gone}
		var all []*running
		for _, source := range sources {
			inf := run(t, source, informer.Options{})
			inf.handler(t, func(informer.Change[*fifoObject]) {}, informer.HandlerOptions{})
			all = append(all, inf)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if s := all[2].Status(); s.State != informer.StateGone || s.Lists > 240 {
			t.Errorf("a kind that is gone: state %v after %d lists in an hour, want at most 4 a minute", s.State, s.Lists)
		}
		for i, inf := range all {
			inf.stop()
			synctest.Wait()
			select {
			case err := <-inf.done:
				if err != nil {
					t.Errorf("Run = %v", err)
				}
			default:
				t.Fatal("Run goes on after its end, with nothing to wait for")
			}
			for j, other := range all[i+1:] {
				if s := other.Status(); s.State == informer.StateStopped {
					t.Errorf("informer %d stopped with informer %d", i+1+j, i)
				}
			}
		}
	})
}

// Case 10 (k8s#115658, k8s#83810, client-go#360; promise 3): Add(x) is queued,
// then comes a replace without x: the consumer is told of the addition and the
// deletion, or of neither, also when the replace ends while its function runs.
func TestCase10ReplaceWithout(t *testing.T) {
	x := &fifoObject{name: "x", uid: "u1", version: "5"}
	tests := []struct {
		name    string
		inside  bool // the replace comes while x is in flight
		onByOne bool
		want    string
	}{
		{"before it is taken", false, false, ""},
		{"before it is taken, one by one", false, true, ""},
		{"while it is in flight", true, false, "Added x/u1@5\nDeleted x/u1@5"},
		{"while it is in flight, one by one", true, true, "Added x/u1@5\nDeleted x/u1@5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
			queue := informer.NewDeltaFIFO(store.Reader)
			var told []string
			replaced := false
			replace := func() {
				if !replaced {
					replaced = true
					if err := queue.Replace(nil, "9"); err != nil {
						t.Fatal(err)
					}
				}
			}
			apply := func(deltas ...informer.Deltas[*fifoObject]) error {
				if tt.inside {
					replace()
				}
				for _, d := range deltas {
					told = append(told, fifoText(d))
				}
				store.Apply(informer.Batch[*fifoObject]{Deltas: deltas})
				return nil
			}
			if err := queue.Add(x); err != nil {
				t.Fatal(err)
			}
			if !tt.inside {
				replace()
			}
			for informer.FIFOHasWork(queue) {
				ctx := &impatient{Context: t.Context()}
				var err error
				if tt.onByOne {
					err = queue.Pop(ctx, func(d informer.Deltas[*fifoObject]) error { return apply(d) })
				} else {
					err = queue.PopAll(ctx, func(b informer.Batch[*fifoObject]) error { return apply(b.Deltas...) })
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			if got := strings.Join(told, "\n"); got != tt.want || store.Len() != 0 {
				t.Errorf("the consumer was told %q and has %d objects, want %q and none", got, store.Len(), tt.want)
			}
		})
	}
}

// Case 15 (k8s#130767, argo-cd#8172; promise 1): 64 readers are in the middle of
// lists of everything, and stay there: 5000 updates are applied meanwhile, each
// at once, so that no event ever waits for a reader.
func TestCase15ListersAndUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := 10_000
		if *fullSize {
			objects = 100_000
		}
		source := newPushSource[*tiny]()
		inf := startOf(t, source, informer.Options{})
		byName, err := informer.AddIndex(inf, "name", func(o *tiny) (string, bool) { return o.name, true })
		if err != nil {
			t.Fatal(err)
		}
		objs := tinies(objects)
		for _, obj := range objs {
			source.events <- informer.EventOf(informer.EventAdded, obj)
		}
		synctest.Wait()
		gate, over := make(chan struct{}), make(chan int)
		for i := range 64 {
			go func() {
				seen := 0
				for range inf.All() {
					if seen++; seen == 1+i*objects/64 {
						<-gate
					}
				}
				over <- seen
			}()
		}
		synctest.Wait() // all are in the middle
		for i := range 5000 {
			version := fmt.Sprint(2 + i)
			obj := &tiny{name: objs[i*7%objects].name, version: version}
			source.events <- informer.EventOf(informer.EventModified, obj)
			synctest.Wait()
			if got, ok := inf.Get(informer.KeyOf(obj)); !ok || got != obj || inf.Version() != version {
				t.Fatalf("update %d is not applied while readers are at work", i)
			}
			for got := range byName.Get(obj.name) {
				if got != obj {
					t.Fatalf("the index has version %s of an object at %s", got.version, version)
				}
			}
		}
		close(gate)
		for range 64 {
			if seen := <-over; seen != objects {
				t.Errorf("a reader saw %d of %d objects", seen, objects)
			}
		}
	})
}

// Case 15, the price (k8s#130767; promise 1): a write after somebody has looked
// copies what it touches, whatever the size of the store.
func TestCase15CopiesLittle(t *testing.T) {
	const writes = 1000
	for _, n := range []int{1000, 100_000} {
		x := informer.NewIndexer[*tiny](informer.IndexerOptions{})
		objs := tinies(n)
		if err := x.Replace(objs, "1"); err != nil {
			t.Fatal(err)
		}
		var next []*tiny
		for i := range writes {
			next = append(next, &tiny{name: objs[i*17%n].name, version: "2"})
		}
		bytes := allocatedBytes(func() {
			for _, obj := range next {
				x.Snapshot()
				if err := x.Update(obj); err != nil {
					t.Fatal(err)
				}
			}
		}) / writes
		if bytes > 8<<10 {
			t.Errorf("with %d objects, a write allocates %d bytes", n, bytes)
		}
	}
}

// labelled is an object that counts how often anybody looks at it.
type labelled struct {
	key   informer.Key
	app   string
	looks *atomic.Int64
}

func (o *labelled) GetNamespace() string       { o.looks.Add(1); return o.key.Namespace }
func (o *labelled) GetName() string            { o.looks.Add(1); return o.key.Name }
func (o *labelled) GetUID() types.UID          { o.looks.Add(1); return types.UID(o.key.Name) }
func (o *labelled) GetResourceVersion() string { o.looks.Add(1); return "1" }

// Case 16 (grove#655, agent-sandbox#1099; promise 6): 100,000 objects, one of
// which matches by an index on label and namespace together: a query looks at no
// other, and takes less than 10 µs.
func TestCase16FindsOneOfMany(t *testing.T) {
	type place struct{ namespace, app string }
	var looks atomic.Int64
	x := informer.NewIndexer[*labelled](informer.IndexerOptions{})
	calls := 0
	index, err := informer.AddIndex(x, "app", func(o *labelled) (place, bool) {
		calls++
		return place{o.key.Namespace, o.app}, true
	})
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	objs := make([]*labelled, n)
	for i := range objs {
		objs[i] = &labelled{informer.Key{Namespace: fmt.Sprint("ns-", i%100), Name: fmt.Sprint("pod-", i)}, fmt.Sprint("app-", i%1000), &looks}
	}
	objs[777].app = "wanted"
	if err := x.Replace(objs, "1"); err != nil {
		t.Fatal(err)
	}
	looks.Store(0)
	calls = 0
	best := time.Hour
	for range 1000 {
		began := time.Now()
		found := 0
		for obj := range index.Get(place{"ns-77", "wanted"}) {
			if obj != objs[777] {
				t.Fatalf("found %v", obj.key)
			}
			found++
		}
		best = min(best, time.Since(began))
		if found != 1 {
			t.Fatalf("found %d objects, want 1", found)
		}
	}
	if looks.Load() != 0 || calls != 0 || best > 10*time.Microsecond {
		t.Errorf("1000 queries looked at objects %d times, called the index function %d times; the fastest took %v", looks.Load(), calls, best)
	}
	if n := index.Len(place{"ns-76", "wanted"}); n != 0 {
		t.Errorf("in another namespace there are %d", n)
	}
}

// Case 22 (k8s#43605, rancher#15684; promise 6): a panic of an index function on
// one object leaves the others right, and the index right for that object later.
func TestCase22IndexPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		var reports []string
		inf := run(t, source, informer.Options{OnFailure: func(f informer.Failure) error {
			reports = append(reports, f.Op+" "+f.Err.Error())
			return nil
		}})
		synctest.Wait()
		bad := ""
		index, err := informer.AddIndex(inf.Informer, "version", func(o *fifoObject) (string, bool) {
			if o.version == bad {
				panic("no such luck")
			}
			return o.version, true
		})
		if err != nil {
			t.Fatal(err)
		}
		bad = "12"
		source.write("a")
		source.write("b") // 12
		source.write("c")
		synctest.Wait()
		if len(reports) != 1 || !strings.Contains(reports[0], `index index "version"`) || !strings.Contains(reports[0], `"ns/b"`) {
			t.Errorf("reported were %q, want one about b", reports)
		}
		if index.Len("11") != 1 || index.Len("12") != 0 || index.Len("13") != 1 || inf.Len() != 3 {
			t.Errorf("the index has %d, %d, %d, the cache %d objects", index.Len("11"), index.Len("12"), index.Len("13"), inf.Len())
		}
		source.write("b") // 14
		source.delete("a")
		synctest.Wait()
		if index.Len("14") != 1 || index.Len("11") != 0 || len(reports) != 1 {
			t.Errorf("later the index has %d of b and %d of a; reported were %q", index.Len("14"), index.Len("11"), reports)
		}
	})
}

// Case 31 (k8s#116432, k8s#124344, k8s#134928, karmada#3908; promise 12): a
// transform is called once for each object that is received, the final state of
// a deletion included; never for a deletion that a relist shows, and never for a
// resync.
func TestCase31TransformCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		source := newLiveSource()
		source.write("a") // 11
		source.write("b") // 12
		transformed := informer.Transform(source, func(o *fifoObject) (*fifoObject, error) {
			calls[o.name+"@"+o.version]++
			return o, nil
		})
		inf := run(t, transformed, informer.Options{})
		resyncs := 0
		inf.handler(t, func(c informer.Change[*fifoObject]) {
			if c.Cause == informer.CauseResync {
				resyncs++
			}
		}, informer.HandlerOptions{Resync: time.Minute})
		synctest.Wait()
		source.write("a")  // 13
		source.delete("a") // 14
		synctest.Wait()
		source.forget(func(srv *fifoServer) { srv.delete("b"); srv.write("c") }) // 15, 16
		<-time.After(3 * time.Minute)
		synctest.Wait()
		want := map[string]int{"a@11": 1, "b@12": 1, "a@13": 1, "a@14": 1, "c@16": 1}
		if fmt.Sprint(calls) != fmt.Sprint(want) || resyncs == 0 {
			t.Errorf("the transform was called for %v, want %v; %d resyncs", calls, want, resyncs)
		}
	})
}

// createBetween is a source that runs a function between each list and the watch
// that follows.
type createBetween[T informer.Object] struct {
	informer.ListerWatcher[T]
	create func()
}

func (s createBetween[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	if opts.SendInitialEvents == nil {
		s.create()
	}
	return s.ListerWatcher.Watch(ctx, opts)
}

// Case 32 (k8s#95897, k8s#123326, antrea#6461; promise 3): what is created between
// a list and the watch after it is not lost, with our fake server: 10,000 times.
func TestCase32CreateBetweenListAndWatch(t *testing.T) {
	rounds := 1000
	if *fullSize {
		rounds = 10_000
	}
	synctest.Test(t, func(t *testing.T) {
		srv := informertest.Start(t, informertest.Options{Intercept: refuseStreams})
		clientset, err := kubernetes.NewForConfig(srv.Config())
		if err != nil {
			t.Fatal(err)
		}
		rest := informer.FromREST[corev1.ConfigMap](clientset.CoreV1().RESTClient(),
			corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{})
		version := ""
		source := createBetween[*corev1.ConfigMap]{rest, func() {
			if version, err = srv.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-", Namespace: "default"}}); err != nil {
				t.Error(err)
			}
		}}
		for i := range rounds {
			inf, err := informer.New(source, informer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			done := make(chan error, 1)
			go func() { done <- inf.Run(ctx) }()
			if err := inf.WaitSynced(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if inf.Version() != version || inf.Len() != 1 {
				t.Fatalf("round %d: the cache has %d objects at %s, want the one that was created at %s", i, inf.Len(), inf.Version(), version)
			}
			for obj := range inf.All() {
				if _, err := srv.Delete(obj); err != nil {
					t.Fatal(err)
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Case 33 (k8s#135315, k8s#82446; promise 18): waits for a sync do not poll: in
// virtual time they take none, for one informer, for several, and for handlers.
func TestCase33WaitsTakeNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		first, second := newLiveSource(), newLiveSource()
		first.write("a")
		one, two := run(t, first, informer.Options{}), run(t, second, informer.Options{})
		reg := one.handler(t, func(informer.Change[*fifoObject]) {}, informer.HandlerOptions{})
		ctx, cancel := waitFor(time.Hour)
		defer cancel()
		if err := errors.Join(informer.WaitSynced(ctx, one.Informer, two.Informer), reg.WaitSynced(ctx)); err != nil {
			t.Fatal(err)
		}
		<-one.Synced()
		version := first.write("b")
		if err := one.WaitForResourceVersion(ctx, version); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the waits took %v", took)
		}
	})
}
