package informertest

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// An APIObject is an object of an API type, typed or unstructured.
type APIObject interface {
	runtime.Object
	metav1.Object
}

// TB is what this package needs of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()                                // marks a helper in stack traces
	Cleanup(func())                         // adds a function to be called at the end
	Context() context.Context               // of the test; ends just before the cleanup
	Errorf(format string, arguments ...any) // fails the test
	Fatalf(format string, arguments ...any) // ends the test
}

// Start runs a server for as long as a test lasts: it ends in the test's
// cleanup, after the functions that the test adds later. It ends the test if
// it cannot start.
func Start(t TB, opts Options) *Server {
	t.Helper()
	s, err := NewServer(opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Fatalf("%v", err)
		}
	})
	return s
}

// Create adds an object as a client would, but without HTTP, and returns its
// version. An object of a kind that lives in namespaces, but names none, goes
// to default. The caller keeps obj. Errors are those that a client would get.
func (s *Server) Create(obj APIObject) (version string, err error) {
	t, copied, err := s.targetOf(obj)
	if err != nil {
		return "", err
	}
	created, err := s.direct().create(t, copied)
	if err != nil {
		return "", err
	}
	return formatVersion(created.version), nil
}

// Update replaces an object, its status included, and returns its version. It
// is as good as an update of the object and one of its status, at one version.
// Unless obj has a resource version, it is unconditional.
func (s *Server) Update(obj APIObject) (version string, err error) {
	t, copied, err := s.targetOf(obj)
	if err != nil {
		return "", err
	}
	updated, _, err := s.direct().update(t, func(old *object) (*object, error) {
		if old != nil && copied.GetResourceVersion() == "" {
			copied.SetResourceVersion(old.GetResourceVersion())
		}
		return copied, nil
	})
	if err != nil {
		return "", err
	}
	return formatVersion(updated.version), nil
}

// Delete deletes the object that obj names, without grace, and returns the
// server's version after it. One with finalizers stays until they are gone.
func (s *Server) Delete(obj APIObject) (version string, err error) {
	t, _, err := s.targetOf(obj)
	if err != nil {
		return "", err
	}
	if _, _, err := s.direct().delete(t, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return "", err
	}
	return s.Version(), nil
}

func (s *Server) direct() writer { return writer{store: s.store, known: s.known, whole: true} }

// targetOf finds the resource of obj, and makes a copy of it to work on.
func (s *Server) targetOf(obj APIObject) (target, *object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			return target{}, nil, fmt.Errorf("informertest: %w", err)
		}
		gvk = kinds[0]
	}
	res := s.known.findKind(gvk)
	if res == nil {
		return target{}, nil, fmt.Errorf("informertest: no resource is known for %v", gvk)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return target{}, nil, fmt.Errorf("informertest: %w", err)
	}
	t := target{resource: res, namespace: obj.GetNamespace(), name: obj.GetName()}
	if t.namespace == "" && !res.ClusterScoped {
		t.namespace = metav1.NamespaceDefault
	}
	copied := (&object{Object: content}).DeepCopy()
	copied.SetGroupVersionKind(gvk)
	return t, copied, nil
}

// targetOf returns what names a stored object.
func targetOf(r *record) (target, error) {
	obj, err := r.object()
	if err != nil {
		return target{}, err
	}
	return target{resource: r.resource, namespace: obj.GetNamespace(), name: obj.GetName()}, nil
}

// addNamespaces creates namespaces.
func (s *Server) addNamespaces(names ...string) error {
	res := s.known.findKind(namespaceKind())
	for _, name := range names {
		obj := &object{Object: map[string]any{}}
		obj.SetName(name)
		if _, err := s.direct().create(target{resource: res, name: name}, obj); err != nil {
			return err
		}
	}
	return nil
}

func formatVersion(version int64) string { return strconv.FormatInt(version, 10) }
