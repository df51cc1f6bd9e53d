package informer

// workLines holds keys that are ready: for each priority a line, which is a list
// through the slots.
//
// Keys age: by each ageing that a key waits, it rises by one priority, and then
// stands behind those that have been there before. To that end no key needs to
// be moved. All of them rise equally fast, so which of two goes first never
// changes, and can be told by a number that is given when a key gets in line:
//
//	rank = when it gets in line - its priority * ageing
//
// The least rank goes first. Within a line ranks do not fall from first to last,
// so the least one is that of the first key in one of the lines. With an ageing
// of 8:
//
//	high    1001 ── 1002              got in line at 1017 and 1018
//	        (none)
//	normal  1009 ── 1009 ── 1013      at 1009, 1009 and 1013
//	        (none)
//	low     1000 ── 1035              at 984 and 1019; the first one is next
type workLines struct {
	ends [priorities]lineEnds // those of PriorityLow first
	len  int                  // keys in all lines
}

// lineEnds are the first and the last slot of a line, noSlot if it is empty.
type lineEnds struct{ first, last uint32 }

// clear empties the lines.
func (l *workLines) clear() {
	for i := range l.ends {
		l.ends[i] = lineEnds{noSlot, noSlot}
	}
	l.len = 0
}

// line returns the line of keys that get in line with priority p.
func (l *workLines) line(p Priority) *lineEnds { return &l.ends[p-PriorityLow] }

// rankLocked returns the rank of a key of priority p that gets in line now. The
// caller holds mu.
func (q *WorkQueue[K]) rankLocked(p Priority) moment {
	return q.clock.now() - moment(int32(p))*q.ageing
}

// nextLocked returns the slot of the key that is to be leased next, and since
// when it has been in line. There is one. Of equal ranks the one that has waited
// longer goes first. The caller holds mu.
func (q *WorkQueue[K]) nextLocked() (next uint32, since moment) {
	next = noSlot
	least, lines := moment(0), q.turns.next()
	for i := range lines.ends {
		slot := lines.ends[i].first
		if slot == noSlot {
			continue
		}
		if rank := q.keys.at(slot).stamp; next == noSlot || rank.before(least) {
			next, least = slot, rank
			since = rank + moment(int32(i)+int32(PriorityLow))*q.ageing
		}
	}
	return next, since
}

// linkLocked puts the key in slot at the end of its line, and its group into the
// ring. The caller holds mu.
func (q *WorkQueue[K]) linkLocked(slot uint32, w *work) {
	q.appendLocked(slot, w)
	q.turns.entered(slot)
}

// unlinkLocked takes the key in slot out of its line, and its group out of the
// ring if that was its last one. The caller holds mu.
func (q *WorkQueue[K]) unlinkLocked(slot uint32, w *work) {
	q.removeLocked(slot, w)
	q.turns.left(slot)
}

// appendLocked puts the key in slot at the end of its line. The caller holds mu.
func (q *WorkQueue[K]) appendLocked(slot uint32, w *work) {
	w.stamp = q.rankLocked(w.priority)
	lines := q.turns.lines(slot)
	line := lines.line(w.priority)
	w.next, w.prev = noSlot, line.last
	if line.last == noSlot {
		line.first = slot
	} else {
		q.keys.at(line.last).next = slot
	}
	line.last = slot
	lines.len++
}

// removeLocked takes the key in slot out of its line. The caller holds mu.
func (q *WorkQueue[K]) removeLocked(slot uint32, w *work) {
	lines := q.turns.lines(slot)
	if w.prev != noSlot {
		q.keys.at(w.prev).next = w.next
	}
	if w.next != noSlot {
		q.keys.at(w.next).prev = w.prev
	}
	if w.prev == noSlot || w.next == noSlot {
		line := lines.lineOf(slot, w)
		if w.prev == noSlot {
			line.first = w.next
		}
		if w.next == noSlot {
			line.last = w.prev
		}
	}
	lines.len--
}

// lineOf returns the line that begins or ends with the key in slot. It is not
// that of its priority if the priority was raised when the key had aged that
// far.
func (l *workLines) lineOf(slot uint32, w *work) *lineEnds {
	line := l.line(w.priority)
	for i := 0; line.first != slot && line.last != slot; i++ {
		line = &l.ends[i]
	}
	return line
}

// raiseLocked gives the key in slot, which is pending, priority p if that is
// higher than its own. A key in line goes to the end of the line of p, unless
// it has aged that far; its group keeps its turn. The caller holds mu.
func (q *WorkQueue[K]) raiseLocked(slot uint32, p Priority) {
	w := q.keys.at(slot)
	if p <= w.priority {
		return
	}
	if w.at == workReady && q.rankLocked(p).before(w.stamp) {
		q.removeLocked(slot, w)
		w.priority = p
		q.appendLocked(slot, w)
		return
	}
	w.priority = p
}

// renumberLocked makes lines of old numbers of slots such of their new numbers.
// The caller holds mu.
func (q *WorkQueue[K]) renumberLocked(lines *workLines, moved []uint32) {
	renumber := func(slot *uint32) {
		if *slot != noSlot {
			*slot = moved[*slot]
		}
	}
	for i := range lines.ends {
		line := &lines.ends[i]
		renumber(&line.first)
		renumber(&line.last)
		for at := line.first; at != noSlot; at = q.keys.at(at).next {
			renumber(&q.keys.at(at).prev)
			renumber(&q.keys.at(at).next)
		}
	}
}
