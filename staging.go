package informer

import "k8s.io/apimachinery/pkg/types"

// staging is a list on its way into a [DeltaFIFO]. Its items are compared with
// what the consumer has when the consumer takes them, and not when they
// arrive: what is in flight then would be missed (k8s#83810).
type staging[T Object] struct {
	items line[item[T]]
	// finals holds the final states of objects whose deletion came before or
	// inside the list: it does not tell how an object ended.
	finals map[Key]T
	// base is what the consumer had when the first item came. If it has just
	// that when it takes the list, what was found then need not be looked up
	// again.
	base  Reader[T]
	based bool
}

// item is an item of a list.
type item[T Object] struct {
	uid    types.UID
	bad    bool // the list has no state of it that can be used
	usable bool // there is an object; of a bad item, from before the list
	found  bool // base has an object under the key
	same   bool // and it is this version of it
	object T
}

// put stages an item, under the key of hash h. It keeps the known object where
// it is the same version, so that a relist of unchanged objects holds nothing
// twice.
func (s *staging[T]) put(h uint32, ev *Event[T], known Reader[T]) {
	if !s.based {
		s.base, s.based = known.Snapshot(), true
	}
	it := s.items.enter(h, ev.Key)
	if ev.Type == EventBad {
		if !it.usable || !sameUID(it.uid, ev.UID) {
			*it = item[T]{uid: ev.UID, bad: true}
			_, it.found = s.base.get(h, ev.Key)
		}
		return
	}
	*it = item[T]{uid: ev.UID, usable: true, object: ev.Object}
	var was T
	if was, it.found = s.base.get(h, ev.Key); it.found && unchanged(was, ev.Object) {
		it.object, it.same = was, true
	}
}

// remove takes an item back: it was deleted while the list came. Its final state
// is kept if that is useful to somebody.
func (s *staging[T]) remove(h uint32, ev *Event[T], useful bool) {
	if s.items.has(h, ev.Key) {
		s.items.leave(h, ev.Key)
	}
	if ev.Exact && useful {
		s.final(ev.Key, ev.Object)
	}
}

func (s *staging[T]) final(k Key, last T) {
	if s.finals == nil {
		s.finals = make(map[Key]T)
	}
	s.finals[k] = last
}

// inherit takes from an older list, which nobody took, what this one does not
// say: how objects ended, and good states of items that are bad now.
func (s *staging[T]) inherit(older *staging[T]) {
	for k, last := range older.finals {
		if _, ok := s.finals[k]; !ok {
			s.final(k, last)
		}
	}
	for p := range s.items.all {
		if was := older.items.find(p.hash, p.key); was != nil && was.usable {
			p.entry.fallBack(was.object)
		}
	}
}

// overtake takes the same from what came after that list and before this one.
// Nothing is kept of what the consumer cannot have, which has says.
func (s *staging[T]) overtake(before *line[pending[T]], has func(uint32, Key) bool) {
	for p := range before.all {
		if _, ok := s.finals[p.key]; !ok && p.entry.hasGone && p.entry.exact && has(p.hash, p.key) {
			s.final(p.key, p.entry.gone)
		}
		if it := s.items.find(p.hash, p.key); it != nil && p.entry.typ != 0 {
			it.fallBack(p.entry.live)
		}
	}
}

// fallBack makes an earlier state do for one that is bad, if it is of the same
// object.
func (it *item[T]) fallBack(earlier T) {
	if it.bad && sameUID(it.uid, earlier.GetUID()) {
		it.object, it.usable = earlier, true
	}
}

// changes yields what the list changes for a consumer who has known; nothing
// pending stands for a key that stays. What it yields is valid until the next.
func (s *staging[T]) changes(known Reader[T], yield func(*place[pending[T]]) bool) bool {
	p := &place[pending[T]]{}
	had, sameState := 0, s.based && s.base == known
	for it := range s.items.all {
		*p = place[pending[T]]{key: it.key, hash: it.hash}
		if found := s.compare(p, &it.entry, known, sameState); found {
			had++
		}
		if !yield(p) {
			return false
		}
	}
	if had == known.Len() {
		return true
	}
	for obj := range known.All() {
		*p = place[pending[T]]{key: KeyOf(obj)}
		p.hash = known.hash(p.key)
		if s.items.has(p.hash, p.key) {
			continue
		}
		s.lose(p)
		if !yield(p) {
			return false
		}
	}
	return true
}

// compare enters in p what it changes for a consumer who has known, and reports
// whether that has the key. In sameState it is base.
func (s *staging[T]) compare(p *place[pending[T]], it *item[T], known Reader[T], sameState bool) (found bool) {
	if sameState && (it.same || !it.found) {
		if !it.same && it.usable {
			p.entry.put(it.object, Replaced)
		}
		return it.found
	}
	was, found := known.get(p.hash, p.key)
	switch {
	case !it.usable && found && !sameUID(it.uid, was.GetUID()):
		s.lose(p)
	case !it.usable, found && unchanged(was, it.object):
	default:
		if found && !sameUID(was.GetUID(), it.object.GetUID()) {
			s.lose(p)
		}
		p.entry.put(it.object, Replaced)
	}
	return found
}

// lose enters the deletion of what the consumer has under the key of p.
func (s *staging[T]) lose(p *place[pending[T]]) {
	last, exact := s.finals[p.key]
	p.entry.remove(last, exact)
	p.entry.listed = true
}
