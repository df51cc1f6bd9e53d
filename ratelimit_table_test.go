package informer_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// playLimits plays a script in a bubble. Its words are: "a=5ms", When(a) is 5ms;
// "-a", Forget(a); "+5m", time passes.
func playLimits(t *testing.T, l informer.RateLimiter[string], script string) {
	t.Helper()
	parse := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	start, got := time.Now(), []string{}
	for _, word := range strings.Fields(script) {
		key, _, asks := strings.Cut(word, "=")
		switch {
		case asks:
			word = fmt.Sprint(key, "=", strings.ReplaceAll(l.When(key).String(), "m0s", "m"))
		case word[0] == '-':
			l.Forget(word[1:])
		case word[0] == '+':
			<-time.After(parse(word[1:]))
			synctest.Wait()
		default:
			t.Fatalf("what is %q?", word)
		}
		got = append(got, word)
	}
	if got, want := strings.Join(got, " "), strings.Join(strings.Fields(script), " "); got != want {
		t.Errorf("after %v:\ngot  %s\nwant %s", time.Since(start), got, want)
	}
}

// tenant is the group of a key as "red/1".
func tenant(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}

// TestLimiters (promise 27) is what each limiter says, call by call, as time
// passes and keys are forgotten.
func TestLimiters(t *testing.T) {
	const ms, s, m = time.Millisecond, time.Second, time.Minute
	type limiter = informer.RateLimiter[string]
	exponential, fastSlow := informer.ExponentialLimiter[string], informer.FastSlowLimiter[string]
	bucket := informer.BucketLimiter[string]
	byTenant := func(perSecond float64, burst int) limiter {
		return informer.GroupBucketLimiter(tenant, perSecond, burst)
	}
	tests := []struct {
		name   string
		make   func() limiter
		script string
	}{
		{"exponential", func() limiter { return exponential(5*ms, 30*ms) },
			"a=5ms a=10ms b=5ms a=20ms a=30ms a=30ms -a a=5ms b=10ms"},
		{"exponential, longest at once", func() limiter { return exponential(5*ms, 5*ms) },
			"a=5ms a=5ms"},
		// Kept for 12 minutes and no longer than 24, as the longest is a minute.
		{"exponential, kept", func() limiter { return exponential(s, m) },
			"a=1s +11m59s a=2s +11m59s a=4s +11m59s a=8s"},
		{"exponential, expires", func() limiter { return exponential(s, m) },
			"a=1s a=2s +13m b=1s +11m a=1s b=2s"},
		{"exponential, expires at twice the time", func() limiter { return exponential(s, m) },
			"b=1s +1s a=1s a=2s +23m a=4s +24m1s a=1s"},

		{"fast and slow", func() limiter { return fastSlow(ms, s, 2) },
			"a=1ms a=1ms a=1s b=1ms a=1s -a a=1ms a=1ms a=1s"},
		{"fast and slow, kept and expires", func() limiter { return fastSlow(ms, m, 1) },
			"a=1ms +11m59s a=1m +11m59s a=1m +24m a=1ms"},

		{"bucket", func() limiter { return bucket(5, 2) },
			"a=0s b=0s a=200ms c=400ms -a a=600ms +600ms b=200ms"},
		{"bucket fills", func() limiter { return bucket(5, 2) },
			"a=0s a=0s a=200ms +400ms a=0s a=200ms +10h a=0s a=0s a=200ms"},
		{"bucket fills in part", func() limiter { return bucket(1, 3) },
			"a=0s a=0s a=0s +1500ms a=0s a=500ms +500ms a=1s"},
		{"bucket, slow", func() limiter { return bucket(1./3600, 1) },
			"a=0s a=1h0m +30m a=1h30m +10000h a=0s"},

		{"group buckets", func() limiter { return byTenant(5, 2) },
			"red/1=0s red/2=0s red/3=200ms blue/1=0s red/1=400ms blue/2=0s blue/1=200ms green/1=0s"},
		{"group buckets, not forgotten", func() limiter { return byTenant(5, 2) },
			"red/1=0s red/1=0s red/1=200ms -red/1 red/1=400ms red/2=600ms"},
		{"group buckets fill", func() limiter { return byTenant(5, 2) },
			"red/1=0s red/1=0s +200ms red/1=0s red/1=200ms blue/1=0s +10h red/1=0s red/2=0s red/3=200ms"},
		{"group buckets outlast the minutes", func() limiter { return byTenant(1./600, 1) },
			"red/1=0s red/2=10m red/3=20m +1m red/1=29m +25m blue/1=0s red/1=14m +24m red/1=0s blue/1=0s red/2=10m"},
		{"group of all", func() limiter { return informer.GroupBucketLimiter[string, int](nil, 5, 2) },
			"red/1=0s blue/1=0s green/1=200ms"},

		{"max of none", func() limiter { return informer.MaxOf[string]() },
			"a=0s a=0s -a a=0s"},
		{"max of", func() limiter { return informer.MaxOf(exponential(10*ms, s), fastSlow(15*ms, 30*ms, 2)) },
			"a=15ms a=20ms a=40ms b=15ms a=80ms -a a=15ms a=20ms"},
		{"max of, a tenant's tokens and its keys' failures", func() limiter { return informer.MaxOf(exponential(s, m), byTenant(1, 2)) },
			"red/1=1s red/1=2s red/2=1s red/2=2s blue/1=1s red/3=3s -red/1 red/1=4s +1m red/1=2s red/2=4s"},

		{"max wait", func() limiter { return informer.MaxWait(exponential(10*ms, s), 25*ms) },
			"a=10ms a=20ms a=25ms -a a=10ms +66m a=10ms"},
		{"jitter of nothing", func() limiter { return informer.Jitter(bucket(1, 2), 0.5) },
			"a=0s b=0s +1s a=0s"},
		{"full jitter of nothing", func() limiter { return informer.FullJitter(bucket(1, 2)) },
			"a=0s b=0s +1s a=0s"},

		{"default", informer.DefaultLimiter[string],
			"a=5ms a=10ms b=5ms a=20ms a=40ms -a a=5ms b=10ms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playLimits(t, test.make(), test.script) })
		})
	}
}

// sayLimiter is a limiter that says what it is.
type sayLimiter time.Duration

func (l sayLimiter) When(string) time.Duration { return time.Duration(l) }
func (l sayLimiter) Forget(string)             {}

// TestLimiters_BadInput (promise 27): what no program should ask for has a
// meaning that the docs give, and that is as near as there is.
func TestLimiters_BadInput(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	type limiter = informer.RateLimiter[string]
	exponential, fastSlow := informer.ExponentialLimiter[string], informer.FastSlowLimiter[string]
	negative := sayLimiter(-s)
	nan, inf := math.NaN(), math.Inf(1)
	type row struct {
		input  string
		make   func() limiter
		script string
	}
	tests := []row{
		{"Exponential, base 0", func() limiter { return exponential(0, 3) }, "a=1ns a=2ns a=3ns a=3ns"},
		{"Exponential, base negative", func() limiter { return exponential(-5, 3) }, "a=1ns a=2ns a=3ns"},
		{"Exponential, longest below base", func() limiter { return exponential(5*ms, ms) }, "a=5ms a=5ms"},
		{"Exponential, both negative", func() limiter { return exponential(-2, -1) }, "a=1ns a=1ns"},

		{"FastSlow, negative delays", func() limiter { return fastSlow(-1, -s, 1) }, "a=0s a=0s"},
		{"FastSlow, calls negative", func() limiter { return fastSlow(ms, s, math.MinInt) }, "a=1s a=1s"},
		{"FastSlow, calls without end", func() limiter { return fastSlow(ms, s, math.MaxInt) }, "a=1ms a=1ms"},
		{"FastSlow, the slow one is fast", func() limiter { return fastSlow(s, ms, 1) }, "a=1s a=1ms"},

		{"MaxOf, nil", func() limiter { return informer.MaxOf[string](nil, fastSlow(s, 0, 1)) }, "a=1s a=10ms -a a=1s"},
		{"MaxOf, a negative delay", func() limiter { return informer.MaxOf[string](negative) }, "a=0s"},
		{"MaxWait, nil", func() limiter { return informer.MaxWait[string](nil, 10*ms) }, "a=5ms a=10ms a=10ms"},
		{"MaxWait, longest negative", func() limiter { return informer.MaxWait(exponential(s, s), -1) }, "a=0s"},
		{"MaxWait, a negative delay", func() limiter { return informer.MaxWait[string](negative, s) }, "a=0s"},

		{"Jitter, nil", func() limiter { return informer.Jitter[string](nil, 0) }, "a=5ms a=10ms -a a=5ms"},
		{"Jitter, share negative", func() limiter { return informer.Jitter(exponential(s, 2*s), -1) }, "a=1s a=2s"},
		{"Jitter, share NaN", func() limiter { return informer.Jitter(exponential(s, 2*s), nan) }, "a=1s a=2s"},
		{"Jitter, share Inf", func() limiter { return informer.Jitter(exponential(s, 2*s), inf) }, "a=1s a=2s"},
		{"Jitter, share -Inf", func() limiter { return informer.Jitter(exponential(s, 2*s), -inf) }, "a=1s a=2s"},
		{"Jitter, share 1e300", func() limiter { return informer.Jitter(exponential(s, s), 1e300) }, "a=2562047h47m16.854775807s"},
		{"Jitter, a negative delay", func() limiter { return informer.Jitter[string](negative, 1) }, "a=0s"},
		{"FullJitter, nil", func() limiter { return informer.MaxWait(informer.FullJitter[string](nil), 0) }, "a=0s"},
		{"FullJitter, a negative delay", func() limiter { return informer.FullJitter[string](negative) }, "a=0s"},
	}
	for name, bucket := range map[string]func(perSecond float64, burst int) limiter{
		"Bucket":             informer.BucketLimiter[string],
		"GroupBucket":        func(r float64, n int) limiter { return informer.GroupBucketLimiter(tenant, r, n) },
		"GroupBucket of nil": func(r float64, n int) limiter { return informer.GroupBucketLimiter[string, int](nil, r, n) },
	} {
		of := func(perSecond float64, burst int) func() limiter {
			return func() limiter { return bucket(perSecond, burst) }
		}
		const free, forever = "a=0s a=0s a=0s +1h a=0s", "a=0s a=2562047h47m16.854775807s a=2562047h47m16.854775807s"
		tests = append(tests,
			row{name + ", rate 0", of(0, 1), free},
			row{name + ", rate negative", of(-1, 1), free},
			row{name + ", rate NaN", of(nan, 1), free},
			row{name + ", rate Inf", of(inf, 1), free},
			row{name + ", rate -Inf", of(-inf, 1), free},
			row{name + ", rate 1e300", of(1e300, 1), free},
			row{name + ", rate 1e-300", of(1e-300, 1), forever},
			row{name + ", rate 5e-324", of(math.SmallestNonzeroFloat64, 1), forever},
			row{name + ", rate 1e-300, a burst without end", of(1e-300, math.MaxInt), free},
			row{name + ", burst 0", of(1, 0), "a=0s a=1s a=2s +1h a=0s a=1s"},
			row{name + ", burst negative", of(1, math.MinInt), "a=0s a=1s a=2s"},
			row{name + ", a burst without end", of(1, math.MaxInt), free},
		)
	}
	for _, test := range tests {
		t.Run(test.input, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playLimits(t, test.make(), test.script) })
		})
	}
}
