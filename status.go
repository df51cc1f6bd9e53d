package informer

import "time"

// State says how an [Informer] or a [Reflector] is doing. The zero value is no
// state.
type State uint8

const (
	// StateIdle: Run has not been called.
	StateIdle State = iota + 1
	// StateListing: a list is in progress; what is there is old, or nothing.
	StateListing
	// StateWatching: the list is complete, and changes are followed.
	StateWatching
	// StateFailing: the last request failed, and will be tried again.
	StateFailing
	// StateGone: the server does not know the resource (404). What was there is
	// kept, and the server is asked again now and then.
	StateGone
	// StateStopped: Run has returned.
	StateStopped
)

// String returns the name of s, such as "Watching".
func (s State) String() string {
	return nameOf("State", s, "None", "Idle", "Listing", "Watching", "Failing", "Gone", "Stopped")
}

// Status is how an [Informer] or a [Reflector] is doing, at one moment.
type Status struct {
	// State says what is going on.
	State State
	// Err is the last failure, nil once a request has succeeded after it.
	Err error
	// FailingSince is when the first of the failures in a row happened; zero
	// if Err is nil.
	FailingSince time.Time
	// LastEvent is when the server last sent anything: an object, a bookmark,
	// the end of a list; or a millisecond before that. It is zero if it never has.
	LastEvent time.Time
	// Version is the resource version that has been reached. The cache of an
	// informer, which Reader.Version tells of, may be a moment behind.
	Version string
	// Objects is how many objects there are; during the first list, how many
	// have come so far.
	Objects int
	// Bad lists the objects that are there but cannot be used, sorted by key.
	Bad []*ObjectError
	// Skipped counts the objects and events that could not be used, ever.
	Skipped uint64
	// Faults counts what went wrong in an Informer's user code: panics of
	// handlers, and objects that an index could not file.
	Faults uint64
	// Dropped counts the watch events that were dropped because their version
	// was lower than what their stream had reached.
	Dropped uint64
	// Lists and Watches count the requests, streaming lists as watches.
	Lists, Watches uint64
}
