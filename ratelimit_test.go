package informer_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// whens asks l n times for key.
func whens(l informer.RateLimiter[string], key string, n int) (got []time.Duration) {
	for range n {
		got = append(got, l.When(key))
	}
	return got
}

// TestRateLimiters checks the formula of each.
func TestRateLimiters(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	type limiter = informer.RateLimiter[string]
	exponential := informer.ExponentialLimiter[string]
	tests := []struct {
		name string
		make func() limiter
		want []time.Duration
	}{
		{"exponential", func() limiter { return exponential(5*ms, 30*ms) },
			[]time.Duration{5 * ms, 10 * ms, 20 * ms, 30 * ms, 30 * ms}},
		{"exponential, longest at once", func() limiter { return exponential(5*ms, 5*ms) },
			[]time.Duration{5 * ms, 5 * ms}},
		{"exponential, longest below base", func() limiter { return exponential(5*ms, ms) },
			[]time.Duration{5 * ms, 5 * ms}},
		{"exponential, no base", func() limiter { return exponential(-5, 3) },
			[]time.Duration{1, 2, 3, 3}},
		{"fast and slow", func() limiter { return informer.FastSlowLimiter[string](ms, s, 2) },
			[]time.Duration{ms, ms, s, s}},
		{"fast and slow, no fast calls", func() limiter { return informer.FastSlowLimiter[string](ms, -s, -1) },
			[]time.Duration{0, 0}},
		{"bucket", func() limiter { return informer.BucketLimiter[string](5, 2) },
			[]time.Duration{0, 0, 200 * ms, 400 * ms}},
		{"bucket without burst", func() limiter { return informer.BucketLimiter[string](1, -3) },
			[]time.Duration{0, s, 2 * s}},
		{"bucket without limit", func() limiter { return informer.BucketLimiter[string](0, 1) },
			[]time.Duration{0, 0, 0}},
		{"bucket, not a number", func() limiter { return informer.BucketLimiter[string](math.NaN(), 1) },
			[]time.Duration{0, 0, 0}},
		{"max of none", func() limiter { return informer.MaxOf[string]() },
			[]time.Duration{0}},
		{"max of", func() limiter {
			return informer.MaxOf(exponential(10*ms, s), informer.FastSlowLimiter[string](15*ms, 30*ms, 2))
		}, []time.Duration{15 * ms, 20 * ms, 40 * ms, 80 * ms}},
		{"max wait", func() limiter { return informer.MaxWait(exponential(10*ms, s), 25*ms) },
			[]time.Duration{10 * ms, 20 * ms, 25 * ms}},
		{"max wait, negative", func() limiter { return informer.MaxWait(exponential(10*ms, s), -1) },
			[]time.Duration{0}},
		{"no jitter", func() limiter { return informer.Jitter(exponential(10*ms, s), -1) },
			[]time.Duration{10 * ms, 20 * ms}},
		{"default", informer.DefaultLimiter[string],
			[]time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := test.make()
				if got := whens(l, "a", len(test.want)); !slices.Equal(got, test.want) {
					t.Errorf("When(a) = %v, want %v", got, test.want)
				}
				if strings.Contains(test.name, "bucket") {
					return // Forget does nothing
				}
				l.Forget("a")
				if got := whens(l, "a", len(test.want)); !slices.Equal(got, test.want) {
					t.Errorf("after Forget(a): When(a) = %v, want %v", got, test.want)
				}
				if got := whens(l, "b", 1); got[0] != test.want[0] {
					t.Errorf("When(b) = %v, want %v", got[0], test.want[0])
				}
			})
		})
	}
}

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

// TestLimiter_StateExpires (promise 27; k8s#138743, submariner#404): a million
// keys that are used once leave nothing behind when time has passed.
func TestLimiter_StateExpires(t *testing.T) {
	const keys, window = 1_000_000, 2*time.Minute + 10*time.Minute
	for name, l := range map[string]func() informer.RateLimiter[int]{
		"exponential": func() informer.RateLimiter[int] {
			return informer.ExponentialLimiter[int](time.Second, time.Minute)
		},
		"fast and slow": func() informer.RateLimiter[int] {
			return informer.FastSlowLimiter[int](time.Second, time.Minute, 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := l()
				base := heap()
				for i := range keys {
					l.When(i)
				}
				if n, _ := informer.LimiterEntries(l); n != keys {
					t.Errorf("%d entries, want %d", n, keys)
				}
				<-time.After(2*window + 1)
				synctest.Wait()
				if n, room := informer.LimiterEntries(l); n != 0 || room != 0 {
					t.Errorf("%d entries, room for %d, want none", n, room)
				}
				if held := heap() - base; held > 1<<20 {
					t.Errorf("%d B are held", held)
				}
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
