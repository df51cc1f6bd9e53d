package informertest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// Promises 3, 9 and 20: whatever strikes a server by chance, an informer
// converges when it is well again, its handler's changes fold to its cache, it
// has not asked faster than it may, and nothing but its context ends it.
func TestChaosModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chaos := informertest.Chaos{
			Seed: rapid.Uint64().Draw(rt, "seed"),
			Rate: float64(rapid.IntRange(1, 10).Draw(rt, "rate")) / 10,
		}
		from := fromREST
		switch rapid.SampledFrom([]string{"REST", "client", "protobuf"}).Draw(rt, "source") {
		case "client":
			from = fromClient
		case "protobuf":
			from = fromProto
		}
		pageSize := rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(rt, "page size")
		writes := rapid.SliceOfN(rapid.IntRange(0, 59), 5, 60).Draw(rt, "writes")
		restores := rapid.Bool().Draw(rt, "restores")
		var problem string
		synctest.Test(t, func(t *testing.T) {
			problem = throughChaos(t, chaos, from, pageSize, writes, restores)
		})
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// throughChaos runs an informer while the objects are written, and returns what
// is wrong in the end.
func throughChaos(
	t *testing.T, chaos informertest.Chaos, from func(*rest.Config) informer.ListerWatcher[*corev1.ConfigMap],
	pageSize int, writes []int, restores bool,
) string {
	srv := informertest.Start(t, informertest.Options{Record: 100_000, Chaos: chaos})
	client := clientsetFor(t, srv)
	cache, err := informer.New(from(srv.Config()), informer.Options{PageSize: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	_, err = cache.AddHandler(func(c informer.Change[*corev1.ConfigMap]) {
		if told[c.Key.Name] = contentOf(c.New); c.Type == informer.Deleted {
			delete(told, c.Key.Name)
		}
	}, informer.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cache.Run(ctx) }()

	pauses := rand.New(rand.NewPCG(chaos.Seed, 0))
	points := []string{srv.Version()}
	for i, w := range writes {
		pass(time.Duration(pauses.IntN(60)) * time.Second)
		points = append(points, srv.Version())
		obj := configMap(fmt.Sprint("o", w%6), fmt.Sprint("v=", i))
		if _, err := srv.Create(obj); err == nil {
			continue
		}
		switch w % 4 {
		case 0:
			remove(t, srv, obj)
		case 1:
			_, err = srv.Recreate(obj)
		default:
			_, err = srv.Update(obj)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	srv.Calm()
	if restores {
		// Only now, and without a write after it: a server that is restored and
		// then written past a version cannot be told from one that was not. A
		// state that is forgotten cannot be restored, which is fine.
		_ = srv.Restore(points[pauses.IntN(len(points))])
	}
	pass(time.Hour) // the longest silence, and what follows
	synctest.Wait()
	var has, is []string
	for obj := range cache.All() {
		has = append(has, contentOf(obj))
	}
	requests := srv.Requests()
	cancel()
	if err := <-done; err != nil {
		return fmt.Sprintf("Run = %v", err)
	}
	list, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range list.Items {
		is = append(is, contentOf(&obj))
	}
	var folded []string
	for _, content := range told {
		folded = append(folded, content)
	}
	for _, all := range [][]string{has, is, folded} {
		slices.Sort(all)
	}
	if !slices.Equal(has, is) || !slices.Equal(has, folded) {
		return fmt.Sprintf("cache %v\nserver %v\nhandler %v\nrequests %s", has, is, folded, faultRow{}.requestsOf(requests))
	}
	checkPace(t, requests)
	return ""
}
