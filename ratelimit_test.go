package informer_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// TestExponentialLimiter_NoOverflow: the delay never shrinks or overflows.
func TestExponentialLimiter_NoOverflow(t *testing.T) {
	l, last := informer.ExponentialLimiter[int](3, math.MaxInt64), time.Duration(0)
	for range 200 {
		delay := l.When(1)
		if delay < last {
			t.Fatalf("When() = %v after %v", delay, last)
		}
		last = delay
	}
	if last != math.MaxInt64 {
		t.Errorf("When() = %v, want the longest", last)
	}
}

// TestDefaultLimiter_Overall: beyond the burst, ten keys a second.
func TestDefaultLimiter_Overall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := informer.DefaultLimiter[int]()
		for i := range 100 {
			if got := l.When(i); got != 5*time.Millisecond {
				t.Fatalf("When(%d) = %v, want 5ms", i, got)
			}
		}
		if got := l.When(100); got != 100*time.Millisecond {
			t.Errorf("When(100) = %v, want 100ms", got)
		}
		<-time.After(time.Hour)
		if got := l.When(101); got != 5*time.Millisecond {
			t.Errorf("an hour later: When(101) = %v, want 5ms", got)
		}
	})
}

// TestJitter: promise 27, backoff has optional jitter.
func TestJitter(t *testing.T) {
	l := informer.Jitter(informer.ExponentialLimiter[int](time.Second, time.Second), 0.5)
	seen := map[time.Duration]bool{}
	for range 100 {
		delay := l.When(1)
		if delay < time.Second || delay > 1500*time.Millisecond {
			t.Fatalf("When() = %v, want 1s to 1.5s", delay)
		}
		seen[delay] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d different delays of 100", len(seen))
	}
	long := informer.Jitter(informer.ExponentialLimiter[int](math.MaxInt64, math.MaxInt64), 1)
	if got := long.When(1); got != math.MaxInt64 {
		t.Errorf("When() = %v, want the longest", got)
	}
}

// TestLimiter_StateExpires (promises 27 and 30; k8s#138743, submariner#404): a
// million keys that are used once leave nothing behind when time has passed.
func TestLimiter_StateExpires(t *testing.T) {
	const s, m = time.Second, time.Minute
	keys := 1_000_000
	if raceEnabled {
		keys /= 10
	}
	type limiter = informer.RateLimiter[int]
	exponential := func() limiter { return informer.ExponentialLimiter[int](s, m) }
	own := func(key int) int { return key }
	group := func() limiter { return informer.GroupBucketLimiter(own, 0.01, 1) }
	none := func(limiter) (int, int) { return 0, 0 }
	tests := []struct {
		name    string
		make    func() limiter
		entries func(limiter) (n, room int)
		after   time.Duration
	}{
		{"exponential", exponential, informer.LimiterEntries[int], 2*12*m + 1},
		{"fast and slow", func() limiter { return informer.FastSlowLimiter[int](s, m, 3) }, informer.LimiterEntries[int], 2*12*m + 1},
		{"group bucket", group, informer.GroupEntries[int, int], 100*s + m},
		{"bucket", func() limiter { return informer.BucketLimiter[int](5, 10) }, none, 0},
		{"default", informer.DefaultLimiter[int], none, 2 * (2000*s + 10*m)},
		{"max of", func() limiter { return informer.MaxOf(exponential(), group()) }, none, 2*12*m + 1},
		{"max wait", func() limiter { return informer.MaxWait(exponential(), s) }, none, 2*12*m + 1},
		{"jitter", func() limiter { return informer.Jitter(exponential(), 1) }, none, 2*12*m + 1},
		{"full jitter", func() limiter { return informer.FullJitter(exponential()) }, none, 2*12*m + 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := heap()
				l := test.make()
				for i := range keys {
					l.When(i)
				}
				full := heap() - base
				if n, room := test.entries(l); n != keys && room > 0 {
					t.Errorf("%d entries, want %d", n, keys)
				}
				<-time.After(test.after)
				synctest.Wait()
				if n, room := test.entries(l); n != 0 || room != 0 {
					t.Errorf("%d entries, room for %d, want none", n, room)
				}
				if held := heap() - base; held > 16<<10 {
					t.Errorf("%d B are held", held)
				}
				t.Logf("%d B a key", full/int64(keys))
				runtime.KeepAlive(l)
			})
		})
	}
}

// TestLimiter_GoesWithItsHolder (promises 27 and 30): a limiter that nobody holds
// takes what it remembers along, however long that would have stayed.
func TestLimiter_GoesWithItsHolder(t *testing.T) {
	for name, l := range map[string]func() informer.RateLimiter[int]{
		"exponential": func() informer.RateLimiter[int] { return informer.ExponentialLimiter[int](1, math.MaxInt64) },
		"group bucket": func() informer.RateLimiter[int] {
			return informer.GroupBucketLimiter(func(k int) int { return k }, 1e-9, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := heap()
				l := l()
				for i := range 100_000 {
					l.When(i)
				}
				if full := heap() - base; full < 1<<20 {
					t.Errorf("holds %d B, and remembers 100,000 keys", full)
				}
				runtime.KeepAlive(l)
				l = nil
				if held := heap() - base; held > 16<<10 {
					t.Errorf("%d B are held", held)
				}
				<-time.After(time.Hour) // the timer finds nothing
			})
		})
	}
}

// TestLimiter_StateIsKept (promise 27): a key that fails again and again keeps
// its count, although each delay is long, and even if its work takes minutes.
func TestLimiter_StateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := informer.ExponentialLimiter[int](time.Second, 1000*time.Second)
		delay := time.Duration(0)
		for i := range 100 {
			l.When(-1 - i) // others come and go
			next := l.When(1)
			if want := min(max(2*delay, time.Second), 1000*time.Second); next != want {
				t.Fatalf("call %d: When() = %v, want %v", i, next, want)
			}
			delay = next
			<-time.After(delay + 9*time.Minute)
		}
	})
}

// TestLimiter_MemoryComesBack (promises 27 and 30): after a burst of a million
// keys, a limiter holds at most twice what a fresh one with the same content
// does: at once if the keys are forgotten one by one, else when time has passed.
func TestLimiter_MemoryComesBack(t *testing.T) {
	skipWithRace(t)
	const burst, longest = 1_000_000, time.Minute
	forget := func(l informer.RateLimiter[int], left int) {
		for i := left; i < burst; i++ {
			l.Forget(i)
		}
	}
	expire := func(l informer.RateLimiter[int], left int) {
		for range 3 { // each time a little less than state is kept at least
			<-time.After(2*longest + 9*time.Minute)
			for i := range left {
				l.When(i)
			}
		}
	}
	for name, shrink := range map[string]func(l informer.RateLimiter[int], left int){"forgotten": forget, "expired": expire} {
		for _, left := range []int{0, 1000, 30_000} {
			synctest.Test(t, func(t *testing.T) {
				base := heap()
				fresh := informer.ExponentialLimiter[int](time.Second, longest)
				for i := range left {
					fresh.When(i)
				}
				want := heap() - base

				base = heap()
				l := informer.ExponentialLimiter[int](time.Second, longest)
				for i := range burst {
					l.When(i)
				}
				full := heap() - base
				shrink(l, left)
				synctest.Wait()
				if got := heap() - base; got > 2*want+16<<10 {
					t.Errorf("%s, %d of %d left: holds %d B, want at most twice %d B (%d B when full)", name, left, burst, got, want, full)
				}
				if n, _ := informer.LimiterEntries(l); n != left {
					t.Errorf("%s: %d entries, want %d", name, n, left)
				}
				for i := range left {
					if got := l.When(i); got < 2*time.Second {
						t.Fatalf("%s: When(%d) = %v: the count is lost", name, i, got)
					}
				}
				runtime.KeepAlive(fresh)
				<-time.After(time.Hour)
			})
		}
	}
}

// TestWorkQueue_PendingKeyTakesNoToken (promise 27; k8s#138743, submariner#404):
// a key that is added a thousand times at five a second waits for one token.
func TestWorkQueue_PendingKeyTakesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := informer.BucketLimiter[string](5, 1)
		q := newQueue(t, informer.QueueOptions[string]{Limiter: bucket})
		bucket.When("other") // empties the bucket
		start := time.Now()
		for range 1000 {
			q.AddLimited("a")
		}
		leaseNow(t, q)
		if got := time.Since(start); got != 200*time.Millisecond {
			t.Errorf("a is leased after %v, want 200ms", got)
		}
	})
}

// TestLimiter_Race: counts are exact under concurrency.
func TestLimiter_Race(t *testing.T) {
	l := informer.FastSlowLimiter[int](1, 2, 4000)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 1000 {
				l.When(7)
				key := 100 + rand.IntN(50)
				l.When(key)
				l.Forget(key)
			}
		})
	}
	running.Wait()
	if got := l.When(7); got != 2 {
		t.Errorf("call 4001 = %v, want 2ns: calls were lost", got)
	}
}

// TestLimiter_NaN: a key that cannot be found again leaves nothing behind.
func TestLimiter_NaN(t *testing.T) {
	l := informer.ExponentialLimiter[float64](5, 100)
	for range 3 {
		if got := l.When(math.NaN()); got != 5 {
			t.Errorf("When(NaN) = %v, want 5ns", got)
		}
	}
	l.Forget(math.NaN())
	if n, _ := informer.LimiterEntries(l); n != 0 {
		t.Errorf("%d entries, want 0", n)
	}
}
