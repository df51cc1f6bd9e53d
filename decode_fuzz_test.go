package informer_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// FuzzDecode compares the decoding of one value with that of Kubernetes.
func FuzzDecode(f *testing.F) {
	for _, raw := range decodeOddities() {
		f.Add([]byte(raw))
	}
	f.Add([]byte(decodeBenchPod))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, err := range []error{
			sameDecode[corev1.Pod](raw), sameDecode[decodeOdd](raw), sameDecode[map[string]any](raw), sameUnstructured(raw),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzRESTList compares what is made of a list body with what a typed client
// makes of it.
func FuzzRESTList(f *testing.F) {
	for _, items := range []string{podItem("a"), podItem("a") + "," + podItem("b"), `{"metadata":{"name":"x"},"spec":7}`, decodeBenchPod} {
		f.Add(podListJSON(items))
		f.Add(`{"apiVersion":"v1","items":[` + items + `],"kind":"PodList","metadata":{"resourceVersion":"9"}}`)
	}
	f.Add(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}`)
	f.Fuzz(func(t *testing.T, body string) {
		cs := kubernetes.NewForConfigOrDie(restConfig(restAnswer(body)))
		want, err := cs.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		got, steps := fuzzObjects(t, informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), podsGVR(), informer.RESTOptions{}), false)
		last := steps[len(steps)-1]
		complete := strings.HasPrefix(last, "End ")
		for _, step := range steps[:len(steps)-1] {
			if strings.HasPrefix(step, "End ") || strings.HasPrefix(step, "error ") {
				t.Fatalf("a step in mid-list: %q", steps)
			}
		}
		if err != nil || !complete {
			return
		}
		var named []*corev1.Pod
		for i := range want.Items {
			if want.Items[i].Name != "" {
				named = append(named, &want.Items[i])
			}
		}
		if end := "End v=" + want.ResourceVersion + " next=" + want.Continue; !reflect.DeepEqual(got, named) || last != end {
			t.Errorf("%q: %s, want %s; %s", body, last, end, cmp.Diff(named, got))
		}
	})
}

// FuzzRESTWatch compares what is made of a watch with what a typed client makes
// of it, up to the first thing that either does not like.
func FuzzRESTWatch(f *testing.F) {
	pod := `{"kind":"Pod","apiVersion":"v1",` + podItem("a")[1:]
	for _, typ := range []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "OTHER"} {
		f.Add(`{"type":"` + typ + `","object":` + pod + `}{"object":` + pod + `,"type":"` + typ + `"}`)
	}
	f.Add(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}}`)
	f.Add(`{"type":"ADDED","object":` + pod + `} {"type":"ADD`)
	f.Fuzz(func(t *testing.T, body string) {
		cs := kubernetes.NewForConfigOrDie(restConfig(restAnswer(body)))
		ours, steps := fuzzObjects(t, informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), podsGVR(), informer.RESTOptions{}), true)
		theirs, wants := fuzzObjects(t, informer.FromClient[*corev1.Pod](cs.CoreV1().Pods("")), true)
		for i := range min(len(ours), len(theirs)) {
			if steps[i] != wants[i] || !reflect.DeepEqual(ours[i], theirs[i]) {
				t.Fatalf("%q: step %d is %s, want %s; %s", body, i, steps[i], wants[i], cmp.Diff(theirs[i], ours[i]))
			}
		}
	})
}

// fuzzObjects returns the objects of a list, or of a watch up to its first step
// without one, and all steps.
func fuzzObjects(t *testing.T, source informer.ListerWatcher[*corev1.Pod], watch bool) (objects []*corev1.Pod, steps []string) {
	seq := source.List(t.Context(), metav1.ListOptions{})
	if watch {
		seq = source.Watch(t.Context(), metav1.ListOptions{})
	}
	for ev, err := range seq {
		steps = append(steps, sourceStep(ev, err))
		if ev.Object != nil {
			objects = append(objects, ev.Object)
		} else if watch {
			break
		}
	}
	return objects, steps
}
