package bench

import (
	"runtime"
	"testing"
)

// idle is how many informers, or handlers, the rows below divide by.
const idle = 1000

// footprint is what a process holds.
type footprint struct{ goroutines, heap, stacks float64 }

func footprintNow() footprint {
	runtime.GC()
	var stats runtime.MemStats
	live := heap()
	runtime.ReadMemStats(&stats)
	return footprint{float64(runtime.NumGoroutine()), float64(live), float64(stats.StackInuse)}
}

// reportMore tells what each of the idle things added.
func (f footprint) reportMore(b *testing.B) {
	now := footprintNow()
	b.ReportMetric((now.goroutines-f.goroutines)/idle, "goroutines")
	b.ReportMetric((now.heap-f.heap)/idle, "heap-B")
	b.ReportMetric((now.stacks-f.stacks)/idle, "stack-B")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkM_Idle starts informers of an empty collection that watch for ever.
// The source takes no goroutine on our side, as over HTTP; on theirs it takes
// one, which is what client-go's decoder of a watch takes.
func BenchmarkM_Idle(b *testing.B) {
	run := func(b *testing.B, start func() started) {
		b.StopTimer()
		before := footprintNow()
		var all []started
		for range idle {
			all = append(all, start())
		}
		before.reportMore(b)
		for _, informer := range all {
			informer.stop()
		}
	}
	compare(b, func(b *testing.B) {
		run(b, func() started {
			s := newScript(pods.kind, nil)
			return startOurs(b, s.kind, ourSource[*podT]{s}, false)
		})
	}, func(b *testing.B) {
		run(b, func() started {
			s := newScript(pods.kind, nil)
			s.buffer = 0
			return startTheirs[*podT](b, s.kind, theirInformer(s, false))
		})
	})
}

// BenchmarkM_Handler adds handlers to one informer.
func BenchmarkM_Handler(b *testing.B) {
	handlers := make([]func(*podT), idle)
	for i := range handlers {
		handlers[i] = func(*podT) {}
	}
	objs := pods.first(100)
	run := func(b *testing.B, start func(s *script[*podT], handlers []func(*podT)) started) {
		b.StopTimer()
		base := start(newScript(pods.kind, objs), handlers[:1])
		before := footprintNow()
		many := start(newScript(pods.kind, objs), handlers)
		before.reportMore(b)
		many.stop()
		base.stop()
	}
	compare(b, func(b *testing.B) {
		run(b, func(s *script[*podT], handlers []func(*podT)) started {
			return startOurs(b, s.kind, ourSource[*podT]{s}, false, handlers...)
		})
	}, func(b *testing.B) {
		run(b, func(s *script[*podT], handlers []func(*podT)) started {
			s.buffer = 0
			return startTheirs(b, s.kind, theirInformer(s, false), handlers...)
		})
	})
}
