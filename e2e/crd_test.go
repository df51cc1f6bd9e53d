package e2e_test

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// createCRD makes a namespaced custom resource of any content, and waits until
// the server says that it is established. The first requests may still be
// answered with 404 or 429.
func (s *server) createCRD(resource schema.GroupVersionResource, kind string) {
	s.t.Helper()
	anything := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: resource.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: resource.Resource, Kind: kind},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: resource.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: &anything,
					},
				},
			}},
		},
	}
	crds := s.crds().ApiextensionsV1().CustomResourceDefinitions()
	if _, err := crds.Create(s.t.Context(), crd, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("createCRD(%v): %v", resource, err)
	}
	eventually(s.t, "the custom resource is established", func(ctx context.Context) error {
		got, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range got.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return apierrors.NewServiceUnavailable("not yet established")
	})
}

// deleteCRD removes a custom resource with all its objects, and waits until it
// is gone.
func (s *server) deleteCRD(resource schema.GroupVersionResource) {
	s.t.Helper()
	crds := s.crds().ApiextensionsV1().CustomResourceDefinitions()
	name := resource.GroupResource().String()
	if err := crds.Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatalf("deleteCRD(%v): %v", resource, err)
	}
	eventually(s.t, "the custom resource is gone", func(ctx context.Context) error {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = apierrors.NewConflict(resource.GroupResource(), name, nil)
		}
		return err
	})
}

func (s *server) crds() *apiextensions.Clientset {
	s.t.Helper()
	client, err := apiextensions.NewForConfig(s.admin())
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func TestCustomResourceComesAndGoes(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	client, err := dynamic.NewForConfig(s.admin())
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context) (*unstructured.UnstructuredList, error) {
		return client.Resource(gadgets).Namespace("default").List(ctx, metav1.ListOptions{})
	}
	if _, err := list(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("list before there is a definition = %v, want not found", err)
	}
	s.createCRD(gadgets, "Gadget")
	gadget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gadget",
		"metadata": map[string]any{"name": "g"}, "size": "big",
	}}
	eventually(t, "a gadget is accepted", func(ctx context.Context) error {
		_, err := client.Resource(gadgets).Namespace("default").Create(ctx, gadget, metav1.CreateOptions{})
		return err
	})
	got, err := list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Items) != 1 || got.Items[0].Object["size"] != "big" {
		t.Errorf("list = %v, want the one gadget", got.Items)
	}
	s.deleteCRD(gadgets)
	eventually(t, "the resource is not served any more", func(ctx context.Context) error {
		if _, err := list(ctx); !apierrors.IsNotFound(err) {
			return apierrors.NewServiceUnavailable("list was answered otherwise than by 404")
		}
		return nil
	})
}
