package informer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// A limiterModel is a limiter so simple that it can be seen to be right. It says
// how long key waits, given how often each key has been asked for since it was
// forgotten, this time included: from least to most, where chance decides.
type limiterModel interface {
	when(key int, now time.Time) (least, most time.Duration)
	forget(key int)
}

// exponentialModel is ExponentialLimiter.
type exponentialModel struct {
	base, longest time.Duration
	calls         map[int]int
}

func (m exponentialModel) forget(key int) { delete(m.calls, key) }
func (m exponentialModel) when(key int, _ time.Time) (least, most time.Duration) {
	delay := m.base
	for range m.calls[key] {
		delay = min(2*delay, m.longest)
	}
	m.calls[key]++
	return delay, delay
}

// fastSlowModel is FastSlowLimiter.
type fastSlowModel struct {
	fast, slow time.Duration
	fastCalls  int
	calls      map[int]int
}

func (m fastSlowModel) forget(key int) { delete(m.calls, key) }
func (m fastSlowModel) when(key int, _ time.Time) (least, most time.Duration) {
	m.calls[key]++
	if m.calls[key] <= m.fastCalls {
		return m.fast, m.fast
	}
	return m.slow, m.slow
}

// bucketModel is a bucket that counts tokens.
type bucketModel struct {
	perSecond     float64
	burst, tokens float64 // tokens are below zero if there are some that wait
	at            time.Time
}

func newBucketModel(perSecond float64, burst int) *bucketModel {
	return &bucketModel{perSecond, float64(burst), float64(burst), time.Now()}
}

func (m *bucketModel) take(now time.Time) time.Duration {
	m.tokens = min(m.burst, m.tokens+now.Sub(m.at).Seconds()*m.perSecond) - 1
	m.at = now
	return max(0, time.Duration(-m.tokens/m.perSecond*1e9))
}

// fullAfter returns how long after now it is full.
func (m *bucketModel) fullAfter(now time.Time) time.Duration {
	return time.Duration((m.burst-m.tokens)/m.perSecond*1e9) - now.Sub(m.at)
}

// bucketsModel is BucketLimiter and GroupBucketLimiter.
type bucketsModel struct {
	group   func(key int) int
	buckets []*bucketModel // by group
}

func (m bucketsModel) forget(int) {}
func (m bucketsModel) when(key int, now time.Time) (least, most time.Duration) {
	delay := m.buckets[m.group(key)].take(now)
	return delay, delay
}

// maxModel is MaxOf.
type maxModel []limiterModel

func (m maxModel) forget(key int) {
	for _, l := range m {
		l.forget(key)
	}
}

func (m maxModel) when(key int, now time.Time) (least, most time.Duration) {
	for _, l := range m {
		lo, hi := l.when(key, now)
		least, most = max(least, lo), max(most, hi)
	}
	return least, most
}

// changedModel is MaxWait, Jitter and FullJitter.
type changedModel struct {
	limiterModel
	change func(least, most time.Duration) (time.Duration, time.Duration)
}

func (m changedModel) when(key int, now time.Time) (least, most time.Duration) {
	return m.change(m.limiterModel.when(key, now))
}

// drawLimiter draws a limiter, its model, and its text.
func drawLimiter(rt *rapid.T, depth int) (informer.RateLimiter[int], limiterModel, string) {
	const ms = time.Millisecond
	delay := func(name string) time.Duration {
		return rapid.SampledFrom([]time.Duration{ms, 10 * ms, 200 * ms, time.Minute}).Draw(rt, name)
	}
	kinds := 4
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(rt, "kind") {
	case 0:
		base := delay("base")
		longest := max(base, delay("longest"))
		return informer.ExponentialLimiter[int](base, longest),
			exponentialModel{base, longest, map[int]int{}}, fmt.Sprintf("Exponential(%v, %v)", base, longest)
	case 1:
		fast, slow, n := delay("fast"), delay("slow"), rapid.IntRange(0, 4).Draw(rt, "fastCalls")
		return informer.FastSlowLimiter[int](fast, slow, n),
			fastSlowModel{fast, slow, n, map[int]int{}}, fmt.Sprintf("FastSlow(%v, %v, %d)", fast, slow, n)
	case 2, 3:
		return drawBuckets(rt)
	case 4:
		a, am, aText := drawLimiter(rt, depth-1)
		b, bm, bText := drawLimiter(rt, depth-1)
		return informer.MaxOf(a, b), maxModel{am, bm}, fmt.Sprintf("MaxOf(%s, %s)", aText, bText)
	}
	return drawChanged(rt, depth)
}

// drawBuckets draws a bucket for all keys, or one for each of some groups.
func drawBuckets(rt *rapid.T) (informer.RateLimiter[int], limiterModel, string) {
	perSecond := rapid.SampledFrom([]float64{0.3, 1, 5, 100}).Draw(rt, "perSecond")
	burst, groups := rapid.IntRange(1, 5).Draw(rt, "burst"), rapid.IntRange(0, 3).Draw(rt, "groups")
	model := bucketsModel{group: func(key int) int { return key % max(groups, 1) }}
	for range max(groups, 1) {
		model.buckets = append(model.buckets, newBucketModel(perSecond, burst))
	}
	limiter := informer.BucketLimiter[int](perSecond, burst)
	if groups > 0 {
		limiter = informer.GroupBucketLimiter(model.group, perSecond, burst)
	}
	return limiter, model, fmt.Sprintf("Bucket(%v, %d) of each of %d groups", perSecond, burst, groups)
}

// drawChanged draws a limiter that changes what another one says.
func drawChanged(rt *rapid.T, depth int) (informer.RateLimiter[int], limiterModel, string) {
	l, m, text := drawLimiter(rt, depth-1)
	switch rapid.SampledFrom([]string{"MaxWait", "Jitter", "FullJitter"}).Draw(rt, "change") {
	case "MaxWait":
		longest := time.Duration(rapid.IntRange(0, 300).Draw(rt, "longest")) * time.Millisecond
		return informer.MaxWait(l, longest), changedModel{m, func(least, most time.Duration) (time.Duration, time.Duration) {
			return min(least, longest), min(most, longest)
		}}, fmt.Sprintf("MaxWait(%s, %v)", text, longest)
	case "Jitter":
		share := rapid.SampledFrom([]float64{-1, 0, 0.5, 1}).Draw(rt, "share")
		return informer.Jitter(l, share), changedModel{m, func(least, most time.Duration) (time.Duration, time.Duration) {
			return least, most + time.Duration(float64(most)*max(share, 0))
		}}, fmt.Sprintf("Jitter(%s, %v)", text, share)
	}
	return informer.FullJitter(l), changedModel{m, func(_, most time.Duration) (time.Duration, time.Duration) {
		return 0, most
	}}, fmt.Sprintf("FullJitter(%s)", text)
}

// TestLimiter_ModelOfAll compares every limiter, and limiters put together, with
// naive ones (promise 27). With -v it tells how many of each operation.
func TestLimiter_ModelOfAll(t *testing.T) {
	counts := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			limiter, model, text := drawLimiter(rt, 2)
			key := rapid.IntRange(0, 3)
			rt.Repeat(map[string]func(*rapid.T){
				"When": func(rt *rapid.T) {
					k := key.Draw(rt, "key")
					counts["When"]++
					got := limiter.When(k)
					least, most := model.when(k, time.Now())
					// A bucket counts in floating point.
					if got < least-time.Microsecond || got > most+time.Microsecond {
						rt.Fatalf("%s: When(%d) = %v, want %v to %v", text, k, got, least, most)
					}
				},
				"Forget": func(rt *rapid.T) {
					k := key.Draw(rt, "key")
					counts["Forget"]++
					limiter.Forget(k)
					model.forget(k)
				},
				"time passes": func(rt *rapid.T) {
					counts["time passes"]++
					ms := rapid.SampledFrom([]int{1, 30, 500, 2000}).Draw(rt, "ms")
					<-time.After(time.Duration(ms) * time.Millisecond) // much less than state is kept
				},
			})
		})
		<-time.After(time.Hour) // the timers of all limiters
	})
	t.Log(counts)
}

// limiterStep asks for a key, forgets it, or lets time pass.
type limiterStep struct {
	op      string // When, Forget, pass
	key     int
	minutes int
}

func drawLimiterStep(rt *rapid.T) limiterStep {
	return limiterStep{
		rapid.SampledFrom([]string{"When", "When", "When", "Forget", "pass", "pass"}).Draw(rt, "op"),
		rapid.IntRange(0, 9).Draw(rt, "key"),
		rapid.IntRange(0, 40).Draw(rt, "minutes"),
	}
}

// TestLimiter_Model compares the counts of many keys with a map, while keys are
// forgotten and hours pass, until none is left (promise 27). With -v it tells
// how many keys were forgotten by themselves.
func TestLimiter_Model(t *testing.T) {
	counts := map[string]int{}
	script := rapid.SliceOfN(rapid.Custom(drawLimiterStep), 1, 60)
	rapid.Check(t, func(rt *rapid.T) {
		steps := script.Draw(rt, "script")
		var err error
		synctest.Test(t, func(*testing.T) { err = playLimiter(steps, counts) })
		if err != nil {
			rt.Fatal(err)
		}
	})
	t.Log(counts)
}

// playLimiter does all steps, in a bubble.
func playLimiter(steps []limiterStep, counts map[string]int) error {
	const longest, window = time.Minute, 2*time.Minute + 10*time.Minute
	type state struct {
		n    int
		used time.Time
	}
	l, model := informer.ExponentialLimiter[int](1, longest), map[int]state{}
	for i, step := range steps {
		counts[step.op]++
		switch step.op {
		case "Forget":
			l.Forget(step.key)
			delete(model, step.key)
		case "pass":
			<-time.After(time.Duration(step.minutes) * time.Minute)
			synctest.Wait()
		case "When":
			got, s := l.When(step.key), model[step.key]
			want := min(time.Duration(1)<<s.n, longest)
			idle := time.Since(s.used)
			if s.n > 0 && (idle > 2*window || idle > window && got == 1) {
				want, s.n = 1, 0 // it must have been forgotten, or may have
				counts["expired"]++
			}
			if got != want {
				return fmt.Errorf("step %d: When(%d) = %v after %d calls, idle for %v, want %v", i, step.key, got, s.n, idle, want)
			}
			model[step.key] = state{s.n + 1, time.Now()}
		}
	}
	<-time.After(2*window + 1)
	synctest.Wait()
	if n, _ := informer.LimiterEntries(l); n != 0 {
		return fmt.Errorf("%d entries are left", n)
	}
	return nil
}
