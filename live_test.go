package informer_test

import (
	"context"
	"flag"
	"iter"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"weak"

	"github.com/seed-99a027e8/informer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fullSize makes tests as large as the reports that they are about.
var fullSize = flag.Bool("full", false, "use the sizes of the reports where tests use smaller ones")

// skipWithRace skips a test that moves so many bytes that the race detector makes
// minutes of it. `make test` runs all tests without it, too.
func skipWithRace(t *testing.T) {
	if raceEnabled {
		t.Skip("takes long with the race detector")
	}
}

// bulky is an object of 4 KiB.
type bulky struct {
	name, uid, version string
	_                  [4096]byte
}

func newBulky(name string, version int) *bulky {
	return &bulky{name: name, uid: "uid-" + name, version: strconv.Itoa(version)}
}

func (o *bulky) GetNamespace() string       { return "" }
func (o *bulky) GetName() string            { return o.name }
func (o *bulky) GetUID() types.UID          { return types.UID(o.uid) }
func (o *bulky) GetResourceVersion() string { return o.version }

// census counts the objects of E that are alive. It holds none of them.
type census[E any] struct {
	mu   sync.Mutex // guards the fields below
	born []weak.Pointer[E]
	peak int
}

// enter counts obj from now on.
func (c *census[E]) enter(obj *E) *E {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.born = append(c.born, weak.Make(obj))
	return obj
}

// alive returns how many objects cannot be collected.
func (c *census[E]) alive() int {
	runtime.GC()
	c.mu.Lock()
	defer c.mu.Unlock()
	var living []weak.Pointer[E]
	for _, p := range c.born {
		if p.Value() != nil {
			living = append(living, p)
		}
	}
	c.born = living
	c.peak = max(c.peak, len(living))
	return len(living)
}

// heap returns how much the heap holds, once it does not fall any more: what
// other tests have left goes over several collections.
func heap() int64 {
	var m runtime.MemStats
	last := int64(math.MaxInt64)
	for same := 0; same < 2; {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if now := int64(m.HeapAlloc); now < last-256 {
			last, same = now, 0
		} else {
			same++
		}
	}
	return last
}

// pushSource lists nothing, at version 1, and then sends the events that it is
// given, of which it keeps none.
type pushSource[T informer.Object] struct{ events chan informer.Event[T] }

func newPushSource[T informer.Object]() *pushSource[T] {
	return &pushSource[T]{make(chan informer.Event[T])}
}

func (s *pushSource[T]) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		yield(informer.Event[T]{Type: informer.EventEnd, Version: "1"}, nil)
	}
}

func (s *pushSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		if opts.SendInitialEvents != nil {
			yield(informer.Event[T]{}, apierrors.NewBadRequest("no streaming lists here"))
			return
		}
		for {
			select {
			case ev := <-s.events:
				if !yield(ev, nil) {
					return
				}
			case <-ctx.Done():
				yield(informer.Event[T]{}, ctx.Err())
				return
			}
		}
	}
}

// startOf runs an informer of any type in a bubble until the test ends.
func startOf[T informer.Object](t *testing.T, source informer.ListerWatcher[T], opts informer.Options) *informer.Informer[T] {
	t.Helper()
	inf, err := informer.New(source, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return inf
}

// refuseStreams makes an API server one that does not know streaming lists.
func refuseStreams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("sendInitialEvents") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(statusText(http.StatusUnprocessableEntity, "Invalid")))
			return
		}
		next.ServeHTTP(w, r)
	})
}
