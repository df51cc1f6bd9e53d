package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-99a027e8/informer/bench/fixture"
)

// besideReaders is how many goroutines get objects beside the writer.
const besideReaders = 4

// besideTime is how long the rows of this file run.
func besideTime() time.Duration { return max(*minTime, 300*time.Millisecond) }

// BenchmarkS7_Beside lets one goroutine update and four get, all at full speed.
func BenchmarkS7_Beside(b *testing.B) {
	objs := pods.first(many)
	next := pods.kind.TouchAll(objs, 1_000_000)
	order := fixture.Order(many)
	compare(b, func(b *testing.B) {
		x, keys := newOurStore(b, pods.kind), fixture.KeysOf(objs)
		must(b, x.Replace(objs, "1"))
		benchBeside(b, order, func(i, turn int) { _ = x.Update(version(turn, objs, next)[i]) },
			func(i int) bool { _, ok := x.Get(keys[i]); return ok })
	}, func(b *testing.B) {
		x, keys := newTheirStore(pods.kind), stringKeys(objs)
		fillTheirs(b, x, objs)
		benchBeside(b, order, func(i, turn int) { _ = x.Update(version(turn, objs, next)[i]) },
			func(i int) bool { _, ok, _ := x.GetByKey(keys[i]); return ok })
	})
}

// version returns the objects that a writer stores in its turn.
func version[T any](turn int, even, odd []T) []T {
	if turn%2 == 0 {
		return odd
	}
	return even
}

func benchBeside(b *testing.B, order []int, write func(i, turn int), read func(i int) bool) {
	b.StopTimer()
	var ended atomic.Bool
	var reads, lost atomic.Int64
	var reading sync.WaitGroup
	for r := range besideReaders {
		reading.Go(func() {
			n := 0
			for i := r * len(order) / besideReaders; !ended.Load(); i++ {
				if !read(order[i%len(order)]) {
					lost.Add(1)
				}
				n++
			}
			reads.Add(int64(n))
		})
	}
	begin, writes := time.Now(), 0
	for ; time.Since(begin) < besideTime(); writes++ {
		write(order[writes%len(order)], writes/len(order))
	}
	took := time.Since(begin).Seconds()
	ended.Store(true)
	reading.Wait()
	expect(b, int(lost.Load()), 0)
	b.ReportMetric(float64(reads.Load())/took, "reads/s")
	b.ReportMetric(float64(writes)/took, "writes/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkS10_BesideList measures single updates, with and without a goroutine
// that lists everything again and again.
func BenchmarkS10_BesideList(b *testing.B) {
	objs := pods.first(many)
	next := pods.kind.TouchAll(objs, 1_000_000)
	order := fixture.Order(many)
	compare(b, func(b *testing.B) {
		x := newOurStore(b, pods.kind)
		must(b, x.Replace(objs, "1"))
		benchBesideList(b, order, func(i, turn int) { _ = x.Update(version(turn, objs, next)[i]) },
			func() int { return len(x.List()) })
	}, func(b *testing.B) {
		x := newTheirStore(pods.kind)
		fillTheirs(b, x, objs)
		benchBesideList(b, order, func(i, turn int) { _ = x.Update(version(turn, objs, next)[i]) },
			func() int { return len(x.List()) })
	})
}

func benchBesideList(b *testing.B, order []int, write func(i, turn int), list func() int) {
	b.StopTimer()
	done := 0
	p50 := func() float64 {
		var took []time.Duration
		for end := time.Now().Add(besideTime()); time.Now().Before(end); done++ {
			from := time.Now()
			write(order[done%len(order)], done/len(order))
			took = append(took, time.Since(from))
		}
		slices.Sort(took)
		return float64(took[len(took)/2].Nanoseconds())
	}
	quiet := p50()
	var ended atomic.Bool
	var listing sync.WaitGroup
	listing.Go(func() {
		for !ended.Load() {
			if list() != len(order) {
				b.Error("a list lacks objects")
			}
		}
	})
	beside := p50()
	ended.Store(true)
	listing.Wait()
	b.ReportMetric(quiet, "quiet-p50-ns")
	b.ReportMetric(beside, "beside-p50-ns")
	b.ReportMetric(beside/quiet, "p50-ratio")
	b.ReportMetric(0, "ns/op")
}
