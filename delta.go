package informer

import "iter"

// DeltaType says what a [Delta] or a [Change] does. The zero value is no type.
type DeltaType uint8

const (
	// Added: the object is new.
	Added DeltaType = iota + 1
	// Updated: the object has a new state.
	Updated
	// Deleted: the object is gone.
	Deleted
	// Replaced: a list brought the object, and it may be new or in a new state.
	Replaced
	// Sync: nothing happened; the object is told once more.
	Sync
)

// String returns the name of t, such as "Added".
func (t DeltaType) String() string {
	return nameOf("DeltaType", t, "None", "Added", "Updated", "Deleted", "Replaced", "Sync")
}

// Delta is one thing that happened to an object.
type Delta[T Object] struct {
	// Type is never zero.
	Type DeltaType
	// Exact says of Deleted that Object is the final state. Otherwise it is the
	// last one known.
	Exact bool
	// Object is the state after the delta; for Deleted, the last one.
	Object T
}

// Deltas is what is to be told about one key, oldest first: at most two deltas,
// of which the first is then Deleted.
type Deltas[T Object] struct {
	// Key is the key of all of them.
	Key Key
	// Listed says that a list brought the last one, and not a watch.
	Listed bool

	// hash is that of Key in the store that is given this, by its own queue.
	// Where it is zero the store makes it.
	hash uint32

	first, second Delta[T] // Type is zero where there is none
}

// All yields the deltas, oldest first.
func (d Deltas[T]) All() iter.Seq[Delta[T]] {
	return func(yield func(Delta[T]) bool) {
		if d.first.Type != 0 && yield(d.first) && d.second.Type != 0 {
			yield(d.second)
		}
	}
}

// Len returns how many deltas there are, 0 to 2.
func (d Deltas[T]) Len() int {
	switch {
	case d.second.Type != 0:
		return 2
	case d.first.Type != 0:
		return 1
	}
	return 0
}

// final returns the last delta, which decides the state after d; its Type is zero
// if there is none.
func (d *Deltas[T]) final() Delta[T] {
	if d.second.Type != 0 {
		return d.second
	}
	return d.first
}

// add appends a delta. The caller knows that there is room.
func (d *Deltas[T]) add(delta Delta[T]) {
	if d.first.Type == 0 {
		d.first = delta
	} else {
		d.second = delta
	}
}

// appendTo appends d to batch, if there is anything in it.
func (d Deltas[T]) appendTo(batch []Deltas[T]) []Deltas[T] {
	if d.first.Type == 0 {
		return batch
	}
	return append(batch, d)
}

// Batch takes a consumer from one state of the server to a later one.
type Batch[T Object] struct {
	// Deltas holds the deltas of each key that has any, one entry a key.
	Deltas []Deltas[T]
	// Version is the server's version after the batch. It is empty if nothing
	// told.
	Version string
	// Replaced says that a list ends in this batch: what the list did not hold
	// is deleted by it.
	Replaced bool
	// Rewound says that the server went back to an older version in between,
	// as after a restore from a backup. Version belongs to a new epoch then.
	Rewound bool
}
