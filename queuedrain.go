package informer

import (
	"context"
	"fmt"
)

// Drain shuts the queue for good and waits until it has been worked off: adds
// are refused, keys that are ready are still leased, to those who call Get or
// Run, and leases are waited for. What was delayed or parked, or is added
// again, retried or parked by a lease that was open, is not leased any more.
// Drain returns these keys: they are the caller's to care for. (What the
// limiter remembers of them stays until it expires.)
//
// Somebody has to work off what is ready: a Run whose context has ended does not.
// The hooks and log lines of the last leases may come a little later; when Run has
// returned, they have come.
//
// When ctx ends before, Drain returns the keys that were still ready as well,
// and an error that wraps the cause and tells how many keys were still leased.
// Those keys are not returned; if one of them is then to be retried,
// [Lease.Retry] returns false, and Run logs that. After that, Get returns
// [ErrStopped].
//
// The keys come in no order, each to exactly one caller: if several calls wait,
// to one of them when the queue has been worked off, or else to the
// last whose context ends; the others get none. A later call only waits for the
// leases that are left.
//
// The function that [WorkQueue.Run] calls may call Drain with the context that
// it was given, and so may OnError when it returns: its own lease is not waited
// for, nor are those of others that do the same. While a call from elsewhere
// waits, which is for these leases too, the keys are left to that one. The
// function still holds up its worker, so if all workers do that, keys that are
// ready wait for the end of ctx.
func (q *WorkQueue[K]) Drain(ctx context.Context) (rest []K, err error) {
	own, _ := q.LeaseOf(ctx)
	over := q.enterDrain(&own)
	select {
	case <-over:
	case <-ctx.Done():
	}

	q.mu.Lock()
	q.leaveDrainLocked(&own)
	early, leased, ready := !isClosed(over), q.leased, q.turns.len
	if q.stage != queueEnded && q.outsidersLocked() == 0 && (!early || q.drains == 0) {
		q.stage = queueEnded
		rest = q.restLocked()
	}
	q.mu.Unlock()

	if early { // the text of the cause is the user's code
		err = fmt.Errorf("informer: queue %s: drain: %d keys still leased, %d ready: %w",
			q.opts.Name, leased, ready, context.Cause(ctx))
	}
	return rest, err
}

// outsidersLocked returns how many calls wait in Drain that are not by the holder
// of a lease. The caller holds mu.
func (q *WorkQueue[K]) outsidersLocked() int {
	n := q.drains
	for _, calls := range q.drainers {
		n -= calls
	}
	return n
}

// enterDrain shuts the queue and counts a call of Drain. The lease of the caller,
// own, is not waited for until the call ends. It returns the channel that is
// closed when there is nothing more to wait for.
func (q *WorkQueue[K]) enterDrain(own *Lease[K]) (over <-chan struct{}) {
	q.mu.Lock()
	if q.stage == queueOpen {
		q.stage = queueDraining
		if q.timer != nil {
			q.timer.Stop()
		}
	}
	q.drains++
	over = q.finished
	if q.openLocked(own) {
		over = q.settled
		if q.drainers == nil {
			q.drainers = map[K]int{}
		}
		q.drainers[own.key]++
	}
	q.settleLocked()
	q.unlockAndWake()
	return over
}

// leaveDrainLocked counts the end of a call of Drain by the holder of own, if
// there is one. The caller holds mu.
func (q *WorkQueue[K]) leaveDrainLocked(own *Lease[K]) {
	q.drains--
	if !q.openLocked(own) {
		return // the end of the lease has taken it out
	}
	if q.drainers[own.key]--; q.drainers[own.key] == 0 {
		delete(q.drainers, own.key)
	}
}

// settleLocked closes settled and finished when the queue has been worked off.
// The caller holds mu, and has changed something that leads there.
func (q *WorkQueue[K]) settleLocked() {
	if q.stage == queueOpen || q.turns.len > 0 {
		return
	}
	if q.leased <= len(q.drainers) && !isClosed(q.settled) {
		close(q.settled)
	}
	if q.leased == 0 && !isClosed(q.finished) {
		close(q.finished)
	}
}

// isClosed reports that c, to which nothing is sent, is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// restLocked takes out every key that is pending or parked, and returns them.
// The caller holds mu.
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
