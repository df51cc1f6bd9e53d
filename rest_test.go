package informer_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
)

// restTrip answers requests without a network.
type restTrip func(*http.Request) (*http.Response, error)

func (f restTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// restBody is a response body that notes how it was used.
type restBody struct {
	io.Reader
	closed bool
	end    bool // its end was read
}

func (b *restBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.end = b.end || err != nil
	return n, err
}

func (b *restBody) Close() error { b.closed = true; return nil }

func restResponse(code int, contentType string, body io.Reader) *http.Response {
	rc, ok := body.(io.ReadCloser)
	if !ok {
		rc = io.NopCloser(body)
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: rc}
}

// restAnswer answers every request with 200 and body.
func restAnswer(body string) restTrip {
	return func(*http.Request) (*http.Response, error) {
		return restResponse(200, "application/json", strings.NewReader(body)), nil
	}
}

func restConfig(trip http.RoundTripper) *rest.Config {
	return &rest.Config{Host: "http://server.invalid", Transport: trip, QPS: -1, BearerToken: canaryToken}
}

func restClient(t testing.TB, trip http.RoundTripper) rest.Interface {
	t.Helper()
	cs, err := kubernetes.NewForConfig(restConfig(trip))
	if err != nil {
		t.Fatal(err)
	}
	return cs.CoreV1().RESTClient()
}

func podsGVR() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

func restPods(t testing.TB, trip http.RoundTripper) informer.ListerWatcher[*corev1.Pod] {
	t.Helper()
	return informer.FromREST[corev1.Pod](restClient(t, trip), podsGVR(), informer.RESTOptions{})
}

// sourceEvents ranges over a sequence and writes each step as one line.
func sourceEvents[T informer.Object](seq iter.Seq2[informer.Event[T], error]) []string {
	var out []string
	for ev, err := range seq {
		out = append(out, sourceStep(ev, err))
	}
	return out
}

func sourceStep[T informer.Object](ev informer.Event[T], err error) string {
	seen.err("a source", err)
	var bad *informer.ObjectError
	switch {
	case errors.As(err, &bad):
		if bad.Key != ev.Key || bad.Err == nil {
			return fmt.Sprintf("BROKEN %v %v", ev, err)
		}
		return fmt.Sprintf("%v %s uid=%s v=%s", ev.Type, ev.Key, ev.UID, ev.Version)
	case err != nil:
		return "error " + err.Error()
	}
	switch ev.Type {
	case informer.EventEnd:
		return fmt.Sprintf("End v=%s next=%s", ev.Version, ev.Continue)
	case informer.EventBookmark:
		return "Bookmark v=" + ev.Version
	case informer.EventDeleted:
		return fmt.Sprintf("Deleted %s uid=%s v=%s exact=%t", ev.Key, ev.UID, ev.Version, ev.Exact)
	}
	return fmt.Sprintf("%v %s uid=%s v=%s", ev.Type, ev.Key, ev.UID, ev.Version)
}

// wantSteps compares steps; a wanted step that ends in "…" is a prefix.
func wantSteps(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		prefix, cut := strings.CutSuffix(want[i], "…")
		ok = got[i] == want[i] || cut && strings.HasPrefix(got[i], prefix)
	}
	if !ok {
		t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func podListJSON(items string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"c"},"items":[` + items + `]}`
}

func podItem(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"n","uid":"u-%s","resourceVersion":"5","annotations":{"a":%q}}}`, name, name, canaryBody)
}

// TestRESTList (promises 12, 20 and 29): what a list says, well or badly; a list
// that is none, or breaks off, is an error; and the body is closed.
func TestRESTList(t *testing.T) {
	a, b := podItem("a"), podItem("b")
	tests := []struct {
		name, body string
		want       []string
	}{
		{"items", podListJSON(a + "," + b), []string{"Added n/a uid=u-a v=5", "Added n/a uid=u-b v=5", "End v=9 next=c"}},
		{"metadata after items", `{"apiVersion":"v1","items":[` + a + `],"kind":"PodList","metadata":{"resourceVersion":"9"}}`,
			[]string{"Added n/a uid=u-a v=5", "End v=9 next="}},
		{"no items", `{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[]}`, []string{"End v=9 next="}},
		{"null items", `{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":null}`, []string{"End v=9 next="}},
		{"items twice", `{"items":[` + a + `],"items":[],"metadata":{"resourceVersion":"9"}}`, []string{"Added n/a uid=u-a v=5", "error informer: decode list of v1.Pod: a second…"}},
		{"status without message", `{"kind":"Status","status":"Failure","code":500}`, []string{`error the server sent the status "Failure", reason "", code 500`}},
		{"unknown members", `{"x":{"items":[1]},"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[]}`, []string{"End v=9 next="}},
		{"no version", `{"kind":"PodList","metadata":{},"items":[` + a + `]}`,
			[]string{"Added n/a uid=u-a v=5", "error informer: the list has no resource version"}},
		{"status", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"gone","reason":"Expired","code":410}`,
			[]string{"error gone"}},
		{"status, kind last", `{"apiVersion":"v1","code":410,"message":"gone","reason":"Expired","status":"Failure","kind":"Status"}`,
			[]string{"error gone"}},
		{"other kind", `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + a + `]}`,
			[]string{"error informer: wrong type: the source is for v1.Pod, the client sends v1 ServiceList"}},
		{"other kind, last", `{"items":[` + a + `],"kind":"ServiceList","metadata":{"resourceVersion":"9"}}`,
			[]string{"Added n/a uid=u-a v=5", "error informer: wrong type: …"}},
		{"an object", `{"kind":"Pod","metadata":{"name":"a","resourceVersion":"9"}}`, []string{"error informer: wrong type: …"}},
		{"no list", `{"metadata":{"resourceVersion":"9"}}`, []string{`error informer: list of v1.Pod: the server sent no list…`}},
		{"empty body", ``, []string{"error informer: decode list of v1.Pod: …"}},
		{"no object", `[]`, []string{"error informer: decode list of v1.Pod: …"}},
		{"items are no array", `{"items":{},"metadata":{"resourceVersion":"9"}}`, []string{"error informer: decode list of v1.Pod: …"}},
		{"truncated item", podListJSON(a)[:120], []string{"error informer: decode list of v1.Pod: …"}},
		{"truncated after items", strings.TrimSuffix(podListJSON(a), "}"), []string{"Added n/a uid=u-a v=5", "error informer: decode list of v1.Pod: …"}},
		{"broken item", podListJSON(a + `,{"metadata":}`), []string{"Added n/a uid=u-a v=5", "error informer: decode list of v1.Pod: …"}},
		{"more than one value", podListJSON(a) + `{}`, []string{"Added n/a uid=u-a v=5", "error informer: decode list of v1.Pod: more than one…"}},
		{"protobuf", "k8s\x00\n\r\n\x02v1\x12\aPodList", []string{"error informer: decode list of v1.Pod: …"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.want {
				tt.want[i] = strings.Replace(tt.want[i], "n/a uid=u-b", "n/b uid=u-b", 1)
			}
			body := &restBody{Reader: strings.NewReader(tt.body)}
			source := restPods(t, restTrip(func(*http.Request) (*http.Response, error) {
				return restResponse(200, "application/json", body), nil
			}))
			wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})), tt.want...)
			if !body.closed {
				t.Error("the body was not closed")
			}
			if last := tt.want[len(tt.want)-1]; strings.HasPrefix(last, "End") && !body.end {
				t.Error("the end of the body was not read: its connection is lost")
			}
		})
	}
}

// TestRESTTruncated cuts a list and a watch at every byte: a list is then never
// complete (promise 20), and a watch ends without an error only between two frames.
func TestRESTTruncated(t *testing.T) {
	list := podListJSON(podItem("a") + "," + `{"metadata":{"name":"b"},"spec":7}`)
	for i := range list {
		steps := sourceEvents(restPods(t, restAnswer(list[:i])).List(t.Context(), metav1.ListOptions{}))
		if last := steps[len(steps)-1]; !strings.HasPrefix(last, "error ") {
			t.Fatalf("list cut at %d: %q", i, steps)
		}
	}
	frame := `{"type":"ADDED","object":` + podItem("a") + `}` + "\n"
	for i := range 2 * len(frame) {
		var last error
		for _, err := range restPods(t, restAnswer((frame + frame)[:i])).Watch(t.Context(), metav1.ListOptions{}) {
			last = err
		}
		clean := i == 0 || i == len(frame)-1 || i == len(frame) || i == 2*len(frame)-1
		if clean != (last == nil) || !clean && !errors.Is(last, io.ErrUnexpectedEOF) {
			t.Fatalf("watch cut at %d: error %v", i, last)
		}
	}
}

// TestRESTBadObjects is for promise 12 and k8s#57705: one bad object is one bad
// object, with its key, wherever its fault is.
func TestRESTBadObjects(t *testing.T) {
	bads := map[string]string{
		`{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"3"},"spec":{"nodeName":[1,{"a":[]}]}}`: "Bad n/x uid=u v=3",
		`{"spec":{"containers":[{"name":1},2]},"metadata":{"name":"x","namespace":"n"}}`:                             "Bad n/x uid= v=",
		`{"metadata":{"labels":5,"annotations":[],"name":"x","namespace":"n"}}`:                                      "Bad n/x uid= v=",
		`{"metadata":{"creationTimestamp":"yesterday","name":"x","namespace":"n"}}`:                                  "Bad n/x uid= v=",
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"one"}}}]},"metadata":{"name":"x"}}`:                   "Bad /x uid= v=",
		`{"metadata":{"namespace":"n","uid":"u","resourceVersion":"3"}}`:                                             "Bad n/ uid=u v=3",
		`{"metadata":7}`: "Bad / uid= v=",
		`"text"`:         "Bad / uid= v=",
		`[{}]`:           "Bad / uid= v=",
		`null`:           "Bad / uid= v=",
		`1e999`:          "Bad / uid= v=",
	}
	for bad, want := range bads {
		source := restPods(t, restAnswer(podListJSON(podItem("a")+","+bad+","+podItem("b"))))
		wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})),
			"Added n/a uid=u-a v=5", want, "Added n/b uid=u-b v=5", "End v=9 next=c")

		source = restPods(t, restAnswer(`{"type":"MODIFIED","object":`+bad+`}{"object":`+bad+`,"type":"ADDED"}{"type":"DELETED","object":`+podItem("b")+`}`))
		wantSteps(t, sourceEvents(source.Watch(t.Context(), metav1.ListOptions{})),
			want, want, "Deleted n/b uid=u-b v=5 exact=true")
	}
}

func TestRESTWatch(t *testing.T) {
	frame := func(typ, object string) string { return `{"type":"` + typ + `","object":` + object + `}` + "\n" }
	a := podItem("a")
	end := `{"kind":"Pod","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}`
	mark := `{"kind":"Pod","metadata":{"resourceVersion":"8"}}`
	expired := `{"kind":"Status","status":"Failure","message":"old","reason":"Expired","code":410}`
	tests := []struct {
		name, body string
		want       []string
	}{
		{"types", frame("ADDED", a) + frame("MODIFIED", a) + frame("DELETED", a) + frame("BOOKMARK", mark),
			[]string{"Added n/a uid=u-a v=5", "Modified n/a uid=u-a v=5", "Deleted n/a uid=u-a v=5 exact=true", "Bookmark v=8"}},
		{"object first", `{"object":` + a + `,"x":[1],"type":"MODIFIED"}`, []string{"Modified n/a uid=u-a v=5"}},
		{"initial state", frame("ADDED", a) + frame("BOOKMARK", end) + frame("BOOKMARK", end), []string{"Added n/a uid=u-a v=5", "End v=7 next=", "Bookmark v=7"}},
		{"bookmark without version", frame("BOOKMARK", `{"metadata":{}}`) + frame("ADDED", a), []string{"Added n/a uid=u-a v=5"}},
		{"end without version", frame("BOOKMARK", `{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}`), []string{"error informer: …"}},
		{"error", frame("ADDED", a) + frame("ERROR", expired) + frame("ADDED", a), []string{"Added n/a uid=u-a v=5", "error old"}},
		{"error without status", frame("ERROR", a), []string{"error the server sent the status …"}},
		{"bad deletion with key", frame("DELETED", `{"metadata":{"name":"a","namespace":"n","uid":"u"},"spec":1}`),
			[]string{"Deleted n/a uid=u v= exact=false"}},
		{"bad deletion without key", frame("DELETED", `{"spec":1}`), []string{"Bad / uid= v="}},
		{"other kind first", frame("ADDED", `{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"},"spec":{"nodeName":1}}`), []string{"error informer: wrong type: the source is for v1.Pod, the client sends v1 Service"}},
		{"other kind later", frame("ADDED", a) + frame("MODIFIED", `{"kind":"Service","metadata":{"name":"s"}}`) + frame("ADDED", a),
			[]string{"Added n/a uid=u-a v=5", "Bad /s uid= v=", "Added n/a uid=u-a v=5"}},
		{"unknown type", frame("RENAMED", a), []string{`error informer: decode watch of v1.Pod: unknown event type "RENAMED"`}},
		{"no type", `{"object":` + a + `}`, []string{`error informer: decode watch of v1.Pod: unknown event type ""`}},
		{"no object", `{"type":"ADDED"}`, []string{`error informer: decode watch of v1.Pod: "ADDED" event without an object`}},
		{"type is no string", `{"type":1}`, []string{`error informer: decode watch of v1.Pod: …`}},
		{"no frame", `7`, []string{`error informer: decode watch of v1.Pod: …`}},
		{"nothing", ``, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			initial := true
			opts := metav1.ListOptions{SendInitialEvents: &initial}
			wantSteps(t, sourceEvents(restPods(t, restAnswer(tt.body)).Watch(t.Context(), opts)), tt.want...)
		})
	}
	steps := sourceEvents(restPods(t, restAnswer(frame("BOOKMARK", end))).Watch(t.Context(), metav1.ListOptions{}))
	wantSteps(t, steps, "Bookmark v=7") // nobody asked for an initial state
}

// TestRESTErrors (promises 9 and 20): what a server answers is an error that
// the usual predicates recognise; and it is asked once.
func TestRESTErrors(t *testing.T) {
	for _, watch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { restErrors(t, watch) }) // a client that retries does so after a pause
	}
}

func restErrors(t *testing.T, watch bool) {
	requests := 0
	status := func(code int, reason string) restTrip {
		return func(*http.Request) (*http.Response, error) {
			requests++
			return restResponse(code, "application/json", strings.NewReader(
				fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code))), nil
		}
	}
	run := func(trip restTrip) error {
		source := restPods(t, trip)
		seq := source.List(t.Context(), metav1.ListOptions{})
		if watch {
			seq = source.Watch(t.Context(), metav1.ListOptions{})
		}
		var last error
		for _, last = range seq {
		}
		return last
	}
	for name, ok := range map[string]bool{
		"forbidden": apierrors.IsForbidden(run(status(403, "Forbidden"))),
		"not found": apierrors.IsNotFound(run(status(404, "NotFound"))),
		"method":    apierrors.IsMethodNotSupported(run(status(405, "MethodNotAllowed"))),
		"expired":   apierrors.IsResourceExpired(run(status(410, "Expired"))),
	} {
		if !ok {
			t.Errorf("watch=%t: %s is not recognised", watch, name)
		}
	}
	requests = 0
	err := run(func(*http.Request) (*http.Response, error) {
		if requests++; requests > 1 { // or a client that retries would do so for a minute
			return restResponse(500, "text/plain", strings.NewReader("again")), nil
		}
		r := restResponse(429, "text/plain", strings.NewReader("busy"))
		r.Header.Set("Retry-After", "7")
		return r, nil
	})
	if seconds, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !ok || seconds != 7 || requests != 1 {
		t.Errorf("429: error %v, delay %d, %d requests; want a delay of 7 and one request", err, seconds, requests)
	}
	down := errors.New("connection refused")
	if err := run(func(*http.Request) (*http.Response, error) { return nil, down }); !errors.Is(err, down) {
		t.Errorf("error %v, want it to wrap %v", err, down)
	}
}

func TestRESTRequest(t *testing.T) {
	var got *http.Request
	client := restClient(t, restTrip(func(r *http.Request) (*http.Response, error) {
		got = r
		return restResponse(200, "application/json", strings.NewReader("")), nil
	}))
	yes, seconds := true, int64(30)
	opts := metav1.ListOptions{
		LabelSelector: "a=b,c", ResourceVersion: "5", ResourceVersionMatch: "NotOlderThan", Limit: 3,
		SendInitialEvents: &yes, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}
	sourceEvents(informer.FromREST[corev1.Pod](client, podsGVR(), informer.RESTOptions{Namespace: "ns"}).Watch(t.Context(), opts))
	want := "/api/v1/namespaces/ns/pods?allowWatchBookmarks=true&labelSelector=a%3Db%2Cc&limit=3&resourceVersion=5&" +
		"resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=30&watch=true"
	if got.URL.RequestURI() != want || got.Header.Get("Accept") != "application/vnd.kubernetes.protobuf,application/json" {
		t.Errorf("watch: %s, Accept %s; want %s", got.URL.RequestURI(), got.Header.Get("Accept"), want)
	}
	for name, source := range map[string]func(){
		"unstructured":       func() { restRequest[unstructured.Unstructured](t, client) },
		"a user's own part":  func() { restRequest[decodeSlim](t, client) },
		"with all of a Pod":  func() { restRequest[protoAround](t, client) },
		"with tags, no code": func() { restRequest[protoTagged](t, client) },
		"a client of another type": func() {
			restRequest[corev1.Pod](t, struct{ rest.Interface }{client})
		},
	} {
		if source(); got.Header.Get("Accept") != "application/json" {
			t.Errorf("%s: Accept %s", name, got.Header.Get("Accept"))
		}
	}
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "things"}
	partial := informer.FromREST[metav1.PartialObjectMetadata](client, gvr, informer.RESTOptions{})
	sourceEvents(partial.List(t.Context(), metav1.ListOptions{}))
	if got.URL.RequestURI() != "/apis/example.com/v2/things" || got.Header.Get("Accept") != "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"+
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json" {
		t.Errorf("list: %s, Accept %s", got.URL.RequestURI(), got.Header.Get("Accept"))
	}
	sourceEvents(partial.Watch(t.Context(), metav1.ListOptions{}))
	if !strings.HasPrefix(got.Header.Get("Accept"), "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g") {
		t.Errorf("watch: Accept %s", got.Header.Get("Accept"))
	}
}

// TestRESTMistakes (promise 20): a source that cannot work says so when it is
// used, and to the constructors.
func TestRESTMistakes(t *testing.T) {
	client := restClient(t, restAnswer(""))
	var none *rest.RESTClient
	tests := []struct {
		client    rest.Interface
		gvr       schema.GroupVersionResource
		namespace string
		want      string
	}{
		{nil, podsGVR(), "", "REST source of *v1.Pod: client is nil"},
		{none, podsGVR(), "", "client is nil (*rest.RESTClient)"},
		{client, schema.GroupVersionResource{Resource: "pods"}, "", "must have a version and a name"},
		{client, corev1.SchemeGroupVersion.WithResource(""), "", "must have a version and a name"},
		{client, podsGVR(), "a/b", `"a/b" in the path`},
		{client, podsGVR(), "..", `".." in the path`},
	}
	for _, tt := range tests {
		source := informer.FromREST[corev1.Pod](tt.client, tt.gvr, informer.RESTOptions{Namespace: tt.namespace})
		_, err := informer.NewPager(source)
		if err == nil {
			t.Errorf("NewPager takes a source of which %q was to be said", tt.want)
			continue
		}
		steps := append(sourceEvents(source.List(t.Context(), metav1.ListOptions{})), sourceEvents(source.Watch(t.Context(), metav1.ListOptions{}))...)
		if !strings.Contains(err.Error(), tt.want) || len(steps) != 2 || steps[0] != "error "+err.Error() || steps[1] != steps[0] {
			t.Errorf("error %v, steps %q; want %q", err, steps, tt.want)
		}
	}
}

// TestRESTStreams: items and frames are yielded before the next byte is sent,
// and the loop may be left, or the context end, in mid-body.
func TestRESTStreams(t *testing.T) {
	for _, watch := range []bool{false, true} {
		for _, end := range []string{"leave", "cancel"} {
			ctx, cancel := context.WithCancel(t.Context())
			reader, writer := io.Pipe()
			body := &restBody{Reader: reader}
			source := restPods(t, restTrip(func(r *http.Request) (*http.Response, error) {
				context.AfterFunc(r.Context(), func() { reader.CloseWithError(r.Context().Err()) })
				return restResponse(200, "application/json", body), nil
			}))
			parts := []string{`{"metadata":{"resourceVersion":"9"},"items":[` + podItem("a"), `,` + podItem("b"), `,{"metadata":{"na`}
			seq := source.List(ctx, metav1.ListOptions{})
			if watch {
				parts = []string{`{"type":"ADDED","object":` + podItem("a") + `}`, `{"type":"ADDED","object":` + podItem("b") + `}`, `{"type":"ADD`}
				seq = source.Watch(ctx, metav1.ListOptions{})
			}
			next := make(chan string, len(parts))
			next <- parts[0]
			done := make(chan struct{})
			go func() {
				defer close(done)
				for part := range next {
					if _, err := io.WriteString(writer, part); err != nil {
						return
					}
				}
			}()
			var names []string
			var last error
			for ev, err := range seq {
				if last = err; err != nil {
					continue
				}
				names = append(names, ev.Key.Name)
				next <- parts[len(names)]
				if len(names) == 2 && end == "cancel" {
					cancel()
				} else if len(names) == 2 {
					break
				}
			}
			close(next)
			<-done
			cancel()
			if len(names) != 2 || (end == "cancel") != errors.Is(last, context.Canceled) || !body.closed {
				t.Errorf("watch=%t, %s: names %q, error %v, closed %t", watch, end, names, last, body.closed)
			}
		}
	}
}

// TestRESTContextEnded: after the end of the context nothing is yielded but its
// error, though the rest of the body is there.
func TestRESTContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var steps []string
	for ev, err := range restPods(t, restAnswer(podListJSON(podItem("a")+","+podItem("b")))).List(ctx, metav1.ListOptions{}) {
		cancel()
		steps = append(steps, sourceStep(ev, err))
	}
	wantSteps(t, steps, "Added n/a uid=u-a v=5", "error context canceled")
}

func TestRESTUnstructuredBad(t *testing.T) {
	source := informer.FromREST[unstructured.Unstructured](restClient(t, restAnswer(
		`{"items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"n":1e999,"m":{"x":1}},3,{"metadata":{"name":"k"}},{"kind":"Pod","metadata":{"name":"b"}}],`+
			`"metadata":{"resourceVersion":"9"},"kind":"PodList"}`)), podsGVR(), informer.RESTOptions{})
	wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})),
		"Bad /a uid= v=", "Bad / uid= v=", "Bad /k uid= v=", "Added /b uid= v=", "End v=9 next=")
}

// sourceErrors ranges over a sequence and returns its errors.
func sourceErrors[T informer.Object](seq iter.Seq2[informer.Event[T], error]) (errs []error) {
	for _, err := range seq {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// TestRESTServer (promise 29) uses real connections: a list that is complete
// leaves its connection for the next request, and a watch that is left, or
// whose context ends, leaves no goroutine.
func TestRESTServer(t *testing.T) {
	var conns atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, podListJSON(strings.Repeat(podItem("a")+",", 5000)+podItem("b"))+"\n")
			return
		}
		_, _ = io.WriteString(w, `{"type":"ADDED","object":`+podItem("a")+"}\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cs, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	source := informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), podsGVR(), informer.RESTOptions{})
	for range 3 {
		if steps := sourceEvents(source.List(t.Context(), metav1.ListOptions{})); len(steps) != 5002 {
			t.Fatalf("%d steps", len(steps))
		}
	}
	if got := conns.Load(); got != 1 {
		t.Errorf("three lists took %d connections, want 1", got)
	}
	for range source.Watch(t.Context(), metav1.ListOptions{}) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var steps []string
	for ev, err := range source.Watch(ctx, metav1.ListOptions{}) {
		steps = append(steps, sourceStep(ev, err))
		cancel()
	}
	wantSteps(t, steps, "Added n/a uid=u-a v=5", "error context canceled")
	for range source.List(t.Context(), metav1.ListOptions{}) {
		break
	}
}

// TestRESTGzip: a server is asked for gzip as client-go asks for it, and the
// items of a list are there before it has ended (promise 7).
func TestRESTGzip(t *testing.T) {
	second := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		before, after, _ := strings.Cut(podListJSON(podItem("a")+","+podItem("b")), podItem("b"))
		_, _ = io.WriteString(z, before)
		_ = z.Flush()
		w.(http.Flusher).Flush()
		<-second
		_, _ = io.WriteString(z, podItem("b")+after)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cs := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, Transport: transport, QPS: -1})
	var steps []string
	for ev, err := range informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), podsGVR(), informer.RESTOptions{}).List(t.Context(), metav1.ListOptions{}) {
		if steps = append(steps, sourceStep(ev, err)); len(steps) == 1 {
			close(second)
		}
	}
	wantSteps(t, steps, "Added n/a uid=u-a v=5", "Added n/b uid=u-b v=5", "End v=9 next=c")
}
