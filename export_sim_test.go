package informer

import (
	"iter"
	"time"
)

// A Published is a state that readers can see.
type Published[T Object] struct {
	Version string
	Epoch   int // how often the version went backwards
	Listed  bool
	All     iter.Seq[T]
}

// ObserveStates makes f see every state that the informer publishes, at the
// moment of the switch and under the lock of readers: it must not read the
// informer. It does not count as a look at the state.
func ObserveStates[T Object](inf *Informer[T], f func(Published[T])) {
	inf.fan.observe = func(s *state[T]) {
		f(Published[T]{Version: s.version, Epoch: inf.fan.epoch, Listed: s.listed, All: s.all})
	}
}

// SetRandom replaces what makes times random.
func SetRandom[T Object](inf *Informer[T], random func(time.Duration) time.Duration) {
	inf.reflector.backoff.random = random
}

// Queued returns the most that waits in one part of the informer's queue: what
// came, a list that is complete, one that is coming, and what is in flight.
func Queued[T Object](inf *Informer[T]) int {
	f := inf.fifo
	f.mu.Lock()
	defer f.mu.Unlock()
	most := max(f.queue.len(), f.flight.len())
	for _, list := range []*staging[T]{f.list, f.listing, f.flightList} {
		if list != nil {
			most = max(most, list.items.len(), len(list.finals))
		}
	}
	return most
}
