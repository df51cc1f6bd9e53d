package informer_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-99a027e8/informer"
)

// Promise 12: what paths there are, and that a path which leads nowhere
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

// leaveOutPod has something at each of leaveOutPaths, and something bad in what
// is left out.
const leaveOutPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","managedFields":[{"manager":7}],` +
	`"annotations":{"a.b/c":"x","d":"e"}},"spec":{"containers":[{"env":[{"name":"A"}],"name":"c"},{"name":"d"}],"nodeName":"x"},"status":{"phase":"Running"}}`

func leaveOutPaths() []string {
	return []string{"metadata.managedFields", "metadata.annotations['a.b/c']", "spec.containers.env", "status"}
}

// Promise 12: in lists and watches, typed and not, also of an object that comes
// before its type, objects are without what is left out, and are else the same.
func TestLeaveOut(t *testing.T) {
	list := podListJSON(leaveOutPod + "," + podItem("b"))
	frames := `{"type":"ADDED","object":` + leaveOutPod + "}\n" + `{"object":` + leaveOutPod + `,"type":"MODIFIED"}` +
		`{"object":{"kind":"Pod","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}},"type":"BOOKMARK"}` +
		`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	opts := informer.RESTOptions{LeaveOut: leaveOutPaths()}
	want := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", Annotations: map[string]string{"d": "e"}},
		Spec:       corev1.PodSpec{NodeName: "x", Containers: []corev1.Container{{Name: "c"}, {Name: "d"}}},
	}
	untyped := map[string]any{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": map[string]any{"name": "a", "namespace": "n", "annotations": map[string]any{"d": "e"}},
		"spec":     map[string]any{"nodeName": "x", "containers": []any{map[string]any{"name": "c"}, map[string]any{"name": "d"}}},
	}
	client := restClient(t, wireTrip(list, frames))
	pods := informer.FromREST[corev1.Pod](client, podsGVR(), opts)
	objects := informer.FromREST[unstructured.Unstructured](client, podsGVR(), opts)
	got := decodeObjects(t, pods.List(t.Context(), metav1.ListOptions{}))[:1]
	got = append(got, decodeObjects(t, pods.Watch(t.Context(), metav1.ListOptions{}))[:2]...)
	for i, pod := range got {
		pod.TypeMeta = metav1.TypeMeta{} // which items of a list may have
		if !reflect.DeepEqual(*pod, want) {
			t.Errorf("%d: %s", i, cmp.Diff(want, *pod))
		}
	}
	others := decodeObjects(t, objects.List(t.Context(), metav1.ListOptions{}))[:1]
	others = append(others, decodeObjects(t, objects.Watch(t.Context(), metav1.ListOptions{}))[:2]...)
	for i, object := range others {
		if !reflect.DeepEqual(object.Object, untyped) {
			t.Errorf("%d: %s", i, cmp.Diff(untyped, object.Object))
		}
	}
	yes := true
	opts.LeaveOut = []string{"metadata.annotations"}
	wantSteps(t, sourceEvents(informer.FromREST[corev1.Pod](client, podsGVR(), opts).Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}))[2:],
		"End v=7 next=", "Bookmark v=9")
}

// Promises 7 and 12: an object that is bad in another place is known by its key, and
// the next one is good; one with too much in what is left out is good.
func TestLeaveOutBad(t *testing.T) {
	bad := `{"metadata":{"managedFields":[{"manager":7}],"name":"x"},"spec":7}`
	large := `{"metadata":{"name":"y","managedFields":[@{}]},"spec":{"nodeName":"n"}}`
	flood := newFlood(podListJSON(bad+","+large+","+podItem("b")), "{},", 70*mib)
	source := informer.FromREST[corev1.Pod](restClient(t, floodTrip(200, flood)), podsGVR(), informer.RESTOptions{LeaveOut: leaveOutPaths()})
	wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})),
		"Bad /x uid= v=", "Added /y uid= v=", "Added n/b uid=u-b v=5", "End v=9 next=c")
	if flood.peak > 100*mib {
		t.Errorf("the heap was %d MiB", flood.peak/mib)
	}
}
