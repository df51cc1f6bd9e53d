package informer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// Promise 15, case 14 (k8s#49705, k8s#122067): one object of 4 KiB, updated
// 30,000 times, and a handler that is stuck: a few objects' worth of memory. In
// the end there is one update, from the first old to the last new.
func TestStuckHandlerHoldsFewObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const updates = 30_000
		source, all, gate := newPushSource[*bulky](), &census[bulky]{}, make(chan struct{})
		push := func(typ informer.EventType, version int) {
			source.events <- informer.EventOf(typ, all.enter(newBulky("a", version)))
			synctest.Wait()
		}
		inf := startOf(t, source, informer.Options{})
		var changes []informer.Change[*bulky]
		if _, err := inf.AddHandler(func(c informer.Change[*bulky]) {
			<-gate
			if c.Old != nil {
				c.Old = &bulky{version: c.Old.version}
			}
			c.New = &bulky{version: c.New.version}
			changes = append(changes, c)
		}, informer.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // what comes now, comes from the log
		push(informer.EventAdded, 2)
		before := heap()
		for i := range updates {
			push(informer.EventModified, 3+i)
		}
		alive, held := all.alive(), heap()-before
		// The handler's call has the first, the backlog the first and the last,
		// the cache the last.
		if alive > 4 || held > 30*4096 {
			t.Errorf("after %d updates %d objects are alive, and %d bytes more than before", updates, alive, held)
		}
		close(gate)
		synctest.Wait()
		if len(changes) != 2 || changes[1].Type != informer.Updated || changes[1].Old.version != "2" ||
			changes[1].New.version != fmt.Sprint(updates+2) {
			t.Errorf("the handler was told %d changes, want an addition and an update from 2 to %d", len(changes), updates+2)
		}
		if alive := all.alive(); alive > 1 {
			t.Errorf("when all is told %d objects are alive, want the one in the cache", alive)
		}
	})
}

// Promise 15: before a stuck handler there may be a store that is stuck, in an
// index function: then the queue coalesces (case 14's sibling, k8s#49705).
func TestStuckStoreHoldsFewObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, all, gate := newPushSource[*bulky](), &census[bulky]{}, make(chan struct{})
		inf := startOf(t, source, informer.Options{})
		if _, err := informer.AddIndex(inf, "stuck", func(o *bulky) (string, bool) {
			<-gate
			return o.version, true
		}); err != nil {
			t.Fatal(err)
		}
		for i := range 30_000 {
			source.events <- informer.EventOf(informer.EventModified, all.enter(newBulky("a", 2+i)))
		}
		synctest.Wait()
		if alive := all.alive(); alive > 2 {
			t.Errorf("%d objects are alive, want the one in flight and the last", alive)
		}
		close(gate)
	})
}

// Promise 15: the age in a backlog is that of the oldest change that waits, or
// is being told: not how long the handler has been busy.
func TestBacklogAge(t *testing.T) {
	for _, limit := range []int{1, 1000} { // coalesced, or read from the log
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, gate := newLiveSource(), make(chan struct{})
				inf := run(t, source, informer.Options{})
				synctest.Wait()
				reg := inf.handler(t, func(informer.Change[*fifoObject]) { <-gate }, informer.HandlerOptions{Backlog: limit})
				expect := func(what string, changes int, age time.Duration) {
					t.Helper()
					synctest.Wait()
					if n, got := reg.Backlog(); n != changes || got != age {
						t.Errorf("%s: Backlog() = %d, %v, want %d, %v", what, n, got, changes, age)
					}
				}
				expect("idle", 0, 0)
				for _, name := range []string{"a", "b", "c", "d"} {
					source.write(name)
					<-time.After(10 * time.Second)
				}
				// Their ages are 40, 30, 20 and 10 seconds.
				expect("stuck in a", 4, 40*time.Second)
				gate <- struct{}{}
				expect("stuck in b", 3, 30*time.Second)
				<-time.After(time.Second)
				gate <- struct{}{}
				expect("stuck in c", 2, 21*time.Second)
				gate <- struct{}{}
				expect("stuck in d", 1, 11*time.Second)
				source.write("d")
				<-time.After(time.Second)
				gate <- struct{}{}
				expect("stuck in the second d", 1, time.Second)
				gate <- struct{}{}
				expect("idle again", 0, 0)
			})
		})
	}
}

// Promise 15: what was coalesced is as old as the first of its changes, and what
// came and went leaves no age behind.
func TestBacklogAgeOfCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate := newLiveSource(), make(chan struct{})
		source.write("a")
		inf := run(t, source, informer.Options{})
		synctest.Wait()
		reg := inf.handler(t, func(c informer.Change[*fifoObject]) {
			if c.Cause != informer.CauseInitial {
				<-gate
			}
		}, informer.HandlerOptions{Backlog: 1})
		synctest.Wait()
		steps := []struct {
			what    string
			do      func()
			changes int
			age     time.Duration // a second later
		}{
			{"in a call", func() { source.write("a") }, 1, time.Second},
			{"b comes", func() { source.write("b") }, 2, 2 * time.Second},
			{"a changes", func() { source.write("a") }, 3, 3 * time.Second},
			{"too much", func() {
				for _, name := range []string{"b", "a", "b", "a"} {
					source.write(name)
				}
			}, 3, 4 * time.Second},
			{"z comes and goes", func() { source.write("z"); synctest.Wait(); source.delete("z") }, 3, 5 * time.Second},
			{"the call returns", func() { gate <- struct{}{} }, 2, 5 * time.Second}, // b's
			{"the next returns", func() { gate <- struct{}{} }, 1, 5 * time.Second}, // a's
			{"the last returns", func() { gate <- struct{}{} }, 0, 0},
		}
		for _, step := range steps {
			step.do()
			<-time.After(time.Second)
			synctest.Wait()
			if n, age := reg.Backlog(); n != step.changes || age != step.age {
				t.Errorf("%s: Backlog() = %d, %v, want %d, %v", step.what, n, age, step.changes, step.age)
			}
		}
	})
}
