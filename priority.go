package informer

import "time"

// A Priority says which keys of a [WorkQueue] are leased first. There are five,
// from PriorityLow to PriorityHigh; what is beyond counts as the nearer of both.
type Priority int8

// The priorities that have names.
const (
	// PriorityLow is for what may wait: [Enqueue] gives it to keys that are
	// added because a program starts, or now and then for safety.
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

// workLines holds the keys that are ready: for each priority a line, which is a
// list through the slots.
//
// Keys age: by each ageing that a key waits, it rises by one priority, and then
// stands behind those that have been there before. To that end no key needs to
// be moved. All of them rise equally fast, so which of two goes first never
// changes, and can be told by a number that is given when a key gets in line:
//
//	rank = when it gets in line - its priority * ageing
//
// The least rank goes first. Within a line ranks do not fall from first to last,
// so the least one is that of the first key in one of the lines:
//
//	high    1001 ── 1002              got in line at 1017 and 1018
//	        (none)
//	normal  1009 ── 1009 ── 1013      at 1009, 1009 and 1013
//	        (none)
//	low     1000 ── 1035              at 984 and 1019; the first one is next
//
// The clock counts eighths of an ageing, and does not run, nor does a timer,
// when it cannot make a difference any more: when nothing is in line, or no key
// has got in line for so long that even a new one of the highest priority would
// be behind all that wait.
type workLines struct {
	ends  [priorities]lineEnds // those of PriorityLow first
	len   int                  // keys in all lines
	clock uint32               // may wrap around
	last  uint32               // when a key got in line last
	runs  bool                 // tick will run
}

// lineEnds are the first and the last slot of a line, noSlot if it is empty.
type lineEnds struct{ first, last uint32 }

// ticksPerAgeing is how many ticks of the clock make a key rise.
const ticksPerAgeing = 8

// minTick is the shortest time between two ticks.
const minTick = time.Millisecond

// clear empties the lines.
func (l *workLines) clear() {
	for i := range l.ends {
		l.ends[i] = lineEnds{noSlot, noSlot}
	}
	l.len = 0
}

// line returns the line of keys that get in line with priority p.
func (l *workLines) line(p Priority) *lineEnds { return &l.ends[p-PriorityLow] }

// rank returns the rank of a key of priority p that gets in line now.
func (l *workLines) rank(p Priority) uint32 {
	return l.clock - uint32(int32(p))*ticksPerAgeing
}

// before reports that rank a goes before rank b.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// aged reports that no key can rise above another any more.
func (l *workLines) aged() bool {
	return l.len == 0 || l.clock-l.last >= ticksPerAgeing*uint32(priorities-1)
}

// nextLocked returns the slot of the key that is to be leased next. There is
// one. Of equal ranks the one that has waited longer goes first. The caller
// holds mu.
func (q *WorkQueue[K]) nextLocked() uint32 {
	next, least := noSlot, uint32(0)
	for i := range q.lines.ends {
		slot := q.lines.ends[i].first
		if slot == noSlot {
			continue
		}
		if rank := q.keys.at(slot).rank; next == noSlot || before(rank, least) {
			next, least = slot, rank
		}
	}
	return next
}

// linkLocked puts the key in slot at the end of its line. The caller holds mu.
func (q *WorkQueue[K]) linkLocked(slot uint32, w *work) {
	w.rank = q.lines.rank(w.priority)
	line := q.lines.line(w.priority)
	w.next, w.prev = noSlot, line.last
	if line.last == noSlot {
		line.first = slot
	} else {
		q.keys.at(line.last).next = slot
	}
	line.last = slot
	q.lines.len++
	q.lines.last = q.lines.clock
	if !q.lines.runs {
		q.lines.runs = true
		time.AfterFunc(q.tick, q.age)
	}
}

// unlinkLocked takes the key in slot out of its line. The caller holds mu.
func (q *WorkQueue[K]) unlinkLocked(slot uint32, w *work) {
	if w.prev != noSlot {
		q.keys.at(w.prev).next = w.next
	}
	if w.next != noSlot {
		q.keys.at(w.next).prev = w.prev
	}
	if w.prev == noSlot || w.next == noSlot {
		line := q.lineOfLocked(slot, w)
		if w.prev == noSlot {
			line.first = w.next
		}
		if w.next == noSlot {
			line.last = w.prev
		}
	}
	q.lines.len--
}

// lineOfLocked returns the line that begins or ends with the key in slot. It is
// not that of its priority if the priority was raised when the key had aged
// that far. The caller holds mu.
func (q *WorkQueue[K]) lineOfLocked(slot uint32, w *work) *lineEnds {
	line := q.lines.line(w.priority)
	for i := 0; line.first != slot && line.last != slot; i++ {
		line = &q.lines.ends[i]
	}
	return line
}

// raiseLocked gives the key in slot, which is pending, priority p if that is
// higher than its own. A key in line goes to the end of the line of p, unless
// it has aged that far. The caller holds mu.
func (q *WorkQueue[K]) raiseLocked(slot uint32, p Priority) {
	w := q.keys.at(slot)
	if p <= w.priority {
		return
	}
	if w.at == workReady && before(q.lines.rank(p), w.rank) {
		q.unlinkLocked(slot, w)
		w.priority = p
		q.linkLocked(slot, w)
		return
	}
	w.priority = p
}

// age makes the clock tick. The timer runs it, on a goroutine that ends with it.
func (q *WorkQueue[K]) age() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines.clock++
	q.lines.runs = !q.lines.aged()
	if q.lines.runs {
		time.AfterFunc(q.tick, q.age)
	}
}
