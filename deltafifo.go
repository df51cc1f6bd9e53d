package informer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
)

// A DeltaFIFO is a queue between one who tells what happens to objects and one
// who keeps a store of them. It holds what the consumer has not taken,
// coalesced to at most two deltas a key: however far the consumer is behind,
// the queue has at most one entry for each object that exists, or that the
// consumer has.
//
// The producer calls Apply with the events of a [Reflector], or the methods
// Add, Update, Delete, Replace and Resync. The consumer calls PopAll, which
// hands over everything as one batch, or Pop, which hands over one key.
//
// What a delta says depends on what the consumer has, which is what known, its
// store, says when the consumer takes:
//
//	pending \ arrives         add, update      other UID         delete            sync
//	nothing                   Added, Updated   Deleted, Added    Deleted, if had   Sync
//	Added, not had            Added            Added             nothing           –
//	Updated, Replaced, Sync   latest           Deleted, Added    Deleted           –
//	Deleted                   Updated          Deleted, Added    –                 –
//	Deleted, Added            Deleted, Added   Deleted, Added    Deleted           –
//
// A state that came from a list is Replaced, whether the object is new or not.
// A state of the same UID and version as the known one makes no delta. A bad
// object (EventBad) makes none either, but one of another UID deletes what was
// there under its key.
//
// Producer methods may be called from several goroutines, but a list, from
// EventBegin to EventEnd, must come from one. There is one consumer: Pop and
// PopAll return an error while the other, or another call, is at work. The
// consumer's function must bring known up to date before it returns; it may
// call the methods of the producer. NewDeltaFIFO makes a DeltaFIFO; the zero
// value is not usable.
type DeltaFIFO[T Object] struct {
	known    Reader[T]
	hasStore bool
	seed     maphash.Seed // of the hashes of keys; the store's, if there is one

	mu sync.Mutex // guards the fields below

	queue   *load[T]    // what came since list, or since the last batch
	list    *staging[T] // a complete list that came before queue, or nil
	listing *staging[T] // the list that is coming, or nil
	version version     // of the last event
	news    bool        // version is not taken
	rewound bool        // version went backwards, and that is not taken
	resync  bool        // Resync was called, and not taken
	closed  bool

	// The consumer's function may not have stored these yet. Between calls of
	// the function there are none.
	flight     *load[T]
	flightList *staging[T]
	taking     bool // Pop or PopAll is at work

	// batch is what is handed over. It is for who has set taking.
	batch []Deltas[T]

	spare spare[pending[T]] // of queue and flight

	// wake has one slot, so that filling it never blocks. Invariant: whoever
	// makes work for a consumer that is waiting fills it.
	wake    chan struct{}
	waiting bool // for wake
}

// partSize is how many deltas the store is given at a time.
const partSize = 128

// batchKept is for how many deltas memory is kept between batches.
const batchKept = 2048

// NewDeltaFIFO returns an empty queue. What the consumer has is read from
// known, a live Reader of its store. With a zero Reader nothing is known of the
// consumer: each deletion is told, a deletion and an addition are two deltas
// even of one UID, and a list deletes only what was pending.
func NewDeltaFIFO[T Object](known Reader[T]) *DeltaFIFO[T] {
	f := &DeltaFIFO[T]{
		known:    known,
		hasStore: known != Reader[T]{},
		wake:     make(chan struct{}, 1),
	}
	f.queue, f.flight = f.newLoad(), f.newLoad()
	if f.hasStore {
		f.seed = known.x.seed
	} else {
		f.seed = maphash.MakeSeed()
	}
	return f
}

// Apply takes the next event of a stream:
//
//	{ Begin { Added | Modified | Deleted | Bad } [ End { Added | Modified | Deleted | Bad | Bookmark } ] }
//
// A list counts when EventEnd has come; a new EventBegin drops what came of the
// one before. Inside a list a second EventAdded of one key is refused with an
// *[ObjectError], while EventModified replaces what came before. Outside, events
// are taken in the order in which they come, whatever their versions.
//
// Apply returns an error also for an event without a name, for one that does
// not fit the grammar, and [ErrStopped] after Close.
func (f *DeltaFIFO[T]) Apply(ev Event[T]) error { return f.apply(&ev) }

// apply is Apply, for who has an event to point to. It does not keep ev.
func (f *DeltaFIFO[T]) apply(ev *Event[T]) error {
	var h uint32
	if ev.Type >= EventAdded && ev.Type <= EventBad {
		if ev.Key.Name == "" {
			return &ObjectError{Key: ev.Key, Err: errNoName}
		}
		h = hashKey(f.seed, ev.Key)
	}
	version := versionOf(ev.Version)
	f.mu.Lock()
	defer f.unlockAndWake()
	if f.closed {
		return fmt.Errorf("informer: DeltaFIFO: %w", ErrStopped)
	}
	switch ev.Type {
	case EventBegin:
		f.listing = &staging[T]{}
		return nil
	case EventEnd:
		return f.endListLocked(version)
	case EventAdded, EventModified, EventDeleted, EventBad, EventBookmark:
		if f.listing != nil {
			return f.stageLocked(h, ev)
		}
		f.changeLocked(h, ev, version)
		return nil
	default:
		return fmt.Errorf("informer: DeltaFIFO: cannot apply an event of type %v", ev.Type)
	}
}

// Add says that obj is there, and was not before. It returns an error as Apply
// does.
func (f *DeltaFIFO[T]) Add(obj T) error { return f.Apply(EventOf(EventAdded, obj)) }

// Update says that obj has this state now. It returns an error as Apply does.
func (f *DeltaFIFO[T]) Update(obj T) error { return f.Apply(EventOf(EventModified, obj)) }

// Delete says that the object is gone, and that last was its final state. It
// returns an error as Apply does.
func (f *DeltaFIFO[T]) Delete(last T) error { return f.Apply(EventOf(EventDeleted, last)) }

// Replace says that objs is all there is, and that version is the resource
// version of that state. Objects that cannot be used are left out, and it
// returns their errors, joined.
func (f *DeltaFIFO[T]) Replace(objs []T, version string) error {
	var errs []error
	apply := func(ev Event[T]) {
		if err := f.apply(&ev); err != nil {
			errs = append(errs, err)
		}
	}
	apply(Event[T]{Type: EventBegin})
	f.lookAhead()
	for _, obj := range objs {
		apply(EventOf(EventAdded, obj))
	}
	apply(Event[T]{Type: EventEnd, Version: version})
	return errors.Join(errs...)
}

// lookAhead says that the items of the list are all in memory.
func (f *DeltaFIFO[T]) lookAhead() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listing != nil { // it is, unless the queue is closed
		f.listing.ahead = lookAhead - 1
	}
}

// Resync tells every object that the consumer has, and of which nothing is
// pending, once more. Where nothing is known of the consumer, and after Close,
// it does nothing.
func (f *DeltaFIFO[T]) Resync() {
	f.mu.Lock()
	defer f.unlockAndWake()
	f.resync = f.resync || !f.closed
}

// Close ends the queue. The consumer gets what is pending, then [ErrStopped].
// Close may be called more than once.
func (f *DeltaFIFO[T]) Close() {
	f.mu.Lock()
	defer f.unlockAndWake()
	f.closed = true
}

// Len returns the number of keys that are pending. The items of a list count
// until it is taken, also those that change nothing.
func (f *DeltaFIFO[T]) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.queue.len()
	if f.list != nil {
		n += f.list.items.len()
	}
	return n
}

// PopAll waits until something is pending, takes all of it and calls apply with
// it, outside of any lock. A batch takes the consumer from one state of the
// server to a later one; it may have no deltas, but only a new version. It is
// valid until apply returns, which counts as having stored it, whatever it
// returns.
//
// PopAll returns the error of apply, [ErrStopped] if the queue is closed and
// empty, or the cause of ctx.
func (f *DeltaFIFO[T]) PopAll(ctx context.Context, apply func(Batch[T]) error) error {
	b, resync, err := f.take(ctx)
	if err != nil {
		return err
	}
	defer f.landed()
	if f.flightList == nil && !resync {
		f.batch = slices.Grow(f.batch, f.flight.len())
		for p := range f.flight.all {
			f.batch = f.deltas(p).appendTo(f.batch)
		}
	} else {
		if f.flightList != nil {
			f.batch = slices.Grow(f.batch, f.flightList.changed())
		}
		for p := range f.settled(f.flightList, f.flight, resync) {
			f.batch = f.deltas(p).appendTo(f.batch)
		}
	}
	b.Deltas = f.batch
	return apply(b)
}

// popParts is PopAll for the store that known reads, which finds out by itself
// what it has: it is given at least what is pending. A few deltas are in the
// batch, with parts nil. Many come in parts, each of them valid until the next.
func (f *DeltaFIFO[T]) popParts(ctx context.Context, apply func(b Batch[T], parts iter.Seq[[]Deltas[T]])) error {
	b, resync, err := f.take(ctx)
	if err != nil {
		return err
	}
	defer f.landed()
	switch {
	case f.flightList != nil || resync:
		apply(b, f.inParts(f.settled(f.flightList, f.flight, resync)))
	case f.flight.len() > partSize:
		apply(b, f.inParts(f.flight.all))
	default:
		for p := range f.flight.all {
			f.batch = append(f.batch, f.told(p))
		}
		b.Deltas = f.batch
		apply(b, nil)
	}
	return nil
}

func (f *DeltaFIFO[T]) inParts(all iter.Seq[*place[pending[T]]]) iter.Seq[[]Deltas[T]] {
	return func(yield func([]Deltas[T]) bool) {
		for p := range all {
			if len(f.batch) == partSize {
				if !yield(f.batch) {
					return
				}
				clear(f.batch)
				f.batch = f.batch[:0]
			}
			f.batch = append(f.batch, f.told(p))
		}
		if len(f.batch) > 0 {
			yield(f.batch)
		}
	}
}

// take waits until something is pending, and takes all of it: flightList and
// flight. It returns a batch without deltas, and whether a resync is due.
func (f *DeltaFIFO[T]) take(ctx context.Context) (b Batch[T], resync bool, err error) {
	if err := f.awaitWork(ctx); err != nil {
		return b, false, err
	}
	defer f.mu.Unlock()
	b = Batch[T]{Version: f.version.text, Replaced: f.list != nil, Rewound: f.rewound}
	resync = f.resync
	f.flight, f.queue = f.queue, f.flight
	f.flightList, f.list = f.list, nil
	f.news, f.rewound, f.resync = false, false, false
	return b, resync, nil
}

// Pop waits until something is pending, takes the key that has waited longest,
// and calls process with its deltas, outside of any lock. Having returned
// counts as having stored them. The deltas of one key come in order; but since
// keys are taken one at a time, and each with its latest state, the states that
// the consumer passes through need not be ones that the server had. PopAll
// gives that.
//
// Pop returns errors as PopAll does.
func (f *DeltaFIFO[T]) Pop(ctx context.Context, process func(Deltas[T]) error) error {
	for {
		d, err := f.takeOne(ctx)
		if err != nil {
			return err
		}
		if d.first.Type != 0 {
			defer f.landed()
			return process(d)
		}
		f.landed()
	}
}

// takeOne takes the oldest key. Its deltas may have come to nothing.
func (f *DeltaFIFO[T]) takeOne(ctx context.Context) (Deltas[T], error) {
	if err := f.awaitWork(ctx); err != nil {
		return Deltas[T]{}, err
	}
	defer f.mu.Unlock()
	if f.list != nil || f.resync {
		queue := f.newLoad()
		for p := range f.settled(f.list, f.queue, f.resync) {
			p.entry.settled = false // more may come before it is taken
			*queue.enter(p.hash, p.key) = p.entry
		}
		f.queue, f.list, f.resync = queue, nil, false
	}
	f.news = false
	p := f.queue.first()
	if p == nil {
		return Deltas[T]{}, nil
	}
	*f.flight.enter(p.hash, p.key) = p.entry
	f.queue.leave(p.hash, p.key)
	return f.deltas(f.flight.first()), nil
}

// awaitWork waits until there is something to take. On success the caller is
// the consumer, and holds mu.
func (f *DeltaFIFO[T]) awaitWork(ctx context.Context) error {
	f.mu.Lock()
	if f.taking {
		f.mu.Unlock()
		return errors.New("informer: DeltaFIFO: a Pop is in progress already")
	}
	f.taking = true
	for {
		switch {
		case ctx.Err() != nil:
			f.taking = false
			f.mu.Unlock()
			return context.Cause(ctx)
		case f.workLocked():
			return nil
		case f.closed:
			f.taking = false
			f.mu.Unlock()
			return fmt.Errorf("informer: DeltaFIFO: %w", ErrStopped)
		}
		f.waiting = true
		f.mu.Unlock()
		select {
		case <-f.wake:
		case <-ctx.Done():
		}
		f.mu.Lock()
		f.waiting = false
	}
}

// workLocked reports whether there is something to take: while a list is coming,
// nothing of it. The caller holds mu.
func (f *DeltaFIFO[T]) workLocked() bool {
	return f.queue.len() > 0 || f.list != nil || f.news || f.resync
}

// landed says that the consumer has stored what it was given.
func (f *DeltaFIFO[T]) landed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flight.reset()
	f.flightList = nil
	if cap(f.batch) > batchKept {
		f.batch = nil
	}
	clear(f.batch)
	f.batch = f.batch[:0]
	f.taking = false
}

// deltas returns what is pending, for a consumer of whom that is known which
// known knows.
func (f *DeltaFIFO[T]) deltas(p *place[pending[T]]) Deltas[T] {
	if !f.hasStore || p.entry.settled {
		return p.entry.alone(p.key)
	}
	old, has := f.known.peek(p.hash, p.key)
	return p.entry.over(p.key, old, has)
}

// told returns what is pending, for the store itself.
func (f *DeltaFIFO[T]) told(p *place[pending[T]]) (d Deltas[T]) {
	if p.entry.bad != "" {
		d = f.deltas(p)
	} else {
		d = p.entry.alone(p.key)
	}
	d.hash = p.hash
	return d
}

// stageLocked takes an event inside a list. The caller holds mu.
func (f *DeltaFIFO[T]) stageLocked(h uint32, ev *Event[T]) error {
	switch ev.Type {
	case EventBookmark:
		return errors.New("informer: DeltaFIFO: a bookmark inside a list")
	case EventDeleted:
		// Nothing is kept of what the consumer cannot get, or a list in which
		// names come and go would grow with time.
		useful := f.queue.has(h, ev.Key) || f.mayHaveLocked(h, ev.Key)
		f.listing.remove(h, ev, useful)
		return nil
	default:
		return f.listing.put(h, ev, f.known)
	}
}

// endListLocked makes the list that is coming the one to be taken next. What
// was pending is overtaken by it. The caller holds mu.
func (f *DeltaFIFO[T]) endListLocked(to version) error {
	list := f.listing
	if list == nil {
		return errors.New("informer: DeltaFIFO: the end of a list that has not begun")
	}
	list.lookUp()
	if f.list != nil {
		list.inherit(f.list)
	}
	list.overtake(&f.queue.line, f.mayHaveLocked)
	rest := f.newLoad()
	if !f.hasStore {
		rest = f.overtakenLocked(list)
	}
	f.list, f.listing, f.queue = list, nil, rest
	f.rewound = f.rewound || to.isOlder(f.version)
	f.version, f.news = to, true
	return nil
}

// overtakenLocked returns the deletions, for a consumer of whom nothing is
// known, of what is pending and not in the list, or there as another object;
// and with them what the list has under that key, which leaves the list. The
// caller holds mu.
func (f *DeltaFIFO[T]) overtakenLocked(list *staging[T]) *load[T] {
	gone := f.newLoad()
	for p := range f.queue.all {
		e := &p.entry
		if it := list.items.find(p.hash, p.key); it != nil && it.usable {
			e.put(it.object, Replaced)
			e.typ = Replaced
		} else {
			e.remove(e.live, false)
		}
		if e.listed = true; !e.hasGone {
			continue
		}
		*gone.enter(p.hash, p.key) = *e
		if list.items.has(p.hash, p.key) {
			list.items.leave(p.hash, p.key)
		}
	}
	return gone
}

// changeLocked takes an event outside of lists. The caller holds mu.
func (f *DeltaFIFO[T]) changeLocked(h uint32, ev *Event[T], to version) {
	switch ev.Type {
	case EventAdded:
		f.queue.enter(h, ev.Key).put(ev.Object, Added)
	case EventModified:
		f.queue.enter(h, ev.Key).put(ev.Object, Updated)
	case EventDeleted:
		f.removeLocked(h, ev)
	case EventBad:
		f.turnBadLocked(h, ev)
	}
	f.version, _ = f.version.advance(to)
	f.news = true
}

// removeLocked takes a deletion. Of an object that the consumer cannot have
// nothing is left to tell; else a queue whose consumer sleeps would grow with
// every name that comes and goes. The caller holds mu.
func (f *DeltaFIFO[T]) removeLocked(h uint32, ev *Event[T]) {
	if !f.mayHaveLocked(h, ev.Key) {
		if f.queue.has(h, ev.Key) {
			f.queue.leave(h, ev.Key)
		}
		return
	}
	f.queue.enter(h, ev.Key).remove(ev.Object, ev.Exact)
}

// turnBadLocked takes a bad state of an object. It matters only if it is another
// object than the consumer has, or was to get. The caller holds mu.
func (f *DeltaFIFO[T]) turnBadLocked(h uint32, ev *Event[T]) {
	p := f.queue.find(h, ev.Key)
	switch has := f.mayHaveLocked(h, ev.Key); {
	case ev.UID == "": // it may be any
	case p == nil && has && f.hasStore:
		f.queue.enter(h, ev.Key).turnBad(ev.UID)
	case p == nil:
	case !has && p.typ != 0 && !sameUID(p.live.GetUID(), ev.UID):
		f.queue.leave(h, ev.Key)
	default:
		p.turnBad(ev.UID)
	}
}

// mayHaveLocked reports whether the consumer has an object under k, or may
// get one from what it was given or from a list. The caller holds mu.
func (f *DeltaFIFO[T]) mayHaveLocked(h uint32, k Key) bool {
	if !f.hasStore || f.flight.has(h, k) || f.list != nil && f.list.items.has(h, k) ||
		f.flightList != nil && f.flightList.items.has(h, k) {
		return true
	}
	_, ok := f.known.peek(h, k)
	return ok
}

// unlockAndWake ends a change of the queue, which the caller has locked.
func (f *DeltaFIFO[T]) unlockAndWake() {
	if f.waiting && (f.workLocked() || f.closed) {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	f.mu.Unlock()
}
