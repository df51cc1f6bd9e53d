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
	// fresh is the place of the first item that was not looked up in base yet:
	// up to ahead of them wait for one more. Invariant: behind it there are no
	// holes.
	fresh int
	ahead int
	// bad holds the UIDs of items of which the list has no state that can be
	// used.
	bad map[Key]types.UID
}

// lookAhead is how many items are looked up together, so that their loads from
// memory do not wait for each other, if all of them are in memory anyway. Of
// others that come one by one, none is held that the consumer has.
const lookAhead = 32

// item is an item of a list.
type item[T Object] struct {
	bad    bool // the list has no state of it that can be used
	usable bool // there is an object; of a bad item, from before the list
	found  bool // base has an object under the key
	same   bool // and it is this version of it
	other  bool // or it is one of another UID
	object T
}

// uidOf returns the UID of an item, under the key k.
func (s *staging[T]) uidOf(k Key, it *item[T]) types.UID {
	if it.usable {
		return it.object.GetUID()
	}
	return s.bad[k]
}

// meet compares an item with what there was under its key. It keeps that object
// where it is the same version, so that a relist of unchanged objects holds
// nothing twice.
func (s *staging[T]) meet(k Key, it *item[T], was T, found bool) {
	it.found = found
	it.same = found && it.usable && unchanged(was, it.object)
	it.other = found && !it.same && !sameUID(was.GetUID(), s.uidOf(k, it))
	if it.same {
		it.object = was
	}
}

// lookUp looks up the items that came last.
func (s *staging[T]) lookUp() {
	var was [lookAhead]T
	var found [lookAhead]bool
	from, to := s.fresh, s.items.end
	s.fresh = to
	for i := range to - from {
		p := s.items.place(from + i)
		was[i], found[i] = s.base.get(p.hash, p.key)
	}
	for i := range to - from {
		p := s.items.place(from + i)
		s.meet(p.key, &p.entry, was[i], found[i])
	}
}

// put stages an item, under the key of hash h. A second one is refused, unless
// it is a change.
func (s *staging[T]) put(h uint32, ev *Event[T], known Reader[T]) error {
	if !s.based {
		s.base, s.based = known.Snapshot(), true
	}
	it, isNew := s.items.enterNew(h, ev.Key)
	switch {
	case !isNew && ev.Type == EventAdded:
		return &ObjectError{Key: ev.Key, Err: errTwice}
	case ev.Type != EventBad:
		*it = item[T]{usable: true, object: ev.Object}
	case !it.usable || !sameUID(s.uidOf(ev.Key, it), ev.UID):
		*it = item[T]{bad: true}
		s.turnBad(ev.Key, ev.UID)
	}
	if !isNew {
		was, found := s.base.get(h, ev.Key)
		s.meet(ev.Key, it, was, found)
	} else if s.items.end > s.fresh+s.ahead {
		s.lookUp()
	}
	return nil
}

func (s *staging[T]) turnBad(k Key, uid types.UID) {
	if s.bad == nil {
		s.bad = make(map[Key]types.UID)
	}
	s.bad[k] = uid
}

// remove takes an item back: it was deleted while the list came. Its final state
// is kept if that is useful to somebody.
func (s *staging[T]) remove(h uint32, ev *Event[T], useful bool) {
	if s.items.has(h, ev.Key) {
		s.lookUp()
		s.items.leave(h, ev.Key)
		s.fresh = s.items.end
		delete(s.bad, ev.Key)
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
			s.fallBack(p.key, &p.entry, was.object)
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
			s.fallBack(p.key, it, p.entry.live)
		}
	}
}

// fallBack makes an earlier state do for one that is bad, if it is of the same
// object.
func (s *staging[T]) fallBack(k Key, it *item[T], earlier T) {
	if it.bad && sameUID(s.bad[k], earlier.GetUID()) {
		it.object, it.usable = earlier, true
	}
}

// changed returns how many items are not what base has.
func (s *staging[T]) changed() (n int) {
	for p := range s.items.all {
		if !p.entry.same {
			n++
		}
	}
	return n
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
	if !sameState || it.bad { // which may have got an earlier state
		was, found := known.get(p.hash, p.key)
		s.meet(p.key, it, was, found)
	}
	if it.other {
		s.lose(p)
	}
	if it.usable && !it.same {
		p.entry.put(it.object, Replaced)
		p.entry.settled = !it.other
	}
	return it.found
}

// lose enters the deletion of what the consumer has under the key of p.
func (s *staging[T]) lose(p *place[pending[T]]) {
	last, exact := s.finals[p.key]
	p.entry.remove(last, exact)
	p.entry.listed = true
}
