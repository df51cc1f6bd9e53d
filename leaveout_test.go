package informer_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-99a027e8/informer"
)

// TestLeaveOutPaths: what paths there are, and that a path which leads nowhere
// is an error from the constructor.
func TestLeaveOutPaths(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.managedFields":                     "",
		"status.conditions.message":                  "",
		"spec.containers.env":                        "",
		"spec.containers.env.valueFrom.secretKeyRef": "",
		"spec":                                        "",
		"metadata.annotations['a.b/c']":               "",
		"metadata.labels.app":                         "",
		"metadata.managedFields.fieldsV1":             "",
		"spec.volumes.persistentVolumeClaim.readOnly": "",
		"spec.volumes.ephemeral.volumeClaimTemplate.metadata.name": "",
		"":                                    "a name is empty",
		".spec":                               "a name is empty",
		"spec.":                               "a name is empty",
		"spec..a":                             "a name is empty",
		"metadata.annotations[a]":             "a key must be between [' and ']",
		"metadata.annotations['a'":            "a key must be between [' and ']",
		"metadata.annotations['']":            "a key must be between [' and ']",
		"metadata.annotations['a']b":          "a name must come behind a dot",
		"metadata.name":                       "it says which object it is",
		"metadata['uid']":                     "it says which object it is",
		"metadata":                            "it says which object it is",
		"metadata.resourceVersion":            "it says which object it is",
		"metadata.namespace":                  "it says which object it is",
		"kind":                                "it says which object it is",
		"apiVersion":                          "it says which object it is",
		"status.images":                       `a v1.PodStatus has no "images"`,
		"Spec":                                `a v1.Pod has no "Spec"`,
		"spec.nodeName.x":                     `a string has no "x"`,
		"TypeMeta":                            `a v1.Pod has no "TypeMeta"`,
		"status.startTime.seconds":            "a v1.Time has no members that are known",
		"metadata.managedFields.fieldsV1.raw": "a v1.FieldsV1 has no members that are known",
	} {
		opts := informer.RESTOptions{LeaveOut: []string{"spec.nodeName", path}}
		_, err := informer.New(informer.FromREST[corev1.Pod](restClient(t, restAnswer("")), podsGVR(), opts), informer.Options{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", path, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "path \""+path)):
			t.Errorf("%q: error %v, want %s", path, err, want)
		}
	}
	for _, path := range []string{"spec.anything['at all']", "spec"} {
		source := informer.FromREST[unstructured.Unstructured](restClient(t, restAnswer("")), podsGVR(), informer.RESTOptions{LeaveOut: []string{path}})
		if _, err := informer.New(source, informer.Options{}); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}
