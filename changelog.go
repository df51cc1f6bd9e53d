package informer

// logSegment is the number of changes in one piece of the log.
const logSegment = 256

// segment is a piece of the log of changes that all handlers of an informer
// follow. The log has one writer and no lock: a cursor reads only what it was
// told of, and by then it is written. Segments that every cursor has passed are
// garbage.
type segment[T Object] struct {
	changes [logSegment]Change[T]
	next    *segment[T]
}

// cursor is a position in the log: it stands before change number pos. It holds
// the segment of change pos-1, since that of pos need not exist yet.
//
//	seg ──▶ [ 0 … 255 ] ──▶ [ 256 … 511 ] ──▶ …
type cursor[T Object] struct {
	seg *segment[T]
	pos uint64
}

// newLog returns the cursor of the writer of an empty log: its end.
func newLog[T Object]() cursor[T] { return cursor[T]{seg: new(segment[T])} }

// index returns where change pos is within its segment, which c holds from now
// on.
func (c *cursor[T]) index() uint64 {
	i := c.pos % logSegment
	if i == 0 && c.pos > 0 {
		c.seg = c.seg.next
	}
	return i
}

// append writes the next change. It is for the cursor of the writer only.
func (c *cursor[T]) append(change Change[T]) {
	if c.pos > 0 && c.pos%logSegment == 0 {
		c.seg.next = new(segment[T])
	}
	c.seg.changes[c.index()] = change
	c.pos++
}

// read passes the next changes, at least one and none from end on, and returns
// them. They must not be written to.
func (c *cursor[T]) read(end uint64) []Change[T] {
	i := c.index()
	n := min(logSegment-i, end-c.pos)
	c.pos += n
	return c.seg.changes[i : i+n]
}
