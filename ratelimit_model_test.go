package informer_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// A limiterModel is a limiter so simple that it can be seen to be right. It says
// how long key waits, given how often each key has been asked for since it was
// forgotten, this time included.
type limiterModel interface {
	when(key int, now time.Time) time.Duration
	forget(key int)
}

// exponentialModel is ExponentialLimiter.
type exponentialModel struct {
	base, longest time.Duration
	calls         map[int]int
}

func (m exponentialModel) forget(key int) { delete(m.calls, key) }
func (m exponentialModel) when(key int, _ time.Time) time.Duration {
	delay := m.base
	for range m.calls[key] {
		delay = min(2*delay, m.longest)
	}
	m.calls[key]++
	return delay
}

// fastSlowModel is FastSlowLimiter.
type fastSlowModel struct {
	fast, slow time.Duration
	fastCalls  int
	calls      map[int]int
}

func (m fastSlowModel) forget(key int) { delete(m.calls, key) }
func (m fastSlowModel) when(key int, _ time.Time) time.Duration {
	m.calls[key]++
	if m.calls[key] <= m.fastCalls {
		return m.fast
	}
	return m.slow
}

// bucketModel is BucketLimiter, with an interval between tokens in place of a
// rate: the n-th token, from 0, is there at most burst intervals after it.
type bucketModel struct {
	interval time.Duration
	burst    int
	full     *time.Time // when the bucket will be full
}

func (m bucketModel) forget(int) {}
func (m bucketModel) when(_ int, now time.Time) time.Duration {
	if m.full.Before(now) {
		*m.full = now
	}
	*m.full = m.full.Add(m.interval)
	return max(0, m.full.Sub(now)-time.Duration(m.burst)*m.interval)
}

// maxModel is MaxOf.
type maxModel []limiterModel

func (m maxModel) forget(key int) {
	for _, l := range m {
		l.forget(key)
	}
}

func (m maxModel) when(key int, now time.Time) (delay time.Duration) {
	for _, l := range m {
		delay = max(delay, l.when(key, now))
	}
	return delay
}

// maxWaitModel is MaxWait.
type maxWaitModel struct {
	limiterModel
	longest time.Duration
}

func (m maxWaitModel) when(key int, now time.Time) time.Duration {
	return min(m.limiterModel.when(key, now), m.longest)
}

// drawLimiter draws a limiter, its model, and its text.
func drawLimiter(rt *rapid.T, depth int) (informer.RateLimiter[int], limiterModel, string) {
	const ms = time.Millisecond
	delay := func(name string) time.Duration {
		return rapid.SampledFrom([]time.Duration{ms, 10 * ms, 200 * ms, time.Minute}).Draw(rt, name)
	}
	kinds := 3
	if depth > 0 {
		kinds = 5
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
	case 2:
		perSecond, burst := rapid.SampledFrom([]int{1, 5, 100}).Draw(rt, "perSecond"), rapid.IntRange(1, 5).Draw(rt, "burst")
		return informer.BucketLimiter[int](float64(perSecond), burst),
			bucketModel{time.Second / time.Duration(perSecond), burst, new(time.Time)},
			fmt.Sprintf("Bucket(%d, %d)", perSecond, burst)
	case 3:
		l, m, text := drawLimiter(rt, depth-1)
		longest := delay("longest")
		return informer.MaxWait(l, longest), maxWaitModel{m, longest}, fmt.Sprintf("MaxWait(%s, %v)", text, longest)
	}
	a, am, aText := drawLimiter(rt, depth-1)
	b, bm, bText := drawLimiter(rt, depth-1)
	return informer.MaxOf(a, b), maxModel{am, bm}, fmt.Sprintf("MaxOf(%s, %s)", aText, bText)
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
					got, want := limiter.When(k), model.when(k, time.Now())
					// A bucket counts in floating point.
					if math.Abs(float64(got-want)) > float64(time.Microsecond) {
						rt.Fatalf("%s: When(%d) = %v, want %v", text, k, got, want)
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
