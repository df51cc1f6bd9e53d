package informer

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Transform returns a source of what fn makes of the objects of source. It is
// where to drop what nobody reads, such as managed fields, before anything is
// stored:
//
//	informer.Transform(source, func(p *corev1.Pod) (*corev1.Pod, error) {
//		p.ManagedFields = nil
//		return p, nil
//	})
//
// The function is called once for each object that is received, that of an
// exact deletion included, before anybody else has seen the object: it may
// change it in place. It must leave key, UID and resource version as they are.
// If it does not, returns an error or panics, the object is a bad object with
// that reason; a deletion just loses its final object.
func Transform[T Object](source ListerWatcher[T], fn func(T) (T, error)) ListerWatcher[T] {
	if err := sourceError(source); err != nil {
		return brokenSource[T]{err}
	}
	if fn == nil {
		return brokenSource[T]{fmt.Errorf("informer: the transform of %s is nil", typeName[T]())}
	}
	return &mappedSource[T, T]{source: source, what: "transform", fn: func(obj T) (T, bool, error) {
		out, err := fn(obj)
		return out, true, err
	}}
}

// mappedSource is the source of Transform and Project.
type mappedSource[R, T Object] struct {
	source ListerWatcher[R]
	what   string // fn, in errors
	fn     func(R) (obj T, keep bool, err error)
}

// List yields a page without the objects that are not kept.
func (s *mappedSource[R, T]) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		for ev, err := range s.source.List(ctx, opts) {
			out, err := s.apply(ev, err)
			if out.Type == EventDeleted {
				continue
			}
			if !yield(out, err) {
				return
			}
		}
	}
}

// Watch yields objects that are not kept as deletions: whoever has an older
// state of one then drops it, and the version advances for all.
func (s *mappedSource[R, T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		for ev, err := range s.source.Watch(ctx, opts) {
			if !yield(s.apply(ev, err)) {
				return
			}
		}
	}
}

// apply returns what becomes of one step of the source.
func (s *mappedSource[R, T]) apply(ev Event[R], err error) (Event[T], error) {
	out := Event[T]{
		Type: ev.Type, Key: ev.Key, UID: ev.UID, Version: ev.Version, Continue: ev.Continue,
	}
	hasObject := ev.Type == EventAdded || ev.Type == EventModified || ev.Type == EventDeleted && ev.Exact
	if err != nil || !hasObject {
		return out, err
	}
	obj, keep, err := s.call(ev)
	switch {
	case err != nil && ev.Type != EventDeleted:
		return badEvent(out, err)
	case err != nil || !keep:
		out.Type = EventDeleted
		return out, nil
	}
	out.Object, out.Exact = obj, ev.Exact
	return out, nil
}

// call calls the function, and checks what it returns.
func (s *mappedSource[R, T]) call(ev Event[R]) (obj T, keep bool, err error) {
	err = guarded(s.what, func() (err error) {
		if obj, keep, err = s.fn(ev.Object); err != nil || !keep {
			return err
		}
		return sameIdentity(ev, obj)
	})
	return obj, keep, err
}
