package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// A controller: the keys of pods that change go to a queue, and a function
// brings each of them where it should be.
func ExampleEnqueue() {
	config, stop := exampleCluster(podOn("web-0", "node-1"))
	defer stop()
	clientset := kubernetes.NewForConfigOrDie(config)

	pods, err := informer.New(informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods("")), informer.Options{})
	if err != nil {
		panic(err)
	}
	queue, err := informer.NewWorkQueue(informer.QueueOptions[informer.Key]{})
	if err != nil {
		panic(err)
	}
	if _, err := informer.Enqueue(pods, queue); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- pods.Run(ctx) }()

	if err := pods.WaitSynced(ctx); err != nil {
		panic(err)
	}
	err = queue.Run(ctx, 2, func(ctx context.Context, key informer.Key) error {
		pod, ok := pods.Get(key)
		if !ok {
			return nil // it is gone
		}
		fmt.Println("reconcile", key, "on", pod.Spec.NodeName)
		cancel() // a real controller goes on
		return nil
	})
	fmt.Println(err, <-done)
	// Output:
	// reconcile default/web-0 on node-1
	// <nil> <nil>
}
