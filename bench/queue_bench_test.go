package bench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

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
			pipe(keys, workers, total, func(_ int, key informer.Key) { q.Add(key) }, takeOurs(b, q),
				func() { _, _ = q.Drain(b.Context()) })
		})
	}, func(b *testing.B) {
		passes(b, total, nil, func() {
			q := workqueue.NewTyped[informer.Key]()
			pipe(keys, workers, total, func(_ int, key informer.Key) { q.Add(key) }, takeTheirs(q), q.ShutDownWithDrain)
		})
	})
}

// takeOurs leases a key and finishes it, until the queue drains.
func takeOurs(b *testing.B, q *informer.WorkQueue[informer.Key]) func() bool {
	return func() bool {
		lease, err := q.Get(b.Context())
		return err == nil && lease.Done()
	}
}

func takeTheirs(q workqueue.TypedInterface[informer.Key]) func() bool {
	return func() bool {
		key, shutdown := q.Get()
		if !shutdown {
			q.Done(key)
		}
		return !shutdown
	}
}

// ownKeys is how many keys each producer has. All of them together are at most
// half as many keys ahead of the consumers.
const ownKeys = 4096

// pipe lets each producer add its own share of the keys, over and over.
func pipe(keys []informer.Key, workers, total int, add func(int, informer.Key), take func() bool, drain func()) {
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
				if !take() {
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
				add(i, own[i%share])
			}
		})
	}
	producing.Wait()
	drain()
	consuming.Wait()
}

// BenchmarkQ4_Priority uses controller-runtime's queue with priorities, without
// metrics, as ours has none. Keys have two priorities in turn.
func BenchmarkQ4_Priority(b *testing.B) {
	keys := keysOf(1000)
	high := 1
	theirs := func() priorityqueue.PriorityQueue[informer.Key] { return priorityqueue.New[informer.Key]("") }
	theirAdd := func(q priorityqueue.PriorityQueue[informer.Key], i int, key informer.Key) {
		if i%2 == 0 {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &high}, key)
		} else {
			q.AddWithOpts(priorityqueue.AddOpts{}, key)
		}
	}
	ourAdd := func(q *informer.WorkQueue[informer.Key], i int, key informer.Key) {
		q.AddWith(key, informer.AddOptions{Priority: informer.Priority(1 - i%2)})
	}
	b.Run("cycle", func(b *testing.B) {
		compare(b, func(b *testing.B) {
			q := newOurQueue(b, nil)
			passes(b, len(keys), nil, func() {
				for i, key := range keys {
					ourAdd(q, i, key)
					lease, err := q.Get(b.Context())
					must(b, err)
					lease.Done()
				}
			})
		}, func(b *testing.B) {
			q := theirs()
			defer q.ShutDown()
			passes(b, len(keys), nil, func() {
				for i, key := range keys {
					theirAdd(q, i, key)
					got, _, _ := q.GetWithPriority()
					q.Done(got)
				}
			})
		})
	})
	for _, workers := range []int{1, 4} {
		b.Run(fmt.Sprintf("%dx%d", workers, workers), func(b *testing.B) {
			keys, total := keysOf(workers*ownKeys), pick(200_000, 50_000)
			compare(b, func(b *testing.B) {
				passes(b, total, nil, func() {
					q := newOurQueue(b, nil)
					pipe(keys, workers, total, func(i int, key informer.Key) { ourAdd(q, i, key) }, takeOurs(b, q),
						func() { _, _ = q.Drain(b.Context()) })
				})
			}, func(b *testing.B) {
				passes(b, total, nil, func() {
					q := theirs()
					pipe(keys, workers, total, func(i int, key informer.Key) { theirAdd(q, i, key) }, takeTheirs(q), func() {
						for q.Len() > 0 {
							runtime.Gosched() // ShutDown would leave them
						}
						q.ShutDown()
					})
				})
			})
		})
	}
}

// delayed is how many keys wait in the rows of delays and limits.
const delayed = 100_000

func BenchmarkQ5_AddAfter(b *testing.B) { benchAddAfter(b, delayed) }

// benchAddAfter fills a queue with n keys that wait.
func benchAddAfter(b *testing.B, n int) {
	keys := keysOf(n)
	delay := func(i int) time.Duration { return time.Hour + time.Duration(i*7919%n)*time.Millisecond }
	compare(b, func(b *testing.B) {
		var q *informer.WorkQueue[informer.Key]
		fill := func() {
			for i, key := range keys {
				q.AddAfter(key, delay(i))
			}
		}
		held := heldBy(func() any { q = newOurQueue(b, nil); fill(); return q })
		passes(b, n, func() { q = newOurQueue(b, nil) }, fill)
		b.ReportMetric(held/float64(n), "held-B/item")
	}, func(b *testing.B) {
		q := workqueue.NewTypedDelayingQueue[informer.Key]()
		fill := func() {
			for i, key := range keys {
				q.AddAfter(key, delay(i))
			}
		}
		held := heldBy(func() any {
			fill()
			<-time.After(50 * time.Millisecond) // its goroutine takes the last ones
			return q
		})
		passes(b, n, func() { q.ShutDown(); q = workqueue.NewTypedDelayingQueue[informer.Key]() }, fill)
		q.ShutDown()
		b.ReportMetric(held/float64(n), "held-B/item")
	})
}

func BenchmarkQ6_Limited(b *testing.B) {
	keys := keysOf(1000)
	compare(b, func(b *testing.B) {
		q := newOurQueue(b, informer.ExponentialLimiter[informer.Key](time.Hour, time.Hour))
		passes(b, len(keys), nil, func() {
			for _, key := range keys {
				limitOurs(q, key)
			}
		})
	}, func(b *testing.B) {
		q := workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[informer.Key](time.Hour, time.Hour))
		defer q.ShutDown()
		passes(b, len(keys), nil, func() {
			for _, key := range keys {
				limitTheirs(q, key)
			}
		})
	})
}

// limitOurs adds a key as one that failed, and forgets that it did. Cancel, which
// tells the limiter to forget, takes the key out as well: else the limiter would
// not be asked for it again.
func limitOurs(q *informer.WorkQueue[informer.Key], key informer.Key) {
	q.AddLimited(key)
	q.Cancel(key)
}

// limitTheirs does the same. The key stays delayed.
func limitTheirs(q workqueue.TypedRateLimitingInterface[informer.Key], key informer.Key) {
	q.AddRateLimited(key)
	q.Forget(key)
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
