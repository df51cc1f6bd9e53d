package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// The tests of this file hold the real server to the suite that the fake one is
// held to: what it says is what the suite has to want.

var (
	mapResource    = corev1.SchemeGroupVersion.WithResource("configmaps")
	gizmoResource  = schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "gizmos"}
	absentResource = schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "absent"}
)

// gizmo is a custom resource, of which an object may not fit.
type gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size"`
}

// TestConformance runs the suite on the real server, through each kind of
// client. Cases 30 and 32 (client-go#1042, k8s#95897).
func TestConformance(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	s.createCRD(gizmoResource, "Gizmo")
	for _, test := range []struct {
		name string
		run  func(conformance)
	}{
		{"protobuf", func(c conformance) { conforms(c, c.typed("")) }},
		{"json", func(c conformance) { conforms(c, c.typed("application/json")) }},
		{"dynamic", func(c conformance) { conforms(c, c.dynamic()) }},
		{"metadata", func(c conformance) { conforms(c, c.metadata()) }},
		{"rest", func(c conformance) { conforms(c, restSource[corev1.ConfigMap](c)) }},
		{"rest-unstructured", func(c conformance) { conforms(c, restSource[unstructured.Unstructured](c)) }},
		{"rest-metadata", func(c conformance) { conforms(c, restSource[metav1.PartialObjectMetadata](c)) }},
		{"custom", func(c conformance) {
			c.resource, c.kind = gizmoResource, "Gizmo"
			conforms(c, c.dynamic())
		}},
		{"rest-custom", func(c conformance) {
			c.resource, c.kind, c.spoils = gizmoResource, "Gizmo", true
			conforms(c, restSource[gizmo](c))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(newConformance(t, s, test.name))
		})
	}
}

// TestConformanceCompacted runs the suite on a server without a watch cache,
// which forgets as soon as etcd is compacted.
func TestConformanceCompacted(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{flags: []string{"--watch-cache=false"}})
	s.createCRD(gizmoResource, "Gizmo")
	compacted := func(t *testing.T, name string) conformance {
		c := newConformance(t, s, name)
		c.skip = map[string]string{"watch/bookmarks": "without a watch cache they come when etcd reports progress: every ten minutes"}
		c.compact = func(context.Context) error {
			c.s.compact(c.s.currentRevision())
			return nil
		}
		return c
	}
	// One at a time: what one forgets, the other could not read.
	t.Run("protobuf", func(t *testing.T) {
		c := compacted(t, "protobuf")
		conforms(c, c.typed(""))
	})
	t.Run("rest-custom", func(t *testing.T) {
		c := compacted(t, "rest-custom")
		c.resource, c.kind, c.spoils = gizmoResource, "Gizmo", true
		conforms(c, restSource[gizmo](c))
	})
}

// conformance is a place on a server for a run of the suite.
type conformance struct {
	t         *testing.T
	s         *server
	namespace string
	resource  schema.GroupVersionResource
	kind      string
	spoils    bool // the source decodes objects one by one, to a type
	compact   func(context.Context) error
	skip      map[string]string
}

// newConformance returns one for config maps.
func newConformance(t *testing.T, s *server, name string) conformance {
	s = s.with(t)
	return conformance{t: t, s: s, namespace: s.namespace("conform-" + name), resource: mapResource, kind: "ConfigMap"}
}

// labelled is what a value can be read from.
type labelled interface {
	informer.Object
	GetLabels() map[string]string
}

// A sourceFor makes a source of a resource, nil if it cannot.
type sourceFor[T informer.Object] func(schema.GroupVersionResource) informer.ListerWatcher[T]

// conforms runs the suite on a source.
func conforms[T labelled](c conformance, source sourceFor[T]) {
	c.t.Helper()
	rig := informertest.Rig[T]{
		Source:  source(c.resource),
		Create:  c.create,
		Update:  c.update,
		Delete:  c.delete,
		Value:   func(obj T) string { return obj.GetLabels()["value"] },
		Compact: c.compact,
		Log:     c.t.Logf,
		Missing: source(absentResource),
		Select:  func(value string) string { return "value=" + value },
		Skip:    c.skip,
	}
	if c.spoils {
		rig.Spoil = c.spoil
	}
	if err := informertest.Conform(c.t.Context(), rig); err != nil {
		c.t.Error(err)
	}
}

// typed returns the source of a clientset, which knows no resource but its own.
func (c conformance) typed(contentType string) sourceFor[*corev1.ConfigMap] {
	config := c.s.plain()
	config.ContentType = contentType
	return func(r schema.GroupVersionResource) informer.ListerWatcher[*corev1.ConfigMap] {
		if r != mapResource {
			return nil
		}
		return mapsOf(c.t, config, c.namespace)
	}
}

func (c conformance) dynamic() sourceFor[*unstructured.Unstructured] {
	client := dynamic.NewForConfigOrDie(c.s.plain())
	return func(r schema.GroupVersionResource) informer.ListerWatcher[*unstructured.Unstructured] {
		return informer.FromClient[*unstructured.Unstructured](client.Resource(r).Namespace(c.namespace))
	}
}

func (c conformance) metadata() sourceFor[*metav1.PartialObjectMetadata] {
	client := metadata.NewForConfigOrDie(c.s.plain())
	return func(r schema.GroupVersionResource) informer.ListerWatcher[*metav1.PartialObjectMetadata] {
		return informer.FromClient[*metav1.PartialObjectMetadata](client.Resource(r).Namespace(c.namespace))
	}
}

// restSource returns sources that decode by themselves.
func restSource[E any, T interface {
	*E
	informer.Object
}](c conformance) sourceFor[T] {
	client := clientset(c.t, c.s.plain()).CoreV1().RESTClient()
	return func(r schema.GroupVersionResource) informer.ListerWatcher[T] {
		return informer.FromREST[E, T](client, r, informer.RESTOptions{Namespace: c.namespace})
	}
}

// objects returns a client to write with.
func (c conformance) objects() dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(c.s.admin()).Resource(c.resource).Namespace(c.namespace)
}

// content is what an object of a value has in it, beside its name.
func (c conformance) content(value string) map[string]any {
	content := map[string]any{"metadata": map[string]any{"labels": map[string]any{"value": value}}}
	if c.resource == mapResource {
		content["data"] = map[string]any{"value": value}
	} else {
		content["size"] = int64(7)
	}
	return content
}

func (c conformance) create(ctx context.Context, name, value string) (string, error) {
	obj := &unstructured.Unstructured{Object: c.content(value)}
	obj.SetGroupVersionKind(c.resource.GroupVersion().WithKind(c.kind))
	obj.SetName(name)
	made, err := c.objects().Create(ctx, obj, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.GetResourceVersion(), nil
}

func (c conformance) update(ctx context.Context, name, value string) (string, error) {
	return c.patch(ctx, name, c.content(value))
}

// spoil makes the size something that is no number.
func (c conformance) spoil(ctx context.Context, name string) (string, error) {
	return c.patch(ctx, name, map[string]any{"size": "no number"})
}

func (c conformance) patch(ctx context.Context, name string, content map[string]any) (string, error) {
	patch, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	changed, err := c.objects().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return "", err
	}
	return changed.GetResourceVersion(), nil
}

func (c conformance) delete(ctx context.Context, name string) error {
	return c.objects().Delete(ctx, name, metav1.DeleteOptions{})
}

// plain returns a client configuration without retries: asked for a version
// that the server has not reached, a client would ask ten times more.
func (s *server) plain() *rest.Config {
	config := s.admin()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil {
				resp.Header.Del("Retry-After")
			}
			return resp, err
		})
	})
	return config
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
