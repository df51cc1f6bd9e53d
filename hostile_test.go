package informer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
)

const mib = 1 << 20

// A flood is a body that consists of text, with more where it has "@": as many
// bytes of the repeated text as asked for. It samples the heap as it is read.
type flood struct {
	io.Reader
	peak uint64 // of the heap, in bytes
	read int
}

func newFlood(text, more string, size int) *flood {
	before, after, _ := strings.Cut(text, "@")
	return &flood{Reader: io.MultiReader(strings.NewReader(before), repeated(more, size), strings.NewReader(after))}
}

// newFloodOfObjects is a flood of objects that are a little too large.
func newFloodOfObjects(text string, size int) *flood {
	before, after, _ := strings.Cut(text, "@")
	readers := []io.Reader{strings.NewReader(before)}
	for ; size > 0; size -= 66 * mib {
		readers = append(readers, strings.NewReader(`{"metadata":{"name":"x"},"spec":{"hostname":"`), repeated("h", 22*mib),
			strings.NewReader(`","nodeName":"`), repeated("n", 22*mib), strings.NewReader(`","schedulerName":"`), repeated("s", 22*mib),
			strings.NewReader(`"}},`))
	}
	return &flood{Reader: io.MultiReader(append(readers, strings.NewReader(after))...)}
}

// repeated yields text again and again, size bytes in whole repetitions.
func repeated(text string, size int) io.Reader {
	unit := bytes.Repeat([]byte(text), max(1, 32<<10/len(text)))
	size -= size % len(text)
	return io.LimitReader(&repeater{unit: unit}, int64(size))
}

type repeater struct {
	unit []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.unit[r.at:])
	r.at = (r.at + n) % len(r.unit)
	return n, nil
}

func (f *flood) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.read/mib != (f.read+n)/mib {
		f.peak = max(f.peak, heapInUse())
	}
	f.read += n
	return n, err
}

// heapInUse returns how much memory objects take, those included that nobody
// has any more.
func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func floodTrip(code int, body io.Reader) restTrip {
	return func(r *http.Request) (*http.Response, error) {
		return restResponse(code, "application/json", io.NopCloser(&contextReader{r.Context(), body})), nil
	}
}

// contextReader is a body that ends with its request.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// hostileObjects are objects that are too large, with "@" where they are, and
// what is repeated there.
func hostileObjects() map[string]struct{ text, more, key string } {
	known := `{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"3"`
	return map[string]struct{ text, more, key string }{
		"string":            {known + `,"annotations":{"a":"@"}}}`, `\"{}[],: `, "n/x uid=u v=3"},
		"string, late name": {`{"metadata":{"annotations":{"a":"@"},"name":"x"}}`, `a`, "/ uid= v="},
		"many strings":      {known + `,"annotations":{@"z":"z"}}}`, `"a":"` + strings.Repeat("a", 1000) + `",`, "n/x uid=u v=3"},
		"elements":          {known + `},"spec":{"containers":[@{}]}}`, `{},`, "n/x uid=u v=3"},
		"unknown elements":  {known + `},"a":[@1]}`, `1,`, "n/x uid=u v=3"},
		"member name":       {known + `},"@":1}`, `a`, "n/x uid=u v=3"},
		"white space":       {known + `},@"a":1}`, " \n", "n/x uid=u v=3"},
		"number":            {known + `},"a":1@}`, `1`, "n/x uid=u v=3"},
		"depth":             {known + `},"a":@}`, `[`, "n/x uid=u v=3"},
		"just a string":     {`"@"`, `a`, "/ uid= v="},
		"just a number":     {`1@`, `1`, "/ uid= v="},
		"just an array":     {`[@1]`, `1,`, "/ uid= v="},
	}
}

// closed returns the object with as many brackets closed as are opened.
func closed(text, more string, size int) string {
	if more == "[" {
		return strings.Replace(text, "@", "@"+strings.Repeat("]", size), 1)
	}
	return text
}

// Promise 12, and input that is hostile: an object above 64 MiB is one bad
// object, with its key if that came early, and all around it are good.
func TestHostileLargeObjects(t *testing.T) {
	skipWithRace(t)
	const size = 65 * mib
	for name, tt := range hostileObjects() {
		t.Run(name, func(t *testing.T) {
			size := size
			if tt.more == "[" {
				size = mib // which is deep enough
			}
			runtime.GC()
			text := closed(tt.text, tt.more, size)
			list := newFlood(podListJSON(podItem("a")+","+text+" , "+podItem("b")), tt.more, size)
			wantSteps(t, sourceEvents(restPods(t, floodTrip(200, list)).List(t.Context(), metav1.ListOptions{})),
				"Added n/a uid=u-a v=5", "Bad "+tt.key, "Added n/b uid=u-b v=5", "End v=9 next=c")
			if list.peak > 200*mib {
				t.Errorf("the heap was %d MiB", list.peak/mib)
			}
		})
	}
}

// Promise 12: the same in a watch, before and behind the type: the watch goes on.
func TestHostileLargeFrames(t *testing.T) {
	skipWithRace(t)
	const size = 65 * mib
	for _, name := range []string{"elements", "just a string"} {
		tt := hostileObjects()[name]
		for _, early := range []bool{false, true} {
			for _, typ := range []string{"ADDED", "DELETED"} {
				frame := `{"type":"` + typ + `","object":` + tt.text + "}\n"
				if early {
					frame = `{"object":` + tt.text + ` ,"x":1,"type":"` + typ + `"}`
				}
				good := `{"type":"MODIFIED","object":` + podItem("a") + `}`
				body := newFlood(good+frame+good, tt.more, size)
				want := "Bad " + tt.key
				if typ == "DELETED" && tt.key != "/ uid= v=" {
					want = "Deleted " + tt.key + " exact=false"
				}
				wantSteps(t, sourceEvents(restPods(t, floodTrip(200, body)).Watch(t.Context(), metav1.ListOptions{})),
					"Modified n/a uid=u-a v=5", want, "Modified n/a uid=u-a v=5")
			}
		}
	}
}

// Promises 7 and 12: the limits hold for every kind of type, and an object below
// them is good however it is made.
func TestHostileLimits(t *testing.T) {
	skipWithRace(t)
	item := `{"kind":"Pod","metadata":{"name":"x","annotations":{@"z":"` + strings.Repeat("z", 20*mib) + `"}}}`
	more := `"a":"` + strings.Repeat("a", mib) + `",`
	client := func(size int) rest.Interface {
		return restClient(t, floodTrip(200, newFlood(podListJSON(item+","+podItem("b")), more, size)))
	}
	for size, want := range map[int]string{40 * mib: "Added", 50 * mib: "Bad"} {
		wantSteps(t, sourceEvents(informer.FromREST[corev1.Pod](client(size), podsGVR(), informer.RESTOptions{}).List(t.Context(), metav1.ListOptions{})),
			want+" /x uid= v=", "Added n/b uid=u-b v=5", "End v=9 next=c")
	}
	wantSteps(t, sourceEvents(informer.FromREST[unstructured.Unstructured](client(10*mib), podsGVR(), informer.RESTOptions{}).List(t.Context(), metav1.ListOptions{})),
		"Added /x uid= v=", "Added n/b uid=u-b v=5", "End v=9 next=c")
	wantSteps(t, sourceEvents(informer.FromREST[decodeOpaque](client(40*mib), podsGVR(), informer.RESTOptions{}).List(t.Context(), metav1.ListOptions{})),
		"Bad /x uid= v=", "Added n/b uid=u-b v=5", "End v=9 next=c")
}

// Promise 12: a large object may be bad as any other: the fault is told, and
// the next one is good.
func TestHostileLargeAndBad(t *testing.T) {
	item := `{"metadata":{"name":"x"},"spec":{"nodeName":7,"hostname":"@"}}`
	list := newFlood(podListJSON(item+","+podItem("b")), "a", 10*mib)
	source := restPods(t, floodTrip(200, list))
	var steps []string
	for ev, err := range source.List(t.Context(), metav1.ListOptions{}) {
		steps = append(steps, sourceStep(ev, err))
		if ev.Key.Name == "x" && !strings.Contains(err.Error(), "number in place of a Go string") {
			t.Errorf("error %v", err)
		}
	}
	wantSteps(t, steps, "Bad /x uid= v=", "Added n/b uid=u-b v=5", "End v=9 next=c")
}

// Promise 7: a server that sends 1 GiB, whatever it is, leaves the heap below 200 MiB.
func TestHostileGiB(t *testing.T) {
	skipWithRace(t)
	size := 1024 * mib
	if !*fullSize {
		size = 256 * mib
	}
	for name, tt := range map[string]struct {
		code       int
		watch      bool
		text, more string
		want       string
	}{
		"a string":          {200, false, podListJSON(`{"metadata":{"name":"x","labels":{"a":"@"}}}`), "a", "End v=9 next=c"},
		"an array":          {200, false, podListJSON(`{"spec":{"containers":[@{}]}}`), "{},", "End v=9 next=c"},
		"large objects":     {200, false, podListJSON(`@{}`), "", "End v=9 next=c"},
		"brackets":          {200, true, `{"type":"ADDED","object":{"a":@`, "[", "error informer: decode watch of v1.Pod: unexpected EOF"},
		"list metadata":     {200, false, `{"metadata":{"continue":"@"},"items":[]}`, "a", "error informer: decode list of v1.Pod: more than 1 MiB that is no object"},
		"an unknown member": {200, false, `{"x":"@","items":[]}`, "a", "error informer: decode list of v1.Pod: more than 1 MiB that is no object"},
		"a member's name":   {200, false, `{"@`, "a", "error informer: decode list of v1.Pod: more than 1 MiB that is no object"},
		"behind the list":   {200, false, podListJSON("") + "@", " ", "error informer: decode list of v1.Pod: more than 1 MiB that is no object"},
		"between frames":    {200, true, "@", "\n", "error informer: decode watch of v1.Pod: more than 1 MiB that is no object"},
		"a bookmark":        {200, true, `{"type":"BOOKMARK","object":{"metadata":{"name":"@"}}}`, "a", "error informer: decode watch of v1.Pod: more than 1 MiB that is no object"},
		"a type":            {200, true, `{"type":"@"}`, "a", "error informer: decode watch of v1.Pod: more than 1 MiB that is no object"},
		"an error":          {500, false, `{"kind":"Status","apiVersion":"v1","message":"@"}`, "a", "error an error on the server…"},
		"a redirect":        {304, true, `@`, "a", "error the server responded with the status code 304…"},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			size := size
			if name != "a string" {
				size /= 4 // one at full length will do
			}
			body := newFloodOfObjects(tt.text, size)
			if tt.more != "" {
				body = newFlood(tt.text, tt.more, size)
			}
			source := restPods(t, floodTrip(tt.code, body))
			seq := source.List(t.Context(), metav1.ListOptions{})
			if tt.watch {
				seq = source.Watch(t.Context(), metav1.ListOptions{})
			}
			last := ""
			for ev, err := range seq {
				body.peak = max(body.peak, heapInUse())
				last = sourceStep(ev, err)
			}
			wantSteps(t, []string{last}, tt.want)
			if body.peak > 200*mib {
				t.Errorf("the heap was %d MiB", body.peak/mib)
			}
			t.Logf("%d MiB read, heap at most %d MiB", body.read/mib, body.peak/mib)
		})
	}
}

// Promise 7: of an object that is found to be too large when much of it is decoded,
// the rest is passed, and not read for what it could say.
func TestHostileObjectAllocates(t *testing.T) {
	skipWithRace(t)
	const most = 150 // MiB: two strings of 22, and buffers that double up to 32
	source := restPods(t, floodTrip(200, newFloodOfObjects(podListJSON(`@{}`), 66*mib)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	steps := sourceEvents(source.List(t.Context(), metav1.ListOptions{}))
	runtime.ReadMemStats(&after)
	if made := (after.TotalAlloc - before.TotalAlloc) / mib; made > most {
		t.Errorf("%d MiB were allocated, want at most %d", made, most)
	} else {
		t.Logf("%d MiB were allocated", made)
	}
	if want := "End v=9 next=c"; steps[len(steps)-1] != want {
		t.Errorf("steps %q, want %q at the end", steps, want)
	}
}

// Promise 7: a client asks for gzip by itself: what counts is what comes out of it.
func TestHostileGzip(t *testing.T) {
	skipWithRace(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.Copy(z, newFlood(podListJSON(`{"metadata":{"name":"x","labels":{"a":"@"}}},`+podItem("a")), "a", 128*mib))
		_ = z.Close()
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cs, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	source := informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), podsGVR(), informer.RESTOptions{})
	wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})), "Bad /x uid= v=", "Added n/a uid=u-a v=5", "End v=9 next=c")
}

// Promise 20: a long message is cut, and the predicates still work.
func TestHostileStatus(t *testing.T) {
	status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":%q}`, strings.Repeat("no ", 100_000))
	for _, code := range []int{403, 200} {
		trip := restTrip(func(*http.Request) (*http.Response, error) {
			return restResponse(code, "application/json", strings.NewReader(status)), nil
		})
		for _, source := range bothSources(t, trip) {
			for _, err := range sourceErrors(source.List(t.Context(), metav1.ListOptions{})) {
				if !apierrors.IsForbidden(err) || len(err.Error()) > 2000 {
					t.Errorf("%d bytes of error: %.100v", len(err.Error()), err)
				}
			}
		}
	}
}

// bothSources are FromREST and FromClient over one transport.
func bothSources(t testing.TB, trip http.RoundTripper) map[string]informer.ListerWatcher[*corev1.Pod] {
	t.Helper()
	cs, err := kubernetes.NewForConfig(restConfig(trip))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]informer.ListerWatcher[*corev1.Pod]{
		"REST":   informer.FromREST[corev1.Pod](cs.CoreV1().RESTClient(), podsGVR(), informer.RESTOptions{}),
		"client": informer.FromClient[*corev1.Pod](cs.CoreV1().Pods("")),
	}
}

// Promise 12: whatever an API server takes is good, however dense it is, and
// in whatever pieces it comes: 1 MiB of small data, 1.5 MiB of numbers.
func TestHostileLimitsDense(t *testing.T) {
	var dense strings.Builder
	for i, data := 0, 0; data < mib; i++ {
		key := fmt.Sprintf("%05x", i)
		fmt.Fprintf(&dense, `"%s":"",`, key)
		data += len(key)
	}
	data := `{"kind":"ConfigMap","metadata":{"name":"x"},"data":{` + dense.String() + `"z":""}}`
	numbers := `{"kind":"X","metadata":{"name":"x"},"spec":{"numbers":[` + strings.Repeat("1,", 3*mib/4-100) + `1]}}`
	want := []string{"Added /x uid= v=", "End v=9 next=c"}
	for _, piece := range []int{1000, 16 << 10, 8 * mib} {
		client := func(item string) rest.Interface {
			return restClient(t, floodTrip(200, pieces{strings.NewReader(podListJSON(item)), piece}))
		}
		wantSteps(t, sourceEvents(informer.FromREST[untypedConfig](client(data), podsGVR(), informer.RESTOptions{}).List(t.Context(), metav1.ListOptions{})), want...)
		for _, item := range []string{data, numbers} {
			wantSteps(t, sourceEvents(informer.FromREST[unstructured.Unstructured](client(item), podsGVR(), informer.RESTOptions{}).List(t.Context(), metav1.ListOptions{})), want...)
		}
	}
}

// untypedConfig is a ConfigMap in a list of any kind.
type untypedConfig struct {
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data"`
}

// Promises 7 and 12: elements are counted before they are decoded, also if they come at
// once, because the object before has made the buffer large.
func TestHostileLimitsAtOnce(t *testing.T) {
	first := `{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("a", 4*mib-100) + `"}}}`
	second := `{"metadata":{"name":"x"},"spec":{"containers":[` + strings.Repeat("{},", mib/4) + `{}]}}`
	wantSteps(t, sourceEvents(restPods(t, restAnswer(podListJSON(first+","+second+","+podItem("b")))).List(t.Context(), metav1.ListOptions{})),
		"Added /a uid= v=", "Bad /x uid= v=", "Added n/b uid=u-b v=5", "End v=9 next=c")
}

// pieces is a reader that returns at most that many bytes at a time.
type pieces struct {
	io.Reader
	size int
}

func (r pieces) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.size)]) }

// Promise 30: a watch that goes on holds no buffer of a long object that has
// come, neither of one that decodes itself, nor of one below 4 MiB.
func TestHostileWatchLetsGo(t *testing.T) {
	frame := func(size int) string {
		return `{"type":"ADDED","object":{"metadata":{"name":"x","annotations":{"z":"` + strings.Repeat("z", size) + `"}}}}` + "\n"
	}
	last := `{"type":"ADDED","object":` + podItem("b") + "}\n"
	itself := informer.FromREST[decodeOpaque](restClient(t, restAnswer(frame(20*mib)+last)), podsGVR(), informer.RESTOptions{})
	watchLetsGo(t, itself)
	watchLetsGo(t, restPods(t, restAnswer(frame(4*mib-200)+last)))
	early := strings.Replace(strings.Replace(frame(9*mib), `"type":"ADDED",`, "", 1), "}\n", `,"type":"ADDED"}`+"\n", 1)
	watchLetsGo(t, restPods(t, restAnswer(early+last)))
}

// watchLetsGo checks that little is held when the object b has come.
func watchLetsGo[T informer.Object](t *testing.T, source informer.ListerWatcher[T]) {
	t.Helper()
	runtime.GC()
	before := heapInUse()
	steps := 0
	for ev, err := range source.Watch(t.Context(), metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if steps++; ev.Key.Name != "b" {
			continue
		}
		runtime.GC()
		if after := heapInUse(); after > before+mib {
			t.Errorf("after a long object a watch holds %d KiB", (after-before)>>10)
		}
	}
	if steps != 2 {
		t.Errorf("%d steps, want 2", steps)
	}
}

// Promise 20: what an error is can still be told when its text is not shown, by
// net.Error too.
func TestHiddenTimeout(t *testing.T) {
	for _, err := range []error{timeUp{}, fmt.Errorf("parse: %w", timeUp{})} {
		for name, source := range bothSources(t, restTrip(func(*http.Request) (*http.Response, error) { return nil, err })) {
			for _, err := range sourceErrors(source.List(t.Context(), metav1.ListOptions{})) {
				if !utilnet.IsTimeout(err) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%s: error %v: IsTimeout %t", name, err, utilnet.IsTimeout(err))
				}
			}
		}
	}
}

// timeUp is an error of the network that cites something.
type timeUp struct{}

func (timeUp) Error() string   { return `lookup "s3cret": time is up` }
func (timeUp) Timeout() bool   { return true }
func (timeUp) Temporary() bool { return true }
