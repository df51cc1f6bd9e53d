package informer

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Object is what the package needs of a stored type: who it is, and which
// version of it this is. Every pointer to an API type satisfies it, so do
// *unstructured.Unstructured and *metav1.PartialObjectMetadata, and so does any
// small type of the user's own. T may also be a value type.
//
// The methods must be safe to call from several goroutines at once, and must
// give the same answer every time.
type Object interface {
	GetNamespace() string       // empty for cluster-scoped kinds
	GetName() string            // unique within the namespace; never empty
	GetUID() types.UID          // empty equals any
	GetResourceVersion() string // changes with every write; may be empty
}

// Key names an object within its kind.
type Key = types.NamespacedName

// KeyOf returns the key of obj.
func KeyOf[T Object](obj T) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// sameUID reports whether a and b may be the same object. An empty UID, as
// client-go's fakes have, equals any.
func sameUID(a, b types.UID) bool {
	return a == b || a == "" || b == ""
}

// unchanged reports that a and b are the same version of the same object.
// Objects without UID or version cannot be told apart, so they count as
// changed.
func unchanged[T Object](a, b T) bool {
	version := a.GetResourceVersion()
	if version == "" || version != b.GetResourceVersion() {
		return false
	}
	uid := a.GetUID()
	return uid != "" && uid == b.GetUID()
}

// older reports that version a is known to be lower than b. Versions that
// cannot be compared are never older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// reached returns the version that a stream has reached which was at from when
// to comes. One that cannot be compared only takes the place of another such:
// to ask a server for what came after "0" would mean anything.
func reached(from, to string) string {
	version, _ := advance(from, to)
	return version
}

// advance is reached, and also says whether to is known to be older than from.
func advance(from, to string) (version string, old bool) {
	order, err := resourceversion.CompareResourceVersion(to, from)
	switch {
	case err == nil && order > 0:
		return to, false
	case err == nil, to == "", isComparable(from):
		return from, order < 0
	}
	return to, false
}

// isComparable reports that a version can be compared to others of its kind.
func isComparable(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}
