package informertest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// startServer runs a server, and returns a client and a function that ends both.
// In a test, informertest.Start is less work.
func startServer(opts informertest.Options) (*informertest.Server, kubernetes.Interface, func()) {
	srv, err := informertest.NewServer(opts)
	if err != nil {
		panic(err)
	}
	client, err := kubernetes.NewForConfig(srv.Config())
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := srv.Run(ctx); err != nil {
			panic(err)
		}
	})
	return srv, client, func() { cancel(); running.Wait() }
}

// A client that may not list at first, and then may: the failures are told, and
// in the end the cache is complete.
func ExampleServer_Inject() {
	srv, client, stop := startServer(informertest.Options{Record: 100})
	defer stop()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"}}
	if _, err := srv.Create(settings); err != nil {
		panic(err)
	}
	_, err := srv.Inject(informertest.Rule{Fault: "forbidden", Resource: "configmaps", Times: 2})
	if err != nil {
		panic(err)
	}

	maps, err := informer.New(
		informer.FromClient[*corev1.ConfigMap](client.CoreV1().ConfigMaps("")),
		informer.Options{
			MinBackoff: time.Millisecond,
			OnFailure: func(f informer.Failure) error {
				fmt.Println(f.Op, "failed, attempt", f.Attempt, "forbidden:", apierrors.IsForbidden(f.Err))
				return nil
			},
		})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- maps.Run(ctx) }()
	if err := maps.WaitSynced(ctx); err != nil {
		panic(err)
	}
	fmt.Println("synced with", maps.Len())
	cancel()
	if err := <-done; err != nil {
		panic(err)
	}
	for _, r := range srv.Requests().Struck() {
		fmt.Println(r.Verb, r.Status, r.Fault)
	}
	// Output:
	// streaming list failed, attempt 1 forbidden: true
	// list failed, attempt 2 forbidden: true
	// synced with 1
	// stream 403 forbidden
	// list 403 forbidden
}

// Half of the requests go wrong, in any of a few ways; the same seed makes the
// same ones go wrong.
func ExampleChaos() {
	srv, client, stop := startServer(informertest.Options{Record: 1000, Chaos: informertest.Chaos{
		Seed: 7, Rate: 0.5, Faults: []informertest.Fault{"drop", "cut", "expired", "internal", "close"},
	}})
	defer stop()
	maps, err := informer.New(
		informer.FromREST[corev1.ConfigMap](client.CoreV1().RESTClient(),
			corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{}),
		informer.Options{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- maps.Run(ctx) }()

	for i := range 100 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i), Namespace: "default"}}
		if _, err := srv.Create(cm); err != nil {
			panic(err)
		}
	}
	srv.Calm() // so that the last word is the truth
	err = maps.WaitForResourceVersion(ctx, srv.Version())
	fmt.Println(maps.Len(), "objects", err)
	cancel()
	if err := <-done; err != nil {
		panic(err)
	}
	// Output: 100 objects <nil>
}

// How to test a controller against an API server that fails: in a bubble, where
// the hours of an outage take no time. What is tested here is that a handler
// which copies objects misses nothing while the server is away, is not in its
// way when it comes back, and is told of what was deleted meanwhile.
func TestThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := informertest.Start(t, informertest.Options{Record: 10_000})
		maps, err := informer.New(fromREST(srv.Config()), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		copies := map[string]string{}
		_, err = maps.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
			OnAdd:    func(cm *corev1.ConfigMap, _ bool) { copies[cm.Name] = cm.Labels["v"] },
			OnUpdate: func(_, cm *corev1.ConfigMap) { copies[cm.Name] = cm.Labels["v"] },
			OnDelete: func(cm *corev1.ConfigMap, _ bool) { delete(copies, cm.Name) },
		}.Handle, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- maps.Run(t.Context()) }()
		t.Cleanup(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		write(t, srv, configMap("a", "v=1"), configMap("b", "v=1"))
		if err := maps.WaitForResourceVersion(t.Context(), srv.Version()); err != nil {
			t.Fatal(err)
		}

		// Three hours without a server, in which its history is lost.
		heal, err := srv.Inject(informertest.Rule{Fault: "refused"})
		if err != nil {
			t.Fatal(err)
		}
		srv.EndWatches()
		<-time.After(3 * time.Hour)
		update(t, srv, configMap("a", "v=2"))
		remove(t, srv, configMap("b"))
		write(t, srv, configMap("c", "v=1"))
		srv.Compact()
		if err := maps.WaitSynced(t.Context()); err != nil {
			t.Error("what was there is not there any more:", err)
		}
		if err := maps.Status().Err; err == nil {
			t.Error("Status does not say that the server is away")
		}
		heal()
		if err := maps.WaitForResourceVersion(t.Context(), srv.Version()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := map[string]string{"a": "2", "c": "1"}; fmt.Sprint(copies) != fmt.Sprint(want) {
			t.Errorf("the copies are %v, want %v", copies, want)
		}
		// Backoff reaches 30 s, and is random: so many requests, and no more.
		if n := len(srv.Requests().Struck()); n < 300 || n > 1000 {
			t.Errorf("%d requests in three hours", n)
		}
		if n := len(srv.Requests().Of("list")); n > 0 {
			t.Errorf("%d plain lists, want streaming ones only", n)
		}
	})
}
