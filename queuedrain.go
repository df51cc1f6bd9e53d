package informer

import (
	"context"
	"fmt"
)

// Drain shuts the queue for good and waits until it has been worked off: adds
// are refused, keys that are ready are still leased, to those who call Get or
// Run, and leases are waited for. What was delayed or parked, or is added again,
// retried or parked by a lease that was open, is not leased any more. Drain
// returns these keys: they are the caller's to care for. (What the limiter remembers of them stays
// until it expires.)
//
// Somebody has to work off what is ready: a Run whose context has ended does not.
//
// When ctx ends before, Drain returns the keys that were still ready as well,
// and an error that wraps the cause and tells how many keys were still leased.
// Those keys are not returned; if one of them is then to be retried,
// [Lease.Retry] returns false. After that, Get returns [ErrStopped].
//
// The keys come in no order, each to exactly one caller: if several calls wait,
// to the first that sees that the queue has been worked off, or else to the
// last whose context ends; the others get none. A later call only waits for the
// leases that are left.
//
// The function that [WorkQueue.Run] calls may call Drain with the context that
// it was given: its own lease is not waited for. It still holds up its worker,
// so if all workers do that, keys that are ready wait for the end of ctx.
func (q *WorkQueue[K]) Drain(ctx context.Context) (rest []K, err error) {
	own, _ := q.LeaseOf(ctx)
	q.enterDrain(&own)
	select {
	case <-q.settled:
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)

	q.mu.Lock()
	defer q.mu.Unlock()
	q.drains--
	if q.heldLocked(&own) != noSlot {
		if q.drainers[own.Key]--; q.drainers[own.Key] == 0 {
			delete(q.drainers, own.Key)
		}
	}
	if !q.hasSettled() {
		err = fmt.Errorf("informer: queue %s: drain: %d keys still leased, %d ready: %w",
			q.name, q.leased, q.turns.len, cause)
		if q.drains > 0 {
			return nil, err
		}
	}
	if q.stage == queueEnded {
		return nil, err
	}
	q.stage = queueEnded
	return q.restLocked(), err
}

// enterDrain shuts the queue and counts a call of Drain. The lease of the caller,
// own, is not waited for until the call ends.
func (q *WorkQueue[K]) enterDrain(own *Lease[K]) {
	q.mu.Lock()
	if q.stage == queueOpen {
		q.stage = queueDraining
		if q.timer != nil {
			q.timer.Stop()
		}
	}
	q.drains++
	if q.heldLocked(own) != noSlot {
		if q.drainers == nil {
			q.drainers = map[K]int{}
		}
		q.drainers[own.Key]++
	}
	q.settleLocked()
	q.unlockAndWake()
}

// settleLocked closes settled when the queue has been worked off. The caller
// holds mu, and has changed something that leads there.
func (q *WorkQueue[K]) settleLocked() {
	if q.stage == queueOpen || q.turns.len > 0 || q.leased > len(q.drainers) || q.hasSettled() {
		return
	}
	close(q.settled)
}

// hasSettled reports that settled is closed.
func (q *WorkQueue[K]) hasSettled() bool {
	select {
	case <-q.settled:
		return true
	default:
		return false
	}
}

// restLocked takes out every key that is pending or parked, and returns them. The caller
// holds mu.
func (q *WorkQueue[K]) restLocked() []K {
	rest := make([]K, 0, q.pending+q.parked)
	for slot := range uint32(len(q.keys.slots)) {
		w := q.keys.at(slot)
		if w.at == workIdle {
			continue // free, or leased and not pending
		}
		q.noteLocked(slot)
		rest = append(rest, q.keys.key(slot))
		q.moveLocked(slot, workIdle, 0)
		if !w.leased() {
			q.dropLocked(slot)
		}
	}
	q.shrinkLocked()
	q.settleLocked() // the line is empty now
	return rest
}
