package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// placement is all that is kept of a pod: who it is, in which version, and
// where it runs.
type placement struct {
	namespace, name, version string
	uid                      types.UID
	node                     string
}

func (p placement) GetNamespace() string       { return p.namespace }
func (p placement) GetName() string            { return p.name }
func (p placement) GetUID() types.UID          { return p.uid }
func (p placement) GetResourceVersion() string { return p.version }

// Keep a small struct of your own instead of whole pods, and only of pods that
// have a node.
func ExampleProject() {
	config, stop := exampleCluster(podOn("web-0", "node-1"), podOn("web-1", ""))
	defer stop()
	clientset := kubernetes.NewForConfigOrDie(config)

	source := informer.Project(
		informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods("")),
		func(p *corev1.Pod) (obj placement, keep bool, err error) {
			return placement{p.Namespace, p.Name, p.ResourceVersion, p.UID, p.Spec.NodeName}, p.Spec.NodeName != "", nil
		})
	placements, err := informer.New(source, informer.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- placements.Run(ctx) }()

	if err := placements.WaitSynced(ctx); err != nil {
		panic(err)
	}
	for p := range placements.All() {
		fmt.Println(p.name, p.node)
	}

	cancel()
	fmt.Println(<-done)
	// Output:
	// web-0 node-1
	// <nil>
}
