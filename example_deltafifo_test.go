package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-99a027e8/informer"
)

// A DeltaFIFO between one who tells what happens and a store: however much
// happens while the consumer is away, at most two deltas a key wait for it.
func ExampleDeltaFIFO() {
	pods := informer.NewIndexer[*corev1.Pod](informer.IndexerOptions{})
	fifo := informer.NewDeltaFIFO(pods.Reader) // what the consumer has

	produce := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	consume := func() {
		err := fifo.PopAll(context.Background(), func(b informer.Batch[*corev1.Pod]) error {
			for _, c := range pods.Apply(b) {
				fmt.Println(c.Type, c.Key.Name)
			}
			return nil
		})
		if err != nil {
			panic(err)
		}
	}

	produce(fifo.Add(podOn("web-0", "")))
	produce(fifo.Update(podOn("web-0", "node-1"))) // nobody has seen the first
	produce(fifo.Add(podOn("web-1", "node-2")))
	consume()
	produce(fifo.Add(podOn("web-2", "node-2")))
	produce(fifo.Delete(podOn("web-2", "node-2"))) // came and went
	produce(fifo.Delete(podOn("web-1", "node-2")))
	consume()
	fmt.Println("left:", pods.Len())
	// Output:
	// Added web-0
	// Added web-1
	// Deleted web-1
	// left: 1
}
