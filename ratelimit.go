package informer

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A RateLimiter says how long a key has to wait. Those of this package may be
// called from any goroutine; they have no goroutine of their own.
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

// ExponentialLimiter returns a limiter that doubles the delay of a key with
// each call. The delay of the n-th call since the key was forgotten is
//
//	min(base * 2^(n-1), longest)
//
// A key is also forgotten by itself when it has not been asked for in twice the
// longest delay and 10 minutes, at the latest after twice that time. A base
// that is not above zero counts as 1ns, and a longest delay below base as base.
func ExponentialLimiter[K comparable](base, longest time.Duration) RateLimiter[K] {
	base = max(base, 1)
	longest = max(longest, base)
	return &countingLimiter[K]{
		calls: newCallCounter[K](longest),
		delay: func(n uint32) time.Duration {
			if n > 63 || base > longest>>(n-1) {
				return longest
			}
			return base << (n - 1)
		},
	}
}

// FastSlowLimiter returns a limiter with two delays. The delay of the n-th call
// since the key was forgotten is
//
//	fast, if n <= fastCalls
//	slow, otherwise
//
// A key is also forgotten by itself, as with [ExponentialLimiter]. Negative
// delays count as none.
func FastSlowLimiter[K comparable](fast, slow time.Duration, fastCalls int) RateLimiter[K] {
	fast, slow = max(fast, 0), max(slow, 0)
	return &countingLimiter[K]{
		calls: newCallCounter[K](max(fast, slow)),
		delay: func(n uint32) time.Duration {
			if int64(n) <= int64(fastCalls) {
				return fast
			}
			return slow
		},
	}
}

// BucketLimiter returns a limiter for all keys together. A bucket holds burst
// tokens at first, and gets perSecond new ones each second, up to burst. Each
// call of When takes a token, and the delay is
//
//	the time until there is that token, 0 if there is one
//
// Forget does nothing: tokens do not come back. A burst below 1 counts as 1. If
// perSecond is not above zero, there is no limit.
func BucketLimiter[K comparable](perSecond float64, burst int) RateLimiter[K] {
	limit := rate.Limit(perSecond)
	if !(perSecond > 0) { // NaN neither
		limit = rate.Inf
	}
	return &bucketLimiter[K]{rate.NewLimiter(limit, max(burst, 1))}
}

// MaxOf returns a limiter that asks all limiters, and returns
//
//	the largest of their delays, 0 without limiters
func MaxOf[K comparable](limiters ...RateLimiter[K]) RateLimiter[K] {
	return maxLimiter[K](append([]RateLimiter[K](nil), limiters...))
}

// MaxWait returns a limiter that asks another one, and returns
//
//	min(its delay, longest)
//
// The other one counts as if its delay had been used. A negative longest delay
// counts as none.
func MaxWait[K comparable](limiter RateLimiter[K], longest time.Duration) RateLimiter[K] {
	longest = max(longest, 0)
	return &mappedLimiter[K]{limiter, func(delay time.Duration) time.Duration {
		return min(delay, longest)
	}}
}

// Jitter returns a limiter that asks another one, and spreads its delays, so
// that keys which failed together are not retried together. It returns
//
//	its delay * (1 + share * a random number from 0 to 1)
//
// A share that is not above zero means no jitter.
func Jitter[K comparable](limiter RateLimiter[K], share float64) RateLimiter[K] {
	return &mappedLimiter[K]{limiter, func(delay time.Duration) time.Duration {
		if !(share > 0) || delay <= 0 {
			return delay
		}
		spread := float64(delay) * (1 + share*rand.Float64())
		if spread >= math.MaxInt64 {
			return math.MaxInt64
		}
		return time.Duration(spread)
	}}
}

// bucketLimiter is what BucketLimiter returns.
type bucketLimiter[K comparable] struct{ bucket *rate.Limiter }

func (l *bucketLimiter[K]) When(K) time.Duration {
	now := time.Now()
	return l.bucket.ReserveN(now, 1).DelayFrom(now)
}

func (l *bucketLimiter[K]) Forget(K) {}

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
	change  func(time.Duration) time.Duration
}

func (l *mappedLimiter[K]) When(key K) time.Duration { return l.change(l.limiter.When(key)) }

func (l *mappedLimiter[K]) Forget(key K) { l.limiter.Forget(key) }

// countingLimiter derives the delay of a key from the number of calls.
type countingLimiter[K comparable] struct {
	calls *callCounter[K]
	delay func(n uint32) time.Duration // of the n-th call; n is at least 1
}

func (l *countingLimiter[K]) When(key K) time.Duration { return l.delay(l.calls.count(key)) }

func (l *countingLimiter[K]) Forget(key K) { l.calls.forget(key) }

// A callCounter counts the calls for each key, and forgets keys that have not
// been counted for a while.
//
// The counts are in two generations: a key that is counted is put into the
// young one. Every window, if there are counts at all, a timer makes the young
// generation the old one, and drops what was old. So a count stays for one
// window at least and for two at most, and that costs nothing while counting.
// The keys are spread over shards, so that goroutines do not wait for each
// other.
type callCounter[K comparable] struct {
	window time.Duration
	seed   maphash.Seed
	armed  atomic.Bool // the timer is set
	shards [16]callShard[K]
}

// callShard holds the counts of some of the keys.
type callShard[K comparable] struct {
	mu         sync.Mutex // guards the fields below
	young, old slab[K, uint32]
}

// newCallCounter returns a counter that keeps counts for twice longest, and 10
// minutes for the work in between.
func newCallCounter[K comparable](longest time.Duration) *callCounter[K] {
	const slack = 10 * time.Minute
	return &callCounter[K]{
		window: 2*min(longest, (math.MaxInt64-slack)/2) + slack,
		seed:   maphash.MakeSeed(),
	}
}

// at returns the shard of key, and its hash within that.
func (c *callCounter[K]) at(key K) (*callShard[K], uint32) {
	hash := maphash.Comparable(c.seed, key)
	return &c.shards[hash>>60], uint32(hash)
}

// count adds one to the count of key, and returns it.
func (c *callCounter[K]) count(key K) uint32 {
	if !usable(key) {
		return 1 // could not be found again
	}
	shard, hash := c.at(key)
	n, fresh := shard.count(hash, key)
	if fresh && !c.armed.Load() {
		c.arm()
	}
	return n
}

// forget makes the count of key zero.
func (c *callCounter[K]) forget(key K) {
	if !usable(key) {
		return
	}
	shard, hash := c.at(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	take(&shard.young, hash, key)
	take(&shard.old, hash, key)
}

// arm sets the timer if it is not set. It is made anew each time: it fires
// rarely, and a limiter may be used in one synctest bubble after another.
func (c *callCounter[K]) arm() {
	if c.armed.CompareAndSwap(false, true) {
		time.AfterFunc(c.window, c.age)
	}
}

// age drops the old generation of each shard, and makes the young one old. A
// count that is added meanwhile sets the timer itself, as armed is false.
func (c *callCounter[K]) age() {
	c.armed.Store(false)
	left := false
	for i := range c.shards {
		shard := &c.shards[i]
		shard.mu.Lock()
		shard.old, shard.young = shard.young, slab[K, uint32]{}
		left = left || shard.old.len() > 0
		shard.mu.Unlock()
	}
	if left {
		c.arm()
	}
}

// count adds one to the count of key, and returns it. It reports whether the
// key is new to the young generation.
func (s *callShard[K]) count(hash uint32, key K) (n uint32, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.young.find(hash, key)
	if slot == noSlot {
		fresh, n = true, take(&s.old, hash, key)
		slot = s.young.put(hash, key)
	} else {
		n = *s.young.at(slot)
	}
	if n < math.MaxUint32 {
		n++
	}
	*s.young.at(slot) = n
	return n, fresh
}

// take removes key from counts, and returns what its count was.
func take[K comparable](counts *slab[K, uint32], hash uint32, key K) uint32 {
	slot := counts.find(hash, key)
	if slot == noSlot {
		return 0
	}
	n := *counts.at(slot)
	counts.remove(slot)
	if counts.sparse() {
		counts.compact()
	}
	return n
}
