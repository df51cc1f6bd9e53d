package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// Drop what nobody reads before it is stored.
func ExampleTransform() {
	pod := podOn("web-0", "node-1")
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{…}"}
	config, stop := exampleCluster(pod)
	defer stop()
	clientset := kubernetes.NewForConfigOrDie(config)

	source := informer.Transform(
		informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods("")),
		func(p *corev1.Pod) (*corev1.Pod, error) {
			p.Annotations, p.ManagedFields = nil, nil
			return p, nil
		})

	// An informer is given the source as any other; here a list is enough.
	pager, err := informer.NewPager(source)
	if err != nil {
		panic(err)
	}
	for p, err := range pager.All(context.Background(), metav1.ListOptions{}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Name, p.Spec.NodeName, len(p.Annotations))
	}
	// Output: web-0 node-1 0
}
