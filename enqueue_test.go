package informer_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// Promise 14, for owners: EnqueueEach asks for the state that the handler knew and for the last one, so
// that a former owner hears of an object that moved on and was deleted before
// anybody looked.
func TestEnqueueEachFormerOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate := newLiveSource(), make(chan struct{})
		source.write("a")
		inf := run(t, source, informer.Options{})
		queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{})
		if err != nil {
			t.Fatal(err)
		}
		owner := func(o *fifoObject, add func(string)) { add("owner at " + o.version) }
		if _, err := informer.EnqueueEach(inf.Informer, queue, owner); err != nil {
			t.Fatal(err)
		}
		// The writer of the cache is held up, and the queue before it coalesces.
		if _, err := informer.AddIndex(inf.Informer, "slow", func(o *fifoObject) (string, bool) {
			if o.name == "b" {
				<-gate
			}
			return "", false
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		lease, err := queue.Get(t.Context()) // as for every object that is there
		if err != nil || !lease.Done() || queue.Len() != 0 {
			t.Fatalf("Get = %v, %v; %d are left", lease, err, queue.Len())
		}
		source.write("b")
		synctest.Wait()
		source.write("a")
		source.write("a")
		source.delete("a")
		synctest.Wait()
		close(gate)
		synctest.Wait()

		rest, err := queue.Drain(canceled(t))
		if err == nil {
			t.Fatal("Drain with work and an ended context = nil error")
		}
		slices.Sort(rest)
		want := []string{"owner at 11", "owner at 12", "owner at 15"} // a, b, a's end
		if !slices.Equal(rest, want) {
			t.Errorf("the queue has %q, want %q", rest, want)
		}
	})
}

// Promise 26: what changes after a start is worked on before what was there, by
// Enqueue and by EnqueueEach; and of two states of an object the more urgent one
// counts.
func TestEnqueueRestart(t *testing.T) {
	type queue = informer.WorkQueue[informer.Key]
	for name, enqueue := range map[string]func(*informer.Informer[*fifoObject], *queue) (*informer.Registration, error){
		"Enqueue": informer.Enqueue[*fifoObject],
		"EnqueueEach": func(from *informer.Informer[*fifoObject], to *queue) (*informer.Registration, error) {
			return informer.EnqueueEach(from, to, func(o *fifoObject, add func(informer.Key)) { add(informer.KeyOf(o)) })
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			source := newLiveSource()
			for _, name := range []string{"a", "b", "c", "d"} {
				source.write(name)
			}
			inf := run(t, source, informer.Options{})
			queue := newQueue(t, informer.QueueOptions[informer.Key]{})
			if _, err := enqueue(inf.Informer, queue); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			source.write("c")
			source.write("new")
			source.delete("b")
			synctest.Wait()

			var got []string
			for queue.Len() > 0 {
				lease := leaseNow(t, queue)
				got = append(got, fmt.Sprintf("%s/%d", lease.Key.Name, lease.Priority))
				lease.Done()
			}
			slices.Sort(got[:3])
			slices.Sort(got[3:])
			if want := []string{"b/0", "c/0", "new/0", "a/-2", "d/-2"}; !slices.Equal(got, want) {
				t.Errorf("%s: leased %v, want %v", name, got, want)
			}
		})
	}
}

// TestEnqueueByHandler (promise 26): who adds keys by a handler of their own gives
// them the priority of the cause; a resync is not urgent.
func TestEnqueueByHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.write("a")
		inf := run(t, source, informer.Options{})
		queue := newQueue(t, informer.QueueOptions[informer.Key]{})
		handler := func(c informer.Change[*fifoObject]) {
			queue.AddWith(c.Key, informer.AddOptions{Priority: c.Cause.Priority()})
		}
		if _, err := inf.AddHandler(handler, informer.HandlerOptions{Resync: time.Hour}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			cause string
			act   func()
			want  informer.Priority
		}{
			{"initial", func() {}, informer.PriorityLow},
			{"change", func() { source.write("a") }, informer.PriorityNormal},
			{"resync", func() { <-time.After(time.Hour) }, informer.PriorityLow},
		} {
			step.act()
			synctest.Wait()
			lease := leaseNow(t, queue)
			if lease.Priority != step.want {
				t.Errorf("%s: priority %d, want %d", step.cause, lease.Priority, step.want)
			}
			lease.Done()
		}
	})
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Promise 14 through a filter: it shows the objects that are accepted, as if there were no others; an
// object that ceases to be accepted is deleted with the last state that was,
// and one whose final state is not accepted is deleted all the same.
func TestFilter(t *testing.T) {
	obj := func(version string, accepted bool) *fifoObject {
		o := &fifoObject{name: "a", uid: "no", version: version}
		if accepted {
			o.uid = "yes"
		}
		return o
	}
	type change = informer.Change[*fifoObject]
	in, out := obj("1", true), obj("2", false)
	in2, out2 := obj("3", true), obj("4", false)
	for _, test := range []struct {
		name string
		give change
		want string
	}{
		{"added in", change{Type: informer.Added, New: in}, "Added <nil> -> a/yes@1"},
		{"added out", change{Type: informer.Added, New: out}, ""},
		{"stays in", change{Type: informer.Updated, Old: in, New: in2}, "Updated a/yes@1 -> a/yes@3"},
		{"stays out", change{Type: informer.Updated, Old: out, New: out2}, ""},
		{"comes in", change{Type: informer.Updated, Old: out, New: in2}, "Added <nil> -> a/yes@3"},
		{"goes out", change{Type: informer.Updated, Old: in, New: out}, "Deleted a/yes@1 -> a/yes@1"},
		{"deleted in", change{Type: informer.Deleted, Exact: true, Old: in, New: in2}, "Deleted a/yes@1 -> a/yes@3 exact"},
		{"ended out", change{Type: informer.Deleted, Exact: true, Old: in, New: out}, "Deleted a/yes@1 -> a/no@2 exact"},
		{"deleted out", change{Type: informer.Deleted, Exact: true, Old: out, New: out2}, ""},
		{"ended in", change{Type: informer.Deleted, Exact: true, Old: out, New: in2}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := &told{}
			test.give.Cause = informer.CauseWatch
			informer.Filter(func(o *fifoObject) bool { return o.uid == "yes" }, log.handle)(test.give)
			want := test.want
			if want != "" {
				want = "Watch " + want
			}
			if got := log.take(); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		})
	}
}
