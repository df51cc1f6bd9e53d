package informer

import (
	"sync/atomic"
	"time"
)

// A moment is a time in the life of a queue. It counts pieces of 1.05 ms, the
// 2^20 nanoseconds since the queue was made, and begins anew after 52 days: so
// it takes half of the room of a time, which each key of a queue has two of.
type moment uint32

const momentBits = 20

// momentsOf returns how many moments d takes.
func momentsOf(d time.Duration) moment { return moment(d >> momentBits) }

// until returns the time from m to a later moment.
func (m moment) until(later moment) time.Duration { return time.Duration(later-m) << momentBits }

// before reports that m is before other, if they are less than 26 days apart.
func (m moment) before(other moment) bool { return int32(m-other) < 0 }

// clockGrain is for how long a queueClock tells the same moment.
const clockGrain = time.Millisecond

// A queueClock tells the moment, and costs next to nothing while it is asked
// often: reading the time takes as long as half a pass of a key through the
// queue, so it is read once, and then again when a timer has said that this is
// clockGrain ago. Who does not ask, sets no timer. Its owner locks.
type queueClock struct {
	start time.Time // the zero moment
	last  moment
	fresh atomic.Bool // last is
	timer *time.Timer // ends that; nil until the clock is asked
}

// now returns the moment, or one that was clockGrain ago.
func (c *queueClock) now() moment {
	if c.fresh.Load() {
		return c.last
	}
	c.last = momentsOf(time.Since(c.start))
	c.fresh.Store(true)
	if c.timer == nil {
		c.timer = time.AfterFunc(clockGrain, func() { c.fresh.Store(false) })
	} else {
		c.timer.Reset(clockGrain)
	}
	return c.last
}
