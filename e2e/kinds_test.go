package e2e_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// kindsNamespace is where the objects of testdata/kinds.yaml are.
const kindsNamespace = "kinds"

// A sample is an object that the test has made.
type sample struct {
	resource schema.GroupVersionResource
	client   dynamic.ResourceInterface
	name     string
}

// sampleObjects makes what is in testdata/kinds.yaml, statuses too. For a kind
// that the server does not take it returns the reason.
func sampleObjects(t *testing.T, s *server) (samples []sample, refused map[string]error) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(s.admin()))
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client := dynamic.NewForConfigOrDie(s.admin())
	refused = map[string]error{}
	for _, obj := range readManifests(t, "testdata/kinds.yaml") {
		kind := obj.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			refused[kind.Kind] = err
			continue
		}
		made := sample{mapping.Resource, client.Resource(mapping.Resource), obj.GetName()}
		if mapping.Scope.Name() == "namespace" {
			made.client = client.Resource(mapping.Resource).Namespace(kindsNamespace)
		}
		if err := makeObject(t.Context(), made.client, obj); err != nil {
			refused[kind.Kind] = err
			continue
		}
		samples = append(samples, made)
	}
	return samples, refused
}

// makeObject makes an object, and gives it its status, where it has one that is
// not part of it.
func makeObject(ctx context.Context, client dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	made, err := client.Create(ctx, obj, metav1.CreateOptions{})
	if err != nil || obj.Object["status"] == nil {
		return err
	}
	made.Object["status"] = obj.Object["status"]
	_, err = client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}

// change labels an object, and deletes it.
func (s sample) change(ctx context.Context) error {
	patch := []byte(`{"metadata":{"labels":{"changed":"yes"},"finalizers":null}}`)
	_, err := s.client.Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
	now := int64(0) // no kubelet would end a pod
	return errors.Join(err, s.client.Delete(ctx, s.name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// readManifests returns the objects of a file, with a certificate and its like
// where it has places for them.
func readManifests(t *testing.T, name string) (objects []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer(certificates(t)...).Replace(string(text))
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(replaced), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := documents.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, obj)
	}
}

// certificates returns what stands for the places in testdata/kinds.yaml.
func certificates(t *testing.T) []string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err1 := x509.CreateCertificate(rand.Reader, &about, &about, public, private)
	request, err2 := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, private)
	stub, err3 := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	quoted := strings.ReplaceAll(text, "\n", `\n`)
	base := base64.StdEncoding.EncodeToString
	return []string{
		"${CERTIFICATE}", quoted,
		"${REQUEST}", base(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})),
		"${STUB}", base(stub),
	}
}

// servedKinds returns each resource that can be listed and watched, in each of
// its versions.
func servedKinds(t *testing.T, s *server) (resources []schema.GroupVersionResource) {
	t.Helper()
	_, lists, err := clientset(t, s.admin()).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch") {
				resources = append(resources, group.WithResource(resource.Name))
			}
		}
	}
	slices.SortFunc(resources, func(a, b schema.GroupVersionResource) int {
		return bytes.Compare(fmt.Append(nil, a), fmt.Append(nil, b))
	})
	return resources
}
