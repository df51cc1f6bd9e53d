package informer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-99a027e8/informer"
)

// Batches so large that their memory is used again are handed over once and
// whole, whatever came while the one before was at work (promises 2 and 3).
func TestDeltaFIFOLargeBatches(t *testing.T) {
	queue := informer.NewDeltaFIFO(informer.Reader[*fifoObject]{})
	version := 0
	add := func(n int) {
		for i := range n {
			version++
			obj := &fifoObject{name: fmt.Sprint(i), uid: fmt.Sprint(i), version: fmt.Sprint(version)}
			if err := queue.Update(obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	sizes := []int{1000, 300, 2000, 2000, 3, 700, 700, 1, 1}
	add(sizes[0])
	for i, want := range sizes {
		next := 0
		if i+1 < len(sizes) {
			next = sizes[i+1]
		}
		last := version
		err := queue.PopAll(context.Background(), func(b informer.Batch[*fifoObject]) error {
			add(next)
			if len(b.Deltas) != want {
				return fmt.Errorf("batch %d has %d deltas, want %d", i, len(b.Deltas), want)
			}
			for j, d := range b.Deltas {
				for delta := range d.All() {
					if got, want := delta.Object.version, fmt.Sprint(last-want+j+1); d.Len() != 1 || got != want {
						return fmt.Errorf("batch %d: delta %d has version %s, want %s", i, j, got, want)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		informer.ValidateFIFO(t, queue)
	}
	queue.Close()
	if err := queue.PopAll(context.Background(), func(informer.Batch[*fifoObject]) error { return nil }); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("after all batches: %v, want %v", err, informer.ErrStopped)
	}
}
