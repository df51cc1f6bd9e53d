package informer_test

import (
	"strconv"
	"time"

	"github.com/seed-99a027e8/informer"
)

// simOracle checks every state that an informer publishes. A state is that of
// the server at its version, but for objects that nobody can decode: these are
// there in their last good state, or not. It belongs to the goroutine that
// publishes.
type simOracle struct {
	sim *simulation

	states   int
	epoch    int // of the world
	i        int // the place in it
	restarts int // that the informer has noticed
	holds    [simKeys]simObj
}

// published checks the next state.
func (o *simOracle) published(p informer.Published[simObj]) {
	var holds [simKeys]simObj
	for obj := range p.All {
		holds[simKeyOf(obj)] = obj
	}
	if !p.Listed {
		o.sim.fail("a state at %q before the first list: %v", p.Version, holds)
		return
	}
	version, err := strconv.Atoi(p.Version)
	state, epoch, i, ok := o.sim.world.at(version)
	if err != nil || !ok || state.at > time.Since(o.sim.world.start) {
		o.sim.fail("a state at %q, which the server never had", p.Version)
		return
	}
	defer func() { o.holds, o.epoch, o.i, o.restarts = holds, epoch, i, p.Epoch }()
	o.states++
	if o.states > 1 {
		o.checkOrder(p, epoch, i)
	}
	for key := range simKeys {
		if !o.right(key, holds[key], state, epoch, i) {
			o.sim.fail("the state at %q has %v, the server %+v; before, at %d, it was %v",
				p.Version, holds[key], state.objects[key], o.i, o.holds[key])
		}
	}
	if epoch == o.epoch && i == o.i && o.states > 1 && !simSame(holds, o.holds) {
		o.sim.fail("there are two states at %q: %v and %v", p.Version, o.holds, holds)
	}
}

// simSame reports that two states of one version hold the same objects: what
// has not changed is not stored again (promise 7), unless nobody can tell that.
func simSame(a, b [simKeys]simObj) bool {
	for key := range a {
		x, y := a[key], b[key]
		if x != y && (x == nil || y == nil || x.Value != y.Value || x.Version == y.Version && x.Version != "") {
			return false
		}
	}
	return true
}

// checkOrder checks that the state is a later one, and that an informer knows
// when the server has gone back.
func (o *simOracle) checkOrder(p informer.Published[simObj], epoch, i int) {
	restarts := o.restarts
	if epoch != o.epoch {
		restarts++
	}
	if p.Epoch != restarts || epoch < o.epoch || epoch == o.epoch && i < o.i {
		o.sim.fail("the state at %q, number %d of epoch %d, follows %d of %d; restores noticed %d, then %d",
			p.Version, i, epoch, o.i, o.epoch, o.restarts, p.Epoch)
	}
}

// right reports whether what the cache has under a key is right for a state.
func (o *simOracle) right(key int, got simObj, state *simState, epoch, i int) bool {
	want := state.objects[key]
	switch {
	case !want.seen():
		return got == nil
	case !want.bad:
		return got != nil && simStateOf(got) == simObject{uid: want.uid, version: want.version}
	}
	was, from := o.holds[key], 0
	if epoch == o.epoch {
		from = o.i
	}
	same := was != nil && simStateOf(was).uid == want.uid
	if got != nil && same && *got == *was {
		return true
	}
	var told simObject
	if got != nil {
		told = simStateOf(got)
	}
	good, gone := o.sim.world.had(epoch, from, i, key, told)
	if got == nil {
		return !same || gone
	}
	return good && told.uid == want.uid
}

// before reports that an object is in an earlier state than another, as far as
// one can tell by their versions.
func (w *simWorld) before(a, b simObj) bool {
	x, _ := strconv.Atoi(a.Version)
	y, _ := strconv.Atoi(b.Version)
	_, e, i, ok := w.at(x)
	_, f, j, also := w.at(y)
	return ok && also && e == f && i < j
}
