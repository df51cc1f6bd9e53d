package informer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

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
// that was added before Run. Promise 16: one that never ran is done when it is
// removed.
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

// Promise 17: by default, a panic ends the program, and the message names the
// handler and the key. The test runs itself in another process.
func TestHandlerPanicCrashes(t *testing.T) {
	if os.Getenv("INFORMER_TEST_CRASH") == "handler" {
		source := newLiveSource()
		source.write("a")
		inf, err := informer.New(source, informer.Options{OnFailure: func(f informer.Failure) error {
			fmt.Println("reported", f)
			return f.Err // ends Run
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
		if n, age := reg.Backlog(); n > 1024+2 || age != 0 {
			t.Errorf("Backlog() = %d for %v", n, age)
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

// Promises 3 and 15: what a handler that is far behind is told of, at most two
// changes a key: first old, last new (k8s#49705).
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
				if n, age := reg.Backlog(); n != test.depth || age != time.Second {
					t.Errorf("Backlog() = %d for %v, want %d for 1s", n, age, test.depth)
				}
				close(gate)
				synctest.Wait()
				if got := log.take(); got != test.want {
					t.Errorf("the handler was told\n%s\nwant\n%s", got, test.want)
				}
				if n, age := reg.Backlog(); n != 0 || age != 0 {
					t.Errorf("Backlog() of an idle handler = %d for %v", n, age)
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
		if n, age := stuck.Backlog(); n != 0 || age != 0 {
			t.Errorf("a handler that is done has a backlog of %d for %v", n, age)
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
