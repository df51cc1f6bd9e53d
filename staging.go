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
}

// item is an item of a list.
type item[T Object] struct {
	uid    types.UID
	bad    bool // the list has no state of it that can be used
	usable bool // there is an object; of a bad item, from before the list
	object T
}

// put stages an item. It keeps the known object where it is the same version,
// so that a relist of unchanged objects holds nothing twice.
func (s *staging[T]) put(ev Event[T], known Reader[T]) {
	it := s.items.enter(ev.Key)
	if ev.Type == EventBad {
		if !it.usable || !sameUID(it.uid, ev.UID) {
			*it = item[T]{uid: ev.UID, bad: true}
		}
		return
	}
	*it = item[T]{uid: ev.UID, usable: true, object: ev.Object}
	if was, ok := known.peek(ev.Key); ok && unchanged(was, ev.Object) {
		it.object = was
	}
}

// remove takes an item back: it was deleted while the list came.
func (s *staging[T]) remove(ev Event[T]) {
	if s.items.has(ev.Key) {
		s.items.leave(ev.Key)
	}
	if ev.Exact {
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
	for k, it := range s.items.all {
		if was := older.items.find(k); was != nil && was.usable {
			it.fallBack(was.object)
		}
	}
}

// overtake takes the same from what came after that list and before this one.
// Nothing is kept of what the consumer cannot have, which has says.
func (s *staging[T]) overtake(before *line[pending[T]], has func(Key) bool) {
	for k, p := range before.all {
		if _, ok := s.finals[k]; !ok && p.hasGone && p.exact && has(k) {
			s.final(k, p.gone)
		}
		if it := s.items.find(k); it != nil && p.typ != 0 {
			it.fallBack(p.live)
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

// compare returns what the list changes for a consumer who has known.
func (s *staging[T]) compare(known Reader[T]) (changes line[pending[T]]) {
	had := 0
	for k, it := range s.items.all {
		was, ok := known.Get(k)
		if ok {
			had++
		}
		switch {
		case !it.usable && ok && !sameUID(it.uid, was.GetUID()):
			s.lose(&changes, k)
		case !it.usable, ok && unchanged(was, it.object):
		default:
			if ok && !sameUID(was.GetUID(), it.object.GetUID()) {
				s.lose(&changes, k)
			}
			changes.enter(k).put(it.object, Replaced)
		}
	}
	if had == known.Len() {
		return changes
	}
	for obj := range known.All() {
		if k := KeyOf(obj); !s.items.has(k) {
			s.lose(&changes, k)
		}
	}
	return changes
}

// lose enters the deletion of what the consumer has under k.
func (s *staging[T]) lose(changes *line[pending[T]], k Key) {
	last, exact := s.finals[k]
	p := changes.enter(k)
	p.remove(last, exact)
	p.listed = true
}
