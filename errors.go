package informer

import (
	"errors"
	"fmt"
)

var (
	// ErrStopped means that the informer, reflector or queue has ended for
	// good, and cannot be used in this way any more.
	ErrStopped = errors.New("informer: stopped")

	// ErrRunning means that Run was called while another Run is in progress.
	// After the end of that, it is ErrStopped.
	ErrRunning = errors.New("informer: already running")

	// ErrRemoved means that the handler was removed, or its informer ended,
	// before what was waited for came about.
	ErrRemoved = errors.New("informer: handler removed")

	// ErrNotComparable means that a resource version is not one that can be
	// compared with others, as with client-go's fakes.
	ErrNotComparable = errors.New("informer: resource version is not comparable")

	// ErrNewEpoch means that the server went back to an older version, as after
	// a restore from a backup: a wait for a version of before makes no sense
	// any more.
	ErrNewEpoch = errors.New("informer: the server's versions went backwards")

	// ErrRestarted means that the server forgot a list before a [Pager] had
	// read all its pages. The pager then starts the list over: what it has
	// yielded so far does not count. It is not the end of the sequence.
	ErrRestarted = errors.New("informer: list started over")

	// ErrWatchNotSupported means that the resource cannot be watched. It ends
	// Run: no retry would help.
	ErrWatchNotSupported = errors.New("informer: the resource does not support watch")

	// errNoName and errTwice are what an ObjectError says of an object that
	// cannot be stored.
	errNoName = errors.New("has no name")
	errTwice  = errors.New("is there twice")
)

// An ObjectError says what is wrong with one object. All others are not
// affected.
type ObjectError struct {
	// Key names the object, as far as it could be told: either part may be
	// empty.
	Key Key
	// Err is the reason, never nil.
	Err error
}

// Error returns the key and the reason.
func (e *ObjectError) Error() string { return fmt.Sprintf("object %q: %v", e.Key, e.Err) }

// Unwrap returns the reason.
func (e *ObjectError) Unwrap() error { return e.Err }

// A WrongTypeError means that a client hands over objects of another type than
// its source is for. It ends Run: no retry would help.
type WrongTypeError struct {
	// Want is the type that the source is for, Got the one that came.
	Want, Got string
}

// Error returns both types.
func (e *WrongTypeError) Error() string {
	return fmt.Sprintf("informer: wrong type: the source is for %s, the client sends %s", e.Want, e.Got)
}
