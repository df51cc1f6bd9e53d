package informer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// relister is a source of lists alone: its watches say nothing, and answer 410
// when it is kicked.
type relister[T informer.Object] struct {
	informer.ListerWatcher[T]

	streams bool // streaming lists are let through
	kick    chan struct{}
}

func (s *relister[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		if opts.SendInitialEvents != nil && !s.streams {
			yield(informer.Event[T]{}, apierrors.NewBadRequest("no streaming lists here"))
			return
		}
		if opts.SendInitialEvents != nil {
			for ev, err := range s.ListerWatcher.Watch(ctx, opts) {
				if !yield(ev, err) || err != nil {
					return
				}
				if ev.Type == informer.EventEnd {
					break
				}
			}
		}
		select {
		case <-s.kick:
			yield(informer.Event[T]{}, apierrors.NewResourceExpired("too old"))
		case <-ctx.Done():
			yield(informer.Event[T]{}, ctx.Err())
		}
	}
}

// Promise 7, cases 2 and 8 (k8s#73497, k8s#111370, cert-manager#4722,
// argo-cd#4328): from the server's bytes to the cache, the objects that are
// alive at any moment of a first list or a relist are the old content, the new
// content, and what the source holds: through FromREST, one object. What has not
// changed is not stored again, makes no change, and is no new content.
func TestListHoldsOldAndNew(t *testing.T) {
	for _, mode := range []string{"plain", "streaming", "paged"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { listHoldsOldAndNew(t, mode) })
		})
	}
}

func listHoldsOldAndNew(t *testing.T, mode string) {
	const n, page, inHand = 500, 100, 2 // the one being decoded, and the one before
	srv := informertest.Start(t, informertest.Options{History: 10 * n})
	clientset, err := kubernetes.NewForConfig(srv.Config())
	if err != nil {
		t.Fatal(err)
	}
	object := func(i, state int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("m%04d", i)},
			Data:       map[string]string{"state": strconv.Itoa(state)},
		}
	}
	write := func(what func(informertest.APIObject) (string, error), from, to, state int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := what(object(i, state)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(srv.Create, 0, n, 0)

	all := &census[corev1.ConfigMap]{}
	received := 0
	rest := informer.FromREST[corev1.ConfigMap](clientset.CoreV1().RESTClient(),
		corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{})
	source := &relister[*corev1.ConfigMap]{
		streams: mode == "streaming", kick: make(chan struct{}),
		ListerWatcher: informer.Transform(rest, func(obj *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if received++; received%(page/2) == 0 {
				all.alive()
			}
			return all.enter(obj), nil
		}),
	}
	opts := informer.Options{}
	if mode == "paged" {
		opts.PageSize = page
	}
	inf := startOf(t, source, opts)
	var changes atomic.Int64
	if _, err := inf.AddHandler(func(informer.Change[*corev1.ConfigMap]) { changes.Add(1) }, informer.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	settle := func(what string, most, left, told int) {
		t.Helper()
		<-time.After(time.Minute)
		synctest.Wait()
		if got := all.alive(); all.peak > most || got > left || inf.Len() > left {
			t.Errorf("%s: at most %d objects were alive, then %d; want at most %d and %d", what, all.peak, got, most, left)
		}
		if got := changes.Swap(0); int(got) != told {
			t.Errorf("%s: %d changes, want %d", what, got, told)
		}
		all.peak = 0
	}
	relist := func() { source.kick <- struct{}{} }
	settle("first list", n+inHand, n, n)
	before, _ := inf.Get(informer.Key{Namespace: "default", Name: "m0007"})
	relist()
	settle("nothing has changed", n+inHand, n, 0)
	if after, _ := inf.Get(informer.Key{Namespace: "default", Name: "m0007"}); after != before {
		t.Error("an object that has not changed is stored again")
	}
	before = nil
	write(srv.Update, 0, n/10, 1)
	relist()
	settle("a tenth has changed", n+n/10+inHand, n, n/10)
	write(srv.Update, 0, n, 2)
	relist()
	settle("all has changed", 2*n+inHand, n, n)
	write(srv.Delete, 1, n, 0)
	relist()
	settle("all but one are gone", n+1+inHand, 1, n-1)
	if want := 3*n + n + 1; received != want {
		t.Errorf("the transform was called %d times, want %d", received, want)
	}
}

// bulkServer answers lists of big objects, which it makes up while they are
// read, page by page: nothing of them is in memory but a few kilobytes.
type bulkServer struct {
	pages, perPage, size int

	mu   sync.Mutex // guards left
	left int        // objects, if not all of them
}

func (s *bulkServer) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case query.Has("sendInitialEvents"):
		return restResponse(400, "application/json",
			strings.NewReader(`{"kind":"Status","status":"Failure","reason":"BadRequest","code":400}`)), nil
	case query.Has("watch"):
		return restResponse(200, "application/json", &silentBody{r.Context()}), nil
	}
	page, _ := strconv.Atoi(query.Get("continue"))
	s.mu.Lock()
	defer s.mu.Unlock()
	body := &bulkBody{server: s, next: page * s.perPage, end: min((page+1)*s.perPage, s.left)}
	token := ""
	if body.end == (page+1)*s.perPage && page+1 < s.pages {
		token = strconv.Itoa(page + 1)
	}
	fmt.Fprintf(&body.ready, `{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[`, token)
	return restResponse(200, "application/json", body), nil
}

// silentBody says nothing until its context ends.
type silentBody struct{ ctx context.Context }

func (b *silentBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// bulkBody makes up a page, object by object.
type bulkBody struct {
	server    *bulkServer
	next, end int
	ready     bytes.Buffer
	over      bool
}

func (b *bulkBody) Read(p []byte) (int, error) {
	if b.ready.Len() == 0 && b.over {
		return 0, io.EOF
	}
	if b.ready.Len() == 0 && b.next < b.end {
		b.ready.Reset()
		fmt.Fprintf(&b.ready, `{"metadata":{"name":"o%d","uid":"u%d","resourceVersion":"5"},"data":"`, b.next, b.next)
		for range b.server.size / 64 {
			b.ready.WriteString("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
		}
		b.ready.WriteString(`"}`)
		if b.next++; b.next < b.end {
			b.ready.WriteByte(',')
		}
	} else if b.ready.Len() == 0 {
		b.over = true
		b.ready.WriteString(`]}`)
	}
	return b.ready.Read(p)
}

// thing is what a bulkServer sends.
type thing struct {
	metav1.ObjectMeta `json:"metadata"`

	Data string `json:"data"`
}

// thingAddr is a user's own type, of about 200 bytes.
type thingAddr struct {
	namespace, name, uid, version string
	rest                          [64]byte
}

func (a *thingAddr) GetNamespace() string       { return a.namespace }
func (a *thingAddr) GetName() string            { return a.name }
func (a *thingAddr) GetUID() types.UID          { return types.UID(a.uid) }
func (a *thingAddr) GetResourceVersion() string { return a.version }

// peakOf runs an informer on a bulkServer until it is synced, and returns the
// most bytes that were held, looked at for each some objects, and the bytes in
// the end. The source that wrap makes must call look for each object.
func peakOf[T informer.Object](t *testing.T, server *bulkServer, every int,
	wrap func(source informer.ListerWatcher[*thing], look func()) informer.ListerWatcher[T],
) (inf *relisted[T], peak, end int64) {
	t.Helper()
	rest := informer.FromREST[thing](restClient(t, server), podsGVR(), informer.RESTOptions{})
	base := heap()
	seen := 0
	source := &relister[T]{kick: make(chan struct{}), ListerWatcher: wrap(rest, func() {
		if seen++; seen%every == 0 {
			peak = max(peak, heap()-base)
		}
	})}
	i, err := informer.New(source, informer.Options{PageSize: server.perPage, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := t.Context(), make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	t.Cleanup(func() { <-done })
	if err := i.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	inf = &relisted[T]{i, source, base}
	return inf, peak, inf.held()
}

// relisted is an informer whose source can be kicked.
type relisted[T informer.Object] struct {
	*informer.Informer[T]
	source *relister[T]
	base   int64 // bytes of the heap without it
}

func (r *relisted[T]) held() int64 { return heap() - r.base }

// Promise 7, case 2 (k8s#73497, k8s#111370, cert-manager#4722, argo-cd#4328):
// 200 pages of 500 objects of 4 KiB, and a transform that strips everything:
// the peak is far below the size of the list. When all but one are deleted, the
// memory of the rest is free.
func TestListPeakWithTransform(t *testing.T) {
	skipWithRace(t)
	pages := 40
	if *fullSize {
		pages = 200
	}
	server := &bulkServer{pages: pages, perPage: 500, size: 4 << 10, left: pages * 500}
	inf, peak, end := peakOf(t, server, 5000, func(source informer.ListerWatcher[*thing], look func()) informer.ListerWatcher[*thing] {
		return informer.Transform(source, func(o *thing) (*thing, error) {
			look()
			o.Data = ""
			return o, nil
		})
	})
	size := int64(pages * 500 * server.size)
	t.Logf("list of %d MiB: peak %d MiB, then %d MiB", size>>20, peak>>20, end>>20)
	if inf.Len() != pages*500 || peak > size/4 || end > size/4 {
		t.Errorf("of a list of %d bytes, %d objects are left, which hold %d, and at most %d", size, inf.Len(), end, peak)
	}
	server.mu.Lock()
	server.left = 1
	server.mu.Unlock()
	inf.source.kick <- struct{}{}
	if err := inf.WaitUntil(t.Context(), func(r informer.Reader[*thing]) bool { return r.Len() == 1 }); err != nil {
		t.Fatal(err)
	}
	if left := inf.held(); left > end/50 {
		t.Errorf("when one of %d objects is left, %d bytes are held of %d", size/int64(server.size), left, end)
	}
}

// Promise 7, case 11 (cert-manager#4722, external-secrets#2504): 5000 objects of
// 32 KiB, of which a struct of about 200 bytes is kept: under 10 MB of heap.
func TestListPeakWithProjection(t *testing.T) {
	skipWithRace(t)
	server := &bulkServer{pages: 10, perPage: 500, size: 32 << 10, left: 5000}
	inf, peak, end := peakOf(t, server, 500, func(source informer.ListerWatcher[*thing], look func()) informer.ListerWatcher[*thingAddr] {
		return informer.Project(source, func(o *thing) (*thingAddr, bool, error) {
			look()
			return &thingAddr{name: o.Name, uid: string(o.UID), version: o.ResourceVersion}, true, nil
		})
	})
	t.Logf("peak %d KiB, then %d KiB", peak>>10, end>>10)
	if inf.Len() != 5000 || peak > 10<<20 || end > 10<<20 {
		t.Errorf("%d objects hold %d bytes, and held at most %d", inf.Len(), end, peak)
	}
}
