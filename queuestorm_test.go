package informer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-99a027e8/informer"
)

// A queueStorm does everything at once with the keys of a queue. Every third key
// is one that is in the queue all the time: it is not cancelled, and its leases
// end in another attempt or with the key parked.
type queueStorm struct {
	*testing.T
	queue *informer.WorkQueue[int]

	held [stormKeys]sync.Mutex // by who works on the key: never contended
	mu   [stormKeys]sync.Mutex // guards owed[i]
	owed [stormKeys]bool       // a lease is to come: of an add, or a retry

	leases, ends, adds, cancels, looks atomic.Int64
	draining                           atomic.Bool
}

const (
	stormKeys     = 1200 // more than are read under one lock
	stormWorkers  = 8    // half of them by Get
	stormAttempts = 3
)

// stays reports that a key is always in the queue.
func stays(k int) bool { return k%3 == 0 }

// errStorm is why leases fail.
var errStorm = errors.New("storm")

// add adds keys in all ways, until the queue takes none.
func (s *queueStorm) add() {
	for i := 0; ; i++ {
		if i%32 == 0 {
			runtime.Gosched() // or, on one processor, nothing else runs
		}
		k := rand.IntN(stormKeys)
		short := time.Duration(rand.IntN(300)) * time.Microsecond
		p := informer.Priority(rand.IntN(5) - 2)
		s.mu[k].Lock()
		ok, unparked := false, false
		switch rand.IntN(8) {
		case 0:
			ok = s.queue.Add(k)
		case 1:
			ok = s.queue.AddAfter(k, short)
		case 2:
			ok = s.queue.AddLimited(k)
		case 3:
			ok = s.queue.Reschedule(k, short)
		case 4:
			ok = s.queue.AddWith(k, informer.AddOptions{Priority: p, After: short})
		case 5:
			ok = s.queue.AddWith(k, informer.AddOptions{Priority: p, Limited: true})
		case 6:
			unparked = true
			ok = s.queue.Unpark(k)
		case 7:
			unparked = true
			if !stays(k) && s.queue.Cancel(k) {
				s.owed[k] = false
				s.cancels.Add(1)
			}
		}
		s.owed[k] = s.owed[k] || ok
		s.mu[k].Unlock()
		if ok {
			s.adds.Add(1)
		} else if !unparked {
			return
		}
	}
}

// hold works on a key: promise 22.
func (s *queueStorm) hold(k int) {
	s.leases.Add(1)
	if !s.held[k].TryLock() {
		s.Errorf("key %d is leased twice at a time", k)
		return
	}
	s.mu[k].Lock()
	s.owed[k] = false
	s.mu[k].Unlock()
	if rand.IntN(8) == 0 {
		runtime.Gosched()
	}
	s.held[k].Unlock()
}

// get works off keys, until there are none.
func (s *queueStorm) get() {
	var last informer.Lease[int]
	for {
		lease, err := s.queue.Get(s.Context())
		if err != nil {
			return
		}
		s.hold(lease.Key)
		if last.Done() || last.Retry(errStorm) || last.Park(errStorm) || last.RetryAfter(0) {
			s.Errorf("a lease of %d was ended twice", last.Key)
		}
		last = lease
		s.mu[lease.Key].Lock()
		again, ok := s.end(lease)
		s.owed[lease.Key] = s.owed[lease.Key] || again && ok
		s.mu[lease.Key].Unlock()
		if !ok && !s.draining.Load() {
			s.Errorf("a lease of %d had ended before", lease.Key)
		}
	}
}

// end ends a lease in some way, and reports whether the key is to be leased again.
func (s *queueStorm) end(lease informer.Lease[int]) (again, ok bool) {
	how := rand.IntN(6)
	if how == 0 && stays(lease.Key) {
		how = 1
	}
	switch how {
	case 0:
		return false, lease.Done()
	case 1:
		return true, lease.RetryAfter(time.Duration(rand.IntN(100)) * time.Microsecond)
	case 2:
		return false, lease.Park(errStorm)
	case 3:
		return lease.Attempt < stormAttempts, lease.Retry(informer.RetryAfter(time.Microsecond, errStorm))
	default:
		return lease.Attempt < stormAttempts, lease.Retry(errStorm)
	}
}

// work is the function of Run.
func (s *queueStorm) work(ctx context.Context, k int) error {
	s.hold(k)
	lease, ok := s.queue.LeaseOf(ctx)
	if !ok || lease.Key != k {
		s.Errorf("LeaseOf = %v, %v, want that of %d", lease, ok, k)
	}
	switch how := rand.IntN(6); {
	case how == 0 && !stays(k):
		return nil
	case how == 1:
		return informer.Terminal(errStorm)
	case how == 2:
		lease.Park(errStorm)
		return errStorm // which does not count
	case how == 3:
		return informer.RetryAfter(time.Microsecond, nil)
	default:
		return errStorm
	}
}

// look looks at all keys until the queue drains: each is shown once, and those
// that are always there are always shown.
func (s *queueStorm) look() {
	for ; !s.draining.Load(); runtime.Gosched() {
		items := s.queue.Items()
		stats := s.stats()
		if s.draining.Load() {
			return
		}
		var shown [stormKeys]int
		leased := 0
		for _, item := range items {
			shown[item.Key]++
			if item.State == informer.ItemLeased {
				leased++
			}
			if item.State == 0 || item.Attempts > stormAttempts || (item.Attempts > 0) != (item.Err != nil) {
				s.Errorf("Items has %+v", item)
			}
		}
		for k, n := range shown {
			if n > 1 || n == 0 && stays(k) {
				s.Errorf("Items has key %d %d times", k, n)
			}
		}
		if leased > stormWorkers || stats.Leased > stormWorkers {
			s.Errorf("%d workers hold %d leases, or %d", stormWorkers, leased, stats.Leased)
		}
		s.looks.Add(1)
	}
}

// stats returns Stats. What it counts and what it sees are of one instant.
func (s *queueStorm) stats() (stats informer.QueueStats) {
	for range 4 {
		stats = s.queue.Stats()
		if open := stats.Waited.Count - stats.Worked.Count; int(open) != stats.Leased {
			s.Errorf("of %d leases, %d have ended, and %d are open", stats.Waited.Count, stats.Worked.Count, stats.Leased)
		}
	}
	return stats
}

// TestWorkQueue_Storm (promises 22 and 24): eight workers, adders of every kind,
// all endings of leases, cancels and parked keys, while others look, and a drain
// in the midst. No key is ever with two workers, and every add that was accepted,
// and every retry, is followed by a lease or by the key's return.
func TestWorkQueue_Storm(t *testing.T) {
	enough := int64(20_000)
	switch {
	case *fullSize && raceEnabled:
		enough = 100_000
	case *fullSize:
		enough = 1_000_000
	case raceEnabled:
		enough = 3000
	}
	for _, groups := range []int{0, 7} {
		s := &queueStorm{T: t}
		options := informer.QueueOptions[int]{
			Limiter:     fixedLimiter[int](50 * time.Microsecond),
			MaxAttempts: stormAttempts,
			OnAdd:       func(int) {},
			OnLease:     func(informer.Lease[int]) {},
			OnEnd:       func(informer.Lease[int], informer.Ending) { s.ends.Add(1) },
		}
		if groups > 0 {
			options.Group = func(k int) string { return string(rune('a' + k%groups)) }
			options.Debounce = 100 * time.Microsecond
		}
		s.queue = newQueue(t, options)
		for k := 0; k < stormKeys; k += 3 {
			s.queue.Add(k)
			s.owed[k] = true
		}
		s.rage(enough)
	}
}

// rage begins, and drains after so many leases.
func (s *queueStorm) rage(enough int64) {
	var running sync.WaitGroup
	for range 3 {
		running.Go(s.add)
	}
	for range stormWorkers / 2 {
		running.Go(s.get)
	}
	running.Go(s.look)
	stop := startQueue(s.T, s.queue, stormWorkers/2, s.work)
	for s.leases.Load() < enough || s.looks.Load() < 3 {
		<-time.After(time.Millisecond)
	}
	s.draining.Store(true)
	rest, err := s.queue.Drain(s.Context())
	if err != nil {
		s.Error(err)
	}
	running.Wait()
	if err := stop(); err != nil {
		s.Error(err)
	}
	for _, k := range rest {
		s.owed[k] = false
	}
	for k, owes := range s.owed {
		if owes {
			s.Errorf("key %d was added or retried, and neither leased nor returned", k)
		}
	}
	if s.leases.Load() != s.ends.Load() || len(s.queue.Items()) > 0 {
		s.Errorf("%d leases, %d ends; %d items are left", s.leases.Load(), s.ends.Load(), len(s.queue.Items()))
	}
	if err := informer.ValidateQueue(s.queue); err != nil {
		s.Error(err)
	}
	s.Logf("%d leases of %d adds, %d cancels, %d looks, %d returned",
		s.leases.Load(), s.adds.Load(), s.cancels.Load(), s.looks.Load(), len(rest))
}

// TestWorkQueue_ItemsOfOneInstant (promise 24: nothing hides): of many keys one is
// delayed, or two while the next one takes over. Whoever looks sees one or two of
// them, however many keys are read in between.
func TestWorkQueue_ItemsOfOneInstant(t *testing.T) {
	const keys, looks = 5000, 20
	q := newQueue(t, informer.QueueOptions[int]{})
	for k := range keys {
		q.Add(k)
	}
	q.Reschedule(0, time.Hour)
	var done atomic.Bool
	var moving sync.WaitGroup
	moves := 0
	moving.Go(func() {
		for at := 0; !done.Load(); moves++ {
			next := rand.IntN(keys)
			if next == at {
				continue
			}
			q.Reschedule(next, time.Hour)
			q.Add(at)
			at = next
		}
	})
	for range looks {
		delayed := 0
		for _, item := range q.Items() {
			if item.State == informer.ItemDelayed {
				delayed++
			}
		}
		if stats := q.Stats(); delayed < 1 || delayed > 2 || stats.Delayed < 1 || stats.Delayed > 2 ||
			stats.Delayed+stats.Ready[informer.PriorityNormal] != keys {
			t.Errorf("%d keys are delayed by Items, %d by Stats, of %+v", delayed, stats.Delayed, stats)
		}
	}
	done.Store(true)
	moving.Wait()
	t.Logf("%d moves while %d looked", moves, looks)
}
