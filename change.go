package informer

// Cause says why a handler is told of a [Change]. The zero value is no cause.
type Cause uint8

const (
	// CauseInitial: the object was there when the handler, or the informer,
	// began.
	CauseInitial Cause = iota + 1
	// CauseWatch: the server said so as it happened.
	CauseWatch
	// CauseRelist: a later list showed it.
	CauseRelist
	// CauseResync: nothing changed; the handler asked to be told again from
	// time to time.
	CauseResync
)

// String returns the name of c, such as "Initial".
func (c Cause) String() string {
	return nameOf("Cause", c, "None", "Initial", "Watch", "Relist", "Resync")
}

// Priority returns the priority with which a [WorkQueue] is to take a change of
// this cause: low for what a handler is told as it begins, or once more, which
// can wait, and normal for the others.
func (c Cause) Priority() Priority {
	if c == CauseInitial || c == CauseResync {
		return PriorityLow
	}
	return PriorityNormal
}

// Change is one change of the cache, as handlers see it.
type Change[T Object] struct {
	// Type is Added, Updated or Deleted.
	Type DeltaType
	// Cause says why the handler is told.
	Cause Cause
	// Exact says of Deleted that Old is the final state of the object, as the
	// server sent it. Otherwise it is the last state known.
	Exact bool
	// Key is the key of the object.
	Key Key
	// Old is the state before, of Updated and Deleted: the one that this
	// handler was given last. It is equal to that in version, but may be another
	// pointer.
	Old T
	// New is the state after, of Added and Updated. Of Deleted it is the last
	// state known: the final one if Exact, and later than Old if the handler
	// missed some.
	New T
}
