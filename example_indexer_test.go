package informer_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

// Look up pods by the node they run on.
func ExampleAddIndex() {
	pods := informer.NewIndexer[*corev1.Pod](informer.IndexerOptions{})
	byNode, err := informer.AddIndex(pods, "node", func(p *corev1.Pod) (string, bool) {
		return p.Spec.NodeName, p.Spec.NodeName != ""
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	for name, node := range map[string]string{"web-0": "node-1", "web-1": "node-2", "db-0": "node-1", "new": ""} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		pod.Spec.NodeName = node
		if err := pods.Add(pod); err != nil {
			fmt.Println(err)
		}
	}

	var names []string
	for pod := range byNode.Get("node-1") {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	fmt.Println(names, byNode.Len("node-2"), pods.Len())
	// Output: [db-0 web-0] 1 4
}

// File each pod under every volume that it mounts.
func ExampleAddMultiIndex() {
	pods := informer.NewIndexer[*corev1.Pod](informer.IndexerOptions{})
	byVolume, err := informer.AddMultiIndex(pods, "volume", func(p *corev1.Pod, file func(string)) {
		for _, v := range p.Spec.Volumes {
			file(v.Name)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "logs"}}
	if err := pods.Add(pod); err != nil {
		fmt.Println(err)
	}

	for name, n := range byVolume.Keys() {
		fmt.Println(name, n)
	}
	// Unordered output:
	// data 1
	// logs 1
}

// A snapshot stays as it is, whatever is written later.
func ExampleReader_Snapshot() {
	pods := informer.NewIndexer[*corev1.Pod](informer.IndexerOptions{})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	if err := pods.Replace([]*corev1.Pod{pod}, "7"); err != nil {
		fmt.Println(err)
		return
	}

	before := pods.Snapshot()
	if err := pods.Delete(pod); err != nil {
		fmt.Println(err)
	}

	_, now := pods.Get(informer.KeyOf(pod))
	_, then := before.Get(informer.KeyOf(pod))
	fmt.Println(now, then, before.Version())
	// Output: false true 7
}
