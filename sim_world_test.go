package informer_test

import (
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-99a027e8/informer/informertest"
)

// simKeys is how many objects a simulated server may have at a time.
const simKeys = 12

// simObject is the state of one object on the server.
type simObject struct {
	uid     int // 0: it does not exist
	version int
	bad     bool // nobody can decode it
	hidden  bool // it is outside of the selector
}

// seen reports that the object is there, as seen through the source.
func (o simObject) seen() bool { return o.uid != 0 && !o.hidden }

// simState is the whole server at one version. It is never changed.
type simState struct {
	at      time.Duration // since the start
	version int
	key     int    // of the write that led here
	how     byte   // what a watch tells of it: '+', '~', '-', or 0 for nothing
	was     string // for a deletion, the last state as a script writes it
	objects [simKeys]simObject
}

// simOp is what a write does. One that makes no sense does something near.
type simOp uint8

const (
	simNothing simOp = iota // shrinks a history
	simWrite                // creates, changes or repairs
	simDelete
	simRecreate // deletes, and creates another of the same name
	simBreak    // writes what nobody can decode
	simHide     // leaves the selector
	simShow     // enters it
)

// simStep is one write of the plan.
type simStep struct {
	op  simOp
	key int
	gap time.Duration // since the one before
}

// simEpoch is the life of an etcd between two restores. Its states have the
// versions base, base+1 and so on.
type simEpoch struct {
	base      int
	states    []simState
	compacted int // watches and pages from before are answered 410
}

func (e *simEpoch) last() *simState { return &e.states[len(e.states)-1] }

// on returns the state at a time.
func (e *simEpoch) on(at time.Duration) *simState {
	i := sort.Search(len(e.states), func(i int) bool { return e.states[i].at > at })
	return &e.states[max(0, i-1)]
}

// simFirst is the version of the first epoch of a model. It is far above those
// of the backup that each restore goes back to, as if others had written much
// since: an etcd that is restored and then written past the version that a
// client has reached cannot be told from the old one (see promise 4).
const simFirst = 100_000_000

// simWorld is the history of a server. Writes are done as the time for them
// comes, which may be asked for in advance: what a watch is yet to be told
// stands in its line.
type simWorld struct {
	start time.Time

	mu     sync.Mutex // guards the fields below
	steps  []simStep  // that are left
	done   time.Duration
	uids   int
	epochs []*simEpoch
	repair struct { // a write that is due beside the plan
		key int
		at  time.Duration
	}

	// mirror does the same write to a server that is more than a model; nil:
	// there is none.
	mirror func(key int, was, obj simObject)
}

func newSimWorld(steps []simStep) *simWorld { return &simWorld{start: time.Now(), steps: steps} }

// beginLocked begins the first epoch, with objects of these versions.
func (w *simWorld) beginLocked(base int, versions []int) {
	first := simState{version: base}
	for i, version := range versions {
		w.uids++
		first.objects[i] = simObject{uid: w.uids, version: version}
	}
	w.epochs = []*simEpoch{{base: base, states: []simState{first}, compacted: base}}
}

func (w *simWorld) nowLocked() *simEpoch { return w.epochs[len(w.epochs)-1] }

// advanceLocked does what is due up to a time.
func (w *simWorld) advanceLocked(to time.Duration) {
	for len(w.steps) > 0 && w.done+w.steps[0].gap <= to {
		s := w.steps[0]
		w.repairLocked(w.done + s.gap)
		w.steps, w.done = w.steps[1:], w.done+s.gap
		w.writeLocked(s.op, s.key, w.done)
	}
	w.repairLocked(to)
}

func (w *simWorld) repairLocked(to time.Duration) {
	if r := w.repair; r.at > 0 && r.at <= to {
		w.repair.at = 0
		w.writeLocked(simWrite, r.key, r.at)
	}
}

// restoreLocked goes back to the first state of all, and to a version.
func (w *simWorld) restoreLocked(at time.Duration, base int) {
	w.epochs = append(w.epochs, &simEpoch{base: base, compacted: base, states: []simState{
		{at: at, version: base, objects: w.epochs[0].states[0].objects},
	}})
}

// writeLocked does one write.
func (w *simWorld) writeLocked(op simOp, key int, at time.Duration) {
	obj := w.nowLocked().last().objects[key]
	switch exists := obj.uid != 0; {
	case op == simNothing:
	case !exists:
		w.uids++
		w.putLocked(key, at, simObject{uid: w.uids, bad: op == simBreak})
	case op == simDelete, op == simRecreate:
		w.putLocked(key, at, simObject{})
		if op == simRecreate {
			w.uids++
			w.putLocked(key, at, simObject{uid: w.uids})
		}
	case op == simBreak && obj.seen():
		w.putLocked(key, at, simObject{uid: obj.uid, bad: true})
	default:
		hidden := op == simHide || op != simShow && obj.hidden
		w.putLocked(key, at, simObject{uid: obj.uid, hidden: hidden})
	}
}

// putLocked adds the next state.
func (w *simWorld) putLocked(key int, at time.Duration, obj simObject) {
	e := w.nowLocked()
	next := *e.last()
	was := next.objects[key]
	next.at, next.version = at, next.version+1
	next.key, next.how, next.was = key, 0, ""
	if obj.uid != 0 {
		obj.version = next.version
	}
	next.objects[key] = obj
	switch {
	case was.seen() && obj.seen():
		next.how = '~'
	case obj.seen():
		next.how = '+'
	case was.seen():
		next.how = '-'
		next.was = string(simDeletion(nil, key, was, next.version))
	}
	if w.mirror != nil {
		w.mirror(key, was, obj)
	}
	e.states = append(e.states, next)
}

// at returns the state of a version, its epoch and its place in that.
func (w *simWorld) at(version int) (s *simState, epoch, i int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, e := range w.epochs {
		if i := version - e.base; i >= 0 && i < len(e.states) {
			return &e.states[i], n, i, true
		}
	}
	return nil, 0, 0, false
}

// wasRestored reports that old states have come back.
func (w *simWorld) wasRestored() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.epochs) > 1
}

// had reports whether an object had a good state after one place in an epoch
// and up to another, and whether it was gone meanwhile.
func (w *simWorld) had(epoch, from, to, key int, state simObject) (had, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := from; i <= to; i++ {
		obj := w.epochs[epoch].states[i].objects[key]
		had = had || obj == state
		gone = gone || !obj.seen()
	}
	return had, gone
}

// present returns the state of this moment.
func (w *simWorld) present() simState {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Since(w.start)
	w.advanceLocked(now)
	return *w.nowLocked().on(now)
}

// simName is how a script writes the key of an object, without a UID.
func simName(text []byte, key int) []byte {
	return append(text, "xy"[key%2], '/', byte('a'+key))
}

// simValue is the value of an object: its UID and the version at which it was
// written, so that its state can be told from the value alone.
func simValue(text []byte, obj simObject) []byte {
	text = append(strconv.AppendInt(text, int64(obj.uid), 10), '.')
	return strconv.AppendInt(text, int64(obj.version), 10)
}

// simObjectText is how a script writes the state of an object.
func simObjectText(text []byte, key int, obj simObject) []byte {
	if obj.bad {
		text = append(text, '!')
	}
	return simVersioned(text, key, obj, obj.version)
}

func simVersioned(text []byte, key int, obj simObject, version int) []byte {
	text = append(simName(text, key), '#')
	text = strconv.AppendInt(text, int64(obj.uid), 10)
	text = append(simValue(append(text, '='), obj), '@')
	return strconv.AppendInt(text, int64(version), 10)
}

// simDeletion is how a script writes a deletion, at a version: with the last
// state, if anybody can decode it.
func simDeletion(text []byte, key int, was simObject, version int) []byte {
	text = append(text, '-')
	if was.bad {
		text = append(text, '-')
	}
	return simVersioned(text, key, was, version)
}

// event is how a script writes what a watch tells of the state.
func (s *simState) event(text []byte) []byte {
	if s.how == '-' {
		return append(text, s.was...)
	}
	if obj := s.objects[s.key]; !obj.bad {
		text = append(text, s.how)
	}
	return simObjectText(text, s.key, s.objects[s.key])
}

// simKeyOf is the opposite of simName.
func simKeyOf(obj *informertest.Object) int { return int(obj.Name[0] - 'a') }

// simStateOf returns what is known of an object from a cache.
func simStateOf(obj *informertest.Object) simObject {
	first, second, _ := strings.Cut(obj.Value, ".")
	uid, _ := strconv.Atoi(first)
	version, _ := strconv.Atoi(second)
	return simObject{uid: uid, version: version}
}
