package informer

// LimiterEntries tells how many keys an exponential or fast-slow limiter
// remembers, and how many it has room for.
func LimiterEntries[K comparable](l RateLimiter[K]) (entries, room int) {
	calls := l.(*countingLimiter[K]).calls
	for i := range calls.shards {
		s := &calls.shards[i]
		s.mu.Lock()
		entries += s.young.len() + s.old.len()
		room += cap(s.young.slots) + cap(s.old.slots)
		s.mu.Unlock()
	}
	return entries, room
}

// GroupEntries tells how many groups a limiter remembers, and how many it has
// room for.
func GroupEntries[K, G comparable](l RateLimiter[K]) (entries, room int) {
	buckets := l.(*groupBucketLimiter[K, G]).buckets
	for i := range buckets.shards {
		s := &buckets.shards[i]
		s.mu.Lock()
		entries += s.groups.len()
		room += cap(s.groups.slots)
		s.mu.Unlock()
	}
	return entries, room
}

// SweepGroups forgets what is full now.
func SweepGroups[K, G comparable](l RateLimiter[K]) { l.(*groupBucketLimiter[K, G]).buckets.sweep() }
