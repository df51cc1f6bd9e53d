package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/seed-99a027e8/informer"
)

// testCustomResource runs an informer of a resource whose definition comes
// later, goes away, and comes again. Promises 5, 18, 20 and 21; cases 4 (cr#2231,
// k8s#57074) and 9 (k8s#79610, octant#534).
func testCustomResource(t *testing.T, s *server) {
	widgets := schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "widgets"}
	namespace := s.namespace("widgets")
	client := dynamic.NewForConfigOrDie(s.admin()).Resource(widgets).Namespace(namespace)
	opts := impatient()
	opts.WatchTimeout = 2 * time.Second
	r := run(t, informer.FromClient[*unstructured.Unstructured](client), opts)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := r.WaitSynced(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("WaitSynced before there is a definition = %v, want not found", err)
	}
	gone := func(context.Context) error {
		if status := r.Status(); status.State != informer.StateGone || !apierrors.IsNotFound(status.Err) {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	}
	eventually(t, "the resource is gone before it comes", gone)
	list := func() []*unstructured.Unstructured {
		t.Helper()
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pointers(list.Items)
	}
	create := func(names ...string) {
		t.Helper()
		for _, name := range names {
			widget := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "e2e.example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"name": name}, "size": int64(7), "ratio": 1.5,
			}}
			eventually(t, "a widget is accepted", func(ctx context.Context) error {
				_, err := client.Create(ctx, widget, metav1.CreateOptions{})
				return err
			})
		}
	}

	s.createCRD(widgets, "Widget")
	create("a", "b", "c")
	r.waitSynced()
	converges(r, list)

	s.deleteCRD(widgets)
	eventually(t, "the resource is gone", gone)
	t.Logf("%d of 3 objects are kept, the others were seen to be deleted", r.Len())

	s.createCRD(widgets, "Widget")
	create("b", "d")
	converges(r, list)
	create("e")
	converges(r, list)
	if got := r.fold.count(informer.Updated, informer.CauseRelist); got != 0 {
		t.Errorf("%d updates by a list, want a new UID delivered as a deletion and an addition", got)
	}
}

// testEventsEnd lets many Events end at one revision. Promise 4: an event of
// equal version is applied, not dropped.
func testEventsEnd(t *testing.T, s *server) {
	const events = 300
	namespace := s.namespace("events")
	client := clientset(t, s.admin()).CoreV1().Events(namespace)
	r := run(t, informer.FromClient[*corev1.Event](client), informer.Options{})
	r.waitSynced()
	inParallel(t, events, func(i int) error {
		_, err := client.Create(t.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("event-%d", i)},
			InvolvedObject: corev1.ObjectReference{Namespace: namespace, Name: "x", Kind: "ConfigMap"},
		}, metav1.CreateOptions{})
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	full := func(have informer.Reader[*corev1.Event]) bool { return have.Len() == events }
	if err := r.WaitUntil(ctx, full); err != nil {
		t.Fatal(err)
	}
	empty := func(have informer.Reader[*corev1.Event]) bool { return have.Len() == 0 }
	if err := r.WaitUntil(ctx, empty); err != nil {
		t.Fatalf("%d events left: %v", r.Len(), err)
	}
	eventually(t, "the handler has none left", func(context.Context) error {
		if n := len(r.fold.copied()); n > 0 {
			return errors.New("it has some")
		}
		return nil
	})
	at := r.fold.mostDeletedAtOnce()
	t.Logf("up to %d of %d events ended at one revision", at, events)
	if at < 2 {
		t.Error("no two events ended at one revision: the test shows nothing")
	}
	if dropped := r.Status().Dropped; dropped != 0 {
		t.Errorf("%d events of the watch were dropped, want 0", dropped)
	}
}
