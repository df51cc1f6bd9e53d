package informer

import (
	"sync/atomic"
	"time"
)

// clockGrain is for how long a coarseClock tells the same time.
const clockGrain = time.Millisecond

// A coarseClock tells the time since start, and costs next to nothing while it is
// asked often: reading the time takes as long as half a pass of a key through a
// queue, so it is read once, and then again when a timer has said that this is
// clockGrain ago. Who does not ask, sets no timer. Its owner locks.
type coarseClock struct {
	start time.Time
	last  time.Duration // what now has told last
	fresh atomic.Bool   // it is to be told again
	timer *time.Timer   // ends that; nil until the clock is asked
}

// now returns the time since start, or what it was clockGrain ago; where timers
// are late, longer ago.
func (c *coarseClock) now() time.Duration {
	if c.fresh.Load() {
		return c.last
	}
	c.last = time.Since(c.start)
	c.fresh.Store(true)
	if c.timer == nil {
		c.timer = time.AfterFunc(clockGrain, func() { c.fresh.Store(false) })
	} else {
		c.timer.Reset(clockGrain)
	}
	return c.last
}
