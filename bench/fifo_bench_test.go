package bench

import (
	"context"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/bench/fixture"
)

// theirQueues are client-go's queues: the one that its informers use now, and
// the one before. Without a store the first is as in an informer; there it does
// not compare a list with what is known, but leaves that to the store.
var theirQueues = []struct {
	name string
	make func(known cache.KeyListerGetter) cache.Queue
}{
	{"RealFIFO", func(known cache.KeyListerGetter) cache.Queue {
		return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			KnownObjects: known, AtomicEvents: known == nil, UnlockWhileProcessing: known == nil,
		})
	}},
	{"DeltaFIFO", func(known cache.KeyListerGetter) cache.Queue {
		return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
	}},
}

// A window keeps a producer from running away from its consumer, so that no two
// events of a key wait at a time: none can be coalesced, and all are handed
// over.
type window struct {
	chunk, chunks int
	credit        chan struct{}
}

func newWindow(chunk, chunks int) *window {
	return &window{chunk, chunks, make(chan struct{}, chunks+1)}
}

// send is called by the producer before event i.
func (w *window) send(i int) {
	if i%w.chunk == 0 && i >= w.chunk*w.chunks {
		<-w.credit
	}
}

// took is called by the consumer after it has taken i events.
func (w *window) took(i int) {
	if i%w.chunk == 0 {
		w.credit <- struct{}{}
	}
}

// hopKeys is how many objects the hop is measured with.
const hopKeys = 10_000

func BenchmarkF1_Hop(b *testing.B) {
	for _, their := range theirQueues {
		b.Run(their.name, func(b *testing.B) {
			benchHop(b, pods, hopKeys, pick(200_000, 100_000), their.make)
		})
	}
}

// benchHop sends updates from one goroutine to another. What the consumer has is
// not asked for: there is no store.
func benchHop[T fixture.Object](b *testing.B, fix *made[T], n, events int, make func(cache.KeyListerGetter) cache.Queue) {
	objs := fix.kind.TouchAll(fix.first(n), 1_000_000)
	chunk := min(256, n/5)
	send := func(w *window, update func(T)) {
		for i := range events {
			w.send(i)
			update(objs[i%n])
		}
	}
	compare(b, func(b *testing.B) {
		f, w := informer.NewDeltaFIFO(informer.Reader[T]{}), newWindow(chunk, 4)
		passes(b, events, nil, func() {
			go send(w, func(obj T) { _ = f.Update(obj) })
			taken := 0
			for taken < events {
				must(b, f.PopAll(context.Background(), func(batch informer.Batch[T]) error {
					for _, deltas := range batch.Deltas {
						for range deltas.All() {
							taken++
							w.took(taken)
						}
					}
					return nil
				}))
			}
			w.reset()
		})
	}, func(b *testing.B) {
		f, w := make(nil), newWindow(chunk, 4)
		passes(b, events, nil, func() {
			go send(w, func(obj T) { _ = f.Update(obj) })
			taken := 0
			for taken < events {
				popTheirs(b, f, func(cache.Delta) {
					taken++
					w.took(taken)
				})
			}
			w.reset()
		})
	})
}

// reset forgets the credits that are left at the end.
func (w *window) reset() {
	for len(w.credit) > 0 {
		<-w.credit
	}
}

// popTheirs takes as much as client-go's queue gives at a time.
func popTheirs(b *testing.B, f cache.Queue, each func(cache.Delta)) {
	one := func(obj any, _ bool) error {
		for _, delta := range obj.(cache.Deltas) {
			each(delta)
		}
		return nil
	}
	if batched, ok := f.(cache.QueueWithBatch); ok {
		must(b, batched.PopBatch(func(deltas []cache.Delta, _ bool) error {
			for _, delta := range deltas {
				each(delta)
			}
			return nil
		}, one))
		return
	}
	_, err := f.Pop(one)
	must(b, err)
}

// hotDepth is how many events of one key wait until they are taken.
const hotDepth = 1000

// BenchmarkF2_HotKey takes from client-go's queue as its informers do: in
// batches, of which each holds a key once.
func BenchmarkF2_HotKey(b *testing.B) {
	base := pods.first(1)[0]
	events := make([]*podT, hotDepth)
	for i := range events {
		events[i] = pods.kind.Touch(base, uint64(2_000_000+i))
	}
	compare(b, func(b *testing.B) {
		f := informer.NewDeltaFIFO(informer.Reader[*podT]{})
		passes(b, hotDepth, nil, func() {
			for _, obj := range events {
				must(b, f.Update(obj))
			}
			must(b, f.PopAll(context.Background(), func(informer.Batch[*podT]) error { return nil }))
		})
	}, func(b *testing.B) {
		f := theirQueues[0].make(nil)
		passes(b, hotDepth, nil, func() {
			for _, obj := range events {
				must(b, f.Update(obj))
			}
			for taken := 0; taken < hotDepth; {
				popTheirs(b, f, func(cache.Delta) { taken++ })
			}
		})
	})
}

func BenchmarkF3_Replace(b *testing.B) {
	for _, their := range theirQueues {
		b.Run("unchanged/"+their.name, func(b *testing.B) { benchReplace(b, pods, many, their.make, 0) })
	}
	b.Run("half/RealFIFO", func(b *testing.B) { benchReplace(b, pods, many, theirQueues[0].make, 2) })
}

// benchReplace brings a list of all objects to one who has them, and takes what
// comes of it. Every one of so many objects has changed; 0 stands for none.
func benchReplace[T fixture.Object](b *testing.B, fix *made[T], n int, make func(cache.KeyListerGetter) cache.Queue, every int) {
	known := fix.first(n)
	list := append([]T(nil), known...)
	for i, obj := range list {
		if every > 0 && i%every == 0 {
			list[i] = fix.kind.Touch(obj, uint64(3_000_000+i))
		} else {
			list[i] = fix.kind.Copy(obj)
		}
	}
	compare(b, func(b *testing.B) {
		x := newOurStore(b, fix.kind)
		must(b, x.Replace(known, "1"))
		f := informer.NewDeltaFIFO(x.Reader)
		passes(b, n, nil, func() {
			must(b, f.Replace(list, "2"))
			must(b, f.PopAll(context.Background(), func(informer.Batch[T]) error { return nil }))
		})
	}, func(b *testing.B) {
		x, items := newTheirStore(fix.kind), anys(list)
		fillTheirs(b, x, known)
		f := make(x)
		passes(b, n, nil, func() {
			must(b, f.Replace(items, "2"))
			for taken := 0; taken < n; {
				popTheirs(b, f, func(cache.Delta) { taken++ })
			}
		})
	})
}
