package bench

import (
	"fmt"
	"sync"
	"testing"

	"github.com/seed-99a027e8/informer/bench/fixture"
)

// The watch rows have so many objects, and at most chunk times chunks events on
// the way: fewer than objects, so that none is coalesced.
const (
	watchedObjects = 10_000
	eventChunk     = 256
	eventChunks    = 8
)

// BenchmarkI1_I2_WatchEvents is also where allocations per event are counted.
func BenchmarkI1_I2_WatchEvents(b *testing.B) {
	for _, handlers := range []int{1, 4, 16} {
		b.Run(fmt.Sprint("handlers=", handlers), func(b *testing.B) {
			benchWatch(b, pods, watchedObjects, pick(200_000, 60_000), handlers)
		})
	}
}

func benchWatch[T fixture.Object](b *testing.B, fix *made[T], n, events, handlers int) {
	objs := fix.first(n)
	var stream []T
	for len(stream) < events {
		stream = append(stream, fix.kind.TouchAll(objs[:min(n, events-len(stream))], uint64(20_000_000+len(stream)))...)
	}
	run := func(b *testing.B, start func(s *script[T], onUpdate []func(T)) (stop func())) {
		m, runs := newMeter(b), 0
		for runs == 0 || m.elapsed < *minTime {
			s := newScript(fix.kind, objs)
			d := newDelivery(s, stream, handlers, min(eventChunk, n/eventChunks/2))
			stop := start(s, d.onUpdate)
			m.start()
			close(s.begin)
			d.done.Wait()
			m.stop()
			stop()
			runs++
		}
		m.report(runs * events)
	}
	compare(b, func(b *testing.B) {
		run(b, func(s *script[T], onUpdate []func(T)) func() {
			return startOurs(b, s.kind, ourSource[T]{s}, false, onUpdate...).stop
		})
	}, func(b *testing.B) {
		run(b, func(s *script[T], onUpdate []func(T)) func() {
			return startTheirs(b, s.kind, theirInformer(s, false), onUpdate...).stop
		})
	})
}

// A delivery lets a script send a stream, and waits until each handler has been
// told of all of it.
type delivery[T any] struct {
	onUpdate []func(T)
	done     sync.WaitGroup
}

func newDelivery[T fixture.Object](s *script[T], stream []T, handlers, chunk int) *delivery[T] {
	d := &delivery[T]{}
	windows := make([]*window, handlers)
	d.done.Add(handlers)
	for h := range windows {
		w, told := newWindow(chunk, eventChunks), 0
		windows[h] = w
		d.onUpdate = append(d.onUpdate, func(T) {
			told++
			w.took(told)
			if told == len(stream) {
				d.done.Done()
			}
		})
	}
	s.events = func(yield func(T) bool) {
		for i, obj := range stream {
			for _, w := range windows {
				w.send(i)
			}
			if !yield(obj) {
				return
			}
		}
	}
	return d
}

// BenchmarkI3_I4_Sync lists, and lists again what has not changed, each side in a
// fresh process.
func BenchmarkI3_I4_Sync(b *testing.B) {
	benchInChild(b, childSpec{Task: "sync", Kind: "pods", Seed: standardSeed, N: many})
}

// BenchmarkI5_Stuck updates a few keys over and over, with one handler that
// never returns and one that is quick, and reports what is held per event, of
// the second half of the events.
func BenchmarkI5_Stuck(b *testing.B) {
	const keys = 1000
	objs, events := pods.first(keys), pick(1_000_000, 100_000)
	run := func(b *testing.B, start func(s *script[*podT], onUpdate []func(*podT)) (stop func())) {
		b.StopTimer()
		s := newScript(pods.kind, objs)
		var told, half sync.WaitGroup
		told.Add(1)
		half.Add(1)
		stuck, release, n := make(chan struct{}), make(chan struct{}), 0
		w := newWindow(100, 8)
		resume := make(chan struct{})
		s.events = func(yield func(*podT) bool) {
			for i := range events {
				w.send(i)
				if i == events/2 {
					<-resume
				}
				if !yield(pods.kind.Touch(objs[i%keys], uint64(30_000_000+i))) {
					return
				}
			}
		}
		var once sync.Once
		stop := start(s, []func(*podT){
			func(*podT) { once.Do(func() { close(stuck) }); <-release },
			func(*podT) {
				n++
				w.took(n)
				switch n {
				case events / 2:
					half.Done()
				case events:
					told.Done()
				}
			},
		})
		close(s.begin)
		half.Wait()
		<-stuck
		atHalf := heap()
		close(resume)
		told.Wait()
		held := float64(heap()) - float64(atHalf)
		close(release)
		stop()
		b.ReportMetric(held/float64(events-events/2), "held-B/event")
		b.ReportMetric(0, "ns/op")
	}
	compare(b, func(b *testing.B) {
		run(b, func(s *script[*podT], onUpdate []func(*podT)) func() {
			return startOurs(b, s.kind, ourSource[*podT]{s}, false, onUpdate...).stop
		})
	}, func(b *testing.B) {
		run(b, func(s *script[*podT], onUpdate []func(*podT)) func() {
			return startTheirs(b, s.kind, theirInformer(s, false), onUpdate...).stop
		})
	})
}
