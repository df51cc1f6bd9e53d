package bench

import (
	"flag"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/bench/fixture"
)

// sizes is for the benchmarks below, which show how costs grow. cmd/growth runs
// them up to a million.
var sizes = flag.String("sizes", "1000", "how many objects there are in the benchmarks G")

type smallT = *metav1.PartialObjectMetadata

// smalls are the objects that become more and more.
var smalls = &made[smallT]{kind: fixture.Small(), seed: standardSeed}

func eachSize(b *testing.B, run func(b *testing.B, n int)) {
	for _, size := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(size)
		must(b, err)
		b.Run("n="+size, func(b *testing.B) { run(b, n) })
	}
}

func BenchmarkG_Add(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchAdd(b, smalls, n) })
}

func BenchmarkG_Held(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchHeld(b, smalls, n) })
}

func BenchmarkG_UpdateSame(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchUpdate(b, smalls, n, smalls.kind.TouchAll) })
}

func BenchmarkG_UpdateMove(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchMove(b, smalls, n) })
}

func BenchmarkG_Delete(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchDelete(b, smalls, n) })
}

func BenchmarkG_Get(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchGet(b, smalls, n) })
}

// BenchmarkG_ByIndex asks for 100 objects at a time.
func BenchmarkG_ByIndex(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchByGroup(b, smalls, n) })
}

func BenchmarkG_Replace(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchReplace(b, smalls, n, theirQueues[0].make, 2) })
}

func BenchmarkG_List(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		objs := smalls.first(n)
		compare(b, func(b *testing.B) {
			x := newOurStore(b, smalls.kind)
			must(b, x.Replace(objs, "1"))
			passes(b, n, nil, func() { expect(b, len(x.List()), n) })
		}, func(b *testing.B) {
			x := newTheirStore(smalls.kind)
			fillTheirs(b, x, objs)
			passes(b, n, nil, func() { expect(b, len(x.List()), n) })
		})
	})
}

// BenchmarkG_Sync starts an informer in memory, and waits until it has synced.
func BenchmarkG_Sync(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		objs, nothing := smalls.first(n), func(smallT) {}
		run := func(b *testing.B, prepare func(*script[smallT]), start func(*script[smallT]) started) {
			var s *script[smallT]
			var inf started
			passes(b, n, func() {
				if inf.stop != nil {
					inf.stop()
				}
				s = newScript(smalls.kind, objs)
				prepare(s)
			}, func() { inf = start(s) })
			inf.stop()
		}
		compare(b, func(b *testing.B) {
			run(b, func(*script[smallT]) {}, func(s *script[smallT]) started {
				return startOurs(b, s.kind, ourSource[smallT]{s}, true, nothing)
			})
		}, func(b *testing.B) {
			run(b, (*script[smallT]).makeLists, func(s *script[smallT]) started {
				return startTheirs(b, s.kind, theirInformer(s, true), nothing)
			})
		})
	})
}

// BenchmarkG_WireSync reports the whole time, over HTTP. Sizes that take too
// long are left out.
func BenchmarkG_WireSync(b *testing.B) {
	most := pick(100_000, 10_000)
	eachSize(b, func(b *testing.B, n int) {
		if n > most {
			b.Skip("takes too long")
		}
		benchOverWire(b, childSpec{Task: "wire", Kind: "pods", Seed: standardSeed, N: n, Mode: jsonStream})
	})
}

// BenchmarkG_Queue works off a queue in which so many keys wait.
func BenchmarkG_Queue(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		keys := keysOf(n)
		compare(b, func(b *testing.B) {
			q := newOurQueue(b, nil)
			passes(b, n, nil, func() {
				for _, key := range keys {
					q.Add(key)
				}
				for range keys {
					lease, err := q.Get(b.Context())
					must(b, err)
					lease.Done()
				}
			})
		}, func(b *testing.B) {
			q := workqueue.NewTyped[informer.Key]()
			defer q.ShutDown()
			passes(b, n, nil, func() {
				for _, key := range keys {
					q.Add(key)
				}
				for range keys {
					key, _ := q.Get()
					q.Done(key)
				}
			})
		})
	})
}

func BenchmarkG_AddAfter(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) { benchAddAfter(b, n) })
}

func BenchmarkG_Limiter(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		keys, order := keysOf(n), fixture.Order(n)
		run := func(b *testing.B, when func(informer.Key) time.Duration) {
			passes(b, n, nil, func() {
				for _, i := range order {
					when(keys[i])
				}
			})
		}
		compare(b, func(b *testing.B) {
			run(b, informer.ExponentialLimiter[informer.Key](time.Millisecond, time.Minute).When)
		}, func(b *testing.B) {
			run(b, workqueue.NewTypedItemExponentialFailureRateLimiter[informer.Key](time.Millisecond, time.Minute).When)
		})
	})
}
