package e2e_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/seed-99a027e8/informer"
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// TestSyncTimes syncs 10,000 pods in every way that there is, and client-go's
// informers on the same data beside it, and logs how long each took. Promises 3
// and 8: the cache is what client-go decodes from a direct list, to the last
// field. It runs alone, as it measures time; under the race detector, where
// that means little, some of it is left out.
func TestSyncTimes(t *testing.T) {
	const pods = 10_000
	s := startServer(t, serverOptions{})
	began := time.Now()
	createPods(t, s, pods)
	t.Logf("%d pods created in %v", pods, time.Since(began).Round(time.Millisecond))

	var times timeTable
	typed, untyped, meta := listPods(t, s)
	// Clientsets speak protobuf unless told otherwise, and so does FromREST.
	t.Run("streamed", func(t *testing.T) {
		c := podClients{t, s.admin()}
		once := syncCheck{streams: 1}
		measure(t, &times, "typed", c.typed(""), typed, once)
		measure(t, &times, "FromREST", c.rest(), typed, once)
		measure(t, &times, "unstructured", c.dynamic(), untyped, once)
		measure(t, &times, "FromREST, unstructured", restPods[unstructured.Unstructured](c), untyped, once)
		measure(t, &times, "metadata", c.metadata(), meta, once)
		measure(t, &times, "FromREST, metadata", restPods[metav1.PartialObjectMetadata](c), meta, once)
		if !raceDetector {
			measure(t, &times, "typed, JSON", c.typed("application/json"), typed, once)
		}
	})
	if !raceDetector {
		t.Run("client-go", func(t *testing.T) { measureClientGo(t, &times, s.admin(), pods) })
	}

	// The same data behind a server that refuses streaming lists.
	s.stop()
	s.opts.flags = []string{"--feature-gates=WatchList=false"}
	s.start()
	t.Run("plain", func(t *testing.T) {
		c := podClients{t, s.admin()}
		whole := syncCheck{streams: 1, lists: 1}
		paged := syncCheck{streams: 1, lists: pods / 500, opts: informer.Options{PageSize: 500}}
		measure(t, &times, "typed, one page", c.typed(""), typed, whole)
		measure(t, &times, "typed, paged", c.typed(""), typed, paged)
		measure(t, &times, "FromREST, paged", c.rest(), typed, paged)
		measure(t, &times, "metadata, paged", c.metadata(), meta, paged)
		if !raceDetector {
			measure(t, &times, "unstructured, paged", c.dynamic(), untyped, paged)
		}
	})
	t.Logf("sync of %d pods\n%s", pods, &times)
}

// syncCheck says how an informer is to sync.
type syncCheck struct {
	opts           informer.Options
	streams, lists int // requests
}

// A sourceOf makes a source with a recorder of its requests.
type sourceOf[T informer.Object] func(*recorder) informer.ListerWatcher[T]

// measure syncs an informer and compares its cache with a direct list.
func measure[T informer.Object](t *testing.T, to *timeTable, name string, source sourceOf[T], list []T, want syncCheck) {
	t.Run(name, func(t *testing.T) {
		var seen recorder
		inf, err := informer.New(source(&seen), want.opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		to.measure(t.Name(), func() {
			go func() { ended <- inf.Run(ctx) }()
			if err := inf.WaitSynced(ctx); err != nil {
				t.Fatalf("%v\n%s", err, &seen)
			}
		})
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if streams, lists := len(seen.streamingLists()), len(seen.lists()); streams != want.streams || lists != want.lists {
			t.Errorf("%d streaming lists and %d pages, want %d and %d\n%s",
				streams, lists, want.streams, want.lists, &seen)
		}
		deeplyEqual(t, inf.Reader, byKey(list))
	})
}

// measureClientGo does the same with client-go's informers, as they come.
func measureClientGo(t *testing.T, to *timeTable, config *rest.Config, pods int) {
	one := func(name string, inf cache.SharedIndexInformer) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			ended := make(chan struct{})
			to.measure(t.Name(), func() {
				go func() {
					defer close(ended)
					inf.RunWithContext(ctx)
				}()
				<-inf.HasSyncedChecker().Done()
			})
			cancel()
			<-ended
			if got := len(inf.GetStore().List()); got != pods {
				t.Errorf("client-go has %d pods, want %d", got, pods)
			}
		})
	}
	inJSON := rest.CopyConfig(config)
	inJSON.ContentType = "application/json"
	one("typed", informers.NewSharedInformerFactory(clientset(t, config), 0).Core().V1().Pods().Informer())
	one("typed, JSON", informers.NewSharedInformerFactory(clientset(t, inJSON), 0).Core().V1().Pods().Informer())
	one("unstructured", dynamicinformer.NewDynamicSharedInformerFactory(
		dynamic.NewForConfigOrDie(config), 0).ForResource(podResource).Informer())
	one("metadata", metadatainformer.NewSharedInformerFactory(
		metadata.NewForConfigOrDie(config), 0).ForResource(podResource).Informer())
}

// timeTable is a small table of what was measured.
type timeTable struct{ rows strings.Builder }

// measure adds how long do took, and how much it allocated.
func (to *timeTable) measure(name string, do func()) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	do()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	_, name, _ = strings.Cut(name, "/")
	fmt.Fprintf(&to.rows, "%-40s %8d ms %6d MB allocated\n",
		name, took.Milliseconds(), (after.TotalAlloc-before.TotalAlloc)>>20)
}

// String returns the table.
func (to *timeTable) String() string { return to.rows.String() }

// podClients makes sources of all pods.
type podClients struct {
	t      testing.TB
	config *rest.Config
}

func (c podClients) typed(contentType string) sourceOf[*corev1.Pod] {
	return func(seen *recorder) informer.ListerWatcher[*corev1.Pod] {
		config := seen.record(c.config)
		config.ContentType = contentType
		return informer.FromClient[*corev1.Pod](clientset(c.t, config).CoreV1().Pods(""))
	}
}

func (c podClients) dynamic() sourceOf[*unstructured.Unstructured] {
	return func(seen *recorder) informer.ListerWatcher[*unstructured.Unstructured] {
		client := dynamic.NewForConfigOrDie(seen.record(c.config))
		return informer.FromClient[*unstructured.Unstructured](client.Resource(podResource))
	}
}

func (c podClients) metadata() sourceOf[*metav1.PartialObjectMetadata] {
	return func(seen *recorder) informer.ListerWatcher[*metav1.PartialObjectMetadata] {
		client := metadata.NewForConfigOrDie(seen.record(c.config))
		return informer.FromClient[*metav1.PartialObjectMetadata](client.Resource(podResource))
	}
}

func (c podClients) rest() sourceOf[*corev1.Pod] { return restPods[corev1.Pod](c) }

func restPods[E any, T interface {
	*E
	informer.Object
}](c podClients) sourceOf[T] {
	return func(seen *recorder) informer.ListerWatcher[T] {
		client := clientset(c.t, seen.record(c.config)).CoreV1().RESTClient()
		return informer.FromREST[E, T](client, podResource, informer.RESTOptions{})
	}
}

// listPods lists all pods in the three ways that client-go has.
func listPods(t testing.TB, s *server) ([]*corev1.Pod, []*unstructured.Unstructured, []*metav1.PartialObjectMetadata) {
	t.Helper()
	typed, err := clientset(t, s.admin()).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfigOrDie(s.admin()).Resource(podResource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadata.NewForConfigOrDie(s.admin()).Resource(podResource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pointers(typed.Items), pointers(untyped.Items), pointers(meta.Items)
}

// createPods makes pods that have a bit of everything that is hard to decode.
func createPods(t testing.TB, s *server, n int) {
	t.Helper()
	client := clientset(t, s.admin())
	const namespaces = 10
	for i := range namespaces {
		s.namespace(fmt.Sprintf("pods-%d", i))
	}
	inParallel(t, n, func(i int) error { return createPod(t.Context(), client, fmt.Sprintf("pods-%d", i%namespaces), i) })
}

func createPod(ctx context.Context, client kubernetes.Interface, namespace string, i int) error {
	grace := int64(i % 60)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("pod-%05d", i),
			Labels: map[string]string{"app": fmt.Sprintf("app-%d", i%50), "tier": "web"},
			Annotations: map[string]string{
				"example.com/text": "quotes \" \\ and <html>, ünïcode \U0001F600, \u2028 and \x01",
				"example.com/long": strings.Repeat("x", i%2000),
			},
			Finalizers: []string{"example.com/never"},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			NodeSelector:                  map[string]string{"zone": fmt.Sprint(i % 3)},
			Containers: []corev1.Container{{
				Name: "main", Image: fmt.Sprintf("registry.example.com/app:%d", i%100),
				Env: []corev1.EnvVar{{Name: "INDEX", Value: fmt.Sprint(i)}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(i+1), resource.DecimalSI),
					corev1.ResourceMemory: *resource.NewQuantity(int64(i+1)<<20, resource.BinarySI),
				}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")},
				}},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}
