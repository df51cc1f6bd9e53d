package informer_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

// The tests in this file show with little input what those of hostile_test.go
// show at full size.

// Promise 7: the decoder gets no more bytes of a value, at a time or in all, than
// it is allowed, nor more elements.
func TestMeter(t *testing.T) {
	const size = mib
	text := `"` + strings.Repeat("a", size-2) + `"`
	array := "[" + strings.Repeat("{},", size/3-1) + "{}]"
	none := informer.Limits{Size: 2 * size, Window: 2 * size, Weight: 1, Elements: size}
	with := func(change func(*informer.Limits)) informer.Limits {
		l := none
		change(&l)
		return l
	}
	for name, tt := range map[string]struct {
		text   string
		limits informer.Limits
		most   int // bytes that may be read if it is too much, 0: all must
		full   bool
	}{
		"a string":             {text, none, 0, false},
		"an array":             {array, none, 0, false},
		"size, a string":       {text, with(func(l *informer.Limits) { l.Size = 10 << 10 }), 10 << 10, false},
		"size, an array":       {array, with(func(l *informer.Limits) { l.Size = 10 << 10 }), 10 << 10, false},
		"window, a string":     {text, with(func(l *informer.Limits) { l.Window = 10 << 10 }), 10 << 10, true},
		"elements, a string":   {text, with(func(l *informer.Limits) { l.Elements = 0 }), 0, false},
		"elements, an array":   {array, with(func(l *informer.Limits) { l.Elements = 100_000 }), 600 << 10, false},
		"weight":               {array, with(func(l *informer.Limits) { l.Weight, l.Elements = 100, 10_000_000 }), 600 << 10, false},
		"elements, without":    {array, with(func(l *informer.Limits) { l.Weight, l.Elements = 0, 0 }), 0, false},
		"elements, just right": {array, with(func(l *informer.Limits) { l.Elements = 2*size/3 + 2 }), 0, false},
	} {
		read, full, err := informer.ReadMetered(strings.NewReader(tt.text), tt.limits)
		switch {
		case tt.most == 0 && (err != nil || read < len(tt.text)):
			t.Errorf("%s: %d bytes read, error %v, want all %d", name, read, err, len(tt.text))
		case tt.most > 0 && (err == nil || read > tt.most || full != tt.full):
			t.Errorf("%s: %d bytes read, full %v, error %v, want %d at most, %v", name, read, full, err, tt.most, tt.full)
		}
	}
}

// Promise 7: of the body of an answer that is an error, 1 MiB is read at most.
func TestErrorBody(t *testing.T) {
	body := newFlood(`{"kind":"Status","apiVersion":"v1","message":"@"}`, "a", 4*mib)
	errs := sourceErrors(restPods(t, floodTrip(500, body)).List(t.Context(), metav1.ListOptions{}))
	if len(errs) != 1 || body.read > mib+64<<10 {
		t.Errorf("%d bytes read, errors %v", body.read, errs)
	}
}

// deepObject is an object with too much in it, and "@" where it is nested.
const deepObject = `{"kind":"Pod","metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"3"},"a":@}`

func deep(size int) string {
	return strings.Replace(deepObject, "@", strings.Repeat("[", size)+strings.Repeat("]", size), 1)
}

// Promise 12: one object that is nested too deeply is one bad object, in a list
// and in a watch, and if it is deleted, it is gone.
func TestDeepObject(t *testing.T) {
	for _, size := range []int{20_000, 2 * mib} { // the second is too long to be read as a whole
		list := podListJSON(podItem("a") + "," + deep(size) + " , " + podItem("b"))
		wantSteps(t, sourceEvents(restPods(t, restAnswer(list)).List(t.Context(), metav1.ListOptions{})),
			"Added n/a uid=u-a v=5", "Bad n/x uid=u v=3", "Added n/b uid=u-b v=5", "End v=9 next=c")
		opaque := informer.FromREST[decodeOpaque](restClient(t, restAnswer(list)), podsGVR(), informer.RESTOptions{})
		wantSteps(t, sourceEvents(opaque.List(t.Context(), metav1.ListOptions{})),
			"Added n/a uid=u-a v=5", "Bad n/x uid=u v=3", "Added n/b uid=u-b v=5", "End v=9 next=c")
		for typ, want := range map[string]string{"ADDED": "Bad n/x uid=u v=3", "DELETED": "Deleted n/x uid=u v=3 exact=false"} {
			frame := `{"type":"` + typ + `","object":` + deep(size) + "}\n"
			early := `{"object":` + deep(size) + `,"type":"` + typ + `"}`
			good := `{"type":"MODIFIED","object":` + podItem("a") + `}`
			wantSteps(t, sourceEvents(restPods(t, restAnswer(good+frame+early+good)).Watch(t.Context(), metav1.ListOptions{})),
				"Modified n/a uid=u-a v=5", want, want, "Modified n/a uid=u-a v=5")
		}
	}
}

// Promise 12: a value that is passed ends where its brackets and its quotes end,
// also if it comes in pieces.
func TestPassValue(t *testing.T) {
	for text, want := range map[string]int{
		`{"a":"}"}7`:         9,
		`{"a":"\"}","b":1}7`: 17,
		`"\\"7`:              4,
		`"\"]\\",7`:          7,
		`[{"a":[]},"]"],7`:   14,
		`12.5e3,7`:           6,
		`{"a":"\"}`:          -1,
	} {
		for size := 1; size <= len(text); size++ {
			if n, ok := informer.PassValue([]byte(text), size); ok != (want >= 0) || ok && n != want {
				t.Errorf("%s in pieces of %d: %d bytes passed, end %v, want %d", text, size, n, ok, want)
			}
		}
	}
}

// Promise 19: a context that ends while an object without end is passed does not
// wait for its end.
func TestPassedEndless(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	flood := newFlood(podListJSON(deepObject), "[", 16*mib)
	body := &cancelAfter{Reader: flood, left: 8 * mib, cancel: cancel}
	errs := sourceErrors(restPods(t, restTrip(func(*http.Request) (*http.Response, error) {
		return restResponse(200, "application/json", body), nil
	})).List(ctx, metav1.ListOptions{}))
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) || flood.read > 10*mib {
		t.Errorf("errors %v after %d MiB, want that the context was canceled", errs, flood.read/mib)
	}
}

// cancelAfter calls cancel when so many bytes have been read.
type cancelAfter struct {
	io.Reader
	left   int
	cancel func()
}

func (c *cancelAfter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.left -= n; c.left <= 0 {
		c.cancel()
	}
	return n, err
}

// Promises 12 and 30: a large object is a good one, and a watch keeps nothing
// of it.
func TestWatchAfterLargeObject(t *testing.T) {
	large := `{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"x","annotations":{"z":"` + strings.Repeat("z", 9*mib) + `"}}}}`
	trip := restAnswer(large + `{"type":"ADDED","object":` + podItem("b") + "}\n")
	runtime.GC()
	before := heapInUse()
	steps := 0
	for ev, err := range restPods(t, trip).Watch(t.Context(), metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if steps++; ev.Key.Name == "b" {
			runtime.GC()
			if after := heapInUse(); after > before+mib {
				t.Errorf("after a large object a watch holds %d KiB", (after-before)>>10)
			}
		}
	}
	if steps != 2 {
		t.Errorf("%d steps, want 2", steps)
	}
}
