package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/seed-99a027e8/informer"
)

// testStreamingListUnderChurn begins streaming lists one after the other while
// others write. Promises 2, 3, 8 and 14; case 10: each cache equals a direct
// list at the end, and so do the changes that its handler was told of.
func testStreamingListUnderChurn(t *testing.T, s *server) {
	const objects, perSecond, informers = 5000, 500, 4
	namespace := s.namespace("churn")
	maps := clientset(t, s.admin()).CoreV1().ConfigMaps(namespace)
	inParallel(t, objects, func(i int) error { return putMap(t.Context(), maps, i) })

	writer := startChurn(t, maps, objects, perSecond)
	var seen [informers]recorder
	var rigs [informers]*rig[*corev1.ConfigMap]
	for i := range rigs {
		config := seen[i].record(s.admin())
		source := mapsOf(t, config, namespace)
		if i%2 == 1 {
			source = restMapsOf(t, config, namespace)
		}
		rigs[i] = run(t, source, impatient())
		rigs[i].waitSynced()
	}
	// A reader that is slower than the writers, so that changes pile up behind
	// the list. The server may cut it off, so it may need more than one.
	slow := &slowSource[*corev1.ConfigMap]{ListerWatcher: mapsOf(t, s.admin(), namespace)}
	behind := run(t, slow, impatient())
	behind.waitSynced()
	writer.stop()
	t.Logf("%d writes in %v", writer.writes, writer.took.Round(time.Millisecond))

	convergesToMaps(behind, s, namespace)
	for i, r := range rigs {
		convergesToMaps(r, s, namespace)
		if streams, lists := len(seen[i].streamingLists()), len(seen[i].lists()); streams != 1 || lists != 0 {
			t.Errorf("informer %d: %d streaming and %d plain lists, want 1 and 0\n%s", i, streams, lists, &seen[i])
		}
		if status := r.Status(); status.Dropped != 0 || status.Skipped != 0 {
			t.Errorf("informer %d: %d events dropped and %d skipped, want none", i, status.Dropped, status.Skipped)
		}
	}
	if first := rigs[0].fold; first.changes() == first.count(informer.Added, informer.CauseInitial) {
		t.Error("nothing changed while the lists were streamed")
	}
}

// slowSource is a source whose reader takes its time over each event.
type slowSource[T informer.Object] struct{ informer.ListerWatcher[T] }

// Watch passes on about a thousand events a second.
func (s *slowSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ev, err := range s.ListerWatcher.Watch(ctx, opts) {
			<-tick.C
			if !yield(ev, err) {
				return
			}
		}
	}
}

// churn writes config maps at random until it is stopped.
type churn struct {
	stop   func()
	writes int           // valid after stop
	took   time.Duration // valid after stop
}

// startChurn updates, deletes and creates maps, as many a second as asked for
// or as the server can take. It ends with the test.
func startChurn(t testing.TB, maps typedcorev1.ConfigMapInterface, objects, perSecond int) *churn {
	ctx, cancel := context.WithCancel(t.Context())
	c := &churn{}
	const workers = 8
	var counts [workers]int
	var group sync.WaitGroup
	began := time.Now()
	for w := range workers {
		group.Go(func() {
			tick := time.NewTicker(workers * time.Second / time.Duration(perSecond))
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if err := writeAny(ctx, maps, rand.IntN(objects)); err != nil && ctx.Err() == nil {
					t.Errorf("churn: %v", err)
					return
				}
				counts[w]++
			}
		})
	}
	c.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		c.took = time.Since(began)
		for _, n := range counts {
			c.writes += n
		}
	})
	t.Cleanup(c.stop)
	return c
}

// writeAny updates, or deletes, or makes map i, which may be there or not.
func writeAny(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error {
	if rand.IntN(4) > 0 {
		return putMap(ctx, maps, i)
	}
	err := maps.Delete(ctx, mapName(i), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return putMap(ctx, maps, i)
	}
	return err
}

// putMap makes map i, or gives it new data.
func putMap(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: mapName(i)},
		Data:       map[string]string{"number": fmt.Sprint(i), "random": fmt.Sprint(rand.Uint64())},
	}
	_, err := maps.Update(ctx, m, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, m, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil // another writer was faster
	}
	return err
}

func mapName(i int) string { return fmt.Sprintf("map-%05d", i) }

// testReadYourWrites reads what was written, 1000 times, while others write.
// Promises 1 and 2; case 3 (cr#1349, cr#1464,
// argo-cd#6296).
func testReadYourWrites(t *testing.T, s *server) {
	const writes = 1000
	namespace := s.namespace("read-your-writes")
	maps := clientset(t, s.admin()).CoreV1().ConfigMaps(namespace)
	r := runMaps(t, s.admin(), namespace, informer.Options{})
	r.waitSynced()
	others := startChurn(t, maps, 50, 100)
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	mine, err := maps.Create(t.Context(), mine, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var longest time.Duration
	for i := range writes {
		next := mine.DeepCopy()
		next.Data = map[string]string{"i": fmt.Sprint(i)}
		if mine, err = maps.Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := r.WaitForResourceVersion(ctx, mine.ResourceVersion); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began))
		got, ok := r.Get(informer.KeyOf(mine))
		if !ok || got.Data["i"] != fmt.Sprint(i) {
			t.Fatalf("write %d, version %s: read %v %v, at version %s", i, mine.ResourceVersion, ok, got, r.Version())
		}
	}
	t.Logf("longest wait %v", longest)
	others.stop()
	convergesToMaps(r, s, namespace)

	// What cannot come is an error, not a hang.
	if err := r.WaitForResourceVersion(ctx, "not a version"); !errors.Is(err, informer.ErrNotComparable) {
		t.Errorf("wait for what is no version = %v, want ErrNotComparable", err)
	}
	r.stop()
	if err := r.WaitForResourceVersion(ctx, mine.ResourceVersion+"0"); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("wait after the end = %v, want ErrStopped", err)
	}
}
