package informer

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// BucketLimiter returns a limiter for all keys together. A bucket holds burst
// tokens at first, and gets perSecond new ones each second, up to burst. Each
// call of When takes a token, and the delay is
//
//	the time until there is that token, 0 if there is one
//
// Forget does nothing: tokens do not come back. In a [WorkQueue], a key that is
// pending takes no second token. A burst below 1 counts as 1. If perSecond is not
// a finite number above zero, there is no limit.
func BucketLimiter[K comparable](perSecond float64, burst int) RateLimiter[K] {
	return &bucketLimiter[K]{
		pace:   newPace(perSecond, burst),
		began:  time.Now(),
		bucket: bucket{full: math.Inf(-1)},
	}
}

// GroupBucketLimiter returns a limiter with a bucket for each group of keys, so
// that a noisy tenant waits for its own tokens, and takes nobody else's:
//
//	GroupBucketLimiter(func(k Key) string { return k.Namespace }, 10, 100)
//
// Each bucket is as that of [BucketLimiter]. The delay of a key is
//
//	the time until there is that token in the bucket of group(key), 0 if there is one
//
// A bucket that is full again is as good as a new one, and is forgotten by
// itself within a minute. Forget does nothing.
//
// The function is called once for each call of When, by its caller, under no
// lock; if it panics, no token is taken. If group is nil, all keys are one
// group. A group that is not equal to itself, as a NaN, is a new one each time.
func GroupBucketLimiter[K, G comparable](group func(key K) G, perSecond float64, burst int) RateLimiter[K] {
	if group == nil {
		return BucketLimiter[K](perSecond, burst)
	}
	return &groupBucketLimiter[K, G]{
		group: group,
		buckets: &buckets[G]{
			pace:  newPace(perSecond, burst),
			began: time.Now(),
			seed:  maphash.MakeSeed(),
		},
	}
}

// A pace is how fast a bucket fills, in nanoseconds.
type pace struct {
	token  float64 // the time in which one token comes, 0 if there is no limit
	bucket float64 // the time in which an empty bucket becomes full
}

// newPace returns what the arguments of the limiters mean. No token takes longer
// than the longest duration, so that all sums are finite.
func newPace(perSecond float64, burst int) pace {
	if !(perSecond > 0) { // NaN neither
		return pace{}
	}
	token := min(float64(time.Second)/perSecond, math.MaxInt64)
	return pace{token: token, bucket: token * float64(max(burst, 1))}
}

// A bucket holds tokens, in the form of the time at which it will be full:
//
//	                 ◀── a token ──▶
//	─────────┼───────┬───────────────┬───────────────┬──────▶ time
//	        now      └ was full      └ is full, one  └ is full, two
//	                                   token less      tokens less
//
// It is empty when that is as far away as it takes to fill a bucket; a token
// that is taken then, is there as soon as that is no longer so. The times are
// nanoseconds since the limiter was made, in floating point: for a hundred days
// they are exact to one.
type bucket struct {
	full float64
	last float64 // when a token was taken
}

// take takes a token, and returns how long it is until it is there.
//
// Time goes back only from one synctest bubble to the next; then what was
// missing is still missing.
func (b *bucket) take(now float64, p pace) time.Duration {
	if now < b.last {
		b.full -= b.last - now
	}
	b.last = now
	b.full = max(b.full, now) + p.token
	return duration(b.full - now - p.bucket)
}

// bucketLimiter is what BucketLimiter returns.
type bucketLimiter[K comparable] struct {
	pace  pace
	began time.Time

	mu     sync.Mutex // guards bucket
	bucket bucket
}

func (l *bucketLimiter[K]) When(K) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bucket.take(since(l.began), l.pace)
}

func (l *bucketLimiter[K]) Forget(K) {}

// groupBucketLimiter is what GroupBucketLimiter returns.
type groupBucketLimiter[K, G comparable] struct {
	group   func(key K) G
	buckets *buckets[G]
}

func (l *groupBucketLimiter[K, G]) When(key K) time.Duration {
	return l.buckets.take(l.group(key))
}

func (l *groupBucketLimiter[K, G]) Forget(K) {}

// buckets are the buckets of all groups that are not full. The groups are
// spread over shards, so that goroutines do not wait for each other, and not
// for long when a million buckets are looked through.
type buckets[G comparable] struct {
	pace   pace
	began  time.Time
	seed   maphash.Seed
	armed  atomic.Bool // the timer is set
	shards [64]bucketShard[G]
}

// bucketShard holds the buckets of some of the groups.
type bucketShard[G comparable] struct {
	mu     sync.Mutex // guards groups
	groups slab[G, bucket]
}

// sweepInterval is how long a bucket stays at most that is full again.
const sweepInterval = time.Minute

// take takes a token of group, and returns how long it is until it is there.
func (b *buckets[G]) take(group G) time.Duration {
	if b.pace.token == 0 || !usable(group) {
		return 0
	}
	hash := maphash.Comparable(b.seed, group)
	delay, fresh := b.shards[hash>>58].take(group, uint32(hash), b)
	if fresh && !b.armed.Load() {
		b.arm()
	}
	return delay
}

// arm sets the timer if it is not set.
func (b *buckets[G]) arm() {
	if b.armed.CompareAndSwap(false, true) {
		callLater(sweepInterval, b, (*buckets[G]).sweep)
	}
}

// sweep forgets the buckets that are full. A group that is added meanwhile sets
// the timer itself, as armed is false.
func (b *buckets[G]) sweep() {
	b.armed.Store(false)
	left := false
	for i := range b.shards {
		left = b.shards[i].sweep(since(b.began)) || left
	}
	if left {
		b.arm()
	}
}

// take takes a token of group. It reports whether the group is new.
func (s *bucketShard[G]) take(group G, hash uint32, b *buckets[G]) (delay time.Duration, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := since(b.began) // in order, as it is under the lock
	slot := s.groups.find(hash, group)
	if slot == noSlot {
		fresh, slot = true, s.groups.put(hash, group)
		*s.groups.at(slot) = bucket{full: now, last: now}
	}
	return s.groups.at(slot).take(now, b.pace), fresh
}

// sweep forgets the buckets that are full, and reports whether any are left.
func (s *bucketShard[G]) sweep(now float64) (left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var full []uint32
	for _, c := range s.groups.cells {
		if c.slot != 0 && s.groups.at(c.slot-1).full <= now {
			full = append(full, c.slot-1)
		}
	}
	if len(full) == s.groups.len() {
		s.groups = slab[G, bucket]{}
		return false
	}
	for _, slot := range full {
		s.groups.remove(slot)
	}
	if s.groups.sparse() {
		s.groups.compact()
	}
	return true
}

// since returns the nanoseconds since t.
func since(t time.Time) float64 { return float64(time.Since(t)) }
