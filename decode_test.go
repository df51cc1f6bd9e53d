package informer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand"
	"net/http"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"

	"github.com/seed-99a027e8/informer"
)

// decodeOdd is a user's type with everything that decoders disagree on.
type decodeOdd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	decodeEmbedded

	Any     any                   `json:"any"`
	Anys    map[string]any        `json:"anys"`
	List    []any                 `json:"list"`
	Bytes   []byte                `json:"bytes"`
	Int     int64                 `json:"int"`
	Small   int8                  `json:"small"`
	Float   float64               `json:"float"`
	Bool    *bool                 `json:"bool"`
	Text    string                `json:"text"`
	Quoted  int                   `json:"quoted,string"`
	Texts   map[string]string     `json:"texts"`
	Numbers map[int]string        `json:"numbers"`
	Array   [2]int                `json:"array"`
	Time    metav1.Time           `json:"time"`
	Micro   metav1.MicroTime      `json:"micro"`
	Wait    metav1.Duration       `json:"wait"`
	Plain   time.Time             `json:"plain"`
	Span    time.Duration         `json:"span"`
	Port    intstr.IntOrString    `json:"port"`
	Amount  resource.Quantity     `json:"amount"`
	Raw     runtime.RawExtension  `json:"raw"`
	RawPtr  *runtime.RawExtension `json:"rawPtr"`
	Nested  *decodeOdd            `json:"nested"`
	Nesteds []decodeOdd           `json:"nesteds"`
	Hidden  string                `json:"-"`
	NoTag   string
}

type decodeEmbedded struct {
	Inner string `json:"inner"`
}

// decodeOddities are the values of members in which decoders differ.
func decodeOddities() []string {
	return []string{
		`{}`, `null`, `[]`, `7`, `"x"`, `true`, `{"metadata":null}`, `{"metadata":{"name":"a","labels":{"a":"b"}}}`,
		`{"Any":1,"ANY":2,"any":3}`, `{"metaData":{"name":"a"},"Metadata":{"name":"b"}}`, `{"text":"a","Text":"b"}`, `{"NoTag":"a"}`, `{"notag":"a"}`, `{"noTag":"a","NOTAG":"b"}`,
		`{"text":"a","text":"b"}`, `{"text":"a","text":null}`, `{"texts":{"a":"1"},"texts":{"b":"2"}}`, `{"texts":{"a":"1","a":"2"}}`,
		`{"list":[1,2,3],"list":[4]}`, `{"nested":{"text":"a"},"nested":{"int":1}}`, `{"nesteds":[{"text":"a","int":3},{"text":"b"}],"nesteds":[{"int":1}]}`,
		`{"any":{"a":{"b":1}},"any":{"a":{"c":2}}}`, `{"anys":{"a":{"b":1},"a":{"c":2}}}`, `{"any":{"a":1,"a":[2]}}`, `{"any":1,"any":null}`,
		`{"bytes":"aGVsbG8="}`, `{"bytes":"aGVs\nbG8="}`, `{"bytes":"aGVs\r\nbG8="}`, `{"bytes":"aGVsbG8"}`, `{"bytes":""}`, `{"bytes":null}`, `{"bytes":[1,2]}`, `{"bytes":"?"}`, `{"bytes":"aGVsbG9="}`,
		`{"any":9223372036854775807}`, `{"any":9223372036854775808}`, `{"any":-9223372036854775808}`, `{"any":1.0}`, `{"any":1e3}`, `{"any":-0}`, `{"any":0.1}`, `{"any":1E400}`, `{"list":[1,1.5,"a",null,true,{},[]]}`,
		`{"int":9223372036854775807}`, `{"int":9223372036854775808}`, `{"int":1.0}`, `{"int":1e2}`, `{"int":"1"}`, `{"small":128}`, `{"small":-128}`, `{"float":1e400}`, `{"float":3}`, `{"int":null,"text":null,"bool":null,"array":null}`,
		`{"quoted":"12"}`, `{"quoted":12}`, `{"quoted":"x"}`, `{"quoted":null}`, `{"quoted":"null"}`, `{"numbers":{"1":"a","-2":"b"}}`, `{"numbers":{"x":"a"}}`, `{"array":[1]}`, `{"array":[1,2,3]}`,
		`{"bool":true}`, `{"bool":"true"}`, `{"bool":0}`,
		`{"time":"2024-01-02T03:04:05Z"}`, `{"time":"2024-01-02T03:04:05+02:00"}`, `{"time":null}`, `{"time":"x"}`, `{"time":7}`, `{"time":""}`,
		`{"micro":"2024-01-02T03:04:05.123456Z"}`, `{"micro":"2024-01-02T03:04:05Z"}`, `{"micro":null}`, `{"wait":"1m"}`, `{"wait":60}`, `{"wait":null}`,
		`{"plain":"2024-01-02T03:04:05Z"}`, `{"plain":null}`, `{"plain":"24"}`, `{"span":5}`, `{"span":"5s"}`,
		`{"port":80}`, `{"port":"http"}`, `{"port":null}`, `{"port":1.5}`, `{"port":true}`, `{"amount":"100m"}`, `{"amount":5}`, `{"amount":"1Gi"}`, `{"amount":null}`, `{"amount":"x"}`, `{"amount":""}`,
		`{"raw":{"a": [1, 2]}}`, `{"raw":null}`, `{"raw":"x"}`, `{"rawPtr":null}`, `{"rawPtr":{"b":1}}`,
		"{\"text\":\"a\xffb\"}", "{\"any\":\"\xc3\x28\"}", "{\"texts\":{\"\xff\":\"\xfe\"}}", "{\"any\":{\"\xff\":1,\"\xfe\":2}}", `{"text":"\ud800"}`, `{"any":"\ud800\u0041"}`, `{"text":"\ud83d\ude00"}`, "{\"text\":\"a\x01\"}", `{"text":"\u0000"}`,
		`{"Hidden":"x","hidden":"y","-":"z"}`, `{"inner":"x"}`, `{"decodeEmbedded":{"inner":"x"}}`, `{"TypeMeta":{"kind":"x"}}`, `{"kind":"a","apiVersion":"b"}`,
		`{"unknown":{"deep":[{"x":1e999}]}}`, `{"a":1,}`, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{'a':1}`, `{"a":NaN}`, "\ufeff{}", ` {"text":"a"} `, `{}{}`, `{} x`, `{"any":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
	}
}

// sameDecode decodes raw as FromREST[E] and as Kubernetes do, and reports where
// they differ: in the value or in whether there is an error.
func sameDecode[E any](raw []byte) error {
	ours, theirs := new(E), new(E)
	err, want := informer.DecodeLikeREST[E](raw, ours), kjson.Unmarshal(raw, theirs)
	return differs(raw, ours, theirs, err, want)
}

func differs(raw []byte, ours, theirs any, err, want error) error {
	if (err == nil) != (want == nil) {
		return fmt.Errorf("%s: error %v, Kubernetes has %v", raw, err, want)
	}
	if err == nil && !reflect.DeepEqual(ours, theirs) {
		return fmt.Errorf("%s: differs from Kubernetes:\n%s", raw, cmp.Diff(theirs, ours, cmp.Exporter(func(reflect.Type) bool { return true })))
	}
	return nil
}

// TestDecodeOddities: letter case, duplicate names, nulls, invalid UTF-8 and all
// that come out as the Kubernetes decoder has them.
func TestDecodeOddities(t *testing.T) {
	for _, raw := range decodeOddities() {
		if err := sameDecode[decodeOdd]([]byte(raw)); err != nil {
			t.Error(err)
		}
		if err := sameDecode[corev1.Pod]([]byte(raw)); err != nil {
			t.Errorf("pod: %v", err)
		}
		if err := sameDecode[map[string]any]([]byte(raw)); err != nil {
			t.Errorf("map: %v", err)
		}
		if err := sameUnstructured([]byte(raw)); err != nil {
			t.Errorf("unstructured: %v", err)
		}
		for _, err := range []error{sameStreaming[decodeOdd]([]byte(raw)), sameStreaming[corev1.Pod]([]byte(raw)), sameStreaming[unstructured.Unstructured]([]byte(raw))} {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// sameUnstructured compares with how apimachinery decodes an unstructured item,
// apart from its demand for a kind.
func sameUnstructured(raw []byte) error {
	ours, theirs := new(unstructured.Unstructured), new(unstructured.Unstructured)
	err, want := informer.DecodeLikeREST[unstructured.Unstructured](raw, ours), kjson.Unmarshal(raw, &theirs.Object)
	return differs(raw, ours, theirs, err, want)
}

// TestDecodeAllKinds fills every kind of k8s.io/api at random, and compares.
func TestDecodeAllKinds(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	kinds := 0
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			continue
		}
		kinds++
		for range rounds {
			obj := reflect.New(typ).Interface()
			fill.Fill(obj)
			raw, err := json.Marshal(obj)
			if err != nil {
				t.Fatalf("%v: %v", gvk, err)
			}
			ours, theirs := reflect.New(typ).Interface(), reflect.New(typ).Interface()
			if err := differs(raw, ours, theirs, informer.DecodePlain(raw, ours), kjson.Unmarshal(raw, theirs)); err != nil {
				t.Errorf("%v: %v", gvk, err)
			}
			if err := sameUnstructured(raw); err != nil {
				t.Errorf("%v: %v", gvk, err)
			}
		}
	}
	if kinds < 100 {
		t.Errorf("compared %d kinds", kinds)
	}
}

// decodeWire holds the same objects as one list and as one watch.
func decodeWire(t testing.TB, kind, apiVersion string, objects []runtime.Object) (list, frames string) {
	t.Helper()
	var items []string
	var w bytes.Buffer
	for _, obj := range objects {
		raw, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, string(raw))
		typed := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,%s`, kind, apiVersion, raw[1:])
		fmt.Fprintf(&w, `{"type":"ADDED","object":%s}`+"\n", typed)
		fmt.Fprintf(&w, `{"type":"DELETED","object":%s}`+"\n", typed)
	}
	list = fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"9"},"items":[%s]}`, kind, apiVersion, strings.Join(items, ","))
	return list, w.String()
}

func decodeObjects[T informer.Object](t *testing.T, seq iter.Seq2[informer.Event[T], error]) (out []T) {
	t.Helper()
	for ev, err := range seq {
		if err != nil {
			t.Fatalf("%v %v", ev, err)
		}
		if ev.Type != informer.EventEnd {
			out = append(out, ev.Object)
		}
	}
	return out
}

// wireTrip answers lists and watches.
func wireTrip(list, frames string) restTrip {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "true" {
			return restResponse(200, "application/json", strings.NewReader(frames)), nil
		}
		return restResponse(200, "application/json", strings.NewReader(list)), nil
	}
}

// decodeFilled returns two random objects with names.
func decodeFilled[E any, T interface {
	*E
	runtime.Object
}](t *testing.T) (out []runtime.Object) {
	t.Helper()
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(7), scheme.Codecs)
	for i := range 2 {
		obj := T(new(E))
		fill.Fill(obj)
		about, err := meta.Accessor(obj)
		if err != nil {
			t.Fatal(err)
		}
		about.SetName(fmt.Sprintf("name-%d", i))
		obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(""))
		ta, _ := meta.TypeAccessor(obj)
		ta.SetAPIVersion("")
		out = append(out, obj)
	}
	return out
}

func decodeEqual[T informer.Object](t *testing.T, what string, rest, client informer.ListerWatcher[T]) {
	t.Helper()
	for name, seqs := range map[string][2]iter.Seq2[informer.Event[T], error]{
		"list":  {rest.List(t.Context(), metav1.ListOptions{}), client.List(t.Context(), metav1.ListOptions{})},
		"watch": {rest.Watch(t.Context(), metav1.ListOptions{}), client.Watch(t.Context(), metav1.ListOptions{})},
	} {
		ours, theirs := decodeObjects(t, seqs[0]), decodeObjects(t, seqs[1])
		if len(ours) == 0 || !reflect.DeepEqual(ours, theirs) {
			t.Errorf("%s %s: %d objects; differs from client-go: %s", what, name, len(ours),
				cmp.Diff(theirs, ours, cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
}

// TestDecodeLikeClients: what FromREST yields is deeply equal to what typed,
// dynamic and metadata clients make of the same bytes.
func TestDecodeLikeClients(t *testing.T) {
	list, frames := decodeWire(t, "Pod", "v1", decodeFilled[corev1.Pod](t))
	config := restConfig(wireTrip(list, frames))
	cs := kubernetes.NewForConfigOrDie(config)
	pods := podsGVR()
	decodeEqual(t, "pods",
		informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), pods, informer.RESTOptions{}),
		informer.FromClient[*corev1.Pod](cs.CoreV1().Pods("")))
	decodeEqual(t, "unstructured",
		informer.FromREST[unstructured.Unstructured](cs.CoreV1().RESTClient(), pods, informer.RESTOptions{}),
		informer.FromClient[*unstructured.Unstructured](dynamic.NewForConfigOrDie(config).Resource(pods)))

	list, frames = decodeWire(t, "Deployment", "apps/v1", decodeFilled[appsv1.Deployment](t))
	cs = kubernetes.NewForConfigOrDie(restConfig(wireTrip(list, frames)))
	decodeEqual(t, "deployments",
		informer.FromREST[appsv1.Deployment](cs.CoreV1().RESTClient(), appsv1.SchemeGroupVersion.WithResource("deployments"), informer.RESTOptions{}),
		informer.FromClient[*appsv1.Deployment](cs.AppsV1().Deployments("")))

	partials := decodeFilled[metav1.PartialObjectMetadata](t)
	for _, typed := range []bool{false, true} {
		for _, obj := range partials {
			if typed { // as servers send them in lists
				obj.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
			}
		}
		list, frames = decodeWire(t, "PartialObjectMetadata", "meta.k8s.io/v1", partials)
		config = metadata.ConfigFor(restConfig(wireTrip(list, frames)))
		cs = kubernetes.NewForConfigOrDie(restConfig(wireTrip(list, frames)))
		decodeEqual(t, "metadata",
			informer.FromREST[metav1.PartialObjectMetadata](cs.CoreV1().RESTClient(), pods, informer.RESTOptions{}),
			informer.FromClient[*metav1.PartialObjectMetadata](metadata.NewForConfigOrDie(config).Resource(pods)))
	}
}

// decodeOpaque decodes itself, and only from members in upper case.
type decodeOpaque struct {
	metav1.ObjectMeta
	size int
}

func (o *decodeOpaque) UnmarshalJSON(raw []byte) error {
	var v struct {
		Metadata metav1.ObjectMeta
		SIZE     int
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	o.ObjectMeta, o.size = v.Metadata, v.SIZE
	return nil
}

// TestDecodeOpaque: a type with its own decoder is used as it is, and a bad
// object of it is known by its key.
func TestDecodeOpaque(t *testing.T) {
	source := informer.FromREST[decodeOpaque](restClient(t, restAnswer(
		`{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"},"size":7},{"metadata":{"name":"b","uid":"u"},"size":"x"},{"metadata":{"name":"c"}}]}`)),
		podsGVR(), informer.RESTOptions{})
	size := 0
	var steps []string
	for ev, err := range source.List(t.Context(), metav1.ListOptions{}) {
		steps = append(steps, sourceStep(ev, err))
		if ev.Object != nil {
			size += ev.Object.size
		}
	}
	wantSteps(t, steps, "Added /a uid= v=", "Bad /b uid=u v=", "Added /c uid= v=", "End v=9 next=")
	if size != 7 {
		t.Errorf("size = %d, want 7", size)
	}
}

// decodeSlim is a user's own part of a Pod: no kind is known of it.
type decodeSlim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

func TestDecodeSlim(t *testing.T) {
	list, frames := decodeWire(t, "Pod", "v1", []runtime.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{NodeName: "x"}},
	})
	source := informer.FromREST[decodeSlim](restClient(t, wireTrip(list, frames)), podsGVR(), informer.RESTOptions{})
	for _, obj := range append(decodeObjects(t, source.List(t.Context(), metav1.ListOptions{})),
		decodeObjects(t, source.Watch(t.Context(), metav1.ListOptions{}))...) {
		if obj.Name != "a" || obj.Spec.NodeName != "x" {
			t.Errorf("got %+v", obj)
		}
	}
}

// decodeLong yields a list of n items without holding it.
func decodeLong(item string, n int) io.Reader {
	readers := []io.Reader{strings.NewReader(`{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[` + item)}
	for range n - 1 {
		readers = append(readers, strings.NewReader(","), strings.NewReader(item))
	}
	return io.MultiReader(append(readers, strings.NewReader("]}"))...)
}

// TestRESTHoldsNoBody is for promise 7: a list costs per item what decoding the
// item alone costs. A body, a list or a raw copy of the items would show.
func TestRESTHoldsNoBody(t *testing.T) {
	const n = 2000
	raw := []byte(decodeBenchPod)
	alone := allocatedBytes(func() {
		for range n {
			if err := informer.DecodePlain(raw, new(corev1.Pod)); err != nil {
				t.Error(err)
			}
		}
	}) / n
	body := decodeLong(decodeBenchPod, n)
	source := restPods(t, restTrip(func(*http.Request) (*http.Response, error) {
		return restResponse(200, "application/json", body), nil
	}))
	got := allocatedBytes(func() {
		count := 0
		for _, err := range source.List(t.Context(), metav1.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			count++
		}
		if count != n+1 {
			t.Errorf("%d steps, want %d", count, n+1)
		}
	}) / n
	if got > alone+alone/50 {
		t.Errorf("%d bytes an item, want %d as for the item alone", got, alone)
	}
}

// allocatedBytes returns how many bytes f allocates.
func allocatedBytes(f func()) int64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// decodeBenchPod is a small pod as servers send it.
const decodeBenchPod = `{"metadata":{"name":"web-1","namespace":"ns","uid":"0d5b1c1e-2c1c-4a4f-9a53-4b6e1b8f1a11","resourceVersion":"1234",` +
	`"creationTimestamp":"2024-01-01T00:00:00Z","labels":{"app":"web","tier":"front"},"annotations":{"a":"b","c":"d"},` +
	`"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1",` +
	`"fieldsV1":{"f:metadata":{"f:labels":{"f:app":{},"f:tier":{}}},"f:spec":{"f:containers":{}}}}]},` +
	`"spec":{"containers":[{"name":"c","image":"img:1","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],` +
	`"resources":{"limits":{"cpu":"100m","memory":"1Gi"},"requests":{"cpu":"50m"}},"ports":[{"containerPort":80}]}],"nodeName":"node-1",` +
	`"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]},` +
	`"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z"}],"podIP":"1.2.3.4"}}`

func BenchmarkFromREST_List(b *testing.B) {
	const n = 1000
	var list strings.Builder
	if _, err := io.Copy(&list, decodeLong(decodeBenchPod, n)); err != nil {
		b.Fatal(err)
	}
	source := restPods(b, restAnswer(list.String()))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range source.List(b.Context(), metav1.ListOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "objects/s")
}

func BenchmarkFromREST_Watch(b *testing.B) {
	const n = 1000
	source := restPods(b, restAnswer(strings.Repeat(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",`+decodeBenchPod[1:]+"}\n", n)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range source.Watch(b.Context(), metav1.ListOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "objects/s")
}

// BenchmarkFromREST_Bare is the Kubernetes decoder on one object that is in
// memory: what a list or watch is to be compared with.
func BenchmarkFromREST_Bare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := kjson.Unmarshal([]byte(decodeBenchPod), new(corev1.Pod)); err != nil {
			b.Fatal(err)
		}
	}
}
