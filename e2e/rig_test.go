package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
)

// A rig is an informer under test, with a handler that checks its changes, and
// all its failures.
type rig[T informer.Object] struct {
	*informer.Informer[T]
	t      testing.TB
	fold   *folder[T]
	synced *informer.Registration
	stop   func() // ends the informer, and returns when it has ended

	mu     sync.Mutex // guards the field below
	failed []informer.Failure
}

// impatient are options for tests in which something fails: they wait as little
// as the library lets them.
func impatient() informer.Options {
	return informer.Options{MinBackoff: 50 * time.Millisecond, MaxBackoff: 500 * time.Millisecond}
}

// run starts an informer, which ends with the test.
func run[T informer.Object](t testing.TB, source informer.ListerWatcher[T], opts informer.Options) *rig[T] {
	t.Helper()
	r := &rig[T]{t: t, fold: newFolder[T](t)}
	opts.OnFailure = r.onFailure
	inf, err := informer.New(source, opts)
	if err != nil {
		t.Fatal(err)
	}
	r.Informer = inf
	if r.synced, err = inf.AddHandler(r.fold.handle, informer.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // the test's own ends too early for Cleanup
	ended := make(chan error, 1)
	go func() { ended <- inf.Run(ctx) }() // stop waits for it
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run = %v, want nil after a cancel", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Run has not returned 10s after the cancel")
		}
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("status %+v; failures %v", inf.Status(), r.failures())
		}
	})
	return r
}

// runMaps starts an informer of the config maps of a namespace.
func runMaps(t testing.TB, config *rest.Config, namespace string, opts informer.Options) *rig[*corev1.ConfigMap] {
	t.Helper()
	return run(t, mapsOf(t, config, namespace), opts)
}

// mapsOf returns a source of the config maps of a namespace.
func mapsOf(t testing.TB, config *rest.Config, namespace string) informer.ListerWatcher[*corev1.ConfigMap] {
	t.Helper()
	return informer.FromClient[*corev1.ConfigMap](clientset(t, config).CoreV1().ConfigMaps(namespace))
}

func (r *rig[T]) onFailure(f informer.Failure) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, f)
	return nil
}

// failures returns the failures so far.
func (r *rig[T]) failures() []informer.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failed)
}

// waitSynced waits until the handler has been told of the first list.
func (r *rig[T]) waitSynced() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if err := r.WaitSynced(ctx); err != nil {
		r.t.Fatal(err)
	}
	if err := r.synced.WaitSynced(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// converges waits until the cache holds exactly the objects of list, in their
// versions, and checks that they are deeply equal to them, and that the changes
// fold to the same (promise 3). Nobody may write meanwhile.
func converges[T informer.Object](r *rig[T], list func() []T) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 90*time.Second)
	defer cancel()
	want := byKey(list())
	same := func(have informer.Reader[T]) bool {
		return difference(want, byKey(have.List())) == nil
	}
	if err := r.WaitUntil(ctx, same); err != nil {
		r.t.Errorf("the cache is not what the server has: %v: %v", difference(want, byKey(r.List())), err)
		return
	}
	deeplyEqual(r.t, r.Reader, want)
	eventually(r.t, "the changes fold to the cache", func(context.Context) error {
		return difference(want, r.fold.copied())
	})
}

// deeplyEqual checks that each object is in the cache, to the last field.
func deeplyEqual[T informer.Object](t testing.TB, have informer.Reader[T], want map[informer.Key]T) {
	t.Helper()
	if err := difference(want, byKey(have.List())); err != nil {
		t.Error(err)
		return
	}
	for key, obj := range want {
		if got, _ := have.Get(key); !reflect.DeepEqual(got, obj) {
			t.Errorf("%v in the cache (-) and in a list (+):\n%s", key, cmp.Diff(got, obj))
			return
		}
	}
}

// convergesToMaps is converges for the config maps of a namespace.
func convergesToMaps(r *rig[*corev1.ConfigMap], s *server, namespace string) {
	r.t.Helper()
	converges(r, func() []*corev1.ConfigMap {
		r.t.Helper()
		list, err := clientset(r.t, s.admin()).CoreV1().ConfigMaps(namespace).List(r.t.Context(), metav1.ListOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		return pointers(list.Items)
	})
}

func byKey[T informer.Object](objects []T) map[informer.Key]T {
	m := make(map[informer.Key]T, len(objects))
	for _, obj := range objects {
		m[informer.KeyOf(obj)] = obj
	}
	return m
}

func pointers[E any](items []E) []*E {
	list := make([]*E, len(items))
	for i := range items {
		list[i] = &items[i]
	}
	return list
}

// difference returns an error that names a key which is not in both maps, or
// not in the same version.
func difference[T informer.Object](want, have map[informer.Key]T) error {
	for key, obj := range want {
		got, ok := have[key]
		if !ok {
			return fmt.Errorf("%v is missing (%d objects, want %d)", key, len(have), len(want))
		}
		if !sameVersion(got, obj) {
			return fmt.Errorf("%v has version %q, want %q", key, got.GetResourceVersion(), obj.GetResourceVersion())
		}
	}
	for key := range have {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("%v should not be there (%d objects, want %d)", key, len(have), len(want))
		}
	}
	return nil
}

// listsFollowExpiries checks promise 11: one list to begin with, and one for
// each answer of 410; none of them a failure. A list of one object, which asks
// whether the server still is where it was, does not count.
func listsFollowExpiries[T informer.Object](r *rig[T], seen *recorder) {
	r.t.Helper()
	lists := len(seen.lists()) + len(seen.streamingLists()) - seen.probes()
	if want := 1 + len(seen.expired()); lists != want {
		r.t.Errorf("%d lists, want %d: one, and one for each 410\n%s", lists, want, seen)
	}
	for _, f := range r.failures() {
		if apierrors.IsResourceExpired(f.Err) || apierrors.IsGone(f.Err) {
			r.t.Errorf("an expiry was reported as a failure: %v", f)
		}
	}
}

// namespace makes a namespace for a test of its own.
func (s *server) namespace(name string) string {
	s.t.Helper()
	_, err := clientset(s.t, s.admin()).CoreV1().Namespaces().Create(s.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return name
}

// with returns s for a subtest that runs beside others: what goes wrong fails
// that one. The server may not be stopped through it.
func (s *server) with(t testing.TB) *server {
	shared := *s
	shared.t = t
	return &shared
}

// inParallel calls do for 0 to n-1, from several goroutines, and fails the test
// with the first error.
func inParallel(t testing.TB, n int, do func(i int) error) {
	t.Helper()
	const workers = 8
	var group sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = do(i)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
