package informer_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// ownGroup makes each key a group.
func ownGroup(key int) int { return key }

// A bucketStep asks n times for each of some groups, or lets time pass.
type bucketStep struct {
	from, groups, n int
	pass            float64 // in tokens that come
}

func drawBucketStep(rt *rapid.T) bucketStep {
	if rapid.Bool().Draw(rt, "time passes") {
		return bucketStep{pass: rapid.Float64Range(0, 12).Draw(rt, "tokens")}
	}
	return bucketStep{
		from: rapid.IntRange(0, 170).Draw(rt, "from"), groups: rapid.IntRange(1, 30).Draw(rt, "groups"),
		n: rapid.IntRange(1, 4).Draw(rt, "n"),
	}
}

// TestBucketLimiter_AsTheFields compares buckets of any rate with that of
// x/time/rate, which client-go uses (promise 27).
func TestBucketLimiter_AsTheFields(t *testing.T) {
	script := rapid.SliceOfN(rapid.Custom(drawBucketStep), 1, 60)
	rapid.Check(t, func(rt *rapid.T) {
		perSecond := rapid.Float64Range(0.001, 1e6).Draw(rt, "perSecond")
		burst, steps := rapid.IntRange(1, 30).Draw(rt, "burst"), script.Draw(rt, "script")
		var err error
		synctest.Test(t, func(*testing.T) { err = playAsTheFields(perSecond, burst, steps) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// playAsTheFields does all steps, in a bubble.
func playAsTheFields(perSecond float64, burst int, steps []bucketStep) error {
	field := rate.NewLimiter(rate.Limit(perSecond), burst)
	one := informer.BucketLimiter[int](perSecond, burst)
	groups := informer.GroupBucketLimiter(ownGroup, perSecond, burst)
	for i, step := range steps {
		for range step.groups * step.n {
			now := time.Now()
			want := field.ReserveN(now, 1).DelayFrom(now)
			near := max(time.Microsecond, want/1e9)
			if a, b := one.When(1), groups.When(1); (a-want).Abs() > near || (b-want).Abs() > near {
				return fmt.Errorf("step %d: When() = %v and %v, want %v", i, a, b, want)
			}
		}
		<-time.After(time.Duration(5 * step.pass / perSecond * 1e9))
	}
	return nil
}

// TestGroupBucketLimiter_Model (promises 27 and 30): buckets that are full are
// forgotten within a minute, all others stay, and nobody can tell, whatever is
// asked for while hours pass. With -v it tells how often.
func TestGroupBucketLimiter_Model(t *testing.T) {
	counts := map[string]int{}
	script := rapid.SliceOfN(rapid.Custom(drawBucketStep), 1, 60)
	rapid.Check(t, func(rt *rapid.T) {
		steps := script.Draw(rt, "script")
		var err error
		synctest.Test(t, func(*testing.T) { err = playGroups(steps, counts) })
		if err != nil {
			rt.Fatal(err)
		}
	})
	t.Log(counts)
}

// playGroups does all steps, in a bubble.
func playGroups(steps []bucketStep, counts map[string]int) error {
	const token, burst = 40 * time.Second, 3
	limiter := informer.GroupBucketLimiter(ownGroup, 1/token.Seconds(), burst)
	model := map[int]*bucketModel{}
	for i, step := range steps {
		<-time.After(time.Duration(step.pass * float64(token)))
		synctest.Wait()
		for call := range step.groups * step.n {
			group := step.from + call/step.n
			if model[group] == nil {
				model[group] = newBucketModel(1/token.Seconds(), burst)
			}
			counts["When"]++
			got, want := limiter.When(group), model[group].take(time.Now())
			if (got - want).Abs() > time.Microsecond {
				return fmt.Errorf("step %d: When(%d) = %v, want %v", i, group, got, want)
			}
		}
		least, most := 0, 0
		for _, m := range model {
			if m.fullAfter(time.Now()) > time.Microsecond {
				least++
			}
			if m.fullAfter(time.Now()) > -time.Minute-time.Microsecond {
				most++
			}
		}
		n, room := informer.GroupEntries[int, int](limiter)
		if n < least || n > most || room > 2*n+64*16 {
			return fmt.Errorf("step %d: %d entries in room for %d, want %d to %d", i, n, room, least, most)
		}
		counts["steps"]++
		counts["forgotten"] += len(model) - n
	}
	<-time.After(100 * time.Hour)
	synctest.Wait()
	if n, room := informer.GroupEntries[int, int](limiter); n != 0 || room != 0 {
		return fmt.Errorf("%d entries, room for %d, want none", n, room)
	}
	return nil
}

// TestGroupBucketLimiter_Forgets (promise 27): each bucket is forgotten within a
// minute of when it is full, and no sooner, with nobody asking.
func TestGroupBucketLimiter_Forgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := informer.GroupBucketLimiter(ownGroup, 1, 10)
		for group := range 5 {
			for range 50*group + 1 { // is full after 1s, 51s, 101s, 151s, 201s
				l.When(group)
			}
		}
		for minute, want := range []int{5, 3, 2, 1, 0, 0} {
			if n, _ := informer.GroupEntries[int, int](l); n != want {
				t.Errorf("after %d minutes: %d groups, want %d", minute, n, want)
			}
			<-time.After(time.Minute)
			synctest.Wait()
		}
		l.When(1) // the timer is set anew
		<-time.After(61 * time.Second)
		synctest.Wait()
		if n, _ := informer.GroupEntries[int, int](l); n != 0 {
			t.Errorf("%d groups are left", n)
		}
	})
}

// TestGroupBucketLimiter_MemoryComesBack (promises 27 and 30): after a burst of
// a million groups, a limiter holds at most twice what a fresh one with the same
// content does, within a minute.
func TestGroupBucketLimiter_MemoryComesBack(t *testing.T) {
	skipWithRace(t)
	const burst = 1_000_000
	build := func(n int) informer.RateLimiter[int] {
		l := informer.GroupBucketLimiter(ownGroup, 1, 10)
		for i := range n {
			l.When(i)
		}
		return l
	}
	for _, left := range []int{0, 1000, 30_000} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fresh, want := heldBy(func() any { return build(left) })
				l, got := heldBy(func() any {
					l := build(burst)
					for i := range left {
						for range 200 { // these owe 190 tokens
							l.When(i)
						}
					}
					<-time.After(11*time.Second + time.Minute)
					synctest.Wait()
					return l
				})
				if got > 2*want+16<<10 {
					t.Errorf("holds %d B, want at most twice %d B", got, want)
				}
				if n, _ := informer.GroupEntries[int, int](l.(informer.RateLimiter[int])); n != left {
					t.Errorf("%d entries, want %d", n, left)
				}
				runtime.KeepAlive(fresh)
			})
		})
	}
}

// TestGroupBucketLimiter_Storm (promise 27): no token is taken twice or lost while
// many take them and buckets are forgotten.
func TestGroupBucketLimiter_Storm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups, calls = 8, 500
		l := informer.GroupBucketLimiter(func(k int) int { return k % groups }, 1, calls)
		var free [groups]atomic.Int32
		for range 3 {
			var running sync.WaitGroup
			for w := range 4 {
				running.Go(func() {
					for i := range 2 * calls / 4 * groups {
						if l.When(i) == 0 {
							free[i%groups].Add(1)
						}
						l.When(groups * 1000) // is in group 0
						l.Forget(i)
						if i%100 == w {
							informer.SweepGroups[int, int](l)
						}
					}
				})
			}
			running.Wait()
			for g := 1; g < groups; g++ {
				if n := free[g].Swap(0); n != calls {
					t.Errorf("group %d: %d tokens were taken at once, want %d", g, n, calls)
				}
			}
			<-time.After(time.Hour * 24)
			if n, _ := informer.GroupEntries[int, int](l); n != 0 {
				t.Errorf("%d groups are left", n)
			}
		}
	})
}

// TestGroupBucketLimiter_FunctionPanics (promise 27): the panic of a group function
// is its caller's, takes no token, and leaves no lock held. A queue makes the key
// ready.
func TestGroupBucketLimiter_FunctionPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := informer.GroupBucketLimiter(func(key string) string {
			if key == "bad" {
				panic("no such tenant")
			}
			return tenant(key)
		}, 1, 1)
		q := newQueue(t, informer.QueueOptions[string]{Limiter: informer.MaxOf(l)})
		panicOf := func(f func()) (reason any) {
			defer func() { reason = recover() }()
			f()
			return nil
		}
		for range 3 {
			if got := panicOf(func() { l.When("bad") }); got != "no such tenant" {
				t.Errorf("When panics with %v", got)
			}
		}
		start := time.Now()
		if got := panicOf(func() { q.AddLimited("bad") }); got != "no such tenant" {
			t.Errorf("AddLimited panics with %v", got)
		}
		if lease := leaseNow(t, q); lease.Key != "bad" || time.Since(start) != 0 {
			t.Errorf("%q is leased after %v, want bad at once", lease.Key, time.Since(start))
		}
		playLimits(t, l, "red/1=0s red/1=1s blue/1=0s +1h red/1=0s")
	})
}

// TestGroupBucketLimiter_OddGroups (promise 27): groups that no map can find
// again, or that cannot be compared at all.
func TestGroupBucketLimiter_OddGroups(t *testing.T) {
	l := informer.GroupBucketLimiter(func(key int) any {
		return []any{math.NaN(), []int{1}, "red"}[key]
	}, 1, 1)
	for range 3 {
		if got := l.When(0); got != 0 {
			t.Errorf("a NaN: When() = %v, want 0: it is a new group each time", got)
		}
	}
	for range 3 {
		func() {
			defer func() {
				if err, ok := recover().(runtime.Error); !ok || !strings.Contains(err.Error(), "[]int") {
					t.Errorf("a slice: the panic is %v", err)
				}
			}()
			l.When(1)
		}()
	}
	if a, b := l.When(2), l.When(2); a != 0 || b == 0 {
		t.Errorf("When(red) = %v, %v, want 0 and more", a, b)
	}
	if n, _ := informer.GroupEntries[int, any](l); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

// TestBucket_OneBubbleAfterAnother (promise 27): a limiter that outlives a
// bubble, in which time begins anew, still knows what is missing, and not more.
func TestBucket_OneBubbleAfterAnother(t *testing.T) {
	for name, l := range map[string]informer.RateLimiter[string]{
		"bucket": informer.BucketLimiter[string](1, 2),
		"group":  informer.GroupBucketLimiter(tenant, 1, 2),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playLimits(t, l, "a=0s a=0s +5h a=0s a=0s a=1s") })
			synctest.Test(t, func(t *testing.T) { playLimits(t, l, "a=2s +5s a=0s a=0s a=1s") })
		})
	}
}

// TestFullJitter (promise 27): delays are spread evenly from nothing to all.
func TestFullJitter(t *testing.T) {
	const n = 4000
	l := informer.FullJitter(informer.ExponentialLimiter[int](time.Second, time.Second))
	var quarters [4]int
	for range n {
		delay := l.When(1)
		if delay < 0 || delay > time.Second {
			t.Fatalf("When() = %v, want 0s to 1s", delay)
		}
		quarters[min(delay/(time.Second/4), 3)]++
	}
	for i, got := range quarters {
		if got < n/4-200 || got > n/4+200 { // more than 7 standard deviations
			t.Errorf("%v of %d delays are in quarter %d", got, n, i)
		}
	}
	doubling := informer.FullJitter(informer.ExponentialLimiter[int](1, math.MaxInt64))
	for i := range 70 { // of calls, with and without jitter
		longest := time.Duration(math.MaxInt64)
		if i < 63 {
			longest = 1 << i
		}
		if delay := doubling.When(1); delay < 0 || delay > longest {
			t.Errorf("call %d: When() = %v, want 0 to %v", i, delay, longest)
		}
	}
	ends := map[time.Duration]bool{}
	shortest := informer.FullJitter(informer.ExponentialLimiter[int](1, 1))
	for range 200 {
		ends[shortest.When(1)] = true
	}
	if len(ends) != 2 || !ends[0] || !ends[1] {
		t.Errorf("of 1ns come %v, want 0s and 1ns", ends)
	}
}
