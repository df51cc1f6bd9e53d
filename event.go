package informer

import "k8s.io/apimachinery/pkg/types"

// EventType says what an [Event] means. The zero value is no type.
type EventType uint8

const (
	// EventBegin starts a list: what follows, up to EventEnd, is to replace
	// everything that was there before. Sources do not send it, a [Reflector]
	// does.
	EventBegin EventType = iota + 1
	// EventAdded brings an object that was not there before, or an item of a
	// list.
	EventAdded
	// EventModified brings a new state of an object.
	EventModified
	// EventDeleted says that the object is gone, or is not to be seen through
	// the source any more.
	EventDeleted
	// EventBad says that the object exists, but in a state that cannot be used:
	// who has an older state of it keeps that, and drops an object of another
	// UID. It comes with an *[ObjectError].
	EventBad
	// EventBookmark says that everything up to Version has been told.
	EventBookmark
	// EventEnd ends a page of a list. With an empty Continue it ends the list,
	// which is the state of the server at Version.
	EventEnd
)

// String returns the name of t, such as "Added".
func (t EventType) String() string {
	return nameOf("EventType", t, "None", "Begin", "Added", "Modified", "Deleted", "Bad", "Bookmark", "End")
}

// Event is one step of the stream from a source. Which fields are set depends
// on its Type; see [ListerWatcher] for the order in which types may come.
//
// Key, UID and Version stand beside the object, so that an event about an
// object that could not be decoded, or that left a projection, needs none.
type Event[T Object] struct {
	// Type is never zero.
	Type EventType
	// Exact says of EventDeleted that Object is the final state of the object.
	// Without it, Object is to be ignored.
	Exact bool
	// Key names the object of EventAdded, EventModified, EventDeleted and
	// EventBad.
	Key Key
	// UID is the UID of the object that Key names, empty if unknown.
	UID types.UID
	// Version is the resource version of the object or, for EventBookmark and
	// EventEnd, of the whole collection.
	Version string
	// Object is set for EventAdded and EventModified, and for EventDeleted if
	// Exact.
	Object T
	// Continue is the token of the next page, for EventEnd.
	Continue string
}

// EventOf returns the event of type t about obj, with Key, UID and Version
// taken from obj. A deletion made by it is exact. For authors of sources.
func EventOf[T Object](t EventType, obj T) Event[T] {
	return Event[T]{
		Type: t, Exact: t == EventDeleted,
		Key: KeyOf(obj), UID: obj.GetUID(), Version: obj.GetResourceVersion(),
		Object: obj,
	}
}
