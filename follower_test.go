package informer_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/seed-99a027e8/informer"
)

// isClosed reports whether c is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Promise 18: only the initial calls count. A handler that is stuck in a later
// one is synced, whether it was there at the first list or came later.
func TestRegistrationSyncedBeforeLaterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate := newLiveSource(), make(chan struct{})
		defer close(gate)
		for i := range 300 {
			source.write(fmt.Sprint(i))
		}
		inf, err := informer.New(source, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stuckLater := func(c informer.Change[*fifoObject]) {
			<-time.After(time.Millisecond)
			if c.Cause != informer.CauseInitial {
				<-gate
			}
		}
		early, err := inf.AddHandler(stuckLater, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, inf)
		synctest.Wait()
		late := r.handler(t, stuckLater, informer.HandlerOptions{})
		synctest.Wait()
		source.write("0") // while both are in an initial call
		<-time.After(time.Minute)
		if !isClosed(early.Synced()) || !isClosed(late.Synced()) {
			t.Errorf("synced: early %v, late %v; want both", isClosed(early.Synced()), isClosed(late.Synced()))
		}
	})
}

// Promise 15: how far a handler is behind can be read also while it is told of
// the objects that were there, or of all of them once more.
func TestRegistrationBacklogOfRepeatedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate := newLiveSource(), make(chan struct{})
		defer close(gate)
		for _, name := range []string{"a", "b", "c"} {
			source.write(name)
		}
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		initial := inf.handler(t, func(informer.Change[*fifoObject]) {
			<-gate
		}, informer.HandlerOptions{})
		repeated := inf.handler(t, func(c informer.Change[*fifoObject]) {
			if c.Cause == informer.CauseResync {
				<-gate
			}
		}, informer.HandlerOptions{Resync: 64 * time.Second})
		<-time.After(10 * time.Second)
		synctest.Wait()
		for _, reg := range []*informer.Registration{initial, repeated} {
			if n, age := reg.Backlog(); n != 3 || age < 9*time.Second {
				t.Errorf("Backlog() = %d for %v, want 3 for 9s or 10s", n, age)
			}
		}
		gate <- struct{}{}
		gate <- struct{}{} // one of each, or two of one
		synctest.Wait()
		n, _ := initial.Backlog()
		if m, _ := repeated.Backlog(); n+m != 4 {
			t.Errorf("after two calls, Backlog() = %d and %d, want 4 in all", n, m)
		}
	})
}

// Promise 30: a handler keeps alive nothing of what it has been told.
func TestHandlerKeepsNothingAlive(t *testing.T) {
	source := newLiveSource()
	source.write("a")
	inf, err := informer.New(source, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := t.Context(), make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	if err := inf.WaitSynced(ctx); err != nil || !isClosed(inf.Synced()) {
		t.Fatalf("WaitSynced = %v, and Synced is closed: %v", err, isClosed(inf.Synced()))
	}
	reg, err := inf.AddHandler(func(informer.Change[*fifoObject]) {}, informer.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	obj, _ := inf.Get(fifoKey("a"))
	first := weak.Make(obj)
	obj = nil
	var version string
	for range 3 {
		version = source.write("a")
	}
	if err := inf.WaitForResourceVersion(ctx, version); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); first.Value() != nil; runtime.Gosched() {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatal("the first state of the object is in memory yet")
		}
	}
	runtime.KeepAlive(reg)
}
