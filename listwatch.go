package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListerWatcher is a source of objects of one kind: all that this package needs
// of a server. [FromClient] and [FromREST] make sources of clients, [Transform]
// and [Project] make sources of sources, and you may write one for anything that
// can be listed and watched.
//
// Both methods return a sequence that runs one request when it is ranged over,
// on the caller's goroutine, and yields events one by one as they are decoded.
// The sequence ends when the request does, when the context ends (then with an
// error, unless the loop was left), or when the loop is left; by then the
// source has let go of everything, goroutines included. A sequence may be
// ranged over once.
//
// An error that is an *[ObjectError] concerns one object, and the sequence goes
// on: its event is of type EventBad, with Key, UID and Version as far as they
// could be told. Any other error is the last thing that a sequence yields, and
// its event means nothing. Errors of an API server are to be such that the
// predicates of k8s.io/apimachinery/pkg/api/errors recognise them, ERROR events
// inside a watch included.
//
// The methods may be called again at any time, but never concurrently by this
// package for one [Reflector].
type ListerWatcher[T Object] interface {
	// List asks for one page and yields
	//
	//	{ Added | Bad } End
	//
	// A page that breaks off has no End, but an error.
	List(context.Context, metav1.ListOptions) iter.Seq2[Event[T], error]

	// Watch asks for changes and yields
	//
	//	{ Added | Modified | Deleted | Bad | Bookmark }
	//
	// or, if SendInitialEvents was set and is understood, the same with one End
	// in it, where the server's bookmark says that the initial state is
	// complete. A watch that the server closes ends without an error.
	Watch(context.Context, metav1.ListOptions) iter.Seq2[Event[T], error]
}

var (
	// errNoVersion means that a list does not say which state it shows: nobody
	// could watch what comes after it.
	errNoVersion = errors.New("informer: the list has no resource version")
)

// brokenSource stands for a source that cannot work, such as one of a nil
// client. It is the one type of source that a constructor may look for, by
// [sourceError]: so FromClient and its like need no error of their own.
type brokenSource[T Object] struct{ err error }

// List yields the error.
func (s brokenSource[T]) List(context.Context, metav1.ListOptions) iter.Seq2[Event[T], error] {
	return failedSeq[T](s.err)
}

// Watch yields the error.
func (s brokenSource[T]) Watch(context.Context, metav1.ListOptions) iter.Seq2[Event[T], error] {
	return failedSeq[T](s.err)
}

// sourceError returns why source cannot work, as far as that can be told
// without a request, or nil. Constructors that take a source return it.
func sourceError[T Object](source ListerWatcher[T]) error {
	if isNil(source) {
		return fmt.Errorf("informer: the source of %s is nil", typeName[T]())
	}
	if broken, ok := source.(brokenSource[T]); ok {
		return broken.err
	}
	return nil
}

// failedSeq returns a sequence of one error.
func failedSeq[T Object](err error) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) { yield(Event[T]{}, err) }
}

// eventFrom returns the event of type t about an object that came from a
// server; without a name, it is a bad object.
func eventFrom[T Object](t EventType, obj T) (Event[T], error) {
	ev := EventOf(t, obj)
	if ev.Key.Name == "" {
		return badEvent(ev, errNoName)
	}
	return ev, nil
}

// badEvent returns the event and the error of an object that cannot be used
// because of err. Of ev, only Key, UID and Version count.
func badEvent[T Object](ev Event[T], err error) (Event[T], error) {
	return Event[T]{Type: EventBad, Key: ev.Key, UID: ev.UID, Version: ev.Version},
		&ObjectError{Key: ev.Key, Err: err}
}

// bookmark returns the event of a bookmark, of type zero if it says nothing. If
// initial is set, the bookmark may be the one that ends the initial state.
func bookmark[T Object](version string, annotations map[string]string, initial bool) (Event[T], error) {
	switch end := initial && annotations[metav1.InitialEventsAnnotationKey] == "true"; {
	case end && version == "":
		return Event[T]{}, errNoVersion
	case end:
		return Event[T]{Type: EventEnd, Version: version}, nil
	case version == "":
		return Event[T]{}, nil
	}
	return Event[T]{Type: EventBookmark, Version: version}, nil
}

// ended returns the error of a request that failed with err: the context's
// own, if the context has ended, whatever that made of the request.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// guarded calls fn, which calls a user's function named what, and turns a panic
// in it into an error.
func guarded(what string, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: panic: %v", what, r)
			if cause, ok := r.(error); ok {
				err = fmt.Errorf("%s: panic: %w", what, cause)
			}
		}
	}()
	if err := fn(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// sameIdentity returns an error if obj is not the object that ev is about, in
// the same version. Who indexes, waits and compares by them relies on it.
func sameIdentity[R, T Object](ev Event[R], obj T) error {
	if key := KeyOf(obj); key != ev.Key {
		return fmt.Errorf("the key was changed to %q", key)
	}
	if uid := obj.GetUID(); uid != ev.UID {
		return fmt.Errorf("the UID was changed from %q to %q", ev.UID, uid)
	}
	if version := obj.GetResourceVersion(); version != ev.Version {
		return fmt.Errorf("the resource version was changed from %q to %q", ev.Version, version)
	}
	return nil
}

// isNil reports whether v is nil, or an interface around a nil pointer, map or
// function.
func isNil(v any) bool {
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Slice:
		return rv.IsNil()
	}
	return false
}

// typeName returns the name of T as in Go source, such as "*v1.Pod".
func typeName[T any]() string { return reflect.TypeFor[T]().String() }
