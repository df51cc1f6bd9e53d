package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// Read your own write: after a write, wait for its version, and the cache shows
// it.
func ExampleInformer_WaitForResourceVersion() {
	config, stop := exampleCluster()
	defer stop()
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")

	maps, err := informer.New(informer.FromClient[*corev1.ConfigMap](client), informer.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- maps.Run(ctx) }()

	written, err := client.Create(ctx, settings("theme", "red"), metav1.CreateOptions{})
	if err != nil {
		panic(err)
	}
	if err := maps.WaitForResourceVersion(ctx, written.ResourceVersion); err != nil {
		panic(err)
	}
	read, ok := maps.Get(informer.KeyOf(written))
	fmt.Println(ok, read.Data["color"])

	cancel()
	fmt.Println(<-done)
	// Output:
	// true red
	// <nil>
}

// Wait until all pods of a namespace run: the whole job of many a small tool.
func ExampleInformer_WaitUntil() {
	config, stop := exampleCluster(podOn("web-0", "node-1"))
	defer stop()
	client := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default")

	pods, err := informer.New(informer.FromClient[*corev1.Pod](client), informer.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- pods.Run(ctx) }()

	go func() { // somebody starts the pod
		pod := podOn("web-0", "node-1")
		pod.Status.Phase = corev1.PodRunning
		_, _ = client.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}()
	err = pods.WaitUntil(ctx, func(r informer.Reader[*corev1.Pod]) bool {
		for pod := range r.All() {
			if pod.Status.Phase != corev1.PodRunning {
				return false
			}
		}
		return r.Len() > 0
	})
	fmt.Println("all run:", err)

	cancel()
	fmt.Println(<-done)
	// Output:
	// all run: <nil>
	// <nil>
}
