package informer

import "k8s.io/apimachinery/pkg/types"

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
