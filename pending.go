package informer

import "k8s.io/apimachinery/pkg/types"

// pending is what a [DeltaFIFO] holds of one key: the last state that came,
// and the first deletion before it. What it means is settled when the consumer
// takes it, for only then it is certain what the consumer has.
type pending[T Object] struct {
	live T // the state that came last
	gone T // the final state, if exact

	// bad is the UID of an object that is there now but cannot be used. Of that
	// object the consumer keeps what it has, and drops any other. It is empty if
	// live or gone says what there is.
	bad types.UID

	typ     DeltaType // of live; zero if there is none
	hasGone bool      // a deletion came, before live
	exact   bool      // gone is the final state of the object
	listed  bool      // a list said the last word
	told    bool      // what came before it in a list told this, too
	settled bool      // it was compared with what the consumer has, and nothing came since
}

// put says that obj is there now.
func (p *pending[T]) put(obj T, typ DeltaType) {
	switch {
	case p.typ == 0 && p.hasGone && typ != Replaced:
		typ = Added
	case p.typ == 0:
	case !sameUID(p.live.GetUID(), obj.GetUID()):
		// The deletion in between was not told. Who has the older object is
		// to hear of it; who never heard of it needs no deletion.
		if !p.hasGone && p.typ != Added {
			p.gone, p.hasGone = p.live, true
		}
		typ = Added
	case p.typ == Added || typ == Sync:
		typ = p.typ
	}
	p.live, p.typ, p.listed, p.bad = obj, typ, typ == Replaced, ""
}

// turnBad says that what is there now is the object of that UID, which is known,
// in a state that cannot be used. Where another one was, that is gone, and its
// end was not told.
func (p *pending[T]) turnBad(uid types.UID) {
	switch {
	case p.typ == 0 && !p.hasGone:
		p.bad, p.listed = uid, false
	case p.typ != 0 && !sameUID(p.live.GetUID(), uid):
		var none T
		p.remove(none, false)
	}
}

// remove says that the object is gone; last is its final state, if exact.
func (p *pending[T]) remove(last T, exact bool) {
	if !p.hasGone {
		p.hasGone, p.exact, p.gone = true, exact, last
		if !exact && p.typ != 0 {
			p.gone = p.live
		}
	}
	var zero T
	p.live, p.typ, p.listed, p.bad = zero, 0, false, ""
}

// follow says what came later, which is what p holds of the same key.
func (p *pending[T]) follow(later *pending[T]) {
	p.settled = false
	if later.hasGone {
		p.remove(later.gone, later.exact)
	}
	if later.typ != 0 {
		p.put(later.live, later.typ)
	}
	if later.bad != "" {
		p.turnBad(later.bad) // which may change nothing
	} else {
		p.listed = later.listed
	}
}

// again says that who has old is to be told of it once more, if nothing else is
// pending.
func (p *pending[T]) again(old T, has bool) {
	if has && p.spares(old) {
		p.put(old, Sync)
	}
}

// isNothing reports that there is nothing to tell.
func (p *pending[T]) isNothing() bool { return p.typ == 0 && !p.hasGone && p.bad == "" }

// alone returns the deltas for a consumer of whom nothing is known.
func (p *pending[T]) alone(k Key) Deltas[T] {
	d := Deltas[T]{Key: k, Listed: p.listed}
	if p.hasGone {
		d.add(Delta[T]{Type: Deleted, Object: p.gone, Exact: p.exact})
	}
	if p.typ != 0 {
		d.add(Delta[T]{Type: p.typ, Object: p.live})
	}
	return d
}

// over returns the deltas for a consumer who has old, or nothing if !has. No
// deltas are left if that is where the key is already.
func (p *pending[T]) over(k Key, old T, has bool) Deltas[T] {
	d := Deltas[T]{Key: k, Listed: p.listed}
	switch {
	case !has && p.typ != 0 && p.typ != Sync:
		d.add(Delta[T]{Type: orReplaced(Added, p.typ), Object: p.live})
	case !has:
	case p.spares(old):
	case p.typ == 0:
		d.add(p.deletionOf(old))
	case !sameUID(old.GetUID(), p.live.GetUID()):
		d.add(p.deletionOf(old))
		d.add(Delta[T]{Type: orReplaced(Added, p.typ), Object: p.live})
	case p.typ == Sync:
		d.add(Delta[T]{Type: Sync, Object: p.live})
	case !unchanged(old, p.live):
		d.add(Delta[T]{Type: orReplaced(Updated, p.typ), Object: p.live})
	}
	return d
}

// spares reports that nothing is pending for a consumer who has old: at most it
// has turned bad.
func (p *pending[T]) spares(old T) bool {
	return p.typ == 0 && !p.hasGone && sameUID(old.GetUID(), p.bad)
}

// orReplaced is typ, unless a list brought the object.
func orReplaced(typ, came DeltaType) DeltaType {
	if came == Replaced {
		return Replaced
	}
	return typ
}

// deletionOf returns the deletion of old, with the final state if it came.
func (p *pending[T]) deletionOf(old T) Delta[T] {
	if p.hasGone && p.exact && isFinalOf(p.gone, old.GetUID(), old.GetResourceVersion()) {
		return Delta[T]{Type: Deleted, Object: p.gone, Exact: true}
	}
	return Delta[T]{Type: Deleted, Object: old}
}

// isFinalOf reports that last may be the final state of the object that had
// uid and was seen at version.
func isFinalOf[T Object](last T, uid types.UID, version string) bool {
	return sameUID(last.GetUID(), uid) && !older(last.GetResourceVersion(), version)
}
