package informer

import (
	"iter"
	"slices"
	"time"
)

// fanOut hands each batch to the store, and the changes that it makes to all
// handlers, through one log. The writer is one goroutine.
//
// Lock order: store.mu, then follower.mu.
type fanOut[T Object] struct {
	store *Indexer[T]
	began time.Time

	// Of the writer.

	log    cursor[T]     // the end of the log, unpublished changes included
	at     time.Duration // when the batch came that is being applied
	expect int           // about how many changes it brings
	batch  published[T]  // what it has led to
	emit   func(Change[T])
	then   func(*state[T]) // both made once: closures for each batch would be garbage

	// These are guarded by store.mu, as they change together with the state:
	// a handler that joins gets a state and the position that belongs to it.

	published cursor[T]      // the end of the log as far as the state goes
	followers []*follower[T] // copied on write
	listed    bool           // the state holds a whole list
	epoch     int            // how often the server's version went backwards
	moved     chan struct{}  // closed with the next state; nil: nobody waits

	observe func(*state[T]) // of tests: sees every state; nil: nobody does

	synced chan struct{} // closed with the first state that holds a whole list
}

func newFanOut[T Object](store *Indexer[T]) *fanOut[T] {
	log := newLog[T]()
	f := &fanOut[T]{
		store: store, began: time.Now(), log: log, published: log,
		synced: make(chan struct{}),
	}
	f.emit, f.then = f.record, f.publishLocked
	return f
}

// now is the time that the ages of changes are told by.
func (f *fanOut[T]) now() time.Duration { return time.Since(f.began) }

// apply brings the store to the state after b, whose deltas come in parts unless
// that is nil, and wakes those who are to know.
func (f *fanOut[T]) apply(b Batch[T], parts iter.Seq[[]Deltas[T]]) {
	f.batch = published[T]{rewound: b.Rewound}
	if f.expect = len(b.Deltas); parts != nil {
		f.expect = logSegment
	}
	if f.expect > 0 {
		f.at = f.now() // once a batch, as it costs more than a change does
	}
	f.store.apply(b, parts, f.emit, f.then)
	for _, h := range f.batch.followers {
		h.notify(f.log.pos, f.batch.objects, f.batch.listed)
	}
	f.batch = published[T]{} // or it would keep handlers that leave
}

// published is what the writer has to know of the state that a batch led to.
type published[T Object] struct {
	rewound   bool // before it
	followers []*follower[T]
	objects   int
	listed    bool
}

// record appends a change to the log.
func (f *fanOut[T]) record(c Change[T]) { f.log.append(c, f.at, f.expect) }

// publishLocked notes what belongs to s, the new state. The caller holds
// store.mu.
func (f *fanOut[T]) publishLocked(s *state[T]) {
	f.batch.followers, f.batch.objects, f.batch.listed = f.followers, s.n, s.listed
	f.log.seal()
	f.published = f.log
	if s.listed && !f.listed {
		f.listed = true
		close(f.synced)
	}
	if f.batch.rewound {
		f.epoch++
	}
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
	if f.observe != nil {
		f.observe(s)
	}
}

// join makes h follow the log from the newest state on.
func (f *fanOut[T]) join(h *follower[T]) {
	f.store.between(func(s *state[T]) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.joined = Reader[T]{f.store, s}
		h.expectLocked(s.n)
		h.at, h.end, h.upTo = f.published, f.published.pos, f.published.pos
		h.listed, h.syncAt = f.listed, h.end
		f.followers = append(slices.Clip(f.followers), h)
	})
}

// leave ends that h is told of anything.
func (f *fanOut[T]) leave(h *follower[T]) {
	f.store.between(func(*state[T]) {
		f.followers = slices.DeleteFunc(slices.Clone(f.followers), func(x *follower[T]) bool { return x == h })
	})
}

// stateAt returns the newest state, if h has seen all changes that lead to it.
func (f *fanOut[T]) stateAt(h *follower[T]) (at *state[T], ok bool) {
	f.store.between(func(s *state[T]) {
		h.mu.Lock()
		defer h.mu.Unlock()
		at, ok = s, h.at.pos == f.published.pos && h.backlog.len() == 0
	})
	return at, ok
}

// view is what somebody who waits may look at.
type view[T Object] struct {
	Reader[T]
	listed bool
	epoch  int
	moved  <-chan struct{} // closed with the next state
}

// view returns the newest state.
func (f *fanOut[T]) view() (v view[T]) {
	f.store.between(func(s *state[T]) {
		if f.moved == nil {
			f.moved = make(chan struct{})
		}
		v = view[T]{Reader[T]{f.store, s}, f.listed, f.epoch, f.moved}
	})
	return v
}
