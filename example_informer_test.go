package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// Keep a copy of all pods up to date, and read it.
func ExampleInformer() {
	config, stop := exampleCluster(podOn("web-0", "node-1"), podOn("web-1", "node-2"))
	defer stop()
	clientset := kubernetes.NewForConfigOrDie(config)

	pods, err := informer.New(informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods("")), informer.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- pods.Run(ctx) }() // until ctx ends

	if err := pods.WaitSynced(ctx); err != nil {
		panic(err) // it says why
	}
	pod, ok := pods.Get(informer.Key{Namespace: "default", Name: "web-1"})
	fmt.Println(pods.Len(), ok, pod.Spec.NodeName)

	cancel()
	fmt.Println(<-done)
	// Output:
	// 2 true node-2
	// <nil>
}
