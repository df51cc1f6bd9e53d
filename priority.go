package informer

import "time"

// A Priority says which keys of a [WorkQueue] are leased first. There are five,
// from PriorityLow to PriorityHigh; what is beyond counts as the nearer of both.
type Priority int8

// The priorities that have names.
const (
	// PriorityLow is for what may wait: [Enqueue] gives it to keys that are
	// added because a program starts.
	PriorityLow Priority = -2
	// PriorityNormal is that of keys which were added without one.
	PriorityNormal Priority = 0
	// PriorityHigh goes before all others.
	PriorityHigh Priority = 2
)

// priorities is how many there are.
const priorities = int(PriorityHigh-PriorityLow) + 1

// known returns the priority that p counts as.
func (p Priority) known() Priority { return min(max(p, PriorityLow), PriorityHigh) }

// AddOptions says how a key is added. The zero value means as by
// [WorkQueue.Add].
type AddOptions struct {
	// After is how long the key waits before it is ready, as with
	// [WorkQueue.AddAfter].
	//
	// Default: the key is ready at once.
	After time.Duration

	// Limited makes the key wait as long as the limiter says, as with
	// [WorkQueue.AddLimited]; the longer wait counts if After is set too.
	//
	// Default: the limiter is not asked.
	Limited bool

	// Priority is the priority of the key while it is pending, if it is not
	// pending with a higher one.
	//
	// Default: PriorityNormal.
	Priority Priority
}
