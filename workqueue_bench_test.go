package informer_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-99a027e8/informer"
)

// benchKeys returns n keys such as controllers have.
func benchKeys(n int) []informer.Key {
	keys := make([]informer.Key, n)
	for i := range keys {
		keys[i] = informer.Key{
			Namespace: fmt.Sprintf("namespace-%d", i%10),
			Name:      fmt.Sprintf("deployment-%d-%d", i%100, i),
		}
	}
	return keys
}

func BenchmarkWorkQueue_AddGetDone(b *testing.B) {
	q := newQueue(b, informer.QueueOptions[informer.Key]{})
	keys, ctx, i := benchKeys(1000), b.Context(), 0
	b.ReportAllocs()
	for b.Loop() {
		q.Add(keys[i%len(keys)])
		lease, _ := q.Get(ctx)
		lease.Done()
		i++
	}
}

// benchPipe lets producers add b.N keys in all, and consumers work them off. No
// key is added twice, and at most 512 wait, so that every add is a lease.
func benchPipe(b *testing.B, producers, consumers int) {
	q := newQueue(b, informer.QueueOptions[informer.Key]{})
	keys := benchKeys(1024)
	var added, done atomic.Int64
	var consuming, producing sync.WaitGroup
	ctx := b.Context()
	b.ReportAllocs()
	b.ResetTimer()
	for range consumers {
		consuming.Go(func() {
			for {
				lease, err := q.Get(ctx)
				if err != nil {
					return
				}
				lease.Done()
				done.Add(1)
			}
		})
	}
	for range producers {
		producing.Go(func() {
			for {
				n := added.Add(1)
				if n > int64(b.N) {
					return
				}
				for n-done.Load() > 512 {
					runtime.Gosched()
				}
				q.Add(keys[n%1024])
			}
		})
	}
	producing.Wait()
	_, _ = q.Drain(ctx)
	consuming.Wait()
}

func BenchmarkWorkQueue_Pipe(b *testing.B) {
	b.Run("1x1", func(b *testing.B) { benchPipe(b, 1, 1) })
	b.Run("4x4", func(b *testing.B) { benchPipe(b, 4, 4) })
}

// BenchmarkWorkQueue_AddAfter adds keys to 100,000 that are delayed, and takes
// as many out.
func BenchmarkWorkQueue_AddAfter(b *testing.B) {
	const pending = 100_000
	keys := benchKeys(pending)
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		var held uint64
		for n := 0; n < b.N; n += pending {
			b.StopTimer()
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			q := newQueue(b, informer.QueueOptions[informer.Key]{})
			b.StartTimer()
			for i := range min(pending, b.N-n) {
				q.AddAfter(keys[i], time.Hour+time.Duration(i*7919%pending)*time.Millisecond)
			}
			b.StopTimer()
			if b.N-n >= pending {
				runtime.GC()
				runtime.ReadMemStats(&after)
				held = after.HeapAlloc - before.HeapAlloc
			}
			runtime.KeepAlive(q)
			b.StartTimer()
		}
		b.ReportMetric(float64(held)/pending, "B/item")
	})
	b.Run("steady", func(b *testing.B) {
		q := newQueue(b, informer.QueueOptions[informer.Key]{})
		for i, key := range keys {
			q.AddAfter(key, time.Hour+time.Duration(i*7919%pending)*time.Millisecond)
		}
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			key := keys[i*7919%pending]
			q.Cancel(key)
			q.AddAfter(key, time.Hour+time.Duration(i%pending)*time.Millisecond)
			i++
		}
	})
}

// BenchmarkWorkQueue_AddLimited adds by the limiter, and makes it forget.
func BenchmarkWorkQueue_AddLimited(b *testing.B) {
	q := newQueue(b, informer.QueueOptions[informer.Key]{
		Limiter: informer.ExponentialLimiter[informer.Key](time.Hour, time.Hour),
	})
	keys, i := benchKeys(1000), 0
	b.ReportAllocs()
	for b.Loop() {
		q.AddLimited(keys[i%len(keys)])
		q.Cancel(keys[i%len(keys)])
		i++
	}
}

func BenchmarkExponentialLimiter(b *testing.B) {
	keys := benchKeys(100_000)
	b.Run("alone", func(b *testing.B) {
		l, i := informer.ExponentialLimiter[informer.Key](time.Millisecond, time.Minute), 0
		b.ReportAllocs()
		for b.Loop() {
			l.When(keys[i*7919%len(keys)])
			i++
		}
	})
	b.Run("four goroutines", func(b *testing.B) {
		l := informer.ExponentialLimiter[informer.Key](time.Millisecond, time.Minute)
		b.ReportAllocs()
		var running sync.WaitGroup
		for g := range 4 {
			running.Go(func() {
				for i := range b.N / 4 {
					l.When(keys[(i+g*25_000)*7919%len(keys)])
				}
			})
		}
		running.Wait()
	})
}
