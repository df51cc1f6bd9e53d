package informer_test

import (
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

// podSource has one pod and learns of another. Real programs use FromClient or
// FromREST.
type podSource struct{}

func (podSource) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[*corev1.Pod], error] {
	return func(yield func(informer.Event[*corev1.Pod], error) bool) {
		_ = yield(informer.EventOf(informer.EventAdded, examplePod("web-1", "3")), nil) &&
			yield(informer.Event[*corev1.Pod]{Type: informer.EventEnd, Version: "7"}, nil)
	}
}

func (s podSource) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[*corev1.Pod], error] {
	return func(yield func(informer.Event[*corev1.Pod], error) bool) {
		if opts.SendInitialEvents != nil {
			for ev, err := range s.List(ctx, opts) {
				if !yield(ev, err) {
					return
				}
			}
		}
		_ = yield(informer.EventOf(informer.EventAdded, examplePod("web-2", "8")), nil) &&
			yield(informer.EventOf(informer.EventDeleted, examplePod("web-1", "9")), nil)
		<-ctx.Done()
	}
}

func examplePod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "prod", ResourceVersion: version}}
}

// A Reflector can keep a store of one's own, here a map, equal to the server.
func ExampleReflector() {
	ctx, cancel := context.WithCancel(context.Background())
	var pods, listed map[informer.Key]*corev1.Pod
	r, err := informer.NewReflector(podSource{}, func(ev informer.Event[*corev1.Pod]) error {
		to := pods
		if listed != nil {
			to = listed // a list counts when it is complete
		}
		switch ev.Type {
		case informer.EventBegin:
			listed = map[informer.Key]*corev1.Pod{}
		case informer.EventAdded, informer.EventModified:
			to[ev.Key] = ev.Object
		case informer.EventDeleted:
			delete(to, ev.Key)
		case informer.EventEnd:
			pods, listed = listed, nil
		}
		fmt.Println(ev.Type, ev.Key.Name, len(pods))
		if ev.Version == "9" {
			cancel()
		}
		return nil
	}, informer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Run(ctx))
	fmt.Println(r.Status().State, r.Status().Version)
	// Output:
	// Begin  0
	// Modified web-1 0
	// End  1
	// Added web-2 2
	// Deleted web-1 1
	// <nil>
	// Stopped 9
}
