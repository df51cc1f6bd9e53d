package informer

import "time"

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

// A queueClock tells the moment.
type queueClock struct{ coarseClock } // its start is the zero moment

func (c *queueClock) now() moment { return momentsOf(c.coarseClock.now()) }
