package informer

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListerWatcher is a source of objects of one kind: the one interface that
// users may implement. [FromClient] and [FromREST] make sources of clients,
// [Transform] and [Project] make sources of sources.
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
