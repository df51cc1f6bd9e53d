package informer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest/prototest"
)

// protoAround has all methods of a Pod, and more fields.
type protoAround struct {
	corev1.Pod `json:",inline"`
	More       string `json:"more"`
}

// protoTagged has the methods of its metadata, which is all that they decode.
type protoTagged struct {
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Spec              decodeSlim `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// restRequest makes a request for objects of that type.
func restRequest[E any, T interface {
	*E
	informer.Object
}](t *testing.T, client rest.Interface) {
	sourceEvents(informer.FromREST[E, T](client, podsGVR(), informer.RESTOptions{}).List(t.Context(), metav1.ListOptions{}))
}

// protoAnswer answers every request with 200 and a protobuf body.
func protoAnswer(body []byte) restTrip {
	return protoTrip(func() io.Reader { return bytes.NewReader(body) })
}

func protoTrip(body func() io.Reader) restTrip {
	return func(r *http.Request) (*http.Response, error) {
		return restResponse(200, prototest.ContentType, body()), nil
	}
}

// goldenProto encodes as API servers do.
func goldenProto(t testing.TB, obj runtime.Object, kind string) []byte {
	t.Helper()
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// goldenFrame encodes a frame as API servers do.
func goldenFrame(t testing.TB, event string, obj runtime.Object, kind string) []byte {
	t.Helper()
	var out bytes.Buffer
	frame := &metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: goldenProto(t, obj, kind)}}
	if err := protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme).Encode(frame, protobuf.LengthDelimitedFramer.NewFrameWriter(&out)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// protoPod returns a pod with something of everything that is coded by hand.
func protoPod(name string) *corev1.Pod {
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(decodeBenchPod), pod); err != nil {
		panic(err)
	}
	pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion = "n", name, "u", "5"
	return pod
}

// podBytes returns a pod's message.
func podBytes(name string) []byte {
	raw, err := protoPod(name).Marshal()
	if err != nil {
		panic(err)
	}
	return raw
}

// protoBookmark returns a bookmark; end makes it end the initial state.
func protoBookmark(version string, end bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if end {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return pod
}

var protoListMeta = metav1.ListMeta{ResourceVersion: "9", Continue: "c"}

// Promises 3, 12, 20 and 29: golden bytes, in pieces of every size.
func TestProtoGolden(t *testing.T) {
	list := goldenProto(t, &corev1.PodList{ListMeta: protoListMeta, Items: []corev1.Pod{*protoPod("a"), *protoPod("b"), {}}}, "PodList")
	frames := slices.Concat(
		goldenFrame(t, "ADDED", protoPod("a"), "Pod"), goldenFrame(t, "BOOKMARK", protoBookmark("7", false), "Pod"),
		goldenFrame(t, "BOOKMARK", protoBookmark("8", true), "Pod"), goldenFrame(t, "BOOKMARK", protoBookmark("9", true), "Pod"),
		goldenFrame(t, "MODIFIED", protoPod("a"), "Pod"), goldenFrame(t, "ADDED", &corev1.Pod{}, "Pod"),
		goldenFrame(t, "MODIFIED", protoPod("x"), "Secret"), goldenFrame(t, "DELETED", protoPod("a"), "Pod"),
		goldenFrame(t, "ERROR", &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}, "Status"))
	a, b := "n/a uid=u v=5", "n/b uid=u v=5"
	yes := true
	for name, read := range map[string]func(io.Reader) io.Reader{
		"at once":       func(r io.Reader) io.Reader { return r },
		"byte by byte":  iotest.OneByteReader,
		"in halves":     iotest.HalfReader,
		"with the end":  iotest.DataErrReader,
		"by 1000 bytes": func(r io.Reader) io.Reader { return pieces{r, 1000} },
	} {
		t.Run(name, func(t *testing.T) {
			end := &restBody{Reader: read(bytes.NewReader(list))}
			source := restPods(t, protoTrip(func() io.Reader { return end }))
			wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})), "Added "+a, "Added "+b, "Bad / uid= v=", "End v=9 next=c")
			if !end.end || !end.closed {
				t.Error("the body was not read to its end, or not closed")
			}
			source = restPods(t, protoTrip(func() io.Reader { return read(bytes.NewReader(frames)) }))
			wantSteps(t, sourceEvents(source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})),
				"Added "+a, "Bookmark v=7", "End v=8 next=", "Bookmark v=9", "Modified "+a, "Bad / uid= v=", "Bad n/x uid=u v=5",
				"Deleted "+a+" exact=true", "error too old")
		})
	}
}

// Promise 20: what is no list of pods is an error that says what it is, as with JSON.
func TestProtoListErrors(t *testing.T) {
	status := &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}
	list := func(kind string, items ...[]byte) []byte { return prototest.List("v1", kind, protoListMeta, items...) }
	magic := prototest.Magic
	field := func(n int, s string) string { return string(prototest.Field(n, []byte(s))) }
	for name, tt := range map[string]struct {
		body []byte
		want []string
	}{
		"status":             {goldenProto(t, status, "Status"), []string{"error too old"}},
		"another kind":       {list("SecretList", podBytes("a")), []string{"error informer: wrong type: the source is for v1.Pod, the client sends v1 SecretList"}},
		"no list":            {prototest.Envelope("v1", "Pod", podBytes("a")), []string{"error informer: wrong type: …"}},
		"no kind":            {list("", podBytes("a")), []string{"Added n/a uid=u v=5", "End v=9 next=c"}},
		"no version":         {prototest.List("v1", "PodList", metav1.ListMeta{}), []string{"error informer: the list has no resource version"}},
		"empty":              {nil, []string{"error informer: decode list of v1.Pod: unexpected EOF"}},
		"magic":              {[]byte(magic), []string{`error informer: list of v1.Pod: the server sent no list, but kind ""`}},
		"JSON":               {[]byte(podListJSON("")), []string{"error informer: decode list of v1.Pod: no protobuf of Kubernetes"}},
		"kind comes late":    {[]byte(magic + field(2, field(1, field(2, "9"))+field(2, string(podBytes("a")))) + field(1, field(2, "PodList"))), []string{"Added n/a uid=u v=5", "End v=9 next="}},
		"wrong kind, late":   {[]byte(magic + field(2, field(2, string(podBytes("a")))) + field(1, field(2, "SecretList"))), []string{"Added n/a uid=u v=5", "error informer: wrong type: …"}},
		"items first":        {[]byte(magic + field(1, field(2, "PodList")) + field(2, field(2, string(podBytes("a")))+field(1, field(2, "9")))), []string{"Added n/a uid=u v=5", "End v=9 next="}},
		"metadata twice":     {[]byte(magic + field(2, field(1, field(2, "8")+field(3, "c"))+field(1, field(2, "9")))), []string{"End v=9 next=c"}},
		"unknown fields":     {[]byte(magic + "\x28\x01" + field(2, field(7, "x")+"\x40\x80\x01\x4d1234\x5112345678\x1b\x2b\x0a\x01x\x2c\x1c"+field(1, field(2, "9"))) + field(9, "")), []string{"End v=9 next="}},
		"two lists":          {[]byte(magic + field(2, field(1, field(2, "9"))) + field(2, "")), []string{"error informer: decode list of v1.Pod: a second list"}},
		"encoded":            {[]byte(magic + field(2, field(1, field(2, "9"))) + field(3, "gzip")), []string{"error informer: decode list of v1.Pod: a protobuf that is encoded further"}},
		"a length that lies": {[]byte(magic + "\x12\x05\x12\x06abcdef"), []string{"error informer: decode list of v1.Pod: unexpected EOF"}},
		"a long length":      {[]byte(magic + "\x12\x80\x80\x80\x80\x80\x80\x80\x80\x40\x12\x80\x80\x80\x80\x80\x80\x80\x80\x3fabc"), []string{"error informer: decode list of v1.Pod: unexpected EOF"}},
		"a negative length":  {[]byte(magic + "\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), []string{"error informer: decode list of v1.Pod: a negative length"}},
		"an endless number":  {[]byte(magic + strings.Repeat("\x80", 11)), []string{"error informer: decode list of v1.Pod: a number is longer than 64 bits"}},
		"field 0":            {[]byte(magic + "\x02\x00"), []string{"error informer: decode list of v1.Pod: a field of number 0"}},
		"end of a group":     {[]byte(magic + "\x0c"), []string{"error informer: decode list of v1.Pod: the end of a group that did not begin"}},
		"a group of items":   {[]byte(magic + "\x12\x02\x13\x14"), []string{"error informer: decode list of v1.Pod: a known field of wire type 3"}},
		"a group, no end":    {[]byte(magic + "\x33\x33"), []string{"error informer: decode list of v1.Pod: unexpected EOF"}},
		"wire type 7":        {[]byte(magic + "\x37"), []string{"error informer: decode list of v1.Pod: a field of wire type 7"}},
		"an inside too long": {[]byte(magic + "\x12\x02\x18\x80\x01"), []string{"error informer: decode list of v1.Pod: unexpected EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantSteps(t, sourceEvents(restPods(t, protoAnswer(tt.body)).List(t.Context(), metav1.ListOptions{})), tt.want...)
		})
	}
}

// Promise 20: the same of a watch.
func TestProtoWatchErrors(t *testing.T) {
	pod := goldenProto(t, protoPod("a"), "Pod")
	event := func(content string) []byte {
		return prototest.Prefixed([]byte(content))
	}
	field := func(n int, s string) string { return string(prototest.Field(n, []byte(s))) }
	added := "Added n/a uid=u v=5"
	failed := func(text string) string { return "error informer: decode watch of v1.Pod: " + text }
	for name, tt := range map[string]struct {
		body []byte
		want []string
	}{
		"nothing":           {nil, nil},
		"object first":      {event(field(2, field(1, string(pod))) + field(1, "ADDED")), []string{added}},
		"twice":             {event(field(1, "x") + field(1, "ADDED") + field(2, field(1, "x")) + field(2, field(1, string(pod)))), []string{added}},
		"no object":         {event(field(1, "ADDED")), []string{failed(`"ADDED" event without an object`)}},
		"no type":           {event(field(2, field(1, string(pod)))), []string{failed(`unknown event type ""`)}},
		"unknown type":      {prototest.Frame("secret", pod), []string{failed(`unknown event type "…"`)}},
		"no protobuf":       {append(prototest.Frame("ADDED", []byte("{}")), prototest.Frame("ADDED", pod)...), []string{"Bad / uid= v=", added}},
		"empty frame":       {[]byte("\x00\x00\x00\x00"), []string{failed(`"" event without an object`)}},
		"another kind":      {prototest.Frame("ADDED", prototest.Envelope("v1", "Table", nil)), []string{"error informer: wrong type: the source is for v1.Pod, the client sends v1 Table"}},
		"a list":            {prototest.Prefixed(prototest.List("v1", "PodList", protoListMeta)), []string{failed("unexpected EOF")}},
		"a broken bookmark": {prototest.Frame("BOOKMARK", prototest.Envelope("v1", "Pod", []byte("\x0a\x05"))), []string{failed("unexpected EOF")}},
		"a large bookmark":  {prototest.Frame("BOOKMARK", prototest.Envelope("v1", "Pod", make([]byte, mib+1))), []string{failed("more than 1 MiB that is no object")}},
		"a broken status":   {prototest.Frame("ERROR", []byte("x")), []string{failed("no protobuf of Kubernetes")}},
		"a broken object":   {prototest.Frame("ADDED", prototest.Envelope("v1", "Pod", append(podBytes("a"), 0x10))), []string{"Bad n/a uid=u v=5"}},
		"a broken deletion": {prototest.Frame("DELETED", prototest.Envelope("v1", "Pod", append(podBytes("a"), 0x10))), []string{"Deleted n/a uid=u v=5 exact=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantSteps(t, sourceEvents(restPods(t, protoAnswer(tt.body)).Watch(t.Context(), metav1.ListOptions{})), tt.want...)
		})
	}
}

// Promise 12: an object that cannot be decoded is one bad object, with its key
// wherever its metadata is; what is wrong is told, and no content of it.
func TestProtoBadObjects(t *testing.T) {
	good := podBytes("a")
	about := prototest.Field(1, prototest.Field(1, []byte("x")))
	spec := prototest.Field(2, []byte("\x0a\x05"+canaryBody))
	list := prototest.List("v1", "PodList", protoListMeta,
		slices.Concat(about, spec), slices.Concat(spec, about), []byte("\xff"), slices.Concat(about, []byte("\x10\x01")), good)
	source := restPods(t, protoAnswer(list))
	wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})),
		"Bad /x uid= v=", "Bad /x uid= v=", "Bad / uid= v=", "Bad /x uid= v=", "Added n/a uid=u v=5", "End v=9 next=c")
	var texts []string
	for _, err := range sourceErrors(source.List(t.Context(), metav1.ListOptions{})) {
		texts = append(texts, err.Error())
	}
	want := []string{`object "/x": unexpected EOF`, `object "/x": unexpected EOF`, `object "/": unexpected EOF`, `object "/x": proto: wrong wireType = 0 for field Spec`}
	if len(texts) != 4 || texts[3] != want[3] {
		t.Errorf("got %q, want %q", texts, want)
	}
}

// Promises 11 and 29: a body that ends at any byte is an error, unless it is a
// watch that ends between two frames, and what was complete has been told.
func TestProtoTruncated(t *testing.T) {
	list := prototest.List("v1", "PodList", protoListMeta, podBytes("a"), podBytes("b"))
	about := len(prototest.Envelope("v1", "PodList", nil)) - 4
	for n := range len(list) {
		steps := sourceEvents(restPods(t, protoAnswer(list[:n])).List(t.Context(), metav1.ListOptions{}))
		last := steps[len(steps)-1]
		want := "error informer: decode list of v1.Pod: unexpected EOF"
		switch n {
		case len(prototest.Magic):
			want = `error informer: list of v1.Pod: the server sent no list, but kind ""`
		case about:
			want = "error informer: the list has no resource version"
		case len(list) - 2, len(list) - 4: // all behind it is empty
			want = "End v=9 next=c"
		}
		if last != want {
			t.Errorf("%d bytes: %q, want %s", n, steps, want)
		}
	}
	frame := prototest.Frame("ADDED", prototest.Envelope("v1", "Pod", podBytes("a")))
	frames := slices.Concat(frame, frame)
	for n := range len(frames) + 1 {
		steps := sourceEvents(restPods(t, protoAnswer(frames[:n])).Watch(t.Context(), metav1.ListOptions{}))
		for range n / len(frame) {
			if steps[0] != "Added n/a uid=u v=5" {
				t.Fatalf("%d bytes: %q", n, steps)
			}
			steps = steps[1:]
		}
		if broken := n%len(frame) != 0; broken != (len(steps) == 1) {
			t.Errorf("%d bytes: %q", n, steps)
		}
	}
}

// Promise 20: the answer decides how it is decoded, and one that nobody asked for
// is an error.
func TestProtoContentType(t *testing.T) {
	list := prototest.List("v1", "PodList", protoListMeta, podBytes("a"))
	text := podListJSON(podItem("a"))
	for _, tt := range []struct{ contentType, body, want string }{
		{"application/vnd.kubernetes.protobuf", string(list), "Added n/a uid=u v=5"},
		{"application/vnd.kubernetes.protobuf;stream=watch", string(list), "Added n/a uid=u v=5"},
		{"application/json", text, "Added n/a uid=u-a v=5"},
		{"application/json; charset=utf-8", text, "Added n/a uid=u-a v=5"},
		{"", text, "Added n/a uid=u-a v=5"},
		{"text/html; charset=utf-8", "<html>", `error informer: request for v1.Pod: the answer is of content type "text/html", which was not asked for`},
		{"a b c", text, `error informer: request for v1.Pod: the answer is of content type "a b c", which was not asked for`},
	} {
		trip := restTrip(func(*http.Request) (*http.Response, error) {
			return restResponse(200, tt.contentType, strings.NewReader(tt.body)), nil
		})
		if got := sourceEvents(restPods(t, trip).List(t.Context(), metav1.ListOptions{}))[0]; got != tt.want {
			t.Errorf("%q: %s, want %s", tt.contentType, got, tt.want)
		}
	}
	slim := informer.FromREST[decodeSlim](restClient(t, protoAnswer(list)), podsGVR(), informer.RESTOptions{})
	wantSteps(t, sourceEvents(slim.List(t.Context(), metav1.ListOptions{})),
		`error informer: request for informer_test.decodeSlim: the answer is of content type "application/vnd.kubernetes.protobuf", which was not asked for`)
}

// Promise 20: an error in protobuf says all that it says, to a client too that
// knows JSON only.
func TestProtoStatus(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	expired.ErrStatus.Continue = "go on here"
	body := goldenProto(t, &expired.ErrStatus, "Status")
	trip := restTrip(func(*http.Request) (*http.Response, error) {
		return restResponse(410, prototest.ContentType, bytes.NewReader(body)), nil
	})
	config := dynamic.ConfigFor(restConfig(trip))
	config.GroupVersion, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, jsonOnly{scheme.Codecs}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []rest.Interface{client, restClient(t, trip)} {
		source := informer.FromREST[corev1.Pod](client, podsGVR(), informer.RESTOptions{})
		for _, seq := range []func() error{
			func() error { return sourceErrors(source.List(t.Context(), metav1.ListOptions{}))[0] },
			func() error { return sourceErrors(source.Watch(t.Context(), metav1.ListOptions{}))[0] },
		} {
			err := seq()
			var status apierrors.APIStatus
			if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) || status.Status().Continue != "go on here" {
				t.Errorf("error %#v", err)
			}
		}
	}
	broken := restTrip(func(*http.Request) (*http.Response, error) {
		return restResponse(403, prototest.ContentType, strings.NewReader("garbage")), nil
	})
	for _, err := range sourceErrors(restPods(t, broken).List(t.Context(), metav1.ListOptions{})) {
		if !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
	}
}

// jsonOnly is a codec factory without protobuf.
type jsonOnly struct{ runtime.NegotiatedSerializer }

func (j jsonOnly) SupportedMediaTypes() []runtime.SerializerInfo {
	return j.NegotiatedSerializer.SupportedMediaTypes()[:1]
}

// protoWire holds the same objects as one list and as one watch.
func protoWire(t testing.TB, kind, apiVersion string, objects []runtime.Object) restTrip {
	t.Helper()
	var items [][]byte
	var frames []byte
	for _, obj := range objects {
		raw, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, raw)
		frames = append(frames, prototest.Frame("ADDED", prototest.Envelope(apiVersion, kind, raw))...)
		frames = append(frames, prototest.Frame("DELETED", prototest.Envelope(apiVersion, kind, raw))...)
	}
	list := prototest.List(apiVersion, kind+"List", protoListMeta, items...)
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "true" {
			return restResponse(200, prototest.ContentType+";stream=watch", bytes.NewReader(frames)), nil
		}
		return restResponse(200, prototest.ContentType, bytes.NewReader(list)), nil
	}
}

// TestProtoLikeClients: what FromREST yields is deeply equal to what typed and
// metadata clients make of the same bytes.
func TestProtoLikeClients(t *testing.T) {
	cs := kubernetes.NewForConfigOrDie(restConfig(protoWire(t, "Pod", "v1", decodeFilled[corev1.Pod](t))))
	decodeEqual(t, "pods",
		informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), podsGVR(), informer.RESTOptions{}),
		informer.FromClient[*corev1.Pod](cs.CoreV1().Pods("")))
	cs = kubernetes.NewForConfigOrDie(restConfig(protoWire(t, "Deployment", "apps/v1", decodeFilled[appsv1.Deployment](t))))
	decodeEqual(t, "deployments",
		informer.FromREST[appsv1.Deployment](cs.CoreV1().RESTClient(), appsv1.SchemeGroupVersion.WithResource("deployments"), informer.RESTOptions{}),
		informer.FromClient[*appsv1.Deployment](cs.AppsV1().Deployments("")))
	trip := protoWire(t, "PartialObjectMetadata", "meta.k8s.io/v1", decodeFilled[metav1.PartialObjectMetadata](t))
	decodeEqual(t, "metadata",
		informer.FromREST[metav1.PartialObjectMetadata](restClient(t, trip), podsGVR(), informer.RESTOptions{}),
		informer.FromClient[*metav1.PartialObjectMetadata](metadata.NewForConfigOrDie(metadata.ConfigFor(restConfig(trip))).Resource(podsGVR())))
}

// TestProtoAllKinds: every kind of the API that can be listed decodes itself, and
// its lists have their items where all have them.
func TestProtoAllKinds(t *testing.T) {
	kinds := 0
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		list, ok := scheme.Scheme.AllKnownTypes()[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		if !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if !reflect.PointerTo(typ).Implements(reflect.TypeFor[metav1.Object]()) {
			continue // as APIGroup
		}
		kinds++
		if !informer.DecodesProto(typ) {
			t.Errorf("%v is asked for as JSON", gvk)
		}
		items := reflect.New(list)
		one := reflect.MakeSlice(reflect.SliceOf(typ), 1, 1)
		about, err := meta.Accessor(one.Index(0).Addr().Interface())
		if err != nil {
			t.Errorf("%v: %v", gvk, err)
			continue
		}
		about.SetName("x")
		items.Elem().FieldByName("Items").Set(one)
		got, err := items.Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
		item, _ := one.Index(0).Addr().Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
		if want := prototest.Field(2, item); err != nil || !bytes.HasSuffix(got, want) {
			t.Errorf("%vList: % x, want % x", gvk, got, want)
		}
	}
	if kinds < 100 {
		t.Errorf("only %d kinds", kinds)
	}
}

// TestProtoKeepsNothing: what is decoded is not in the memory that it was
// decoded from, which is used again.
func TestProtoKeepsNothing(t *testing.T) {
	objects := decodeFilled[corev1.Pod](t)
	raw, err := objects[0].(*corev1.Pod).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var before, after corev1.Pod
	if err := errors.Join(before.Unmarshal(bytes.Clone(raw)), after.Unmarshal(raw)); err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}
