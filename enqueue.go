package informer

import "fmt"

// Enqueue adds the key of every object that changes to a queue. It returns an
// error as [Informer.AddHandler] does, or if the queue is nil.
//
// Objects that are there when the handler begins are added with [PriorityLow],
// so that what changes meanwhile is not delayed by them; what changes, with
// [PriorityNormal]: see [Cause.Priority]. Once the queue is drained, changes are
// no longer added, and nobody is told.
//
// Who wants a [Filter], or [HandlerOptions] such as a resync, adds the keys by a
// handler of one line: queue.AddWith(c.Key, AddOptions{Priority: c.Cause.Priority()}).
func Enqueue[T Object](from *Informer[T], to *WorkQueue[Key]) (*Registration, error) {
	if to == nil {
		return nil, from.errorf("Enqueue: the queue is nil")
	}
	return from.AddHandler(func(c Change[T]) {
		to.AddWith(c.Key, AddOptions{Priority: c.Cause.Priority()})
	}, HandlerOptions{Name: "Enqueue"})
}

// EnqueueEach adds to a queue every key that keys hands to add for an object
// that changes: its owner, say. It is asked for the old and the new state, so
// that a former owner hears of it too, also if the queue is far behind. It runs
// on the handler's goroutine. Priorities are as those of Enqueue. EnqueueEach
// returns an error as [Informer.AddHandler] does, or if the queue or the
// function is nil.
func EnqueueEach[T Object, K comparable](from *Informer[T], to *WorkQueue[K], keys func(obj T, add func(K))) (*Registration, error) {
	if to == nil || keys == nil {
		return nil, fmt.Errorf("informer: EnqueueEach: the queue or the function is nil")
	}
	adder := func(p Priority) func(K) {
		return func(key K) { to.AddWith(key, AddOptions{Priority: p}) }
	}
	adders := map[Priority]func(K){PriorityLow: adder(PriorityLow), PriorityNormal: adder(PriorityNormal)}
	return from.AddHandler(func(c Change[T]) {
		add := adders[c.Cause.Priority()]
		if c.Type != Added {
			keys(c.Old, add)
		}
		keys(c.New, add)
	}, HandlerOptions{Name: "EnqueueEach"})
}
