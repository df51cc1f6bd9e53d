package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// fixedLimiter always gives the same delay.
type fixedLimiter[K comparable] time.Duration

func (l fixedLimiter[K]) When(K) time.Duration { return time.Duration(l) }
func (l fixedLimiter[K]) Forget(K)             {}

func newQueue[K comparable](t testing.TB, options informer.QueueOptions[K]) *informer.WorkQueue[K] {
	t.Helper()
	q, err := informer.NewWorkQueue(options)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// leaseNow leases a key that must be ready.
func leaseNow[K comparable](t testing.TB, q *informer.WorkQueue[K]) informer.Lease[K] {
	t.Helper()
	lease, err := q.Get(t.Context())
	if err != nil {
		t.Fatalf("Get() = %v", err)
	}
	return lease
}

// TestWorkQueue_Delays checks when a key is leased: promise 23.
func TestWorkQueue_Delays(t *testing.T) {
	type queue = informer.WorkQueue[string]
	const s = time.Second
	tests := []struct {
		name string
		do   func(q *queue)
		want []time.Duration // when the key is leased
	}{
		{"added", func(q *queue) { q.Add("a") }, []time.Duration{0}},
		{"added twice", func(q *queue) { q.Add("a"); q.Add("a") }, []time.Duration{0}},
		{"after", func(q *queue) { q.AddAfter("a", 5*s) }, []time.Duration{5 * s}},
		{"no delay", func(q *queue) { q.AddAfter("a", -s) }, []time.Duration{0}},
		{"k8s#126027: a long delay, then an add", func(q *queue) {
			q.AddAfter("a", 5*time.Hour)
			q.Add("a")
		}, []time.Duration{0}},
		{"an add, then a delay", func(q *queue) { q.Add("a"); q.AddAfter("a", s) }, []time.Duration{0}},
		{"the earliest, later last", func(q *queue) {
			q.AddAfter("a", 10*s)
			q.AddAfter("a", 600*s)
		}, []time.Duration{10 * s}},
		{"the earliest, earlier last", func(q *queue) {
			q.AddAfter("a", 600*s)
			q.AddAfter("a", 10*s)
		}, []time.Duration{10 * s}},
		{"postponed", func(q *queue) {
			q.AddAfter("a", 10*s)
			q.Reschedule("a", 600*s)
		}, []time.Duration{600 * s}},
		{"preponed", func(q *queue) {
			q.AddAfter("a", 600*s)
			q.Reschedule("a", 10*s)
		}, []time.Duration{10 * s}},
		{"ready, postponed", func(q *queue) { q.Add("a"); q.Reschedule("a", 10*s) }, []time.Duration{10 * s}},
		{"rescheduled to now", func(q *queue) { q.AddAfter("a", s); q.Reschedule("a", 0) }, []time.Duration{0}},
		{"cancelled while ready", func(q *queue) { q.Add("a"); q.Cancel("a") }, nil},
		{"cancelled while delayed", func(q *queue) { q.AddAfter("a", s); q.Cancel("a") }, nil},
		{"cancelled, then added", func(q *queue) {
			q.AddAfter("a", 3*s)
			q.Cancel("a")
			q.AddAfter("a", 7*s)
		}, []time.Duration{7 * s}},
		{"limited", func(q *queue) { q.AddLimited("a") }, []time.Duration{2 * s}},
		{"limited, then an earlier delay", func(q *queue) {
			q.AddLimited("a")
			q.AddAfter("a", s)
		}, []time.Duration{s}},
		{"longest", func(q *queue) {
			q.AddAfter("a", math.MaxInt64)
			q.AddAfter("b", s)
			q.Cancel("b")
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{Limiter: fixedLimiter[string](2 * s)})
				start := time.Now()
				test.do(q)
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Hour)
				defer stop()
				var got []time.Duration
				for {
					lease, err := q.Get(ctx)
					if err != nil {
						break
					}
					got = append(got, time.Since(start))
					lease.Done()
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("leased at %v, want %v", got, test.want)
				}
			})
		})
	}
}

// TestWorkQueue_DelayWhileLeased (promise 23): a delay begins when the key is
// added, also if it is leased; if it ends before the lease, the key is ready
// after the lease.
func TestWorkQueue_DelayWhileLeased(t *testing.T) {
	for _, test := range []struct{ lease, delay, want time.Duration }{
		{3 * time.Second, 5 * time.Second, 5 * time.Second},
		{8 * time.Second, 5 * time.Second, 8 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			q, start := newQueue(t, informer.QueueOptions[string]{}), time.Now()
			q.Add("a")
			lease := leaseNow(t, q)
			q.AddAfter("a", test.delay)
			time.AfterFunc(test.lease, func() { lease.Done() })
			lease = leaseNow(t, q)
			if got := time.Since(start); got != test.want || lease.Key != "a" {
				t.Errorf("lease of %v, delay of %v: next lease at %v, want %v", test.lease, test.delay, got, test.want)
			}
		})
	}
}

// TestWorkQueue_RefusedKeys: NaN could never be found again. A key that cannot
// be compared panics like a map does, and leaves the queue usable.
func TestWorkQueue_RefusedKeys(t *testing.T) {
	floats := newQueue(t, informer.QueueOptions[float64]{})
	nan := math.NaN()
	if floats.Add(nan) || floats.AddAfter(nan, 1) || floats.Reschedule(nan, 1) || floats.AddLimited(nan) || floats.Cancel(nan) {
		t.Error("NaN was taken")
	}
	anys := newQueue(t, informer.QueueOptions[any]{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Add of a slice did not panic")
			}
		}()
		anys.Add([]int{})
	}()
	if !anys.Add(1) || anys.Len() != 1 {
		t.Error("the queue cannot be used after a panic")
	}
}

// TestLease_Zero: the zero Lease leases nothing.
func TestLease_Zero(t *testing.T) {
	var lease informer.Lease[string]
	if lease.Done() || lease.Retry(nil) {
		t.Error("the zero Lease was finished")
	}
}

// TestLease_ChangedKey (promise 22): whatever the holder makes of Key, even what
// cannot be compared, the lease is that of its key: also when memory has been
// given back since, and hooks are told of that key.
func TestLease_ChangedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		q := newQueue(t, informer.QueueOptions[any]{
			OnError: func(key any, err error) { told = append(told, fmt.Sprint(key, " ", err)) },
			OnEnd: func(l informer.Lease[any], end informer.Ending) {
				if end.Err != nil {
					told = append(told, fmt.Sprint(l.Key, " ", end.How))
				}
			},
		})
		for k := range 1000 {
			q.Add(k)
		}
		var last informer.Lease[any]
		for range 1000 {
			last.Done()
			last = leaseNow(t, q)
		}
		<-time.After(time.Minute) // memory has come back
		last.Key = []int{7}
		ok, again := last.Park(errSource), last.Done()
		if want := fmt.Sprintf("[999 %v 999 Park]", errSource); !ok || again || fmt.Sprint(told) != want {
			t.Errorf("Park, Done = %v, %v, and told %v, want true, false, %s", ok, again, told, want)
		}
		if err := informer.ValidateQueue(q); err != nil {
			t.Error(err)
		}
	})
}

// TestWorkQueue_OneWorkerAKey (promise 22; k8s#141079, virtual-kubelet#937):
// with leases that are finished twice, also late, no key is ever with two
// workers.
func TestWorkQueue_OneWorkerAKey(t *testing.T) {
	const workers, keys, adds = 8, 5, 20000
	q := newQueue(t, informer.QueueOptions[int]{Limiter: fixedLimiter[int](time.Microsecond)})
	var held [keys]sync.Mutex
	var finished, refused atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var running, adding sync.WaitGroup
	for range workers {
		running.Go(func() {
			var last informer.Lease[int]
			for {
				lease, err := q.Get(ctx)
				if err != nil {
					return
				}
				if !held[lease.Key].TryLock() {
					t.Errorf("key %d is leased twice", lease.Key)
					return
				}
				if last.Done() || last.Retry(nil) {
					t.Errorf("a lease of %d was finished twice", last.Key)
				}
				runtime.Gosched()
				held[lease.Key].Unlock()
				ok := false
				if rand.IntN(4) == 0 {
					ok = lease.Retry(nil)
				} else {
					ok = lease.Done()
				}
				if lease.Done() {
					t.Errorf("a lease of %d was finished twice", lease.Key)
				}
				if ok {
					finished.Add(1)
				} else {
					refused.Add(1)
				}
				last = lease
			}
		})
	}
	for w := range 4 {
		adding.Go(func() {
			for i := range adds / 4 {
				q.Add((i + w) % keys)
			}
		})
	}
	adding.Wait()
	drainEmpty(t, q)
	stop()
	running.Wait()
	if refused.Load() > 0 || finished.Load() == 0 {
		t.Errorf("%d leases finished, %d refused", finished.Load(), refused.Load())
	}
	if err := informer.ValidateQueue(q); err != nil {
		t.Error(err)
	}
}

// drainEmpty drains q, which must be worked off.
func drainEmpty[K comparable](t *testing.T, q *informer.WorkQueue[K]) {
	t.Helper()
	if _, err := q.Drain(t.Context()); err != nil {
		t.Errorf("Drain() = %v", err)
	}
}

// TestWorkQueue_NoLostWakeUp (promise 25): with calls of Get whose contexts end
// at any moment, every key that is added gets to someone who waits.
func TestWorkQueue_NoLostWakeUp(t *testing.T) {
	const getters, adds = 6, 4000
	q := newQueue(t, informer.QueueOptions[int]{})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	got := make(chan int)
	for range getters {
		running.Go(func() {
			for ctx.Err() == nil {
				short, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(20))*time.Microsecond)
				lease, err := q.Get(short)
				cancel()
				if err == nil {
					lease.Done()
					got <- lease.Key
				}
			}
		})
	}
	// One patient call: if the others lose a wake-up, it sleeps for ever.
	running.Go(func() {
		for {
			lease, err := q.Get(ctx)
			if err != nil {
				return
			}
			lease.Done()
			got <- lease.Key
		}
	})
	for i := range adds {
		q.Add(i)
		if key := <-got; key != i {
			t.Errorf("got key %d, want %d", key, i)
		}
	}
	stop()
	running.Wait()
}

// TestWorkQueue_BatonPassed (promise 25): when several wait, and several keys
// come at once, as many are woken, even if one of them gives up.
func TestWorkQueue_BatonPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[int]{})
		impatient, stop := context.WithCancel(t.Context())
		defer stop()
		var got atomic.Int64
		for i := range 10 {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = impatient
			}
			go func() {
				if _, err := q.Get(ctx); err == nil {
					got.Add(1)
				}
			}()
		}
		synctest.Wait()
		for i := range 10 {
			q.Add(i)
			if i == 0 {
				stop() // at the same moment as the wake-up
			}
		}
		synctest.Wait()
		if got.Load() < 5 || informer.QueueWaiting(q) != 0 {
			t.Errorf("%d keys leased, %d calls wait, want 5 to 10 and none", got.Load(), informer.QueueWaiting(q))
		}
	})
}

// TestWorkQueue_AllWoken (promise 25): keys that become ready under one lock
// wake as many who wait, one after the other.
func TestWorkQueue_AllWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[int]{})
		var got atomic.Int64
		for i := range 10 {
			go func() {
				if _, err := q.Get(t.Context()); err == nil {
					got.Add(1)
				}
			}()
			q.AddAfter(i, time.Second)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got.Load() != 10 {
			t.Errorf("%d of 10 calls got a key", got.Load())
		}
	})
}

// TestWorkQueue_WokenGivesUp (promise 25): if the context of the call that is
// woken ends at that moment, the next one is woken.
func TestWorkQueue_WokenGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 300 {
			q := newQueue(t, informer.QueueOptions[int]{})
			ctx, stop := context.WithCancel(t.Context())
			for _, ctx := range []context.Context{ctx, t.Context()} {
				go func() { _, _ = q.Get(ctx) }()
				synctest.Wait()
			}
			q.Add(i)
			stop()
			synctest.Wait()
			if err := informer.ValidateQueue(q); err != nil {
				t.Fatal(err)
			}
			q.Add(i + 1) // for the second, if the first got a key
			synctest.Wait()
		}
	})
}

// TestWorkQueue_DrainWakesAll (promises 24 and 25): all who wait in Get are
// told.
func TestWorkQueue_DrainWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[int]{})
		results := make(chan error, 10)
		for range cap(results) {
			go func() {
				_, err := q.Get(t.Context())
				results <- err
			}()
		}
		synctest.Wait()
		drainEmpty(t, q)
		synctest.Wait()
		if n := len(results); n < cap(results) {
			t.Fatalf("%d of %d calls were woken", n, cap(results))
		}
		for range cap(results) {
			if err := <-results; !errors.Is(err, informer.ErrStopped) {
				t.Errorf("Get() = %v, want ErrStopped", err)
			}
		}
	})
}

// TestWorkQueue_IdleHasNoGoroutine: promise 25.
func TestWorkQueue_IdleHasNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 100 {
		q := newQueue(t, informer.QueueOptions[int]{})
		q.AddAfter(i, time.Hour)
		q.AddLimited(i + 1)
		q.Add(i + 2)
		leaseNow(t, q).Retry(errors.New("x"))
		leaseNow(t, q) // left open
	}
	if after := runtime.NumGoroutine(); after > before+5 { // those of timers that fire
		t.Errorf("%d goroutines, want %d", after, before)
	}
}

// TestWorkQueue_MemoryComesBack (promise 30): after a burst of a million keys,
// a queue holds at most twice what a fresh one with the same content does.
func TestWorkQueue_MemoryComesBack(t *testing.T) {
	skipWithRace(t)
	fill := func(q *informer.WorkQueue[int], from, to int) {
		for i := from; i < to; i++ {
			if i%10 > 0 {
				q.AddWith(i, informer.AddOptions{Priority: informer.Priority(i%5 - 2)})
			} else {
				q.AddAfter(i, time.Hour)
			}
		}
	}
	const burst = 1_000_000
	for _, left := range []int{0, 1000, 30_000} {
		synctest.Test(t, func(t *testing.T) {
			base := heap()
			fresh := newQueue(t, informer.QueueOptions[int]{})
			fill(fresh, 0, left)
			want := heap() - base

			base = heap()
			q := newQueue(t, informer.QueueOptions[int]{})
			fill(q, 0, burst)
			full := heap() - base
			lease := leaseNow(t, q) // stays open, and must survive
			for i := left + 1; i < burst; i++ {
				q.Cancel(i)
			}
			<-time.After(2 * time.Second)
			synctest.Wait()
			if err := informer.ValidateQueue(q); err != nil {
				t.Error(err)
			}
			if !lease.Done() {
				t.Errorf("the lease of %d is lost", lease.Key)
			}
			got := heap() - base
			if got > 2*want+16<<10 {
				t.Errorf("%d of %d left: holds %d B, want at most twice %d B (%d B when full)", left, burst, got, want, full)
			}
			runtime.KeepAlive(fresh)
		})
	}
}

// TestWorkQueue_SteadyStateAllocatesNothing: adding, leasing and finishing.
func TestWorkQueue_SteadyStateAllocatesNothing(t *testing.T) {
	q := newQueue(t, informer.QueueOptions[informer.Key]{})
	key := informer.Key{Namespace: "default", Name: "web"}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		q.Add(key)
		lease, _ := q.Get(ctx)
		lease.Done()
	}); n > 0 {
		t.Errorf("add, get and done allocate %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		q.AddAfter(key, time.Hour)
		q.Reschedule(key, time.Minute)
		q.Cancel(key)
	}); n > 0 {
		t.Errorf("a delay allocates %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		q.AddWith(key, informer.AddOptions{Priority: informer.PriorityLow})
		q.AddWith(key, informer.AddOptions{Priority: informer.PriorityHigh})
		lease, _ := q.Get(ctx)
		lease.Done()
	}); n > 0 {
		t.Errorf("priorities allocate %v times, want 0", n)
	}
}

// TestWorkQueue_ManyDueAtOnce: more keys than are promoted under one lock.
func TestWorkQueue_ManyDueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[int]{})
		const n = 1000
		for i := range n {
			q.AddAfter(i, time.Second)
		}
		start := time.Now()
		seen := map[int]bool{}
		for range n {
			lease := leaseNow(t, q)
			seen[lease.Key] = true
			lease.Done()
		}
		if len(seen) != n || time.Since(start) != time.Second {
			t.Errorf("%d keys after %v, want %d after 1s", len(seen), time.Since(start), n)
		}
	})
}

// TestWorkQueue_ErrorsNameTheQueue: what Get returns.
func TestWorkQueue_ErrorsNameTheQueue(t *testing.T) {
	q := newQueue(t, informer.QueueOptions[informer.Key]{})
	cause := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(cause)
	q.Add(informer.Key{Name: "a"})
	if _, err := q.Get(ctx); !errors.Is(err, cause) || !strings.Contains(err.Error(), "types.NamespacedName") {
		t.Errorf("Get(ended) = %v", err)
	}
	rest, err := q.Drain(ctx)
	if len(rest) != 1 || !errors.Is(err, cause) {
		t.Errorf("Drain(ended) = %v, %v", rest, err)
	}
	if _, err := q.Get(ctx); err == nil {
		t.Error("Get after Drain returned no error")
	}
	if _, err := q.Get(t.Context()); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("Get after Drain = %v, want ErrStopped", err)
	}
	if got := fmt.Sprint(q.Add(informer.Key{}), q.AddAfter(informer.Key{}, 1), q.AddLimited(informer.Key{}), q.Len()); got != "false false false 0" {
		t.Errorf("adds and Len after Drain = %s", got)
	}
}

func TestNewWorkQueue_BadInput(t *testing.T) {
	for _, policy := range []informer.PanicPolicy{informer.PanicDetach, 9} {
		_, err := informer.NewWorkQueue(informer.QueueOptions[string]{Name: "jobs", OnPanic: policy})
		mustContain(t, "NewWorkQueue", err, "queue jobs", "OnPanic is")
	}
	_, err := informer.NewWorkQueue(informer.QueueOptions[int]{OnPanic: 9, Ageing: -time.Second})
	mustContain(t, "NewWorkQueue", err, "queue int", "Ageing is -1s", "OnPanic is 9")
}

// Promise 23: delays end in their order, whichever are taken out in between.
func TestMinHeap(t *testing.T) {
	for n := range 200 {
		heap, rest := informer.NewHeap(), rand.Perm(n)
		for _, x := range rest {
			heap.Push(x)
		}
		for i, x := range rest {
			if i%3 == 0 && !heap.Remove(x) {
				t.Fatalf("of %d elements, %d was not where it was said to be", n, x)
			}
		}
		last := -1
		for heap.Len() > 0 {
			least := heap.Min()
			if least <= last || !heap.Remove(least) {
				t.Fatalf("of %d elements, %d came after %d", n, least, last)
			}
			last = least
		}
	}
}

// doneInForget is a limiter that finishes a lease in Forget.
type doneInForget struct {
	lease informer.Lease[string]
	tried bool
	again bool // that worked
}

func (l *doneInForget) When(string) time.Duration { return 0 }
func (l *doneInForget) Forget(string) {
	if !l.tried {
		l.tried = true
		l.again = l.lease.Done()
	}
}

// Promise 22: a lease is finished once, also while its end waits for the code
// of a limiter.
func TestWorkQueue_DoneInForget(t *testing.T) {
	limiter := &doneInForget{}
	q := newQueue(t, informer.QueueOptions[string]{Limiter: limiter})
	q.AddLimited("a")
	limiter.lease = leaseNow(t, q)
	if !limiter.lease.Done() || limiter.again {
		t.Errorf("a lease was finished twice: %v", limiter.again)
	}
}
