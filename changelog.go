package informer

import "time"

// logSegment is the most changes in one piece of the log.
const logSegment = 256

// segment is a piece of the log of changes that all handlers of an informer
// follow: the changes of one batch, or a part of them. The log has one writer
// and no lock: a cursor reads only what it was told of, and by then it is
// written for good. Segments that every cursor has passed are garbage.
type segment[T Object] struct {
	changes []Change[T]
	at      time.Duration // when the batch came, in the fan-out's time
	next    *segment[T]   // set when changes is complete
	one     [1]Change[T]  // room for a batch of one, the most common
}

// cursor is a position in the log: it stands before change number pos, at the
// segment that begins with it. At the end of the log that is one which is not
// written yet, so a cursor keeps nothing alive that it has passed.
//
//	[ 0 … 255 ] ──▶ [ 256 … 290 ] ──▶ [ 291 ] ──▶ [ ]
type cursor[T Object] struct {
	seg *segment[T]
	pos uint64
}

// newLog returns the cursor of the writer of an empty log: its end.
func newLog[T Object]() cursor[T] { return cursor[T]{seg: new(segment[T])} }

// append writes the next change, which came at that time; expect tells about how
// many the batch brings. It is for the cursor of the writer only, which stands
// behind the changes of a segment until seal ends that.
func (c *cursor[T]) append(change Change[T], at time.Duration, expect int) {
	s := c.seg
	if s.changes == nil && expect == 1 {
		s.changes = s.one[:0]
	} else if s.changes == nil {
		s.changes = make([]Change[T], 0, min(expect, logSegment))
	}
	s.changes, s.at = append(s.changes, change), at
	c.pos++
	if len(s.changes) == logSegment {
		c.seal()
	}
}

// seal ends a segment: from now on others may be told of c.
func (c *cursor[T]) seal() {
	if len(c.seg.changes) > 0 {
		c.seg.next = new(segment[T])
		c.seg = c.seg.next
	}
}

// read passes the next segment, of which c was told, and returns its changes,
// at least one, and when they came. They must not be written to.
func (c *cursor[T]) read() (run []Change[T], at time.Duration) {
	run, at = c.seg.changes, c.seg.at
	c.pos += uint64(len(run))
	c.seg = c.seg.next
	return run, at
}
