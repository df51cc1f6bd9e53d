package informer_test

import (
	"fmt"
	"testing"

	"github.com/seed-99a027e8/informer"
)

// The fixture of the benchmarks: 7 index values an object, of which one is its
// own, and the namespace.
func benchStore(b *testing.B, n int) (*informer.Indexer[*storeObj], *informer.Index[string, *storeObj], []*storeObj) {
	b.Helper()
	x := newStore(b)
	ix := byGroup(b, x)
	_, err := informer.AddMultiIndex(x, "tags", func(o *storeObj, file func(int)) {
		for _, tag := range o.tags {
			file(tag)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	objs := make([]*storeObj, n)
	for i := range objs {
		objs[i] = &storeObj{
			key: storeKey(fmt.Sprint("namespace-", i%10), fmt.Sprint("object-", i)), uid: "u", version: "1",
			group: fmt.Sprint("node-", i/100), tags: []int{-1 - i, i % 3, 10 + i%50, 100 + i%500, 1000 + i%1000},
		}
	}
	return x, ix, objs
}

func benchSizes(b *testing.B, run func(*testing.B, *informer.Indexer[*storeObj], *informer.Index[string, *storeObj], []*storeObj)) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, ix, objs := benchStore(b, n)
			if err := x.Replace(objs, "1"); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			run(b, x, ix, objs)
		})
	}
}

func BenchmarkIndexer_Add(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, _, objs := benchStore(b, n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i == n {
					b.StopTimer()
					i = 0
					x, _, _ = benchStore(b, 0)
					b.StartTimer()
				}
				_ = x.Add(objs[i])
				i++
			}
		})
	}
}

func BenchmarkIndexer_Update_Same(b *testing.B) {
	benchSizes(b, func(b *testing.B, x *informer.Indexer[*storeObj], _ *informer.Index[string, *storeObj], objs []*storeObj) {
		next := clones(objs, func(o *storeObj) { o.version = "2" })
		benchUpdate(b, x, objs, next)
	})
}

func BenchmarkIndexer_Update_Move(b *testing.B) {
	benchSizes(b, func(b *testing.B, x *informer.Indexer[*storeObj], _ *informer.Index[string, *storeObj], objs []*storeObj) {
		i := 0
		next := clones(objs, func(o *storeObj) {
			o.version, o.group = "2", objs[(i+500)%len(objs)].group
			o.tags = []int{o.tags[0], o.tags[1], o.tags[2], o.tags[3], 1000 + (i+1)%1000}
			i++
		})
		benchUpdate(b, x, objs, next)
	})
}

func clones(objs []*storeObj, change func(*storeObj)) []*storeObj {
	next := make([]*storeObj, len(objs))
	for i, o := range objs {
		c := *o
		change(&c)
		next[i] = &c
	}
	return next
}

func benchUpdate(b *testing.B, x *informer.Indexer[*storeObj], objs, next []*storeObj) {
	i := 0
	for b.Loop() {
		if i == len(objs) {
			i, objs, next = 0, next, objs
		}
		_ = x.Update(next[i])
		i++
	}
}

func BenchmarkIndexer_Delete(b *testing.B) {
	benchSizes(b, func(b *testing.B, x *informer.Indexer[*storeObj], _ *informer.Index[string, *storeObj], objs []*storeObj) {
		i := 0
		for b.Loop() {
			if i == len(objs) {
				b.StopTimer()
				i = 0
				if err := x.Replace(objs, "1"); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			_ = x.Delete(objs[i])
			i++
		}
	})
}

func BenchmarkIndexer_Get(b *testing.B) {
	benchSizes(b, func(b *testing.B, x *informer.Indexer[*storeObj], _ *informer.Index[string, *storeObj], objs []*storeObj) {
		i := 0
		for b.Loop() {
			if _, ok := x.Get(objs[i].key); !ok {
				b.Fatal("lost")
			}
			i = (i + 7919) % len(objs)
		}
	})
}

func BenchmarkIndexer_List(b *testing.B) {
	benchSizes(b, func(b *testing.B, x *informer.Indexer[*storeObj], _ *informer.Index[string, *storeObj], objs []*storeObj) {
		for b.Loop() {
			if len(x.List()) != len(objs) {
				b.Fatal("lost")
			}
		}
	})
}

func BenchmarkIndexer_Index_Get(b *testing.B) {
	benchSizes(b, func(b *testing.B, x *informer.Indexer[*storeObj], ix *informer.Index[string, *storeObj], objs []*storeObj) {
		i, found := 0, 0
		for b.Loop() {
			for range ix.Get(objs[i].group) {
				found++
			}
			i = (i + 7919) % len(objs)
		}
		b.ReportMetric(float64(found)/float64(b.N), "objects/op")
	})
}
