package bench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/seed-99a027e8/informer"
)

// keysOf returns n keys such as controllers have.
func keysOf(n int) []informer.Key {
	keys := make([]informer.Key, n)
	for i := range keys {
		keys[i] = informer.Key{
			Namespace: fmt.Sprintf("team-%02d-prod", i%10),
			Name:      fmt.Sprintf("service-%03d-%08x", i%997, i*2654435761%(1<<32)),
		}
	}
	return keys
}

func newOurQueue(tb testing.TB, limiter informer.RateLimiter[informer.Key]) *informer.WorkQueue[informer.Key] {
	tb.Helper()
	q, err := informer.NewWorkQueue(informer.QueueOptions[informer.Key]{Limiter: limiter})
	must(tb, err)
	return q
}

func BenchmarkQ1_AddGetDone(b *testing.B) {
	keys := keysOf(1000)
	compare(b, func(b *testing.B) {
		q := newOurQueue(b, nil)
		passes(b, len(keys), nil, func() {
			for _, key := range keys {
				q.Add(key)
				lease, err := q.Get(b.Context())
				must(b, err)
				lease.Done()
			}
		})
	}, func(b *testing.B) {
		q := workqueue.NewTyped[informer.Key]()
		defer q.ShutDown()
		passes(b, len(keys), nil, func() {
			for _, key := range keys {
				q.Add(key)
				got, _ := q.Get()
				q.Done(got)
			}
		})
	})
}

func BenchmarkQ2_Pipe(b *testing.B) { benchPipe(b, 1) }

func BenchmarkQ3_Pipes(b *testing.B) { benchPipe(b, 4) }

// benchPipe has so many producers and as many consumers, who hand over so many
// keys in all. No key is added while it waits, so that each is handed over.
func benchPipe(b *testing.B, workers int) {
	keys, total := keysOf(workers*ownKeys), pick(400_000, 200_000)
	compare(b, func(b *testing.B) {
		passes(b, total, nil, func() {
			q := newOurQueue(b, nil)
			pipe(keys, workers, total, q.Add, func() (informer.Key, bool) {
				lease, err := q.Get(b.Context())
				if err != nil {
					return informer.Key{}, false
				}
				lease.Done()
				return lease.Key, true
			}, func() { _, _ = q.Drain(b.Context()) })
		})
	}, func(b *testing.B) {
		passes(b, total, nil, func() {
			q := workqueue.NewTyped[informer.Key]()
			pipe(keys, workers, total, func(key informer.Key) bool { q.Add(key); return true },
				func() (informer.Key, bool) {
					key, shutdown := q.Get()
					if !shutdown {
						q.Done(key)
					}
					return key, !shutdown
				}, q.ShutDownWithDrain)
		})
	})
}

// ownKeys is how many keys each producer has. All of them together are at most
// half as many keys ahead of the consumers.
const ownKeys = 4096

// pipe lets each producer add its own share of the keys, over and over.
func pipe(keys []informer.Key, workers, total int, add func(informer.Key) bool, take func() (informer.Key, bool), drain func()) {
	share := len(keys) / workers
	credits := make(chan struct{}, total/256+ownKeys)
	for range ownKeys / 2 / 256 {
		credits <- struct{}{}
	}
	var producing, consuming sync.WaitGroup
	for range workers {
		consuming.Go(func() {
			taken := 0
			for {
				if _, ok := take(); !ok {
					return
				}
				if taken++; taken%256 == 0 {
					credits <- struct{}{}
				}
			}
		})
	}
	for w := range workers {
		producing.Go(func() {
			own := keys[w*share : (w+1)*share]
			for i := range total / workers {
				if i%256 == 0 {
					<-credits
				}
				add(own[i%share])
			}
		})
	}
	producing.Wait()
	drain()
	consuming.Wait()
}

// delayed is how many keys wait in the rows of delays and limits.
const delayed = 100_000

func BenchmarkQ5_AddAfter(b *testing.B) {
	keys := keysOf(delayed)
	delay := func(i int) time.Duration { return time.Hour + time.Duration(i*7919%delayed)*time.Millisecond }
	compare(b, func(b *testing.B) {
		var q *informer.WorkQueue[informer.Key]
		fill := func() {
			for i, key := range keys {
				q.AddAfter(key, delay(i))
			}
		}
		held := heldBy(func() any { q = newOurQueue(b, nil); fill(); return q })
		passes(b, delayed, func() { q = newOurQueue(b, nil) }, fill)
		b.ReportMetric(held/delayed, "held-B/item")
	}, func(b *testing.B) {
		q := workqueue.NewTypedDelayingQueue[informer.Key]()
		fill := func() {
			for i, key := range keys {
				q.AddAfter(key, delay(i))
			}
		}
		held := heldBy(func() any {
			fill()
			time.Sleep(50 * time.Millisecond) // its goroutine takes the last ones
			return q
		})
		passes(b, delayed, func() { q.ShutDown(); q = workqueue.NewTypedDelayingQueue[informer.Key]() }, fill)
		q.ShutDown()
		b.ReportMetric(held/delayed, "held-B/item")
	})
}

func BenchmarkQ6_Limited(b *testing.B) {
	keys := keysOf(1000)
	compare(b, func(b *testing.B) {
		limiter := informer.ExponentialLimiter[informer.Key](time.Hour, time.Hour)
		q := newOurQueue(b, limiter)
		passes(b, len(keys), nil, func() {
			for _, key := range keys {
				q.AddLimited(key)
				q.Cancel(key) // else the limiter is not asked again
				limiter.Forget(key)
			}
		})
	}, func(b *testing.B) {
		q := workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[informer.Key](time.Hour, time.Hour))
		defer q.ShutDown()
		passes(b, len(keys), nil, func() {
			for _, key := range keys {
				q.AddRateLimited(key)
				q.Forget(key)
			}
		})
	})
}

func BenchmarkQ7_Exponential(b *testing.B) {
	keys := keysOf(delayed)
	for _, goroutines := range []int{1, 4} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) {
			ask := func(b *testing.B, when func(informer.Key) time.Duration) {
				passes(b, delayed, nil, func() {
					var asking sync.WaitGroup
					for g := range goroutines {
						asking.Go(func() {
							for i := range delayed / goroutines {
								when(keys[(i*7919+g*delayed/goroutines)%delayed])
							}
						})
					}
					asking.Wait()
				})
				runtime.KeepAlive(when)
			}
			compare(b, func(b *testing.B) {
				ask(b, informer.ExponentialLimiter[informer.Key](time.Millisecond, time.Minute).When)
			}, func(b *testing.B) {
				ask(b, workqueue.NewTypedItemExponentialFailureRateLimiter[informer.Key](time.Millisecond, time.Minute).When)
			})
		})
	}
}
