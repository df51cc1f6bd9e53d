package informer

import (
	"math"
	"math/rand/v2"
	"time"
)

// A RateLimiter says how long a key has to wait. Those of this package may be
// called from any goroutine; they have no goroutine of their own, and what one
// remembers goes with it when nobody holds it any more.
//
//	ExponentialLimiter   twice as long with each failure of a key
//	FastSlowLimiter      short a few times, then long
//	BucketLimiter        so many a second, of all keys together
//	GroupBucketLimiter   so many a second, of each group of keys
//
//	MaxOf                the longest delay of several
//	MaxWait              no longer than that
//	Jitter               somewhat longer, by chance
//	FullJitter           anything up to that, by chance
//
// In those that are made of others, a limiter that is nil counts as
// [DefaultLimiter], and a negative delay as none. If one of them panics, so does
// the call, and later calls go on.
type RateLimiter[K comparable] interface {
	// When returns how long key has to wait this time. Each call counts: the
	// next may return more.
	When(key K) time.Duration
	// Forget begins anew with key.
	Forget(key K)
}

// DefaultLimiter returns the limiter that is usual among controllers: the larger
// of an exponential delay for each key and a bucket for all keys together.
//
//	MaxOf(ExponentialLimiter(5ms, 1000s), BucketLimiter(10 a second, burst 100))
func DefaultLimiter[K comparable]() RateLimiter[K] {
	return MaxOf(
		ExponentialLimiter[K](5*time.Millisecond, 1000*time.Second),
		BucketLimiter[K](10, 100))
}

// MaxOf returns a limiter that asks all limiters, and returns
//
//	the largest of their delays, 0 without limiters
func MaxOf[K comparable](limiters ...RateLimiter[K]) RateLimiter[K] {
	all := make(maxLimiter[K], len(limiters))
	for i, limiter := range limiters {
		all[i] = orDefault(limiter)
	}
	return all
}

// MaxWait returns a limiter that asks another one, and returns
//
//	min(its delay, longest)
//
// The other one counts as if its delay had been used. A negative longest delay
// counts as none.
func MaxWait[K comparable](limiter RateLimiter[K], longest time.Duration) RateLimiter[K] {
	longest = max(longest, 0)
	return &mappedLimiter[K]{orDefault(limiter), func(delay time.Duration) time.Duration {
		return min(delay, longest)
	}}
}

// Jitter returns a limiter that asks another one, and spreads its delays, so
// that keys which failed together are not retried together. It returns
//
//	its delay * (1 + share * a random number from 0 to 1)
//
// Nothing comes sooner than the other one said, so that any limiter can be
// spread like this, a bucket too: see [FullJitter] for more. A share that is not
// a finite number above zero means no jitter.
func Jitter[K comparable](limiter RateLimiter[K], share float64) RateLimiter[K] {
	if !(share > 0) || math.IsInf(share, 1) { // NaN neither
		share = 0
	}
	return &mappedLimiter[K]{orDefault(limiter), func(delay time.Duration) time.Duration {
		return duration(float64(delay) * (1 + share*rand.Float64()))
	}}
}

// FullJitter returns a limiter that asks another one, and returns
//
//	a random duration from 0 to its delay
//
// Around an [ExponentialLimiter] that is what the field calls full jitter: of
// all ways to spread retries, the one with the fewest of them when many keys, or
// many programs, fail for the same reason. The price is that a retry may come at
// once. Where a delay is a promise, as that of a bucket or what a server asked
// for, take [Jitter], or leave the bucket outside:
//
//	MaxOf(FullJitter(ExponentialLimiter[K](5*time.Millisecond, time.Minute)), BucketLimiter[K](10, 100))
func FullJitter[K comparable](limiter RateLimiter[K]) RateLimiter[K] {
	return &mappedLimiter[K]{orDefault(limiter), func(delay time.Duration) time.Duration {
		return time.Duration(rand.Uint64N(uint64(delay) + 1))
	}}
}

// orDefault returns limiter, or the default one in place of nil.
func orDefault[K comparable](limiter RateLimiter[K]) RateLimiter[K] {
	if limiter == nil {
		return DefaultLimiter[K]()
	}
	return limiter
}

// duration returns so many nanoseconds as a duration: none if they are negative,
// and the longest that there is if they are more.
func duration(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(ns, 0))
}

// maxLimiter is what MaxOf returns.
type maxLimiter[K comparable] []RateLimiter[K]

func (l maxLimiter[K]) When(key K) (delay time.Duration) {
	for _, limiter := range l {
		delay = max(delay, limiter.When(key))
	}
	return delay
}

func (l maxLimiter[K]) Forget(key K) {
	for _, limiter := range l {
		limiter.Forget(key)
	}
}

// mappedLimiter changes the delays of another limiter.
type mappedLimiter[K comparable] struct {
	limiter RateLimiter[K]
	change  func(time.Duration) time.Duration // of a delay that is not negative
}

func (l *mappedLimiter[K]) When(key K) time.Duration {
	return l.change(max(l.limiter.When(key), 0))
}

func (l *mappedLimiter[K]) Forget(key K) { l.limiter.Forget(key) }
