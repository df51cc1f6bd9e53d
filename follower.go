package informer

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// follower makes the calls of one handler, on a goroutine of its own, which
// follows the log of changes:
//
//	[ returned from | being called for | waiting in the log | published ]
//	                                   ▲ at                 ▲ end
//
// One that is too far behind leaves the log: at jumps to end, and what it
// passed is coalesced in the backlog, which the handler is told of next.
type follower[T Object] struct {
	opts   HandlerOptions
	handle Handler[T]
	report func(error) // told of panics, and of a handler that ends its goroutine
	forget func()      // told of the end
	fan    *fanOut[T]

	claimed atomic.Bool   // by start, or by a removal before it
	removed atomic.Bool   // no call starts any more
	synced  chan struct{} // closed when the initial calls have returned
	done    chan struct{} // closed when the last call has returned
	wake    chan struct{} // one slot, so that filling it never blocks

	// Of the goroutine; the first until it runs of join.

	joined Reader[T] // the state that the handler is told of first
	resync resync

	left  atomic.Int64 // calls that were taken, and have not returned
	since atomic.Int64 // when the first of those came, in the fan-out's time

	mu sync.Mutex // guards the fields below

	at      cursor[T]
	end     uint64
	backlog backlog[T]
	upTo    uint64 // where the calls that were taken last lead to

	listed   bool   // the cache is synced: initial changes are those before syncAt
	syncAt   uint64 // position in the log
	isSynced bool
}

func newFollower[T Object](fan *fanOut[T], handle Handler[T], opts HandlerOptions) *follower[T] {
	return &follower[T]{
		opts: opts, handle: handle, fan: fan,
		synced: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// start makes a goroutine run, unless the follower was removed before. The
// caller waits for done.
func (h *follower[T]) start() {
	if !h.claimed.Swap(true) {
		go h.run()
	}
}

// run makes calls until the follower is removed. First come the objects of the
// state that it joined at.
func (h *follower[T]) run() {
	defer h.finish() // also if the handler ends its goroutine
	h.resync.start(h.opts.Resync)
	defer h.resync.stop()
	initial := h.joined.All()
	h.joined = Reader[T]{} // or it would stay in memory
	for obj := range initial {
		if !h.call(Change[T]{Type: Added, Cause: CauseInitial, Key: KeyOf(obj), New: obj}) {
			return
		}
		h.left.Add(-1)
	}
	for !h.removed.Load() {
		h.mu.Lock()
		run, backlog := h.takeLocked()
		h.mu.Unlock()
		switch {
		case len(run) > 0:
			h.callRun(run)
		case backlog.len() > 0:
			h.callBacklog(backlog)
		default:
			h.idle()
		}
	}
}

// takeLocked notes that all calls for what was taken before have returned, and
// takes what is next: a piece of the log, or else the backlog. The caller holds
// mu.
func (h *follower[T]) takeLocked() (run []Change[T], missed backlog[T]) {
	if h.backlog.len() == 0 && h.at.pos == h.end {
		h.upTo = h.end
	}
	if h.listed && !h.isSynced && h.upTo >= h.syncAt {
		h.isSynced = true
		close(h.synced)
	}
	var since time.Duration
	if missed, h.backlog = h.backlog, missed; missed.len() == 0 && h.at.pos < h.end {
		run, since = h.at.read()
	} else {
		since, _ = missed.oldest()
	}
	h.upTo = h.at.pos
	h.since.Store(int64(since))
	h.left.Store(int64(len(run) + missed.len()))
	return run, missed
}

// callRun makes the calls for a piece of the log. One change alone may be a part
// of its segment, from which all later ones can be reached: they must not stay in
// memory while the handler is stuck, so it is called with a copy.
func (h *follower[T]) callRun(run []Change[T]) {
	if len(run) == 1 {
		one := [1]Change[T]{run[0]}
		h.calls(one[:], 1)
		return
	}
	for len(run) > 0 && !h.removed.Load() {
		run = run[h.calls(run, 1):]
	}
}

// callBacklog makes the calls for what was missed, and lets go of each entry.
func (h *follower[T]) callBacklog(rest backlog[T]) {
	for p := range rest.all {
		h.since.Store(int64(p.entry.since))
		if !p.entry.tell(p.key, h.call) {
			return
		}
		p.entry = missed[T]{}
		h.left.Add(-1)
	}
}

// idle waits for something to do.
func (h *follower[T]) idle() {
	select {
	case <-h.wake:
	case <-h.resync.due():
		h.callResync()
	}
}

// callResync tells the handler once more of the next objects of a state that it
// has reached.
func (h *follower[T]) callResync() {
	at, ok := h.fan.stateAt(h)
	if !ok { // something came meanwhile: it goes first
		h.resync.again()
		return
	}
	from, to := h.resync.advance(at.slots.n, at.layout)
	n := 0
	at.some(from, to, func(T) bool { n++; return true })
	h.mu.Lock()
	h.expectLocked(n)
	h.mu.Unlock()
	at.some(from, to, func(obj T) bool {
		more := h.call(Change[T]{Type: Updated, Cause: CauseResync, Key: KeyOf(obj), Old: obj, New: obj})
		h.left.Add(-1)
		return more
	})
}

// expectLocked notes that n calls are to be made that the log does not ask for.
// The caller holds mu.
func (h *follower[T]) expectLocked(n int) {
	h.left.Store(int64(n))
	h.since.Store(int64(h.fan.now()))
}

// call calls the handler, unless it is removed. It reports whether there may be
// more calls.
func (h *follower[T]) call(c Change[T]) (more bool) {
	one := [1]Change[T]{c}
	h.calls(one[:], 0)
	return !h.removed.Load()
}

// calls calls the handler for one change after the other, until it is removed or
// has panicked, and returns how many changes that were. After each it takes
// count off left.
func (h *follower[T]) calls(run []Change[T], count int64) (n int) {
	returned := false
	defer func() { // once for all, as it costs as much as a call
		if returned {
			return
		}
		if cause := recover(); cause != nil {
			h.panicked(run[n].Key, cause)
		} else {
			h.report(&ObjectError{Key: run[n].Key, Err: fmt.Errorf("%s has ended its goroutine, and is removed", h.opts.Name)})
		}
		h.left.Add(-count)
		n++
	}()
	for ; n < len(run) && !h.removed.Load(); n++ {
		h.handle(run[n])
		h.left.Add(-count)
	}
	returned = true
	return n
}

// panicked deals with a panic of the handler, as its options say.
func (h *follower[T]) panicked(key Key, cause any) {
	if h.opts.OnPanic == PanicCrash {
		panic(fmt.Sprintf("informer: %s panicked on object %q: %v", h.opts.Name, key, cause))
	}
	if h.opts.OnPanic == PanicDetach {
		h.remove()
	}
	h.report(&ObjectError{Key: key, Err: fmt.Errorf("%s panicked: %v\n%s", h.opts.Name, cause, debug.Stack())})
}

// notify tells of the changes before end; the writer calls it once a batch. A
// follower that is further behind than its limit, and than there are objects,
// leaves the log. The writer does that for it, since it may be stuck in a call.
func (h *follower[T]) notify(end uint64, objects int, listed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removed.Load() {
		return // it may have let go of the log
	}
	if listed && !h.listed {
		h.listed, h.syncAt = true, end
	}
	h.end = end
	if h.backlog.len() > 0 || end-h.at.pos > uint64(max(h.opts.Backlog, objects)) {
		h.coalesceLocked()
	}
	h.rouse()
}

// coalesceLocked moves what waits in the log to the backlog. The caller holds
// mu.
func (h *follower[T]) coalesceLocked() {
	for h.at.pos < h.end {
		run, at := h.at.read()
		for i := range run {
			h.backlog.record(&run[i], at)
		}
	}
}

// rouse makes the goroutine look for work.
func (h *follower[T]) rouse() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// remove sees to it that no call starts any more.
func (h *follower[T]) remove() {
	if h.removed.Swap(true) {
		return
	}
	h.fan.leave(h)
	h.rouse()
	if !h.claimed.Swap(true) {
		h.finish()
	}
}

// finish lets go of everything.
func (h *follower[T]) finish() {
	h.remove()
	h.forget()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.backlog = cursor[T]{pos: h.end}, backlog[T]{}
	h.joined = Reader[T]{}
	h.left.Store(0)
	close(h.done)
}

// depth is how many changes wait, or are being called for, and how old the
// oldest of them is: changes come from the log or the backlog in the order in
// which they came there.
func (h *follower[T]) depth() (changes int, age time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left, logged := int(h.left.Load()), int(h.end-h.at.pos)
	since, waits := h.backlog.oldest()
	switch {
	case left > 0:
		since = time.Duration(h.since.Load())
	case waits:
	case logged > 0:
		since = h.at.seg.at
	default:
		return 0, 0
	}
	return left + logged + h.backlog.len(), h.fan.now() - since
}

// registration returns what the user gets.
func (h *follower[T]) registration() *Registration {
	return &Registration{
		name: h.opts.Name, synced: h.synced, done: h.done,
		remove: h.remove, depth: h.depth,
	}
}
