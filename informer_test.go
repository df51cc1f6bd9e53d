package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))

// running is an informer in a bubble, that runs until the test ends or stop is
// called.
type running struct {
	*informer.Informer[*fifoObject]
	stop context.CancelFunc
	done chan error
}

func run(t *testing.T, source informer.ListerWatcher[*fifoObject], opts informer.Options) *running {
	t.Helper()
	inf, err := informer.New(source, seen.options(opts))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, inf)
}

func start(t *testing.T, inf *informer.Informer[*fifoObject]) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{inf, cancel, make(chan error, 1)}
	go func() { r.done <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	return r
}

// ends returns what Run returns, which is to be soon and by itself.
func (r *running) ends(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(time.Hour):
		t.Fatal("Run goes on")
		return nil
	}
}

// handler adds a handler and ends the test if that fails.
func (r *running) handler(t *testing.T, h informer.Handler[*fifoObject], opts informer.HandlerOptions) *informer.Registration {
	t.Helper()
	reg, err := r.AddHandler(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// told is a handler that writes down what it is told.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (l *told) handle(c informer.Change[*fifoObject]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	exact := ""
	if c.Exact {
		exact = " exact"
	}
	l.lines = append(l.lines, fmt.Sprintf("%v %v %v -> %v%s", c.Cause, c.Type, c.Old, c.New, exact))
}

func (l *told) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "\n")
	l.lines = nil
	return text
}

func waitFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func mustContain(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	seen.err(what, err)
	if err == nil {
		t.Fatalf("%s = nil, want an error with %q", what, parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s = %v, want a word of %q", what, err, part)
		}
	}
}

// Promise 14: a deletion that a relist shows is of type T, with the last known
// object, and inexact (calico#12793, aws-load-balancer-controller#4879,
// k8s#97255); each change says its cause.
func TestInformerDeletionFoundByRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, log := newLiveSource(), &told{}
		source.write("a")
		source.write("b")
		inf := run(t, source, informer.Options{})
		inf.handler(t, log.handle, informer.HandlerOptions{})
		synctest.Wait()
		log.take()

		source.forget(func(srv *fifoServer) { srv.delete("b") })
		<-time.After(10 * time.Second)
		if got, want := log.take(), "Relist Deleted b/u2@12 -> b/u2@12"; got != want {
			t.Errorf("the handler was told\n%s\nwant\n%s", got, want)
		}
		source.delete("a")
		synctest.Wait()
		if got, want := log.take(), "Watch Deleted a/u1@11 -> a/u1@15 exact"; got != want {
			t.Errorf("the handler was told\n%s\nwant\n%s", got, want)
		}
	})
}

// Promise 5: the same name with another UID is a deletion and an addition, by
// watch and by relist.
func TestInformerNewUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, log := newLiveSource(), &told{}
		source.write("a")
		inf := run(t, source, informer.Options{})
		inf.handler(t, log.handle, informer.HandlerOptions{})
		synctest.Wait()
		log.take()
		source.change(func(srv *fifoServer) []informer.Event[*fifoObject] {
			srv.delete("a")
			ev := srv.write("a") // the deletion is not told
			ev.Type = informer.EventModified
			return []informer.Event[*fifoObject]{ev}
		})
		synctest.Wait()
		if got, want := log.take(), "Watch Deleted a/u1@11 -> a/u1@11\nWatch Added <nil> -> a/u2@13"; got != want {
			t.Errorf("by watch, the handler was told\n%s\nwant\n%s", got, want)
		}
		source.forget(func(srv *fifoServer) {
			srv.delete("a")
			srv.write("a")
		})
		<-time.After(10 * time.Second)
		if got, want := log.take(), "Relist Deleted a/u2@13 -> a/u2@13\nRelist Added <nil> -> a/u3@15"; got != want {
			t.Errorf("by relist, the handler was told\n%s\nwant\n%s", got, want)
		}
	})
}

// Promise 4: a server that was restored from a backup is followed, nothing of
// the old state survives, and waits for versions of before end.
func TestInformerFollowsRestoredServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.write("a")
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		saved := source.state()
		source.write("a")
		late := source.write("b")
		ctx, cancel := waitFor(2 * time.Hour)
		defer cancel()
		if err := inf.WaitForResourceVersion(ctx, late); err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() { waited <- inf.WaitForResourceVersion(ctx, late+"0") }()
		synctest.Wait()

		source.forget(func(srv *fifoServer) {
			srv.objects, srv.version = saved, 11
		})
		<-time.After(time.Hour) // of silence, which leads to a question
		if got, ok := inf.Get(fifoKey("a")); !ok || got.version != "11" || inf.Len() != 1 {
			t.Errorf("after the restore the cache has %v, want a@11 alone", inf.List())
		}
		select {
		case err := <-waited:
			if !errors.Is(err, informer.ErrNewEpoch) {
				t.Errorf("the wait for a version of before ended with %v, want ErrNewEpoch", err)
			}
		default:
			t.Error("the wait for a version of before goes on")
		}
		if err := inf.WaitForResourceVersion(ctx, source.write("c")); err != nil {
			t.Errorf("a wait in the new epoch: %v", err)
		}
	})
}

// Promises 18, 20: who waits in vain learns which informer it is and why
// (client-go#732, cr#1653, cr#2231, k8s#57074), and later it syncs.
func TestInformerWaitSyncedSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.fail(forbidden)
		inf := run(t, source, informer.Options{Name: "things of mine"})
		ctx, cancel := waitFor(time.Second)
		defer cancel()
		err := informer.WaitSynced(ctx, inf.Informer)
		mustContain(t, "WaitSynced", err, "things of mine", "no role")
		if !apierrors.IsForbidden(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitSynced = %v, want Forbidden and DeadlineExceeded", err)
		}
		if s := inf.Status(); s.State != informer.StateFailing || !apierrors.IsForbidden(s.Err) || s.FailingSince.IsZero() {
			t.Errorf("Status() = %+v, want failing with Forbidden", s)
		}
		source.fail(nil)
		ctx, cancel = waitFor(time.Minute)
		defer cancel()
		if err := inf.WaitSynced(ctx); err != nil {
			t.Errorf("WaitSynced when it is allowed again = %v", err)
		}
		if s := inf.Status(); s.Err != nil || !s.FailingSince.IsZero() {
			t.Errorf("Status() = %+v, want no failure", s)
		}
	})
}

// stuckSource yields one object, and then nothing.
type stuckSource struct{ deaf bool }

func (s stuckSource) List(ctx context.Context, _ metav1.ListOptions) iter.Seq2[informer.Event[*fifoObject], error] {
	return func(yield func(informer.Event[*fifoObject], error) bool) {
		if !yield(informer.EventOf(informer.EventAdded, &fifoObject{name: "a", version: "3"}), nil) {
			return
		}
		if s.deaf {
			<-time.After(time.Hour)
		}
		<-ctx.Done()
		yield(informer.Event[*fifoObject]{}, ctx.Err())
	}
}

func (s stuckSource) Watch(ctx context.Context, _ metav1.ListOptions) iter.Seq2[informer.Event[*fifoObject], error] {
	return func(yield func(informer.Event[*fifoObject], error) bool) {
		yield(informer.Event[*fifoObject]{}, apierrors.NewBadRequest("plain lists only"))
	}
}

// Promise 18: a wait that ends early says how far it came; one for a version
// that cannot be compared ends at once (promise 4).
func TestInformerWaitsWithoutFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inf, err := informer.New[*fifoObject](stuckSource{}, informer.Options{Name: "slow"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := waitFor(time.Second)
		defer cancel()
		mustContain(t, "WaitSynced before Run", inf.WaitSynced(ctx), "slow", "not running")
		r := start(t, inf)
		ctx, cancel = waitFor(time.Second)
		defer cancel()
		if err := r.WaitForResourceVersion(ctx, "abc"); !errors.Is(err, informer.ErrNotComparable) {
			t.Errorf("WaitForResourceVersion(abc) in a list = %v, want ErrNotComparable", err)
		}
		soon, cancel := waitFor(time.Millisecond)
		defer cancel()
		err = r.WaitUntil(soon, func(informer.Reader[*fifoObject]) bool { return true })
		mustContain(t, "WaitUntil in a list", err, "condition not met")
		mustContain(t, "WaitSynced in a list", r.WaitSynced(ctx), "slow", "still listing, 1 objects so far")
		select {
		case <-r.Synced():
			t.Error("it is synced in its first list")
		default:
		}
		r.stop()
		synctest.Wait()
		if err := r.WaitSynced(context.Background()); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("WaitSynced after the end = %v, want ErrStopped", err)
		}
	})
}

// Promise 19: Run returns at once after its context has ended, or when the
// last user code has returned, or else names that code after the grace.
func TestInformerCancelReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.write("a")
		inf := run(t, source, informer.Options{})
		began := time.Now()
		inf.handler(t, func(informer.Change[*fifoObject]) { <-time.After(3 * time.Second) }, informer.HandlerOptions{})
		synctest.Wait()
		inf.stop()
		if err := <-inf.done; err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("Run returned %v after %v, want nil after 3s, when the handler has returned", err, time.Since(began))
		}

		quick := run(t, source, informer.Options{})
		synctest.Wait()
		began = time.Now()
		quick.stop()
		if err := <-quick.done; err != nil || time.Since(began) != 0 {
			t.Errorf("Run returned %v after %v, want nil at once", err, time.Since(began))
		}

		early := run(t, source, informer.Options{})
		began = time.Now()
		early.stop() // before its goroutines have begun
		if err := <-early.done; err != nil || time.Since(began) != 0 {
			t.Errorf("Run returned %v after %v, want nil at once", err, time.Since(began))
		}

		stuck := run(t, source, informer.Options{Name: "things", Grace: 7 * time.Second})
		stuck.handler(t, func(informer.Change[*fifoObject]) { <-time.After(time.Minute) }, informer.HandlerOptions{Name: "the stuck one"})
		stuck.handler(t, func(informer.Change[*fifoObject]) { <-time.After(time.Minute) }, informer.HandlerOptions{Name: "another stuck one"})
		stuck.handler(t, func(informer.Change[*fifoObject]) {}, informer.HandlerOptions{Name: "the other one"})
		synctest.Wait()
		began = time.Now()
		stuck.stop()
		err := <-stuck.done
		mustContain(t, "Run", err, "things", "the stuck one has not returned within 7s", "another stuck one")
		if strings.Contains(err.Error(), "the other one") || time.Since(began) != 7*time.Second {
			t.Errorf("Run returned %v after %v, want two names after 7s", err, time.Since(began))
		}

		deaf := run(t, stuckSource{deaf: true}, informer.Options{})
		synctest.Wait()
		deaf.stop()
		mustContain(t, "Run", <-deaf.done, "the source or OnFailure has not returned within 5s")
		<-time.After(time.Hour)
	})
}

// Promise 19: a second Run is an error; after the end, readers answer from the
// last state, and all else says so.
func TestInformerAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.write("a")
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		if err := inf.Run(context.Background()); !errors.Is(err, informer.ErrRunning) {
			t.Errorf("a second Run = %v, want ErrRunning", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- inf.WaitForResourceVersion(t.Context(), "9999") }()
		synctest.Wait()
		inf.stop()
		if err := <-inf.done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-waited:
			if !errors.Is(err, informer.ErrStopped) {
				t.Errorf("a wait that was in progress at the end = %v, want ErrStopped", err)
			}
		default:
			t.Fatal("a wait goes on after the end")
		}
		_, addHandler := inf.AddHandler(func(informer.Change[*fifoObject]) {}, informer.HandlerOptions{})
		_, addIndex := informer.AddIndex(inf.Informer, "x", func(o *fifoObject) (string, bool) { return o.uid, true })
		ctx := context.Background()
		for what, err := range map[string]error{
			"Run":                    inf.Run(ctx),
			"AddHandler":             addHandler,
			"AddIndex":               addIndex,
			"WaitSynced":             inf.WaitSynced(ctx),
			"WaitForResourceVersion": inf.WaitForResourceVersion(ctx, "5"),
			"WaitUntil":              inf.WaitUntil(ctx, func(informer.Reader[*fifoObject]) bool { return true }),
		} {
			if !errors.Is(err, informer.ErrStopped) {
				t.Errorf("%s after the end = %v, want ErrStopped", what, err)
			}
		}
		if _, ok := inf.Get(fifoKey("a")); !ok || inf.Len() != 1 {
			t.Error("after the end the cache is empty")
		}
		if s := inf.Status(); s.State != informer.StateStopped || s.Objects != 1 {
			t.Errorf("Status() = %+v, want stopped with one object", s)
		}
	})
}

// Promise 20: OnFailure hears of each failure once, and may end Run; a
// resource that cannot be watched ends it by itself.
func TestInformerFailuresEndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		var failures []informer.Failure
		source := newLiveSource()
		source.fail(forbidden)
		inf := run(t, source, informer.Options{Name: "things", OnFailure: func(f informer.Failure) error {
			failures = append(failures, f)
			if len(failures) == 3 {
				return enough
			}
			return nil
		}})
		if err := inf.ends(t); !errors.Is(err, enough) || !strings.Contains(err.Error(), "things") {
			t.Errorf("Run = %v, want %v with the name", err, enough)
		}
		if err := inf.WaitSynced(context.Background()); !errors.Is(err, enough) || !errors.Is(err, informer.ErrStopped) {
			t.Errorf("WaitSynced after that = %v, want the reason and ErrStopped", err)
		}
		for i, f := range failures {
			if f.Attempt != i+1 || !apierrors.IsForbidden(f.Err) || f.Next <= 0 {
				t.Errorf("failure %d is %+v", i, f)
			}
		}
		unwatchable := newLiveSource()
		inf = run(t, unwatchable, informer.Options{})
		synctest.Wait()
		unwatchable.fail(apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "things"}, "watch"))
		if err := inf.ends(t); !errors.Is(err, informer.ErrWatchNotSupported) || !apierrors.IsMethodNotSupported(err) {
			t.Errorf("Run = %v, want ErrWatchNotSupported with the server's error", err)
		}
	})
}

// Promise 20: OnFailure is called by one goroutine at a time.
func TestInformerFailuresOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, busy, total := newLiveSource(), 0, 0
		for _, name := range []string{"a", "b", "c"} {
			source.write(name)
		}
		inf := run(t, source, informer.Options{OnFailure: func(informer.Failure) error {
			if busy++; busy > 1 {
				t.Error("OnFailure is called while it runs")
			}
			runtime.Gosched()
			total++
			busy--
			return nil
		}})
		synctest.Wait()
		for range 50 {
			inf.handler(t, func(informer.Change[*fifoObject]) { panic("boom") }, informer.HandlerOptions{OnPanic: informer.PanicReport})
		}
		synctest.Wait()
		if total != 150 {
			t.Errorf("OnFailure was called %d times, want 150", total)
		}
	})
}

// Waits: promise 1, 18 (cr#1349, cr#1464, argo-cd#6296): one's own write, a
// bookmark, versions that cannot be compared, a condition; none of them polls
// (k8s#135315, k8s#82446).
func TestInformerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		inf := run(t, source, informer.Options{})
		ctx, cancel := waitFor(time.Minute)
		defer cancel()
		began := time.Now()
		for range 1000 {
			version := source.write("a")
			if err := inf.WaitForResourceVersion(ctx, version); err != nil {
				t.Fatal(err)
			}
			if got, _ := inf.Get(fifoKey("a")); got == nil || got.version != version {
				t.Fatalf("after the wait for %s the cache has %v", version, got)
			}
		}
		source.change(func(*fifoServer) []informer.Event[*fifoObject] {
			return []informer.Event[*fifoObject]{{Type: informer.EventBookmark, Version: "5000"}}
		})
		if err := inf.WaitForResourceVersion(ctx, "5000"); err != nil {
			t.Errorf("after a bookmark at 5000, the wait for 5000 = %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the waits took %v of virtual time", took)
		}
		for _, version := range []string{"", "0", "abc", "12x"} {
			if err := inf.WaitForResourceVersion(ctx, version); !errors.Is(err, informer.ErrNotComparable) {
				t.Errorf("WaitForResourceVersion(%q) = %v, want ErrNotComparable", version, err)
			}
		}
		go func() {
			<-time.After(time.Second)
			source.change(func(srv *fifoServer) []informer.Event[*fifoObject] {
				srv.version = 6000
				return []informer.Event[*fifoObject]{srv.write("z")}
			})
		}()
		err := inf.WaitUntil(ctx, func(r informer.Reader[*fifoObject]) bool { return r.Len() == 2 })
		if err != nil || time.Since(began) != time.Second {
			t.Errorf("WaitUntil = %v after %v, want nil after 1s", err, time.Since(began))
		}
		mustContain(t, "WaitUntil in vain", inf.WaitUntil(ctx, func(informer.Reader[*fifoObject]) bool { return false }), "condition not met")
		mustContain(t, "WaitUntil(nil)", inf.WaitUntil(ctx, nil), "nil")
	})
}

// Promise 19: several informers: the first that fails ends the others, and all
// errors are told. Promise 18: so are those of a wait for several.
func TestRunSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		bad, good := newLiveSource(), newLiveSource()
		bad.fail(forbidden)
		first, err := informer.New(bad, informer.Options{Name: "bad", OnFailure: func(informer.Failure) error { return enough }})
		if err != nil {
			t.Fatal(err)
		}
		second, err := informer.New(good, informer.Options{Name: "good"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := waitFor(time.Second)
		defer cancel()
		err = informer.WaitSynced(ctx, first, second)
		mustContain(t, "WaitSynced", err, "bad", "good")
		began := time.Now()
		ctx, cancel = waitFor(time.Minute)
		defer cancel()
		if err := informer.Run(ctx, first, second); !errors.Is(err, enough) || time.Since(began) > time.Second {
			t.Errorf("Run = %v after %v, want %v at once", err, time.Since(began), enough)
		}
		if s := second.Status(); s.State != informer.StateStopped {
			t.Errorf("the other informer is %v, want stopped", s.State)
		}
	})
}

// Bad input: a clear error that names the thing, at construction.
func TestInformerBadInput(t *testing.T) {
	good := newLiveSource()
	inf, err := informer.New(good, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := func(informer.Change[*fifoObject]) {}
	newErr := func(_ *informer.Informer[*fifoObject], err error) error { return err }
	regErr := func(_ *informer.Registration, err error) error { return err }
	queue, err := informer.NewWorkQueue(informer.QueueOptions[informer.Key]{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what string
		err  error
		want []string
	}{
		{"nil source", newErr(informer.New[*fifoObject](nil, informer.Options{})), []string{"source", "nil", "fifoObject"}},
		{"typed nil source", newErr(informer.New((*liveSource)(nil), informer.Options{})), []string{"source", "nil"}},
		{"negative page", newErr(informer.New(good, informer.Options{PageSize: -1, Grace: -1})), []string{"PageSize is -1", "Grace is -1ns"}},
		{"negative times", newErr(informer.New(good, informer.Options{MinBackoff: -1, WatchTimeout: -2})), []string{"MinBackoff", "WatchTimeout"}},
		{"short watch", newErr(informer.New(good, informer.Options{WatchTimeout: 1})), []string{"WatchTimeout is 1ns", "at least 1s"}},
		{"backoffs", newErr(informer.New(good, informer.Options{MinBackoff: time.Hour, MaxBackoff: time.Minute})), []string{"MinBackoff is 1h0m0s", "MaxBackoff, 1m0s"}},
		{"labels", newErr(informer.New(good, informer.Options{LabelSelector: "a in (b"})), []string{"LabelSelector", "a in (b"}},
		{"fields", newErr(informer.New(good, informer.Options{FieldSelector: "a"})), []string{"FieldSelector", `"a"`}},
		{"nil handler", regErr(inf.AddHandler(nil, informer.HandlerOptions{})), []string{"handler", "nil"}},
		{"negative backlog", regErr(inf.AddHandler(handler, informer.HandlerOptions{Name: "mine", Backlog: -1})), []string{"mine", "Backlog is -1"}},
		{"negative resync", regErr(inf.AddHandler(handler, informer.HandlerOptions{Resync: -1})), []string{"Resync is -1ns"}},
		{"short resync", regErr(inf.AddHandler(handler, informer.HandlerOptions{Resync: time.Microsecond})), []string{"Resync is 1µs", "at least 1ms"}},
		{"nil filter", regErr(inf.AddHandler(informer.Filter(nil, handler), informer.HandlerOptions{})), []string{"handler", "nil"}},
		{"filter of nil", regErr(inf.AddHandler(informer.Filter(func(*fifoObject) bool { return true }, nil), informer.HandlerOptions{})), []string{"handler", "nil"}},
		{"no policy", regErr(inf.AddHandler(handler, informer.HandlerOptions{OnPanic: 9})), []string{"OnPanic is 9"}},
		{"nil queue", regErr(informer.Enqueue(inf, nil)), []string{"queue", "nil"}},
		{"nil keys", regErr(informer.EnqueueEach[*fifoObject, informer.Key](inf, queue, nil)), []string{"EnqueueEach", "nil"}},
	} {
		t.Run(test.what, func(t *testing.T) { mustContain(t, test.what, test.err, test.want...) })
	}
}

// Promise 19: a Run whose context has ended before its goroutines begin returns
// at once, and leaves none behind.
func TestInformerRunWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			inf, err := informer.New(newLiveSource(), informer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := inf.Run(canceled(t)); err != nil || time.Since(began) > 0 {
				t.Fatalf("Run = %v after %v, want nil at once", err, time.Since(began))
			}
		}
	})
}
