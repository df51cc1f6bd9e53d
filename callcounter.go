package informer

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

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

// arm sets the timer if it is not set.
func (c *callCounter[K]) arm() {
	if c.armed.CompareAndSwap(false, true) {
		callLater(c.window, c, (*callCounter[K]).age)
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

// callLater calls f of x after delay, unless nobody holds x by then: the timer
// alone does not keep its memory. A timer is made anew each time. It fires
// rarely, and a limiter may be used in one synctest bubble after another.
func callLater[T any](delay time.Duration, x *T, f func(x *T)) {
	held := weak.Make(x)
	time.AfterFunc(delay, func() {
		if x := held.Value(); x != nil {
			f(x)
		}
	})
}
