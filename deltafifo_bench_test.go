package informer_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/seed-99a027e8/informer"
)

// An update on its way through the queue into a store of 10,000 objects that
// nobody reads meanwhile.
func BenchmarkDeltaFIFO_UpdateToStore(b *testing.B) {
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	queue := informer.NewDeltaFIFO(store.Reader)
	objs := make([]*fifoObject, 10_000)
	for i := range objs {
		objs[i] = &fifoObject{name: strconv.Itoa(i), uid: strconv.Itoa(i), version: "1"}
	}
	if err := store.Replace(objs, "1"); err != nil {
		b.Fatal(err)
	}
	apply := func(batch informer.Batch[*fifoObject]) error {
		store.Apply(batch)
		return nil
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		obj := *objs[i%len(objs)]
		obj.version = strconv.Itoa(i + 2)
		if err := queue.Update(&obj); err != nil {
			b.Fatal(err)
		}
		if err := queue.PopAll(context.Background(), apply); err != nil {
			b.Fatal(err)
		}
	}
}
