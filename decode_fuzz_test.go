package informer_test

import (
	"bytes"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
			sameDecode[corev1.Pod](raw), sameDecode[corev1.ConfigMap](raw), sameDecode[metav1.PartialObjectMetadata](raw),
			sameDecode[decodeOdd](raw), sameDecode[map[string]any](raw), sameUnstructured(raw),
			sameStreaming[corev1.Pod](raw), sameStreaming[decodeOdd](raw), sameStreaming[unstructured.Unstructured](raw),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// sameStreaming compares the decoding in one pass with that of what had a fault:
// one finds a fault if the other does, or else both get the same.
func sameStreaming[E any](raw []byte) error {
	exact := new(E)
	want := informer.DecodeLikeREST[E](raw, exact)
	for _, share := range []bool{false, true} {
		stream := new(E)
		err := informer.DecodeStreaming[E](raw, stream, share)
		if (err == nil) != (want == nil) {
			return fmt.Errorf("%s: in one pass: error %v, else %v", raw, err, want)
		}
		if err == nil && !reflect.DeepEqual(stream, exact) {
			return fmt.Errorf("%s: in one pass: %s", raw, cmp.Diff(exact, stream, cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
	return nil
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

// FuzzRESTPieces has a body come in pieces of any sizes, as a network brings it:
// what is made of it is always the same.
func FuzzRESTPieces(f *testing.F) {
	pod := `{"kind":"Pod","apiVersion":"v1",` + podItem("a")[1:]
	f.Add(`{"type":"ADDED","object":`+pod+"}\n"+`{"object":`+pod+`,"type":"DELETED"}{"type":"MODIFIED","object":{"metadata":{"name":"x"},"spec":7}}`, true, []byte{1})
	f.Add(podListJSON(podItem("a")+`,{"metadata":{"name":"x"},"spec":[]},`+podItem("\u00e4\\\"")), false, []byte{2, 1, 7, 0})
	f.Add(podListJSON(podItem("a"))[:90], false, []byte{3})
	f.Fuzz(func(t *testing.T, body string, watch bool, sizes []byte) {
		whole, want := fuzzObjects(t, restPods(t, restAnswer(body)), watch)
		pieces := restTrip(func(*http.Request) (*http.Response, error) {
			return restResponse(200, "application/json", &pieceReader{body: body, sizes: sizes}), nil
		})
		split, got := fuzzObjects(t, restPods(t, pieces), watch)
		if !slices.EqualFunc(got, want, sameButWhere) || !reflect.DeepEqual(split, whole) {
			t.Errorf("%q in pieces of %v: %q, want %q", body, sizes, got, want)
		}
	})
}

// sameButWhere reports whether two steps are the same, but for what a decoder
// says of bytes that are no JSON: that depends on how many of them it has.
func sameButWhere(a, b string) bool {
	a, _, noJSON := strings.Cut(a, ": after byte ")
	b, _, also := strings.Cut(b, ": after byte ")
	return a == b && noJSON == also
}

// pieceReader yields a body in pieces of the sizes, again and again. Every
// second piece of size zero is empty.
type pieceReader struct {
	body  string
	sizes []byte
	at    int
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if r.body == "" {
		return 0, io.EOF
	}
	size := 1
	if len(r.sizes) > 0 {
		size = int(r.sizes[r.at%len(r.sizes)])
		if size == 0 && r.at%2 == 0 {
			size = 1
		}
		r.at++
	}
	n := copy(p[:min(size, len(p))], r.body)
	r.body = r.body[n:]
	return n, nil
}

// FuzzPassValue compares how an object is passed that is too large with how it
// is read.
func FuzzPassValue(f *testing.F) {
	for _, raw := range decodeOddities() {
		f.Add([]byte(raw+`,"b":1}`), 1)
	}
	f.Add([]byte(` , [{"a":"\\\"}]"},[[]],"",1] ]`), 3)
	f.Add([]byte(`: "\u0022",`), 2)
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		value, err := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)).ReadValue()
		if err != nil || size <= 0 {
			return
		}
		before := bytes.Index(raw, value)
		if rest := raw[before+len(value):]; len(rest) > 0 && !strings.ContainsRune(",:]} \t\r\n", rune(rest[0])) && strings.ContainsRune("0ntf", rune(value.Kind())) {
			return // this is no JSON, and nobody asks where it ends
		}
		n, ok := informer.PassValue(raw, size)
		if end := before + len(value); n != end || !ok && n != len(raw) {
			t.Errorf("%q in pieces of %d: passed %d bytes, want %d", raw, size, n, end)
		}
	})
}

// FuzzVersions (promise 4) compares the order of resource versions with that of
// numbers.
func FuzzVersions(f *testing.F) {
	for _, a := range []string{"", "0", "00", "1", "01", "-1", "+1", "9", "10", " 1", "1.0", "1e3", "0x1", "18446744073709551615", "18446744073709551616", strings.Repeat("9", 100), "\u0661"} {
		f.Add(a, "10")
		f.Add("9", a)
	}
	f.Add("18446744073709551616", "18446744073709551617")
	number := regexp.MustCompile(`^[1-9][0-9]*$`)
	f.Fuzz(func(t *testing.T, a, b string) {
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		want := number.MatchString(a) && number.MatchString(b) && x.Cmp(y) < 0
		if got := informer.Older(a, b); got != want {
			t.Errorf("%q is older than %q: %t, want %t", a, b, got, want)
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
