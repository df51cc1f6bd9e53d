package informer

import "iter"

// A load is what is pending.
type load[T Object] struct{ line[pending[T]] }

// newLoad returns an empty load.
func (f *DeltaFIFO[T]) newLoad() *load[T] {
	return &load[T]{line[pending[T]]{spare: &f.spare}}
}

// settled yields what the list, which may be nil, what came after it, and a
// resync change for the consumer. What it yields is valid until the next.
func (f *DeltaFIFO[T]) settled(list *staging[T], later *load[T], resync bool) iter.Seq[*place[pending[T]]] {
	known := f.known.Snapshot()
	return func(yield func(*place[pending[T]]) bool) {
		tell := func(p *place[pending[T]]) bool {
			if resync {
				p.entry.again(known.get(p.hash, p.key))
			}
			return p.entry.isNothing() || yield(p)
		}
		if list != nil && !list.changes(known, func(p *place[pending[T]]) bool {
			l := later.find(p.hash, p.key)
			if l != nil && p.entry.isNothing() {
				return true // it has its place below
			}
			if l != nil {
				p.entry.follow(l)
				l.told = true
			}
			return tell(p)
		}) {
			return
		}
		if later.tellRest(tell) && list == nil && resync {
			later.tellOthers(known, tell)
		}
	}
}

// tellRest tells what was not told with a list. It reports whether tell always
// wanted more.
func (l *load[T]) tellRest(tell func(*place[pending[T]]) bool) bool {
	var p place[pending[T]]
	for came := range l.all {
		if came.entry.told {
			continue
		}
		p = place[pending[T]]{key: came.key, hash: came.hash}
		if p.entry.follow(&came.entry); !tell(&p) {
			return false
		}
	}
	return true
}

// tellOthers tells every object that is known, and of which nothing came.
func (l *load[T]) tellOthers(known Reader[T], tell func(*place[pending[T]]) bool) {
	var p place[pending[T]]
	for obj := range known.All() {
		p = place[pending[T]]{key: KeyOf(obj)}
		if p.hash = known.hash(p.key); !l.has(p.hash, p.key) && !tell(&p) {
			return
		}
	}
}
