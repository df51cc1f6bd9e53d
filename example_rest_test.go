package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// scheduledPod is a part of a pod: FromREST skips all other fields while it
// decodes.
type scheduledPod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

// Decode the server's answers object by object, without a list in memory. The
// type can be corev1.Pod, or only the part of it that a program reads.
func ExampleFromREST() {
	config, stop := exampleCluster(podOn("web-0", "node-1"))
	defer stop()
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()

	source := informer.FromREST[scheduledPod](client, corev1.SchemeGroupVersion.WithResource("pods"),
		informer.RESTOptions{Namespace: "default"})
	pods, err := informer.New(source, informer.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- pods.Run(ctx) }()

	if err := pods.WaitSynced(ctx); err != nil {
		panic(err)
	}
	for pod := range pods.All() { // a *scheduledPod
		fmt.Println(pod.Name, pod.Spec.NodeName)
	}

	cancel()
	fmt.Println(<-done)
	// Output:
	// web-0 node-1
	// <nil>
}
