package informer_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-99a027e8/informer"
)

// Be told only of the pods of one node, and of those that leave it.
func ExampleFilter() {
	onNode1 := func(p *corev1.Pod) bool { return p.Spec.NodeName == "node-1" }
	handler := informer.Filter(onNode1, func(c informer.Change[*corev1.Pod]) {
		fmt.Println(c.Type, c.Key.Name)
	})

	// This is what an informer does with a handler that is given to AddHandler.
	here, there := podOn("web-0", "node-1"), podOn("web-0", "node-2")
	key := informer.KeyOf(here)
	handler(informer.Change[*corev1.Pod]{Type: informer.Added, Key: key, New: there})
	handler(informer.Change[*corev1.Pod]{Type: informer.Updated, Key: key, Old: there, New: here})
	handler(informer.Change[*corev1.Pod]{Type: informer.Updated, Key: key, Old: here, New: there})
	// Output:
	// Added web-0
	// Deleted web-0
}
