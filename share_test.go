package informer_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-99a027e8/informer"
)

// sameMemory reports whether two strings share their bytes.
func sameMemory(a, b string) bool { return a == b && unsafe.StringData(a) == unsafe.StringData(b) }

// Promise 7: a string that has come twice is the same from then on; what came
// once takes no place; and the places are limited.
func TestShared(t *testing.T) {
	s := informer.NewShared(16)
	text := []byte("node-1")
	if a, b := s.Of(text), s.Of(text); a != "node-1" || b != a {
		t.Fatalf("%q, %q", a, b)
	}
	if !sameMemory(s.Of(text), s.Of(text)) {
		t.Error("a string that came four times is not shared")
	}
	if n := testing.AllocsPerRun(100, func() { s.Of(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	copied := s.Of(text)
	text[0] = 'N'
	if copied != "node-1" {
		t.Error("the string is not its own")
	}
	for _, odd := range []string{"", "a", strings.Repeat("long", 65)} {
		for range 3 {
			if got := s.Of([]byte(odd)); got != odd {
				t.Errorf("%q, want %q", got, odd)
			}
		}
	}
	once := informer.NewShared(16)
	for i := range 1000 {
		once.Of(fmt.Appendf(nil, "name-%d", i))
	}
	if n := once.Held(); n != 0 {
		t.Errorf("of what came once, %d are remembered", n)
	}
	for range 3 {
		for i := range 1000 {
			text := fmt.Appendf(nil, "name-%d", i)
			once.Of(text)
			if got := once.Of(text); got != string(text) {
				t.Errorf("%q, want %q", got, text)
			}
		}
	}
	if n := once.Held(); n != 32 {
		t.Errorf("%d are remembered, want 32", n)
	}
}

// TestSharedTogether is for the race detector: requests of one source share.
func TestSharedTogether(t *testing.T) {
	s := informer.NewShared(2)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for i := range 2000 {
				text := fmt.Appendf(nil, "name-%d", i%7)
				if got := s.Of(text); got != string(text) {
					t.Errorf("%q, want %q", got, text)
				}
			}
		})
	}
	wait.Wait()
}

// Promise 7: equal strings of different objects, and of different requests, share
// their memory if that is asked for.
func TestShareStrings(t *testing.T) {
	var items []string
	for i := range 4 {
		items = append(items, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","labels":{"application":"the same"}},"spec":{"nodeName":"node-one","hostname":"sch\u00f6n"}}`, i))
	}
	trip := restAnswer(podListJSON(strings.Join(items, ",")))
	list := func(share bool) (pods []*corev1.Pod) {
		source := informer.FromREST[corev1.Pod](restClient(t, trip), podsGVR(), informer.RESTOptions{ShareStrings: share})
		for range 2 { // lists
			pods = append(pods, decodeObjects(t, source.List(t.Context(), metav1.ListOptions{}))...)
		}
		return pods
	}
	pods := list(true)
	for i := range pods[:4] {
		a, b := pods[3], pods[i+4]
		if !sameMemory(a.Spec.NodeName, b.Spec.NodeName) || !sameMemory(a.Labels["application"], b.Labels["application"]) || !sameMemory(a.Spec.Hostname, b.Spec.Hostname) {
			t.Errorf("%s and %s share nothing", a.Name, b.Name)
		}
		if b.Spec.Hostname != "sch\u00f6n" {
			t.Errorf("hostname %q", b.Spec.Hostname)
		}
	}
	if pods = list(false); sameMemory(pods[3].Spec.NodeName, pods[7].Spec.NodeName) {
		t.Error("the strings of two lists share their memory, unasked")
	}
	source := informer.FromREST[unstructured.Unstructured](restClient(t, trip), podsGVR(), informer.RESTOptions{ShareStrings: true})
	objects := decodeObjects(t, source.List(t.Context(), metav1.ListOptions{}))
	node := func(i int) string {
		name, _, _ := unstructured.NestedString(objects[i].Object, "spec", "nodeName")
		return name
	}
	if node(2) != "node-one" || !sameMemory(node(2), node(3)) {
		t.Error("unstructured objects share nothing")
	}
}

// quotedStrings has a string in a string, which only the decoder itself knows.
type quotedStrings struct {
	metav1.ObjectMeta `json:"metadata"`

	Inside string `json:"inside,string"`
}

// Promise 12: a string in a string is what the decoder itself makes of it.
func TestShareQuotedStrings(t *testing.T) {
	var out quotedStrings
	if err := informer.DecodeStreaming[quotedStrings]([]byte(`{"inside":"\"a\"","metadata":{"name":"b"}}`), &out, true); err != nil || out.Inside != "a" || out.Name != "b" {
		t.Errorf("%+v, error %v", out, err)
	}
}
