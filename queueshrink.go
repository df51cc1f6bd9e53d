package informer

import "time"

// shrinkDelay is how long memory is kept that is not needed any more.
const shrinkDelay = time.Second

// shrinkSoonLocked sees to it that shrink runs, if there is much room that is not
// needed: not now, or a queue that fills and empties all the time would do
// little else than grow and shrink. The caller holds mu.
func (q *WorkQueue[K]) shrinkSoonLocked() {
	if !q.shrinking && q.sparseLocked() {
		q.shrinking = true
		time.AfterFunc(shrinkDelay, q.shrink)
	}
}

// sparseLocked reports that much memory can be given back. The caller holds mu.
func (q *WorkQueue[K]) sparseLocked() bool {
	return q.keys.sparse() || q.failures.sparse() || q.turns.sparse()
}

// shrink gives memory back.
func (q *WorkQueue[K]) shrink() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shrinking = false
	q.shrinkLocked()
}

// shrinkLocked gives memory back if that is worth it, and then renumbers all
// slots; not while somebody goes through them. The caller holds mu.
func (q *WorkQueue[K]) shrinkLocked() {
	q.delays.shrink()
	if q.failures.sparse() {
		q.failures.compact()
	}
	if q.turns.sparse() {
		q.turns.compact()
	}
	if !q.keys.sparse() || len(q.views) > 0 {
		return
	}
	moved := q.keys.compact()
	for i := range q.delays.elems {
		q.delays.elems[i].slot = moved[q.delays.elems[i].slot]
	}
	q.turns.renumber(moved, q.keys.len())
	q.renumberLocked(&q.turns.one, moved)
	for number := range q.turns.groups.slots {
		if group := q.turns.groups.at(uint32(number)); group.len > 0 {
			q.renumberLocked(&group.workLines, moved)
		}
	}
}
