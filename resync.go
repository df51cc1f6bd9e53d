package informer

import "time"

// resyncSlices is the number of slices in which the objects are told once more.
const resyncSlices = 64

// resync spreads the objects of a cache over a period. An object keeps its
// place in the store, so a walk over the store's chunks meets it once, whatever
// comes and goes meanwhile; if the store is laid out anew, the walk begins
// again.
type resync struct {
	period time.Duration
	timer  *time.Timer // nil: no resync
	layout int         // of the store
	from   int         // the next chunk
	left   int         // slices left in this period
}

func (r *resync) start(period time.Duration) {
	if period > 0 {
		r.period, r.left = period, resyncSlices
		r.timer = time.NewTimer(period / resyncSlices)
	}
}

func (r *resync) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// due returns the channel that tells when the next slice is due.
func (r *resync) due() <-chan time.Time {
	if r.timer == nil {
		return nil
	}
	return r.timer.C
}

// again makes the slice due once more.
func (r *resync) again() { r.timer.Reset(0) }

// advance returns the next slice, as a range of the store's chunks.
func (r *resync) advance(chunks, layout int) (from, to int) {
	if r.layout != layout {
		r.layout, r.from = layout, 0
	}
	from = min(r.from, chunks)
	to = from + (chunks-from+r.left-1)/r.left
	r.from = to
	if r.left--; r.left == 0 {
		r.from, r.left = 0, resyncSlices
	}
	r.timer.Reset(r.period / resyncSlices)
	return from, to
}
