package informer_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-99a027e8/informer"
)

// A changingQueue has thousands of keys in every state that there is.
type changingQueue struct {
	*informer.WorkQueue[int]
	t      *testing.T
	leases []informer.Lease[int]
}

// changingSlots is how many slots there are. Every fourth is free.
const changingSlots = 8000

// newChangingQueue returns a queue with a thousand keys each that are ready,
// leased and parked, and three thousand that are delayed.
func newChangingQueue(t *testing.T) *changingQueue {
	q := &changingQueue{t: t}
	q.WorkQueue = newQueue(t, informer.QueueOptions[int]{
		Group:   func(k int) string { return string(rune('a' + k%7)) },
		Limiter: fixedLimiter[int](time.Second),
	})
	for k := range changingSlots {
		q.AddAfter(k, time.Hour)
	}
	for k := 0; k < changingSlots; k += 4 {
		q.Cancel(k)
	}
	for k := 1; k < changingSlots; k += 8 {
		q.Add(k)
	}
	for range changingSlots / 8 {
		leaseNow(t, q.WorkQueue).Park(errSource)
	}
	for k := 3; k < changingSlots; k += 8 {
		q.Add(k)
	}
	for range changingSlots / 8 {
		q.leases = append(q.leases, leaseNow(t, q.WorkQueue))
	}
	for k := 5; k < changingSlots; k += 8 {
		q.Add(k)
	}
	return q
}

// each calls do with every key, and with some that are not in the queue.
func (q *changingQueue) each(do func(k int)) {
	for k := range changingSlots + 100 {
		do(k)
	}
}

// end ends the leases that are open.
func (q *changingQueue) end(how func(informer.Lease[int])) {
	for _, lease := range q.leases {
		how(lease)
	}
}

// TestWorkQueue_ItemsWhileAllChanges (promise 24: nothing hides): whoever looks sees
// what was there when the look began, each key once, though meanwhile all of them
// change, some go, others come, and memory is given back.
func TestWorkQueue_ItemsWhileAllChanges(t *testing.T) {
	for name, change := range map[string]func(q *changingQueue){
		"nothing":        func(q *changingQueue) {},
		"added":          func(q *changingQueue) { q.each(func(k int) { q.Add(k) }) },
		"added, limited": func(q *changingQueue) { q.each(func(k int) { q.AddLimited(k) }) },
		"postponed":      func(q *changingQueue) { q.each(func(k int) { q.Reschedule(k, time.Minute) }) },
		"due":            func(q *changingQueue) { <-time.After(2 * time.Hour) },
		"unparked":       func(q *changingQueue) { q.each(func(k int) { q.Unpark(k) }) },
		"cancelled":      func(q *changingQueue) { q.each(func(k int) { q.Cancel(k) }) },
		"most cancelled": func(q *changingQueue) {
			q.each(func(k int) {
				if k%64 != 5 {
					q.Cancel(k)
				}
			})
			q.end(func(l informer.Lease[int]) { l.Done() })
		},
		"cancelled and added": func(q *changingQueue) {
			q.each(func(k int) {
				q.Cancel(k)
				q.Add(-k - 1)
			})
		},
		"leased": func(q *changingQueue) {
			for range changingSlots / 8 {
				leaseNow(q.t, q.WorkQueue)
			}
		},
		"leased and done": func(q *changingQueue) {
			for range changingSlots / 8 {
				leaseNow(q.t, q.WorkQueue).Done()
			}
		},
		"done":    func(q *changingQueue) { q.end(func(l informer.Lease[int]) { l.Done() }) },
		"retried": func(q *changingQueue) { q.end(func(l informer.Lease[int]) { l.Retry(errSource) }) },
		"parked":  func(q *changingQueue) { q.end(func(l informer.Lease[int]) { l.Park(errSource) }) },
		"drained": func(q *changingQueue) {
			_, _ = q.Drain(canceled(q.t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newChangingQueue(t)
				<-time.After(10 * time.Second)
				want, got := map[int]informer.Item[int]{}, map[int]informer.Item[int]{}
				for _, item := range q.Items() {
					want[item.Key] = item
				}
				if len(want) != changingSlots*3/4 {
					t.Fatalf("%d keys are in the queue, want %d", len(want), changingSlots*3/4)
				}
				informer.QueueView(q.WorkQueue, func(item informer.Item[int]) {
					if len(got) == 0 {
						change(q)
						<-time.After(2 * time.Second) // memory comes back
					}
					if _, ok := got[item.Key]; ok {
						t.Errorf("%d is shown twice", item.Key)
					}
					got[item.Key] = item
				})
				if !maps.Equal(want, got) {
					t.Errorf("Items (-want +got):\n%s", cmp.Diff(want, got, cmpopts.EquateErrors()))
				}
				if err := informer.ValidateQueue(q.WorkQueue); err != nil {
					t.Error(err)
				}
				if name == "most cancelled" && informer.QueueRoom(q.WorkQueue) < changingSlots {
					t.Error("memory was given back while somebody looked")
				}
				<-time.After(2 * time.Second)
				if n := len(q.Items()); informer.QueueRoom(q.WorkQueue) > 2*n+16 {
					t.Errorf("%d keys have room for %d", n, informer.QueueRoom(q.WorkQueue))
				}
			})
		})
	}
}

// TestWorkQueue_ItemsWhileDraining (promise 24): a key that is delayed when the queue
// drains is shown as one that Drain returns: it will not be ready.
func TestWorkQueue_ItemsWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("leased")
		lease := leaseNow(t, q)
		q.AddAfter("leased", time.Second)
		q.AddAfter("delayed", time.Second)
		go q.Drain(t.Context())
		<-time.After(time.Minute)
		want := map[string]informer.ItemState{"leased": informer.ItemLeased, "delayed": informer.ItemKept}
		for _, item := range q.Items() {
			if item.State != want[item.Key] || !item.Due.IsZero() {
				t.Errorf("%s is %v, due at %v, want %v, and never", item.Key, item.State, item.Due, want[item.Key])
			}
		}
		if n := q.Stats().Delayed; n != 0 {
			t.Errorf("%d keys are delayed, want none", n)
		}
		lease.Done()
		synctest.Wait()
	})
}
