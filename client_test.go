package informer_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/seed-99a027e8/informer"
)

// clientStub is a client whose answers are functions.
type clientStub[L runtime.Object] struct {
	list  func(context.Context, metav1.ListOptions) (L, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func (c *clientStub[L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	return c.list(ctx, opts)
}

func (c *clientStub[L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return c.watch(ctx, opts)
}

// clientWatcher is a watcher with a goroutine that sends what it has, and then
// waits for Stop.
type clientWatcher struct {
	results chan watch.Event
	stop    chan struct{}
	stopped atomic.Bool
}

func newClientWatcher(close bool, events ...watch.Event) *clientWatcher {
	w := &clientWatcher{results: make(chan watch.Event), stop: make(chan struct{})}
	go w.run(close, events)
	return w
}

func (w *clientWatcher) run(done bool, events []watch.Event) {
	defer close(w.results)
	for _, ev := range events {
		w.results <- ev // without a look at stop: who stops must drain
	}
	if !done {
		<-w.stop
	}
}

func (w *clientWatcher) Stop() {
	if !w.stopped.Swap(true) {
		close(w.stop)
	}
}

func (w *clientWatcher) ResultChan() <-chan watch.Event { return w.results }

func clientPod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "u", ResourceVersion: version}}
}

// clientWatching returns a source whose watches send events and then close.
func clientWatching(events ...watch.Event) informer.ListerWatcher[*corev1.Pod] {
	return informer.FromClient[*corev1.Pod](&clientStub[*corev1.PodList]{
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return newClientWatcher(true, events...), nil
		},
	})
}

func clientListing[L runtime.Object](list L) informer.ListerWatcher[*corev1.Pod] {
	return informer.FromClient[*corev1.Pod](&clientStub[L]{
		list: func(context.Context, metav1.ListOptions) (L, error) { return list, nil },
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return newClientWatcher(false), nil
		},
	})
}

// TestClientList (promise 12): an item that is no object of the type, or has no
// name, is an error of its own; what cannot be a list is one error.
func TestClientList(t *testing.T) {
	version := metav1.ListMeta{ResourceVersion: "9", Continue: "c"}
	a, b := *clientPod("a", "5"), *clientPod("b", "6")
	noName := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "x", ResourceVersion: "4"}}
	tests := []struct {
		name   string
		source informer.ListerWatcher[*corev1.Pod]
		want   []string
	}{
		{"items", clientListing(&corev1.PodList{ListMeta: version, Items: []corev1.Pod{a, b}}),
			[]string{"Added n/a uid=u v=5", "Added n/b uid=u v=6", "End v=9 next=c"}},
		{"no name", clientListing(&corev1.PodList{ListMeta: version, Items: []corev1.Pod{noName, b}}),
			[]string{"Bad / uid=x v=4", "Added n/b uid=u v=6", "End v=9 next=c"}},
		{"empty", clientListing(&corev1.PodList{ListMeta: version}), []string{"End v=9 next=c"}},
		{"no version", clientListing(&corev1.PodList{}), []string{"error informer: the list has no resource version"}},
		{"no list", clientListing[*corev1.PodList](nil), []string{"error informer: the client for *v1.Pod returned no list"}},
		{"other kind", clientListing(&corev1.ServiceList{ListMeta: version}),
			[]string{"error informer: wrong type: the source is for *v1.Pod, the client sends *v1.Service in a *v1.ServiceList"}},
		{"untyped", clientListing(&unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "9"}}}),
			[]string{"error informer: wrong type: the source is for *v1.Pod, the client sends *unstructured.Unstructured in a…"}},
		{"not a list", clientListing(&corev1.Pod{}), []string{"error informer: list of *v1.Pod: …"}},
		{"pointers", clientListing(&podPointers{ListMeta: version, Items: []*corev1.Pod{&a, nil}}),
			[]string{"Added n/a uid=u v=5", "Bad / uid= v=", "End v=9 next=c"}},
		{"mixed", clientListing(&podMixed{ListMeta: version, Items: []runtime.Object{&corev1.Service{ObjectMeta: a.ObjectMeta}, &b}}),
			[]string{"Bad n/a uid=u v=5", "Added n/b uid=u v=6", "End v=9 next=c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantSteps(t, sourceEvents(tt.source.List(t.Context(), metav1.ListOptions{})), tt.want...)
		})
	}
}

// podPointers and podMixed are lists as hand-written clients have them.
type podPointers struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*corev1.Pod
}

func (l *podPointers) DeepCopyObject() runtime.Object { return l }

type podMixed struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

func (l *podMixed) DeepCopyObject() runtime.Object { return l }

func clientEvent(t watch.EventType, obj runtime.Object) watch.Event {
	return watch.Event{Type: t, Object: obj}
}

// TestClientWatch (promises 12 and 20): bad objects are errors of their own, and
// a failure that a watch tells of is one, however it does.
func TestClientWatch(t *testing.T) {
	a := clientPod("a", "5")
	service := &corev1.Service{ObjectMeta: a.ObjectMeta}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	mark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}}
	status := apierrors.NewResourceExpired("old").Status()
	type events = []watch.Event
	tests := []struct {
		name   string
		events events
		want   []string
	}{
		{"types", events{clientEvent(watch.Added, a), clientEvent(watch.Modified, a), clientEvent(watch.Deleted, a), clientEvent(watch.Bookmark, mark)},
			[]string{"Added n/a uid=u v=5", "Modified n/a uid=u v=5", "Deleted n/a uid=u v=5 exact=true", "Bookmark v=8"}},
		{"initial state", events{clientEvent(watch.Added, a), clientEvent(watch.Bookmark, end), clientEvent(watch.Bookmark, end)},
			[]string{"Added n/a uid=u v=5", "End v=7 next=", "Bookmark v=7"}},
		{"error", events{clientEvent(watch.Error, &status), clientEvent(watch.Added, a)}, []string{"error old"}},
		{"status as object", events{clientEvent(watch.Added, &status)}, []string{"error old"}},
		{"error without status", events{clientEvent(watch.Error, nil)}, []string{"error informer: watch: …"}},
		{"error of another type", events{clientEvent(watch.Error, a)}, []string{"error informer: watch: an error event with a *v1.Pod"}},
		{"wrong type first", events{clientEvent(watch.Added, service), clientEvent(watch.Added, a)},
			[]string{"error informer: wrong type: the source is for *v1.Pod, the client sends *v1.Service"}},
		{"wrong type later", events{clientEvent(watch.Added, a), clientEvent(watch.Modified, service), clientEvent(watch.Deleted, service), clientEvent(watch.Added, a)},
			[]string{"Added n/a uid=u v=5", "Bad n/a uid=u v=5", "Deleted n/a uid=u v=5 exact=false", "Added n/a uid=u v=5"}},
		{"no object", events{clientEvent(watch.Added, nil), clientEvent(watch.Deleted, (*corev1.Pod)(nil)), clientEvent(watch.Added, a)},
			[]string{"Bad / uid= v=", "Bad / uid= v=", "Added n/a uid=u v=5"}},
		{"no name", events{clientEvent(watch.Added, &corev1.Pod{})}, []string{"Bad / uid= v="}},
		{"unknown type", events{clientEvent("RENAMED", a)}, []string{`error informer: watch: unknown event type "RENAMED"`}},
		{"bookmark of nothing", events{clientEvent(watch.Bookmark, nil)}, []string{"error informer: bookmark: …"}},
		{"nothing", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			yes := true
			source := clientWatching(tt.events...)
			wantSteps(t, sourceEvents(source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})), tt.want...)
		})
	}
	for _, err := range sourceErrors(clientWatching(watch.Event{Type: watch.Error, Object: &status}).Watch(t.Context(), metav1.ListOptions{})) {
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("%v is not recognised", err)
		}
	}
}

func TestClientErrors(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	source := informer.FromClient[*corev1.Pod](&clientStub[*corev1.PodList]{
		list:  func(context.Context, metav1.ListOptions) (*corev1.PodList, error) { return nil, forbidden },
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, forbidden },
	})
	errs := append(sourceErrors(source.List(t.Context(), metav1.ListOptions{})), sourceErrors(source.Watch(t.Context(), metav1.ListOptions{}))...)
	if len(errs) != 2 || !apierrors.IsForbidden(errs[0]) || !apierrors.IsForbidden(errs[1]) {
		t.Errorf("errors %v", errs)
	}
	source = informer.FromClient[*corev1.Pod](&clientStub[*corev1.PodList]{
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, nil },
	})
	wantSteps(t, sourceEvents(source.Watch(t.Context(), metav1.ListOptions{})), "error informer: the client for *v1.Pod returned no watcher")

	var none *clientStub[*corev1.PodList]
	for _, source := range []informer.ListerWatcher[*corev1.Pod]{
		informer.FromClient[*corev1.Pod](none),
		informer.FromClient[*corev1.Pod](typedcorev1.PodInterface(nil)),
	} {
		_, err := informer.NewPager(source)
		if err == nil || !strings.Contains(err.Error(), "the client for *v1.Pod is nil") {
			t.Errorf("error %v", err)
		}
	}
}

// TestClientOwnMemory is for promise 7: of a page of which one object is kept,
// the others are freed.
func TestClientOwnMemory(t *testing.T) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	var freed atomic.Int64
	const n = 100
	for i := range n {
		pod := clientPod(fmt.Sprint(i), "1")
		payload := new([1024]int64)
		goruntime.AddCleanup(payload, func(int) { freed.Add(1) }, i)
		pod.Spec.ActiveDeadlineSeconds = &payload[0]
		list.Items = append(list.Items, *pod)
	}
	goruntime.AddCleanup(&list.Items[0], func(int) { freed.Add(n) }, 0) // the array of all items
	source := clientListing(list)
	list = nil
	var kept *corev1.Pod
	for ev := range source.List(t.Context(), metav1.ListOptions{}) {
		if ev.Key.Name == "7" {
			kept = ev.Object
		}
	}
	// The stub still holds the list: what is freed now was cleared in it.
	for range 50 {
		goruntime.GC()
		if freed.Load() >= n-1 {
			break
		}
	}
	if got := freed.Load(); got != n-1 {
		t.Errorf("%d of %d objects were freed while one is kept and the list is held", got, n-1)
	}
	goruntime.KeepAlive(source)
	source = nil
	for range 50 {
		goruntime.GC()
		if freed.Load() >= 2*n-1 {
			break
		}
	}
	if got := freed.Load(); got != 2*n-1 {
		t.Error("the object that is kept keeps its page alive")
	}
	goruntime.KeepAlive(kept)
}

// TestClientFakes: with client-go's fakes a streaming list works, and nothing is
// lost between its list and its watch (CASES 6 and 32, k8s#95897).
func TestClientFakes(t *testing.T) {
	pods := podsGVR()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	partial := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		}
	}
	cs := fake.NewClientset(clientPod("a", ""))
	testClientFake(t, informer.FromClient[*corev1.Pod](cs.CoreV1().Pods("n")), func(name string) error {
		_, err := cs.CoreV1().Pods("n").Create(t.Context(), clientPod(name, ""), metav1.CreateOptions{})
		return err
	})
	dc := dynamicfake.NewSimpleDynamicClient(scheme, clientPod("a", ""))
	testClientFake(t, informer.FromClient[*unstructured.Unstructured](dc.Resource(pods).Namespace("n")), func(name string) error {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("Pod")
		u.SetName(name)
		_, err := dc.Resource(pods).Namespace("n").Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
	mc := metadatafake.NewSimpleMetadataClient(scheme, partial("a"))
	testClientFake(t, informer.FromClient[*metav1.PartialObjectMetadata](mc.Resource(pods).Namespace("n")), func(name string) error {
		return mc.Tracker().Create(pods, partial(name), "n")
	})
}

func testClientFake[T informer.Object](t *testing.T, source informer.ListerWatcher[T], create func(name string) error) {
	t.Helper()
	yes := true
	var steps []string
	var zero T
	for ev, err := range source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: "NotOlderThan"}) {
		steps = append(steps, strings.TrimSuffix(sourceStep(ev, err), " uid=u v="))
		if err != nil {
			break
		}
		switch ev.Key.Name {
		case "a": // between the list and the end of it
			if err := create("b"); err != nil {
				t.Fatal(err, steps)
			}
		case "b":
			if err := create("c"); err != nil {
				t.Fatal(err)
			}
		}
		if len(steps) > 9 {
			t.Fatal(steps)
		}
		if ev.Key.Name == "c" {
			break
		}
	}
	for i := range steps {
		steps[i], _, _ = strings.Cut(steps[i], " uid=")
	}
	want := []string{"Added n/a", "End v= next=", "Added n/b", "Added n/c"}
	t.Run(fmt.Sprintf("%T", zero), func(t *testing.T) {
		wantSteps(t, steps, want...)
		plain := sourceEvents(source.List(t.Context(), metav1.ListOptions{}))
		if len(plain) != 4 || !strings.HasPrefix(plain[3], "End v=") {
			t.Errorf("list: %q", plain)
		}
	})
}

// TestClientFakeWatchers: a client of the user's own is known as a fake by its
// watcher; before that, a list without version is an error. The versions of a
// fake are nothing to compare.
func TestClientFakeWatchers(t *testing.T) {
	for _, w := range []watch.Interface{watch.NewFakeWithChanSize(5, false), watch.NewRaceFreeFake()} {
		source := informer.FromClient[*corev1.Pod](&clientStub[*corev1.PodList]{
			list: func(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
				return &corev1.PodList{Items: []corev1.Pod{*clientPod("a", "7")}}, nil
			},
			watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return w, nil },
		})
		wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})), "error informer: the list has no resource version")
		yes := true
		var steps []string
		for ev, err := range source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}) {
			steps = append(steps, sourceStep(ev, err))
			switch f := w.(type) {
			case *watch.FakeWatcher:
				f.Modify(clientPod("a", "1"))
			case *watch.RaceFreeFakeWatcher:
				f.Modify(clientPod("a", "1"))
			}
			if len(steps) == 4 {
				break
			}
		}
		wantSteps(t, steps, "Added n/a uid=u v=", "End v= next=", "Modified n/a uid=u v=", "Modified n/a uid=u v=")
		wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})), "Added n/a uid=u v=7", "End v= next=")
	}
}

// TestClientFakeMany: client-go's fakes panic when a watch is to tell of more
// than 100 objects; so they are not asked to.
func TestClientFakeMany(t *testing.T) {
	cs := fake.NewClientset()
	for i := range 250 {
		if err := cs.Tracker().Add(clientPod(fmt.Sprint(i), "")); err != nil {
			t.Fatal(err)
		}
	}
	yes := true
	steps := 0
	for ev, err := range informer.FromClient[*corev1.Pod](cs.CoreV1().Pods("")).Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}) {
		if steps++; err != nil || ev.Type == informer.EventEnd {
			break
		}
	}
	if steps != 251 {
		t.Errorf("%d steps, want 251", steps)
	}
}

// TestClientFakeListFails: the error of the list behind a fake's streaming list
// is the error of the streaming list.
func TestClientFakeListFails(t *testing.T) {
	yes := true
	source := informer.FromClient[*corev1.Pod](&clientStub[*corev1.PodList]{
		list: func(_ context.Context, opts metav1.ListOptions) (*corev1.PodList, error) {
			return nil, fmt.Errorf("no: %+v", opts)
		},
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	})
	steps := sourceEvents(source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, LabelSelector: "a=b", FieldSelector: "c=d", AllowWatchBookmarks: true}))
	wantSteps(t, steps, fmt.Sprintf("error no: %+v", metav1.ListOptions{LabelSelector: "a=b", FieldSelector: "c=d"}))
}

// TestClientCancel is for promise 19: the end of the context ends a watch at
// once, though its watcher never reacts to anything.
func TestClientCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		never := make(chan watch.Event)
		source := informer.FromClient[*corev1.Pod](&clientStub[*corev1.PodList]{
			watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return watch.MockWatcher{StopFunc: func() {}, ResultChanFunc: func() <-chan watch.Event { return never }}, nil
			},
		})
		time.AfterFunc(time.Hour, cancel)
		start := time.Now()
		errs := sourceErrors(source.Watch(ctx, metav1.ListOptions{}))
		if took := time.Since(start); len(errs) != 1 || !errors.Is(errs[0], context.Canceled) || took > time.Hour+100*time.Millisecond {
			t.Errorf("errors %v after %v", errs, took)
		}
		close(never) // and the goroutine that drains ends
	})
}

// TestClientStop (promise 29): however a watch ends, the watcher is stopped,
// its channel drained and the request's context ended. A goroutine that is left
// behind is found by TestMain, and by the bubble.
func TestClientStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []string{"leave", "cancel", "error"} {
			ctx, cancel := context.WithCancel(t.Context())
			var w *clientWatcher
			var request context.Context
			source := informer.FromClient[*corev1.Pod](&clientStub[*corev1.PodList]{
				watch: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
					second := watch.Event{Type: watch.Added, Object: clientPod("b", "2")}
					if end == "error" {
						second.Type = "?"
					}
					request = ctx
					w = newClientWatcher(false, watch.Event{Type: watch.Added, Object: clientPod("a", "1")}, second, second, second)
					return w, nil
				},
			})
			steps := 0
			for range source.Watch(ctx, metav1.ListOptions{}) {
				if steps++; end == "cancel" {
					cancel()
				} else if end == "leave" {
					break
				}
			}
			if _, open := <-w.results; open || !w.stopped.Load() || request.Err() == nil || steps > 2 {
				t.Errorf("%s: open %t, stopped %t, request %v, %d steps", end, open, w.stopped.Load(), request.Err(), steps)
			}
			cancel()
		}
	})
}
