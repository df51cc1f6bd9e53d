package informertest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
	"github.com/seed-99a027e8/informer/informertest/prototest"
)

var (
	mapResource = corev1.SchemeGroupVersion.WithResource("configmaps")
	unknown     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "unknown"}
)

// TestConform runs the suite on the fake server, through each kind of client,
// and on sources of sources. Promises 2, 3, 8, 10, 11, 13 and 14 rely on what it
// checks.
func TestConform(t *testing.T) {
	t.Run("REST typed", func(t *testing.T) {
		conformServer(t, true, labelOf[*corev1.ConfigMap], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*corev1.ConfigMap] {
			return informer.FromREST[corev1.ConfigMap](kubernetes.NewForConfigOrDie(c).CoreV1().RESTClient(), r, informer.RESTOptions{})
		})
	})
	t.Run("REST unstructured", func(t *testing.T) {
		conformServer(t, false, labelOf[*unstructured.Unstructured], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*unstructured.Unstructured] {
			return informer.FromREST[unstructured.Unstructured](kubernetes.NewForConfigOrDie(c).CoreV1().RESTClient(), r, informer.RESTOptions{})
		})
	})
	t.Run("REST metadata", func(t *testing.T) {
		conformServer(t, false, labelOf[*metav1.PartialObjectMetadata], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*metav1.PartialObjectMetadata] {
			return informer.FromREST[metav1.PartialObjectMetadata](kubernetes.NewForConfigOrDie(c).CoreV1().RESTClient(), r, informer.RESTOptions{})
		})
	})
	t.Run("REST protobuf", func(t *testing.T) {
		conformServer(t, true, labelOf[*corev1.ConfigMap], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*corev1.ConfigMap] {
			return informer.FromREST[corev1.ConfigMap](kubernetes.NewForConfigOrDie(inProto(c)).CoreV1().RESTClient(), r, informer.RESTOptions{})
		})
	})
	t.Run("REST protobuf metadata", func(t *testing.T) {
		conformServer(t, false, labelOf[*metav1.PartialObjectMetadata], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*metav1.PartialObjectMetadata] {
			return informer.FromREST[metav1.PartialObjectMetadata](kubernetes.NewForConfigOrDie(inProto(c)).CoreV1().RESTClient(), r, informer.RESTOptions{})
		})
	})
	t.Run("typed", func(t *testing.T) {
		conformServer(t, false, labelOf[*corev1.ConfigMap], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*corev1.ConfigMap] {
			if r == unknown {
				return nil // a typed client has no such resource
			}
			return informer.FromClient[*corev1.ConfigMap](kubernetes.NewForConfigOrDie(c).CoreV1().ConfigMaps(""))
		})
	})
	t.Run("dynamic", func(t *testing.T) {
		conformServer(t, false, labelOf[*unstructured.Unstructured], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*unstructured.Unstructured] {
			return informer.FromClient[*unstructured.Unstructured](dynamic.NewForConfigOrDie(c).Resource(r))
		})
	})
	t.Run("metadata", func(t *testing.T) {
		conformServer(t, false, labelOf[*metav1.PartialObjectMetadata], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*metav1.PartialObjectMetadata] {
			return informer.FromClient[*metav1.PartialObjectMetadata](metadata.NewForConfigOrDie(c).Resource(r))
		})
	})
	t.Run("Transform", func(t *testing.T) {
		conformServer(t, true, labelOf[*corev1.ConfigMap], func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*corev1.ConfigMap] {
			strip := func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				cm.Data = nil
				return cm, nil
			}
			return informer.Transform(informer.FromREST[corev1.ConfigMap](
				kubernetes.NewForConfigOrDie(c).CoreV1().RESTClient(), r, informer.RESTOptions{}), strip)
		})
	})
	t.Run("Project", func(t *testing.T) {
		value := func(o *informertest.Object) string { return o.Value }
		conformServer(t, true, value, func(c *rest.Config, r schema.GroupVersionResource) informer.ListerWatcher[*informertest.Object] {
			project := func(cm *corev1.ConfigMap) (*informertest.Object, bool, error) {
				return &informertest.Object{
					Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID, Version: cm.ResourceVersion,
					Value: cm.Labels["value"],
				}, true, nil
			}
			return informer.Project(informer.FromREST[corev1.ConfigMap](
				kubernetes.NewForConfigOrDie(c).CoreV1().RESTClient(), r, informer.RESTOptions{}), project)
		})
	})
}

// inProto returns a config for a server that answers in protobuf.
func inProto(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return prototest.Transport{Next: next} })
	return config
}

func labelOf[T metav1.Object](obj T) string { return obj.GetLabels()["value"] }

// conformServer runs the suite on a source of a fake server's config maps. A
// source that decodes them one by one, to a typed map, meets bad ones.
func conformServer[T informer.Object](
	t *testing.T, decodes bool, value func(T) string,
	source func(*rest.Config, schema.GroupVersionResource) informer.ListerWatcher[T],
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := informertest.Start(t, informertest.Options{})
		rig := serverRig(srv, source(srv.Config(), mapResource), value)
		rig.Missing = source(srv.Config(), unknown)
		if decodes {
			rig.Spoil = spoil(srv)
		}
		rig.Log = t.Logf
		if err := informertest.Conform(t.Context(), rig); err != nil {
			t.Error(err)
		}
	})
}

// serverRig returns a rig for the config maps of a fake server.
func serverRig[T informer.Object](
	srv *informertest.Server, source informer.ListerWatcher[T], value func(T) string,
) informertest.Rig[T] {
	object := func(name, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"value": value}},
			Data:       map[string]string{"value": value},
		}
	}
	return informertest.Rig[T]{
		Source: source,
		Create: func(_ context.Context, name, value string) (string, error) { return srv.Create(object(name, value)) },
		Update: func(_ context.Context, name, value string) (string, error) { return srv.Update(object(name, value)) },
		Delete: func(_ context.Context, name string) error {
			_, err := srv.Delete(object(name, ""))
			return err
		},
		Value: value,
		Compact: func(context.Context) error {
			srv.Compact()
			return nil
		},
		Select: func(value string) string { return "value=" + value },
	}
}

// spoil makes a config map whose data is no map.
func spoil(srv *informertest.Server) func(context.Context, string) (string, error) {
	return func(_ context.Context, name string) (string, error) {
		bad := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": "no map",
			"metadata": map[string]any{"name": name},
		}}
		version, err := srv.Update(bad)
		if err != nil {
			return "", fmt.Errorf("spoil: %w", err)
		}
		return version, nil
	}
}
