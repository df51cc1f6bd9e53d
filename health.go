package informer

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// settled is how long a watch must have been open to count as a success in
	// full, which makes up for the failures before.
	settled = 30 * time.Second
	// quietSettled is the same for a watch from which nothing has come. It is
	// longer than what transports take to find that nobody is there.
	quietSettled = time.Minute
)

// health is the Status of a [Reflector], which writes it, and who asks for it
// reads it.
type health struct {
	clock coarseClock // for hear
	// heard is when anything came last, by clock, plus 1; zero if nothing has.
	heard atomic.Int64

	mu sync.Mutex // guards the fields below; no user code runs under it

	status Status
	// open is when the watch in progress began; zero if there is none.
	open time.Time
	bad  badObjects
}

// badObjects holds the objects that are there but cannot be used.
type badObjects struct {
	byKey burstMap[Key, badObject]
	list  uint64 // number of the list that runs, or ran last
}

// badObject is one object that cannot be used.
type badObject struct {
	err     *ObjectError
	uid     types.UID
	version string
	list    uint64 // the last list that had it so
}

// A stateChange is what happened to the state. It is no change, and the zero
// value, if the state was the same before.
type stateChange struct {
	to      State
	version string // that has been reached
}

// start marks the beginning of the only Run. It returns [ErrRunning] or
// [ErrStopped] if there has been another.
func (h *health) start() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.status.State {
	case StateIdle:
		h.status.State = StateListing
		return nil
	case StateStopped:
		return ErrStopped
	}
	return ErrRunning
}

// stop marks the end of Run.
func (h *health) stop() stateChange {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = time.Time{}
	return h.enterLocked(StateStopped)
}

// expire records that a new list is needed. An earlier failure stays in sight,
// as no request has succeeded since.
func (h *health) expire() stateChange {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status.Err != nil {
		return stateChange{}
	}
	return h.enterLocked(StateListing)
}

// succeed records that a request has succeeded.
func (h *health) succeed(state State) stateChange {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.succeedLocked(state)
}

// succeedLocked forgets the failures and changes the state. The caller holds
// h.mu.
func (h *health) succeedLocked(state State) stateChange {
	h.status.Err, h.status.FailingSince = nil, time.Time{}
	return h.enterLocked(state)
}

// hear records that something has come now. One goroutine calls it.
func (h *health) hear() { h.heard.Store(int64(h.clock.now()) + 1) }

// follow records that an event of a watch has brought the state to version, and,
// if taken, found an object good, or gone.
func (h *health) follow(version string, taken bool, key Key) stateChange {
	h.mu.Lock()
	defer h.mu.Unlock()
	if taken && len(h.bad.byKey.entries) > 0 {
		h.bad.byKey.remove(key)
	}
	h.status.Version = version
	return h.succeedLocked(StateWatching)
}

// fail records that a request has failed.
func (h *health) fail(state State, err error) stateChange {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status.Err == nil {
		h.status.FailingSince = time.Now()
	}
	h.status.Err = err
	return h.enterLocked(state)
}

// enterLocked changes the state. The caller holds h.mu.
func (h *health) enterLocked(state State) stateChange {
	if h.status.State == state {
		return stateChange{}
	}
	h.status.State = state
	return stateChange{to: state, version: h.status.Version}
}

// update changes the status. The function must not block.
func (h *health) update(change func(*Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.status)
}

// watching records when a watch began, or with zero that it has ended.
func (h *health) watching(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = since
}

// read returns the status.
func (h *health) read() Status {
	h.mu.Lock()
	s := h.status
	if heard := h.heard.Load(); heard > 0 {
		s.LastEvent = h.clock.start.Add(time.Duration(heard - 1))
	}
	quiet := !h.open.IsZero() && time.Since(h.open) >= quietSettled
	for _, o := range h.bad.byKey.entries {
		s.Bad = append(s.Bad, o.err)
	}
	h.mu.Unlock()

	if quiet {
		s.State, s.Err, s.FailingSince = StateWatching, nil, time.Time{}
	}
	slices.SortFunc(s.Bad, func(a, b *ObjectError) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return s
}

// beginList records that a list has begun to come in.
func (h *health) beginList() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Objects = 0
	h.bad.list++
}

// endList records that the list is complete: objects that were bad and are not
// in it, or not bad in it, are forgotten.
func (h *health) endList(version string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Version = version
	for key, o := range h.bad.byKey.entries {
		if o.list != h.bad.list {
			h.bad.byKey.remove(key)
		}
	}
}

// skip counts an event that cannot be used, and reports whether that is news:
// the same fault of the same object, seen again, is not. An object without a
// name is not remembered, as nothing could be told about it later.
func (h *health) skip(key Key, o badObject) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Skipped++
	if key.Name == "" {
		return true
	}
	o.list = h.bad.list
	was, known := h.bad.byKey.entries[key]
	h.bad.byKey.put(key, o)
	return !known || was.version != o.version || was.uid != o.uid || was.err.Error() != o.err.Error()
}

// repair records that an item of a list, an event of type t, found key good, or
// gone. It counts only when the list is complete.
func (h *health) repair(t EventType, key Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t != EventDeleted {
		h.status.Objects++
	}
	if len(h.bad.byKey.entries) == 0 {
		return
	}
	if o, known := h.bad.byKey.entries[key]; known {
		o.list = 0
		h.bad.byKey.put(key, o)
	}
}
