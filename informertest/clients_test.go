package informertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"

	"github.com/seed-99a027e8/informer/informertest"
)

func TestTypedClient(t *testing.T) {
	inBoth(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		ctx, client := t.Context(), clientsetFor(t, srv).AppsV1().Deployments("default")
		replicas := int32(3)
		created, err := client.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		}, metav1.CreateOptions{})
		if err != nil || created.UID == "" || *created.Spec.Replicas != 3 || created.Generation != 1 {
			t.Fatalf("Create = %+v, %v", created, err)
		}
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			stale := created.DeepCopy()
			stale.Status.Replicas = 2
			created, err = client.UpdateStatus(ctx, stale, metav1.UpdateOptions{})
			return err
		})
		if err != nil || created.Status.Replicas != 2 {
			t.Fatalf("UpdateStatus = %+v, %v", created, err)
		}
		patched, err := client.Patch(ctx, "d", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{})
		if err != nil || *patched.Spec.Replicas != 5 || patched.Generation != 2 || patched.Status.Replicas != 2 {
			t.Fatalf("Patch = %+v, %v", patched, err)
		}
		if err := client.Delete(ctx, "d", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []watch.EventType{watch.Modified, watch.Modified, watch.Deleted} {
			if event := <-w.ResultChan(); event.Type != want {
				t.Errorf("event = %v, want %v", event.Type, want)
			}
		}
		if _, err := client.Get(ctx, "d", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("Get = %v, want not found", err)
		}
		same, err := clientsetFor(t, srv).CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if same, err = clientsetFor(t, srv).CoreV1().Pods("default").Update(ctx, same, metav1.UpdateOptions{}); err != nil || same.ResourceVersion != srv.Version() {
			t.Errorf("Update that changes nothing = %v, %v", same, err)
		}
		if version := update(t, srv, same); version != same.ResourceVersion {
			t.Errorf("direct Update that changes nothing = %s, want %s", version, same.ResourceVersion)
		}
		if _, err := client.Apply(ctx, nil, metav1.ApplyOptions{}); err == nil {
			t.Error("Apply = nil, want an error")
		}
	})
}

// The errors that matter to readers are recognised by the client's predicates.
func TestTypedErrors(t *testing.T) {
	inBoth(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		ctx, client := t.Context(), clientsetFor(t, srv).CoreV1().ConfigMaps("default")
		old := write(t, srv, configMap("a"))
		write(t, srv, configMap("b"))
		srv.Compact()
		_, err := client.List(ctx, metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("List = %v, want expired", err)
		}
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: old})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if event := <-w.ResultChan(); !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
			t.Errorf("event = %v, want expired", event)
		}
		_, err = clientsetFor(t, srv).CoreV1().Pods("").Watch(ctx, metav1.ListOptions{SendInitialEvents: new(bool)})
		if !apierrors.IsInvalid(err) {
			t.Errorf("Watch = %v, want invalid", err)
		}
	})
}

func TestDynamicAndMetadataClients(t *testing.T) {
	inBoth(t, informertest.Options{Resources: widgets()}, func(t *testing.T, srv *informertest.Server) {
		ctx := t.Context()
		groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(srv.Config()))
		if err != nil {
			t.Fatal(err)
		}
		mapper := restmapper.NewDiscoveryRESTMapper(groups)
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
		if err != nil {
			t.Fatal(err)
		}
		if pods, err := mapper.KindFor(schema.GroupVersionResource{Resource: "pod"}); err != nil || pods.Kind != "Pod" {
			t.Errorf("KindFor(pod) = %v, %v", pods, err)
		}
		dyn, err := dynamic.NewForConfig(srv.Config())
		if err != nil {
			t.Fatal(err)
		}
		client := dyn.Resource(mapping.Resource).Namespace("default")
		w := &unstructured.Unstructured{}
		w.SetAPIVersion("example.com/v1")
		w.SetKind("Widget")
		w.SetName("w")
		w.SetLabels(map[string]string{"a": "b"})
		if _, err := client.Create(ctx, w, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].GetKind() != "Widget" {
			t.Errorf("List = %v, %v", list, err)
		}
		meta, err := metadata.NewForConfig(srv.Config())
		if err != nil {
			t.Fatal(err)
		}
		partial, err := meta.Resource(mapping.Resource).List(ctx, metav1.ListOptions{})
		if err != nil || len(partial.Items) != 1 || partial.Items[0].Labels["a"] != "b" {
			t.Errorf("metadata List = %v, %v", partial, err)
		}
		watching, err := meta.Resource(mapping.Resource).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watching.Stop()
		if event := <-watching.ResultChan(); event.Type != watch.Added || event.Object.(*metav1.PartialObjectMetadata).Name != "w" {
			t.Errorf("metadata event = %v", event)
		}
		one, err := meta.Resource(mapping.Resource).Namespace("default").Get(ctx, "w", metav1.GetOptions{})
		if err != nil || one.UID == "" {
			t.Errorf("metadata Get = %v, %v", one, err)
		}
		if err := meta.Resource(mapping.Resource).Namespace("default").Delete(ctx, "w", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// client-go's own informer, with streaming lists, is an independent witness: it
// follows the server through writes, expiries and hours of virtual time.
func TestClientGoInformer(t *testing.T) {
	inBubble(t, informertest.Options{Record: 1000, History: 50}, func(t *testing.T, srv *informertest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		clientset := clientsetFor(t, srv)
		for i := range 30 {
			write(t, srv, configMap(fmt.Sprintf("c%02d", i)))
		}
		store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
					return clientset.CoreV1().ConfigMaps("default").List(ctx, opts)
				},
				WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
					return clientset.CoreV1().ConfigMaps("default").Watch(ctx, opts)
				},
			}, clientset),
			ObjectType: &corev1.ConfigMap{}, Handler: cache.ResourceEventHandlerFuncs{},
		})
		done := make(chan struct{})
		go func() { defer close(done); controller.RunWithContext(ctx) }()
		if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
			t.Fatal("not synced")
		}
		streamed := srv.Requests()[0]
		if len(store.List()) != 30 || streamed.Query.Get("sendInitialEvents") != "true" || !streamed.Watch() {
			t.Errorf("%d objects after %+v, want 30 after a streaming list", len(store.List()), streamed)
		}
		for hour := range 5 {
			remove(t, srv, configMap(fmt.Sprintf("c%02d", hour)))
			update(t, srv, configMap(fmt.Sprintf("c%02d", hour+10), "changed=yes"))
			write(t, srv, configMap(fmt.Sprintf("new%d", hour)))
			pass(time.Hour)
		}
		synctest.Wait()
		for _, item := range store.List() {
			cm := item.(*corev1.ConfigMap)
			live, err := clientset.CoreV1().ConfigMaps("default").Get(ctx, cm.Name, metav1.GetOptions{})
			if err != nil || live.ResourceVersion != cm.ResourceVersion {
				t.Errorf("%s@%s in the cache, %s@%s on the server: %v", cm.Name, cm.ResourceVersion, live.Name, live.ResourceVersion, err)
			}
		}
		if got := controller.LastSyncResourceVersion(); len(store.List()) != 30 || got != srv.Version() {
			t.Errorf("cache holds %d objects at version %s, server is at %s", len(store.List()), got, srv.Version())
		}
		lists := 0
		for _, r := range srv.Requests() {
			if !r.Watch() && r.Path == configMaps {
				lists++
			}
		}
		if lists != 0 {
			t.Errorf("%d plain lists, want none", lists)
		}
		cancel()
		<-done
	})
}

// Leader election works on leases: one leads at a time, and it is succeeded.
func TestLeaderElection(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		leaders := make(chan string, 10)
		elect := func(name string) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", "lead", nil,
				clientsetFor(t, srv).CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
			if err != nil {
				t.Fatal(err)
			}
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
				ReleaseOnCancel: true, Name: name,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leaders <- name },
					OnStoppedLeading: func() {},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { defer close(done); elector.Run(ctx) }()
			return func() { cancel(); <-done }
		}
		stopOne := elect("one")
		if got := <-leaders; got != "one" {
			t.Fatalf("leader = %s", got)
		}
		stopTwo := elect("two")
		pass(10 * time.Minute)
		if len(leaders) != 0 {
			t.Error("two leaders at a time")
		}
		stopOne()
		if got := <-leaders; got != "two" {
			t.Fatalf("leader = %s", got)
		}
		stopTwo()
	})
}

// k8s#95897: with client-go's fakes, what is created between list and watch is
// lost. Here nothing is.
func TestNothingLostBetweenListAndWatch(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		ctx, client := t.Context(), clientsetFor(t, srv).CoreV1().ConfigMaps("default")
		for i := range 200 {
			list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("c%d", i)
			write(t, srv, configMap(name))
			w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if err != nil {
				t.Fatal(err)
			}
			if event := <-w.ResultChan(); event.Object.(*corev1.ConfigMap).Name != name {
				t.Fatalf("event = %v, want %s", event, name)
			}
			w.Stop()
		}
	})
}

// A request in flight when the test ends does not keep the server.
func TestCancelledRequest(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := clientsetFor(t, srv).CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "99999"})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("List = %v, want deadline exceeded", err)
		}
	})
}
