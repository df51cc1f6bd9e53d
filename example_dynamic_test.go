package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/seed-99a027e8/informer"
)

// Watch objects of which there is no Go type, with a dynamic client.
func ExampleFromClient_dynamic() {
	config, stop := exampleCluster(podOn("web-0", "node-1"))
	defer stop()
	client := dynamic.NewForConfigOrDie(config).Resource(corev1.SchemeGroupVersion.WithResource("pods"))

	pods, err := informer.New(informer.FromClient[*unstructured.Unstructured](client), informer.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- pods.Run(ctx) }()

	if err := pods.WaitSynced(ctx); err != nil {
		panic(err)
	}
	for pod := range pods.In("default") {
		node, _, err := unstructured.NestedString(pod.Object, "spec", "nodeName")
		fmt.Println(pod.GetKind(), pod.GetName(), node, err)
	}

	cancel()
	fmt.Println(<-done)
	// Output:
	// Pod web-0 node-1 <nil>
	// <nil>
}
