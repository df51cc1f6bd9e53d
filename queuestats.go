package informer

import (
	"math"
	"time"
)

// QueueStats are numbers of a [WorkQueue]. Times are to about a millisecond.
type QueueStats struct {
	// Ready is how many keys wait for someone to lease them, by priority; those
	// that have aged count with the one that they were added with.
	Ready map[Priority]int
	// Delayed is how many will be ready later, leased or not; none once the
	// queue drains.
	Delayed int
	// Leased is how many are being worked on.
	Leased int
	// Parked is how many wait to be added again, or for Unpark.
	Parked int
	// Oldest is the greatest age of a key that is ready.
	Oldest time.Duration
	// LongestLease is how long the oldest lease has been held, and Unfinished
	// how long all of them together.
	LongestLease, Unfinished time.Duration

	// QueueCounts is what has been counted since the queue was made.
	QueueCounts
}

// QueueCounts are what a [WorkQueue] counts.
type QueueCounts struct {
	// Adds is how many keys have become pending by an add. A key that was
	// pending already does not count.
	Adds uint64
	// Retries is how many keys have become pending by a lease that ended in
	// another attempt. A key that was added meanwhile does not count: so Adds
	// and Retries are how often a key has become pending.
	Retries uint64
	// Parks is how many leases ended as by Park.
	Parks uint64
	// Waited is how long keys were ready before they were leased.
	Waited Latency
	// Worked is how long leases were held.
	Worked Latency
}

// A Latency sums up durations.
type Latency struct {
	// Count is how many there were.
	Count uint64
	// Total is their sum, and grows no further than to 292 years.
	Total time.Duration
	// Longest is the longest of them.
	Longest time.Duration
}

// count adds d.
func (l *Latency) count(d time.Duration) {
	l.Count++
	l.Total = sum(l.Total, d)
	l.Longest = max(l.Longest, d)
}

// sum returns a + b, which are not negative, or the longest time there is.
func sum(a, b time.Duration) time.Duration { return a + min(b, math.MaxInt64-a) }

// Stats returns the numbers of the queue at this instant. It goes through all
// keys, as [WorkQueue.Items] does.
func (q *WorkQueue[K]) Stats() QueueStats {
	s := QueueStats{Ready: make(map[Priority]int)}
	s.QueueCounts = q.view(func(item Item[K]) {
		switch item.State {
		case ItemReady:
			s.Ready[item.Priority]++
			s.Oldest = max(s.Oldest, item.Age)
		case ItemLeased:
			s.Leased++
			s.Unfinished = sum(s.Unfinished, item.Held)
			s.LongestLease = max(s.LongestLease, item.Held)
		case ItemParked:
			s.Parked++
		}
		if item.State == ItemDelayed || !item.Due.IsZero() {
			s.Delayed++
		}
	})
	return s
}
