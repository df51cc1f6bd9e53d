package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/seed-99a027e8/informer"
)

// said is what one event of a list or watch says.
type said[T informer.Object] struct {
	event  string
	object T
}

// allKinds knows the types of all kinds that an API server serves.
func allKinds() *runtime.Scheme {
	all := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(all))
	utilruntime.Must(apiextensionsv1.AddToScheme(all))
	utilruntime.Must(apiregistrationv1.AddToScheme(all))
	return all
}

// A comparison is the test of one kind: all that is read through FromREST is
// deeply equal to what client-go's decoders make of it. What it reads is what is
// there or, if since is a version, what has happened since then. It returns how
// many objects or events that was.
type comparison func(t *testing.T, s *server, resource schema.GroupVersionResource, since string) int

// typed returns how many objects of a kind with that Go type there are, in both
// encodings, and fails unless they are equal.
func typed[E any, T interface {
	*E
	informer.Object
	runtime.Object
}](t *testing.T, s *server, resource schema.GroupVersionResource, since string) int {
	encodings := []string{"application/json", "application/vnd.kubernetes.protobuf"}
	counts := make([]int, len(encodings))
	var all sync.WaitGroup
	for i, encoding := range encodings {
		config := s.admin()
		group := resource.GroupVersion()
		config.GroupVersion, config.APIPath = &group, "/apis"
		if resource.Group == "" {
			config.APIPath = "/api"
		}
		config.NegotiatedSerializer = serializer.NewCodecFactory(allKinds()).WithoutConversion()
		config.ContentType = encoding
		client, err := rest.RESTClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		asked := rest.Interface(client)
		if encoding == "application/json" {
			asked = struct{ rest.Interface }{client} // of which FromREST does not know what it can do
		}
		all.Go(func() {
			counts[i] = compare(t, encoding, since,
				informer.FromREST[E, T](asked, resource, informer.RESTOptions{}),
				informer.FromClient[T](untypedClient{client, resource}))
		})
	}
	all.Wait()
	return slices.Min(counts)
}

// otherwise does the same without the Go type of the kind: with metadata only, and
// with unstructured objects.
func otherwise(t *testing.T, s *server, resource schema.GroupVersionResource, since string) {
	client := kubernetes.NewForConfigOrDie(s.admin()).CoreV1().RESTClient()
	var all sync.WaitGroup
	all.Go(func() {
		compare(t, "metadata", since,
			informer.FromREST[metav1.PartialObjectMetadata](client, resource, informer.RESTOptions{}),
			informer.FromClient[*metav1.PartialObjectMetadata](metadata.NewForConfigOrDie(s.admin()).Resource(resource)))
	})
	all.Go(func() {
		compare(t, "unstructured", since,
			informer.FromREST[unstructured.Unstructured](client, resource, informer.RESTOptions{}),
			informer.FromClient[*unstructured.Unstructured](dynamic.NewForConfigOrDie(s.admin()).Resource(resource)))
	})
	all.Wait()
}

// compare reads through both sources.
func compare[T informer.Object](t *testing.T, name, since string, ours, theirs informer.ListerWatcher[T]) (count int) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		if since == "" {
			count = sameObjects(t, ours, theirs)
		} else {
			count = sameEvents(t, since, ours, theirs)
		}
	})
	return count
}

// sameObjects compares lists and streaming lists. Some objects are written at any
// time, as the leases of the server.
func sameObjects[T informer.Object](t *testing.T, ours, theirs informer.ListerWatcher[T]) (count int) {
	eventually(t, "lists are equal", func(ctx context.Context) error {
		a, err1 := readAll(ours.List(ctx, metav1.ListOptions{}))
		b, err2 := readAll(theirs.List(ctx, metav1.ListOptions{}))
		count = len(a)
		return errors.Join(err1, err2, differ(a, b))
	})
	yes := true
	stream := metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	}
	eventually(t, "streaming lists are equal", func(ctx context.Context) error {
		a, err1 := readAll(ours.Watch(ctx, stream))
		b, err2 := readAll(theirs.Watch(ctx, stream))
		if len(a) != count {
			return fmt.Errorf("the stream has %d of %d objects", len(a), count)
		}
		return errors.Join(err1, err2, differ(a, b))
	})
	return count
}

// sameEvents compares two watches of a second.
func sameEvents[T informer.Object](t *testing.T, since string, ours, theirs informer.ListerWatcher[T]) int {
	second := int64(1)
	opts := metav1.ListOptions{ResourceVersion: since, TimeoutSeconds: &second}
	var a, b []said[T]
	var err1, err2 error
	var both sync.WaitGroup
	both.Go(func() { a, err1 = readAll(ours.Watch(t.Context(), opts)) })
	both.Go(func() { b, err2 = readAll(theirs.Watch(t.Context(), opts)) })
	both.Wait()
	n := min(len(a), len(b)) // what came as they ended was told to one only
	if err := errors.Join(err1, err2, differ(a[:n], b[:n])); err != nil {
		t.Error(err)
	}
	return n
}

// readAll returns what a sequence tells up to its end, or that of its initial
// state.
func readAll[T informer.Object](seq iter.Seq2[informer.Event[T], error]) (all []said[T], err error) {
	for ev, err := range seq {
		if err != nil {
			return nil, err
		}
		if ev.Type == informer.EventEnd {
			break
		}
		if ev.Type != informer.EventBookmark {
			all = append(all, said[T]{ev.Type.String(), ev.Object})
		}
	}
	return all, nil
}

// differ returns where ours and theirs differ.
func differ[T informer.Object](ours, theirs []said[T]) error {
	if len(ours) != len(theirs) {
		return fmt.Errorf("%d objects, client-go has %d", len(ours), len(theirs))
	}
	for i := range ours {
		if ours[i].event != theirs[i].event || !reflect.DeepEqual(ours[i].object, theirs[i].object) {
			return fmt.Errorf("%s %v and client-go's %s differ:\n%s", ours[i].event, informer.KeyOf(ours[i].object), theirs[i].event,
				cmp.Diff(theirs[i].object, ours[i].object, cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
	return nil
}

// untypedClient reads as the clientset of a kind does: through client-go's
// request, into client-go's decoders.
type untypedClient struct {
	client   rest.Interface
	resource schema.GroupVersionResource
}

func (c untypedClient) request(opts metav1.ListOptions) *rest.Request {
	return c.client.Get().Resource(c.resource.Resource).VersionedParams(&opts, runtime.NewParameterCodec(allKinds()))
}

func (c untypedClient) List(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return c.request(opts).Do(ctx).Get()
}

func (c untypedClient) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.request(opts).Watch(ctx)
}

// TestEqualsClientGo reads real objects of every kind that the server serves, as
// lists, streaming lists and watches, in JSON and in protobuf. What FromREST makes
// of them is deeply equal to what client-go does. Promise 12 relies on it.
func TestEqualsClientGo(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{flags: []string{"--runtime-config=api/all=true"}})
	s.namespace(kindsNamespace)
	served := servedKinds(t, s) // before there are kinds that nobody serves
	samples, refused := sampleObjects(t, s)
	for kind, err := range refused {
		t.Errorf("no %s: %v", kind, err)
	}
	var empty []string
	for resource, count := range compareAll(t, s, served, "") {
		if count == 0 {
			empty = append(empty, resource.String())
		}
	}
	slices.Sort(empty)
	t.Logf("%d kinds are served, in all versions, and there are objects of %d; of these there are none: %q",
		len(served), len(served)-len(empty), empty)
	if len(empty) > 0 {
		t.Error("kinds without an object")
	}
	since := createMap(t, s, "before").ResourceVersion
	changed := map[schema.GroupVersionResource]bool{}
	for _, made := range samples {
		changed[made.resource] = true
		if err := made.change(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for resource, count := range compareAll(t, s, served, since) {
		if count == 0 && changed[resource] {
			t.Errorf("no event of %v", resource)
		}
	}
}

// compareAll compares all kinds that are served, and returns how many objects or
// events there are of each.
func compareAll(
	t *testing.T, s *server, served []schema.GroupVersionResource, since string,
) map[schema.GroupVersionResource]int {
	tests := comparisons()
	counts := map[schema.GroupVersionResource]int{}
	var mu sync.Mutex // guards counts
	t.Run("since "+since, func(t *testing.T) {
		for _, resource := range served {
			test, ok := tests[resource]
			if !ok {
				t.Errorf("no test of %v", resource)
				continue
			}
			delete(tests, resource)
			t.Run(resource.GroupVersion().String()+"/"+resource.Resource, func(t *testing.T) {
				t.Parallel()
				s := s.with(t)
				var both sync.WaitGroup
				both.Go(func() { otherwise(t, s, resource, since) })
				count := test(t, s, resource, since)
				both.Wait()
				mu.Lock()
				defer mu.Unlock()
				counts[resource] = count
			})
		}
		for resource := range tests {
			t.Errorf("%v is not served", resource)
		}
	})
	return counts
}

// TestGzip reads a list that the server compresses if it is asked to, as client-go
// does unless told otherwise: both are equal, and neither is in memory as a whole
// before it is decoded (promise 7).
func TestGzip(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	for i := range 20 {
		big := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("big-%d", i)}, Data: map[string]string{"a": strings.Repeat("a text ", 20_000)}}
		if _, err := clientset(t, s.admin()).CoreV1().ConfigMaps("default").Create(t.Context(), big, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, encoding := range []string{"protobuf", "JSON"} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, plain %t", encoding, plain), func(t *testing.T) {
				var body countedBody
				config := s.admin()
				config.DisableCompression = plain
				config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return roundTrip(func(r *http.Request) (*http.Response, error) {
						answer, err := next.RoundTrip(r)
						if err == nil {
							body.ReadCloser, answer.Body, body.zipped = answer.Body, &body, answer.Uncompressed
						}
						return answer, err
					})
				})
				client := rest.Interface(clientset(t, config).CoreV1().RESTClient())
				if encoding == "JSON" {
					client = struct{ rest.Interface }{client}
				}
				source := informer.FromREST[corev1.ConfigMap](client, corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{Namespace: "default"})
				first := 0
				var ours []said[*corev1.ConfigMap]
				for ev, err := range source.List(t.Context(), metav1.ListOptions{}) {
					if err != nil {
						t.Fatal(err)
					}
					if first == 0 {
						first = body.read
					}
					if ev.Type == informer.EventAdded {
						ours = append(ours, said[*corev1.ConfigMap]{"Added", ev.Object})
					}
				}
				theirs, err := readAll(informer.FromClient[*corev1.ConfigMap](clientset(t, s.admin()).CoreV1().ConfigMaps("default")).List(t.Context(), metav1.ListOptions{}))
				if err := errors.Join(err, differ(ours, theirs)); err != nil {
					t.Error(err)
				}
				if body.zipped == plain || first > body.read/4 || len(ours) < 20 {
					t.Errorf("gzip %t; %d of %d bytes read before the first object", body.zipped, first, body.read)
				}
			})
		}
	}
}

// countedBody counts what is read.
type countedBody struct {
	io.ReadCloser
	read   int
	zipped bool
}

// Read reads.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += n
	return n, err
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip makes a request.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
