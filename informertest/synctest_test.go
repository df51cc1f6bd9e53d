package informertest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// How to test a program that watches: with a server in memory and inside a
// bubble, where a day takes no time. What is tested here is that an informer
// still follows after a day of silence, with no failure and no second list in
// between.
func TestAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.Start(t, informertest.Options{Record: 1000})
		clientset, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		maps, err := informer.New(
			informer.FromClient[*corev1.ConfigMap](clientset.CoreV1().ConfigMaps("")),
			informer.Options{OnFailure: func(f informer.Failure) error { return f.Err }})
		if err != nil {
			t.Fatal(err)
		}
		// The context of the test ends before its server does.
		done := make(chan error)
		go func() { done <- maps.Run(t.Context()) }()
		t.Cleanup(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		if err := maps.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}

		<-time.After(24 * time.Hour)
		version, err := server.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := maps.WaitForResourceVersion(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		if _, ok := maps.Get(informer.Key{Namespace: "default", Name: "late"}); !ok {
			t.Error("the object that was created last is not in the cache")
		}
		lists := 0
		for _, request := range server.Requests() {
			if request.Query.Get("sendInitialEvents") == "true" {
				lists++
			}
		}
		if lists != 1 {
			t.Errorf("the collection was listed %d times, want once", lists)
		}
	})
}

// How to test what a handler does with a difficult course of events: a script
// says what the server sends, request by request. Here the watch expires, and
// the list after it lacks an object that nobody has seen deleted.
func TestScriptedExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informertest.NewScript(t, informertest.NewObject,
			"stream a@5 b@6 end 10 expired",
			"stream?resourceVersion=10 b@6 c@11 end 20 hang")
		objects, err := informer.New[*informertest.Object](source, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		told := make(map[string]string)
		_, err = objects.AddHandler(func(c informer.Change[*informertest.Object]) {
			told[c.Key.Name] = fmt.Sprintf("%s %v:%v", told[c.Key.Name], c.Type, c.Cause)
		}, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- objects.Run(t.Context()) }()
		t.Cleanup(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})

		<-time.After(time.Minute)
		synctest.Wait() // until the handler has nothing to do
		want := map[string]string{"a": " Added:Initial Deleted:Relist", "b": " Added:Initial", "c": " Added:Relist"}
		if fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("the handler was told %v, want %v", told, want)
		}
		if left := source.Left(); len(left) > 0 {
			t.Errorf("these lines were not used: %q", left)
		}
	})
}
