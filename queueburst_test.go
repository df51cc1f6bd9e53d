package informer_test

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// burstOfGroups fills q with keys, each of a group of its own, each of which fails
// twice and is parked, and released. Then all but so many succeed; those are parked
// again, or ready again.
func burstOfGroups(t *testing.T, q *informer.WorkQueue[int], keys, left int) {
	for k := range keys {
		q.Add(k)
	}
	for range keys { // each once, as groups take turns
		leaseNow(t, q).Retry(informer.RetryAfter(0, errSource))
	}
	for range keys {
		leaseNow(t, q).Park(errSource)
	}
	if stats := q.Stats(); stats.Parked != keys || stats.Retries != uint64(keys) {
		t.Fatalf("Stats = %+v, want %d keys parked and as many retries", stats, keys)
	}
	for k := range keys {
		q.Unpark(k)
	}
	for range keys {
		switch lease := leaseNow(t, q); {
		case lease.Key >= left:
			lease.Done()
		case lease.Key%2 == 0:
			lease.Park(errSource)
		default:
			lease.RetryAfter(0) // and behind the others
		}
	}
}

// TestWorkQueue_MemoryOfGroups (promise 30): after a burst of keys, each of a group of
// its own, each of which failed and was parked, a queue holds at most twice what
// a fresh one with the same content does, and has no goroutine.
func TestWorkQueue_MemoryOfGroups(t *testing.T) {
	skipWithRace(t)
	burst := 40_000
	if *fullSize {
		burst = 1_000_000
	}
	for _, left := range []int{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			options := informer.QueueOptions[int]{Group: strconv.Itoa, Ageing: time.Second}
			before := runtime.NumGoroutine()
			fresh, want := heldBy(func() *informer.WorkQueue[int] {
				q := newQueue(t, options)
				burstOfGroups(t, q, left, left)
				return q
			})
			base := heap()
			q := newQueue(t, options)
			burstOfGroups(t, q, burst, left)
			<-time.After(2 * time.Second)
			synctest.Wait()
			got := heap() - base
			if err := informer.ValidateQueue(q); err != nil || len(q.Items()) != left {
				t.Errorf("%d keys are left, want %d; %v", len(q.Items()), left, err)
			}
			if got > 2*want+16<<10 {
				t.Errorf("%d of %d left: holds %d B, want at most twice %d B", left, burst, got, want)
			}
			if n := runtime.NumGoroutine(); n > before {
				t.Errorf("%d goroutines, %d before", n, before)
			}
			rest, err := q.Drain(canceled(t))
			if slices.Sort(rest); len(rest) != left || left > 0 && rest[left-1] != left-1 || (err != nil) != (left > 0) {
				t.Errorf("Drain = %d keys, %v, want %d", len(rest), err, left)
			}
			rest = nil
			drained := heap() - base
			if drained > 16<<10 {
				t.Errorf("%d of %d left, and drained: holds %d B", left, burst, drained)
			}
			t.Logf("%d of %d left: holds %d B, a fresh one %d B; %d B once drained", left, burst, got, want, drained)
			runtime.KeepAlive(q)
			runtime.KeepAlive(fresh)
		})
	}
}

// TestWorkQueue_ItemsHoldTheLockShortly: of a hundred thousand keys with all that
// there is to tell, a part is read under one lock which takes less than a
// millisecond. Others may take the processor; so the median counts, and the
// number of slots.
func TestWorkQueue_ItemsHoldTheLockShortly(t *testing.T) {
	const keys = 100_000
	q := newQueue(t, informer.QueueOptions[int]{
		Group:   func(k int) string { return strconv.Itoa(k % 1000) },
		Limiter: fixedLimiter[int](time.Hour),
	})
	for k := range keys {
		q.Add(k)
	}
	for range keys {
		lease := leaseNow(t, q)
		switch lease.Key % 4 {
		case 0:
			lease.Retry(errSource)
		case 1:
			lease.Park(errSource)
		case 2:
			lease.RetryAfter(0)
		}
	}
	spans, most := informer.QueueViewSpans(q)
	slices.Sort(spans)
	median, longest := spans[len(spans)/2], spans[len(spans)-1]
	if most > 512 || len(spans) < keys/512 {
		t.Errorf("%d slots are read under one lock, %d times", most, len(spans))
	}
	if median > time.Millisecond {
		t.Errorf("the lock is held for %v, want at most 1 ms", median)
	}
	t.Logf("%d times for up to %d of %d keys: %v in the median, %v at most", len(spans), most, keys, median, longest)
}
