package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// Run informers of several kinds, and wait for all of them.
func ExampleRun() {
	config, stop := exampleCluster(podOn("web-0", "node-1"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	defer stop()
	core := kubernetes.NewForConfigOrDie(config).CoreV1()

	pods, err := informer.New(informer.FromClient[*corev1.Pod](core.Pods("")), informer.Options{})
	if err != nil {
		panic(err)
	}
	nodes, err := informer.New(informer.FromClient[*corev1.Node](core.Nodes()), informer.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- informer.Run(ctx, pods, nodes) }()

	if err := informer.WaitSynced(ctx, pods, nodes); err != nil {
		panic(err) // it says which, and why
	}
	fmt.Println(pods.Len(), nodes.Len())

	cancel()
	fmt.Println(<-done)
	// Output:
	// 1 1
	// <nil>
}
