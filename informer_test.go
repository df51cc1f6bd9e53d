package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
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
	inf, err := informer.New(source, opts)
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

// Promises 16, 17 and 18: a handler is synced when the last of its initial
// calls has returned (k8s#113763, k8s#129024, istio#24117), a panic does not
// prevent it, and a removal ends the wait.
func TestRegistrationSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		for _, name := range []string{"a", "b", "c"} {
			source.write(name)
		}
		inf := run(t, source, informer.Options{})
		began, gate := time.Now(), make(chan struct{})
		slow := func(c informer.Change[*fifoObject]) {
			<-time.After(time.Second)
			if c.Key.Name == "a" {
				panic("the first one")
			}
		}
		early := inf.handler(t, slow, informer.HandlerOptions{OnPanic: informer.PanicReport})
		<-time.After(2500 * time.Millisecond)
		select {
		case <-early.Synced():
			t.Error("a handler is synced in the last of its calls")
		default:
		}
		<-time.After(2500 * time.Millisecond)
		late := inf.handler(t, slow, informer.HandlerOptions{OnPanic: informer.PanicReport})
		stuck := inf.handler(t, func(informer.Change[*fifoObject]) { <-gate }, informer.HandlerOptions{Name: "stuck"})

		ctx, cancel := waitFor(time.Minute)
		defer cancel()
		if err := early.WaitSynced(ctx); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("synced after %v with %v, want 5s, since it was before", time.Since(began), err)
		}
		if err := late.WaitSynced(ctx); err != nil || time.Since(began) != 8*time.Second {
			t.Errorf("synced after %v with %v, want 8s", time.Since(began), err)
		}
		waited := make(chan error, 1)
		go func() { waited <- stuck.WaitSynced(ctx) }()
		synctest.Wait()
		stuck.Remove()
		select {
		case <-stuck.Done():
			t.Error("Done is closed while a call runs")
		default:
		}
		close(gate)
		if err := <-waited; !errors.Is(err, informer.ErrRemoved) {
			t.Errorf("WaitSynced of a removed handler = %v, want ErrRemoved", err)
		}
		<-stuck.Done()
	})
}

// Promise 18: what changes meanwhile does not put off that a handler is synced,
// be it added before Run or later.
func TestRegistrationSyncedDespiteChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		for _, name := range []string{"a", "b", "c"} {
			source.write(name)
		}
		inf, err := informer.New(source, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		slow := func(informer.Change[*fifoObject]) { <-time.After(time.Second) }
		before, err := inf.AddHandler(slow, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, inf)
		synctest.Wait()
		after := r.handler(t, slow, informer.HandlerOptions{})
		for range 10 {
			<-time.After(270 * time.Millisecond)
			source.write("a")
		}
		<-time.After(400 * time.Millisecond) // 3.1s in all
		for what, reg := range map[string]*informer.Registration{"before Run": before, "later": after} {
			select {
			case <-reg.Synced():
			default:
				t.Errorf("a handler that was added %s is not synced after its 3 initial calls", what)
			}
			reg.Remove()
			<-reg.Done()
		}
	})
}

// Promise 18: without objects, a handler is synced when the cache is, also one
// that was added before Run.
func TestRegistrationSyncedWithoutObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inf, err := informer.New(newLiveSource(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		nothing := func(informer.Change[*fifoObject]) { t.Error("called") }
		before, err := inf.AddHandler(nothing, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, inf)
		after := r.handler(t, nothing, informer.HandlerOptions{})
		ctx, cancel := waitFor(time.Minute)
		defer cancel()
		if err := r.WaitSynced(ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		select {
		case <-r.Synced():
		default:
			t.Error("Synced() is open after WaitSynced")
		}
		for _, reg := range []*informer.Registration{before, after} {
			if err := reg.WaitSynced(ctx); err != nil {
				t.Error(err)
			}
		}
		unrun, err := informer.New(newLiveSource(), informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		never, err := unrun.AddHandler(nothing, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		never.Remove()
		never.Remove()
		select {
		case <-never.Done():
		default:
			t.Error("a handler that never ran is not done after Remove")
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

// Promise 17: by default, a panic ends the program, and the message names the
// handler and the key. The test runs itself in another process.
func TestHandlerPanicCrashes(t *testing.T) {
	if os.Getenv("INFORMER_TEST_CRASH") == "handler" {
		source := newLiveSource()
		source.write("a")
		inf, err := informer.New(source, informer.Options{OnFailure: func(f informer.Failure) error {
			fmt.Println("reported", f)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inf.AddHandler(func(informer.Change[*fifoObject]) { panic("boom") }, informer.HandlerOptions{Name: "mine"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_ = inf.Run(ctx)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHandlerPanicCrashes$")
	cmd.Env = append(os.Environ(), "INFORMER_TEST_CRASH=handler")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `informer: mine panicked on object "ns/a": boom`) ||
		strings.Contains(string(out), "reported") {
		t.Errorf("the program ended with %v and:\n%s", err, out)
	}
}

// Promise 17: a panic is reported with the key, and the handler goes on or is
// removed, as its options say (client-go#838, k8s#58394).
func TestHandlerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []informer.Failure
		source := newLiveSource()
		source.write("a")
		source.write("b")
		inf := run(t, source, informer.Options{OnFailure: func(f informer.Failure) error {
			failures = append(failures, f)
			return nil
		}})
		calls := map[string]int{}
		bad := func(name string) informer.Handler[*fifoObject] {
			return func(informer.Change[*fifoObject]) {
				calls[name]++
				panic("boom in " + name)
			}
		}
		inf.handler(t, bad("report"), informer.HandlerOptions{Name: "report", OnPanic: informer.PanicReport})
		synctest.Wait()
		detached := inf.handler(t, bad("detach"), informer.HandlerOptions{Name: "detach", OnPanic: informer.PanicDetach})
		synctest.Wait()
		select {
		case <-detached.Done():
		default:
			t.Fatal("the handler goes on after a panic")
		}
		if calls["report"] != 2 || calls["detach"] != 1 || len(failures) != 3 {
			t.Fatalf("calls %v, %d failures, want 2, 1 and 3", calls, len(failures))
		}
		var bad0 *informer.ObjectError
		if !errors.As(failures[0].Err, &bad0) || bad0.Key.Name == "" || failures[0].Op != "report" ||
			!strings.Contains(failures[0].Err.Error(), "boom in report") {
			t.Errorf("the failure is %+v, want key, handler and panic", failures[0])
		}
		if err := detached.WaitSynced(context.Background()); !errors.Is(err, informer.ErrRemoved) {
			t.Errorf("WaitSynced of a detached handler = %v, want ErrRemoved", err)
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

// A resync is off by default, makes no request, says so, and is spread over its
// period (client-go#1315, prometheus-operator#1718, fabric8#2812).
func TestHandlerResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		const objects = 3000
		for i := range objects {
			source.write(fmt.Sprint(i))
		}
		inf := run(t, source, informer.Options{})
		var quiet int
		inf.handler(t, func(informer.Change[*fifoObject]) { quiet++ }, informer.HandlerOptions{})
		perMinute := map[int]int{}
		seen := map[string]int{}
		began := time.Now()
		inf.handler(t, func(c informer.Change[*fifoObject]) {
			if c.Cause == informer.CauseResync {
				if c.Type != informer.Updated || c.Old != c.New {
					t.Errorf("a resync is %+v", c)
				}
				perMinute[int(time.Since(began)/time.Minute)]++
				seen[c.Key.Name]++
			}
		}, informer.HandlerOptions{Resync: time.Hour})
		<-time.After(time.Hour + time.Second)
		synctest.Wait()
		if len(seen) != objects {
			t.Errorf("%d of %d objects were told in the period", len(seen), objects)
		}
		for name, n := range seen {
			if n != 1 {
				t.Fatalf("%s was told %d times", name, n)
			}
		}
		for minute, n := range perMinute {
			if n > 10*objects/60 {
				t.Errorf("minute %d had %d of %d calls", minute, n, objects)
			}
		}
		if quiet != objects || source.lists != 1 {
			t.Errorf("the other handler had %d calls, and there were %d lists", quiet, source.lists)
		}
	})
}

// Promise 15: a stuck handler costs memory by objects, not by events, and is
// told of one update in the end, from the first old to the last new
// (k8s#49705, k8s#122067).
func TestHandlerStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate, log := newLiveSource(), make(chan struct{}), &told{}
		source.write("a")
		inf := run(t, source, informer.Options{})
		reg := inf.handler(t, func(c informer.Change[*fifoObject]) {
			<-gate
			log.handle(c)
		}, informer.HandlerOptions{})
		synctest.Wait()
		var last string
		for i := range 30_000 {
			if last = source.write("a"); i%10 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if n, busy := reg.Backlog(); n > 1024+2 || busy != 0 {
			t.Errorf("Backlog() = %d for %v", n, busy)
		}
		close(gate)
		synctest.Wait()
		lines := strings.Split(log.take(), "\n")
		if len(lines) > 2 || !strings.HasSuffix(lines[len(lines)-1], "-> a/u1@"+last) {
			t.Errorf("the handler was told %d changes, the last one %s, want one to @%s", len(lines), lines[len(lines)-1], last)
		}
	})
}

// Promise 14: when a handler is told, the cache shows it already; here a writer
// takes its time.
func TestHandlerIsToldAfterTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		if _, err := informer.AddIndex(inf.Informer, "slow", func(o *fifoObject) (string, bool) {
			<-time.After(time.Second)
			return o.name, true
		}); err != nil {
			t.Fatal(err)
		}
		calls := 0
		inf.handler(t, func(c informer.Change[*fifoObject]) {
			calls++
			if got, _ := inf.Get(c.Key); got != c.New {
				t.Errorf("the handler is told of %v, when the cache has %v", c.New, got)
			}
		}, informer.HandlerOptions{})
		for range 3 {
			source.write("a")
			<-time.After(10 * time.Second)
		}
		synctest.Wait()
		if calls != 3 {
			t.Errorf("there were %d calls, want 3", calls)
		}
	})
}

// Promise 15: what a handler that is far behind is told of, at most two changes
// a key: first old, last new (k8s#49705).
func TestHandlerBacklog(t *testing.T) {
	type script = func(*fifoServer) []informer.Event[*fifoObject]
	one := func(ev informer.Event[*fifoObject]) []informer.Event[*fifoObject] {
		return []informer.Event[*fifoObject]{ev}
	}
	write := func(name string) script {
		return func(srv *fifoServer) []informer.Event[*fifoObject] { return one(srv.write(name)) }
	}
	remove := func(name string) script {
		return func(srv *fifoServer) []informer.Event[*fifoObject] {
			ev, _ := srv.delete(name)
			return one(ev)
		}
	}
	for _, test := range []struct {
		name  string
		steps []script
		depth int // the call, and what waits
		want  string
	}{
		{"updates", []script{write("a"), write("a"), write("a")}, 3, "Watch Updated a/u1@11 -> a/u1@20"},
		{"deleted", []script{write("a"), remove("a")}, 3, "Watch Deleted a/u1@11 -> a/u1@19 exact"},
		{"added", []script{write("b"), write("b")}, 3, "Watch Added <nil> -> b/u3@19"},
		{"came and went", []script{write("b"), write("b"), remove("b")}, 2, ""},
		{"recreated", []script{remove("a"), write("a"), write("a")}, 3, "Watch Deleted a/u1@11 -> a/u1@18 exact\nWatch Added <nil> -> a/u3@20"},
		{"recreated and deleted", []script{remove("a"), write("a"), remove("a")}, 3, "Watch Deleted a/u1@11 -> a/u1@18 exact"},
		{"came, went and came", []script{write("b"), remove("b"), write("b")}, 3, "Watch Added <nil> -> b/u4@20"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, gate, log := newLiveSource(), make(chan struct{}), &told{}
				source.write("a")
				inf := run(t, source, informer.Options{})
				synctest.Wait()
				reg := inf.handler(t, func(c informer.Change[*fifoObject]) {
					if c.Key.Name == "block" {
						<-gate
						return
					}
					log.handle(c)
				}, informer.HandlerOptions{Backlog: 1})
				source.write("block") // 12: it is in this call
				synctest.Wait()
				log.take()
				for range 5 {
					source.write("block") // to 17: the log is left
					synctest.Wait()
				}
				for _, step := range test.steps {
					source.change(step)
					synctest.Wait()
				}
				<-time.After(time.Second)
				if n, busy := reg.Backlog(); n != test.depth || busy != time.Second {
					t.Errorf("Backlog() = %d for %v, want %d for 1s", n, busy, test.depth)
				}
				close(gate)
				synctest.Wait()
				if got := log.take(); got != test.want {
					t.Errorf("the handler was told\n%s\nwant\n%s", got, test.want)
				}
				if n, busy := reg.Backlog(); n != 0 || busy != 0 {
					t.Errorf("Backlog() of an idle handler = %d for %v", n, busy)
				}
			})
		})
	}
}

// Promise 15: within its limit, or within the number of objects, a handler that
// is behind is told everything.
func TestHandlerWithinLimit(t *testing.T) {
	for _, test := range []struct{ backlog, objects, writes, want int }{
		{1, 10, 9, 9},
		{100, 1, 50, 50},
		{0, 1, 1000, 1000},
		{1, 3, 9, 2}, // the call, and the rest as one
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, gate := newLiveSource(), make(chan struct{})
				for i := range test.objects {
					source.write(fmt.Sprint(i))
				}
				inf := run(t, source, informer.Options{})
				synctest.Wait()
				calls := 0
				inf.handler(t, func(c informer.Change[*fifoObject]) {
					if c.Cause == informer.CauseWatch {
						calls++
						<-gate
					}
				}, informer.HandlerOptions{Backlog: test.backlog})
				for range test.writes {
					source.write("0")
					synctest.Wait()
				}
				close(gate)
				synctest.Wait()
				if calls != test.want {
					t.Errorf("%d writes made %d calls, want %d", test.writes, calls, test.want)
				}
			})
		})
	}
}

// Promise 16: a handler that is added while a batch is on its way into the
// cache misses nothing of it, and is told nothing twice.
func TestHandlerJoinsInsideBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, log := newLiveSource(), &told{}
		source.write("a")
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		slow := false
		if _, err := informer.AddIndex(inf.Informer, "slow", func(o *fifoObject) (string, bool) {
			if slow {
				<-time.After(time.Second)
			}
			return o.name, true
		}); err != nil {
			t.Fatal(err)
		}
		slow = true
		source.write("b")
		synctest.Wait() // the batch has its changes, and the cache not yet
		if inf.Len() != 1 {
			t.Fatal("the batch is in the cache")
		}
		inf.handler(t, log.handle, informer.HandlerOptions{})
		<-time.After(time.Minute)
		if got, want := log.take(), "Initial Added <nil> -> a/u1@11\nWatch Added <nil> -> b/u2@12"; got != want {
			t.Errorf("the handler was told\n%s\nwant\n%s", got, want)
		}
	})
}

// Promise 15: a backlog does not grow with names that come and go, and one that
// came back to where it began is no change.
func TestHandlerBacklogOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate, log := newLiveSource(), make(chan struct{}), &told{}
		source.write("a")
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		saved := source.state()
		reg := inf.handler(t, func(c informer.Change[*fifoObject]) {
			<-gate
			log.handle(c)
		}, informer.HandlerOptions{Backlog: 1})
		synctest.Wait()
		for i := range 1000 {
			source.write(fmt.Sprint("b", i))
			synctest.Wait()
			source.delete(fmt.Sprint("b", i))
			synctest.Wait()
		}
		if n, _ := reg.Backlog(); n > 3 {
			t.Errorf("Backlog() = %d after names came and went, want at most 3", n)
		}
		source.write("a")
		synctest.Wait()
		source.forget(func(srv *fifoServer) { srv.objects, srv.version = saved, 10 })
		<-time.After(time.Hour) // of silence, until the server is asked
		if got, _ := inf.Get(fifoKey("a")); got == nil || got.version != "11" {
			t.Fatalf("after the restore the cache has %v", inf.List())
		}
		close(gate)
		synctest.Wait()
		if got, want := log.take(), "Initial Added <nil> -> a/u1@11"; got != want {
			t.Errorf("the handler was told\n%s\nwant\n%s", got, want)
		}
	})
}

// Promise 16: Remove does not wait for the call that runs, none starts after
// it, also if it is called from inside the handler, and Done is closed when the
// last one has returned.
func TestHandlerRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate := newLiveSource(), make(chan struct{})
		for i := range 10 {
			source.write(fmt.Sprint(i))
		}
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		var outside, inside, live int
		stuck := inf.handler(t, func(informer.Change[*fifoObject]) {
			outside++
			<-gate
		}, informer.HandlerOptions{})
		var own *informer.Registration
		ready := make(chan struct{})
		own = inf.handler(t, func(informer.Change[*fifoObject]) {
			<-ready
			if inside++; inside == 3 {
				own.Remove()
			}
		}, informer.HandlerOptions{})
		close(ready)
		late := inf.handler(t, func(c informer.Change[*fifoObject]) {
			if c.Cause == informer.CauseWatch {
				live++
				<-gate
			}
		}, informer.HandlerOptions{})
		synctest.Wait()
		for range 20 {
			source.write("0")
		}
		synctest.Wait()
		removed := make(chan struct{})
		go func() {
			defer close(removed)
			stuck.Remove()
			late.Remove()
		}()
		synctest.Wait()
		select {
		case <-removed:
		default:
			t.Error("Remove waits for the call that runs")
		}
		select {
		case <-stuck.Done():
			t.Error("Done is closed while a call runs")
		case <-late.Done():
			t.Error("Done is closed while a call runs")
		default:
		}
		close(gate)
		<-stuck.Done()
		<-late.Done()
		<-own.Done()
		source.write("0")
		synctest.Wait()
		if outside != 1 || inside != 3 || live != 1 {
			t.Errorf("there were %d, %d and %d calls, want 1, 3 and 1", outside, inside, live)
		}
		if n := informer.Followers(inf.Informer); n != 0 {
			t.Errorf("%d removed handlers are still told", n)
		}
		if n, busy := stuck.Backlog(); n != 0 || busy != 0 {
			t.Errorf("a handler that is done has a backlog of %d for %v", n, busy)
		}
	})
}

// Promises 16 and 29: 1000 handlers come and go during 10,000 updates; each
// one's changes fold to the cache, and no goroutine is left (client-go#1167,
// k8s#98657, k8s#142039, ovn-kubernetes#483).
func TestHandlersComeAndGo(t *testing.T) {
	source := newLiveSource()
	inf, err := informer.New(source, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()

	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 10_000 {
			if i%7 == 0 {
				source.delete(fmt.Sprint(i % 50))
			} else {
				source.write(fmt.Sprint(i % 50))
			}
		}
	})
	folders := make([]*folder, 1000)
	for i := range folders {
		f := newFolder(fmt.Sprint("handler ", i), inf.Reader)
		f.release()
		if i%3 == 0 {
			f.leave = i % 20
		}
		reg, err := inf.AddHandler(func(c informer.Change[*fifoObject]) {
			<-f.joined
			f.handle(c)
		}, informer.HandlerOptions{Backlog: 1 + i%50})
		if err != nil {
			t.Fatal(err)
		}
		f.reg.Store(reg)
		close(f.joined)
		folders[i] = f
		if i%2 == 0 && i > 10 {
			folders[i-10].reg.Load().Remove()
			folders[i-10].over.Store(true)
		}
	}
	wg.Wait()
	if err := inf.WaitForResourceVersion(ctx, source.write("end")); err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if err := f.until(ctx, "end"); err != nil {
			t.Fatal(err)
		}
		want := source.state()
		if f.over.Load() {
			<-f.reg.Load().Done()
			want = nil
		}
		if err := f.err(want); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Promise 19: several informers: the first that fails ends the others, and all
// errors are told.
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
