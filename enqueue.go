package informer

import "fmt"

// Enqueue adds the key of every object that changes to a queue. It returns an
// error as [Informer.AddHandler] does, or if the queue is nil.
//
// Once the queue is drained, changes are no longer added, and nobody is told.
func Enqueue[T Object](from *Informer[T], to *WorkQueue[Key]) (*Registration, error) {
	if to == nil {
		return nil, from.errorf("Enqueue: the queue is nil")
	}
	return from.AddHandler(func(c Change[T]) { to.Add(c.Key) }, HandlerOptions{Name: "Enqueue"})
}

// EnqueueEach adds to a queue every key that keys hands to add for an object
// that changes: its owner, say. It is asked for the old and the new state, so
// that a former owner hears of it too, also if the queue is far behind. It runs on the handler's
// goroutine. EnqueueEach returns an error as [Informer.AddHandler] does, or if
// the queue or the function is nil.
func EnqueueEach[T Object, K comparable](from *Informer[T], to *WorkQueue[K], keys func(obj T, add func(K))) (*Registration, error) {
	if to == nil || keys == nil {
		return nil, fmt.Errorf("informer: EnqueueEach: the queue or the function is nil")
	}
	add := func(key K) { to.Add(key) }
	return from.AddHandler(func(c Change[T]) {
		if c.Type != Added {
			keys(c.Old, add)
		}
		if c.Cause != CauseResync { // else it is the same
			keys(c.New, add)
		}
	}, HandlerOptions{Name: "EnqueueEach"})
}
