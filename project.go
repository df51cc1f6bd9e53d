package informer

import "fmt"

// Project returns a source of a type of the user's own, made from the objects
// of source: what is stored is then only what is needed, as small as it can be.
// The type must keep key, UID and resource version of what it was made of.
//
//	pods := informer.Project(source, func(p *corev1.Pod) (podIP, bool, error) {
//		return podIP{p.Name, p.Namespace, p.UID, p.ResourceVersion, p.Status.PodIP},
//			p.Status.PodIP != "", nil
//	})
//
// An object that fn does not keep is not seen through the source; if an older
// state of it was kept, it is deleted, without a final object. The function is
// called once for each object that is received. For its errors, panics and
// mistakes the same holds as in [Transform].
func Project[R, T Object](source ListerWatcher[R], fn func(R) (obj T, keep bool, err error)) ListerWatcher[T] {
	if err := sourceError(source); err != nil {
		return brokenSource[T]{err}
	}
	if fn == nil {
		return brokenSource[T]{fmt.Errorf("informer: the projection from %s to %s is nil", typeName[R](), typeName[T]())}
	}
	return &mappedSource[R, T]{source: source, what: "projection", fn: fn}
}
