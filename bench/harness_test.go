package bench

import (
	"flag"
	"runtime"
	"testing"
	"time"
)

// rounds is how often the two sides of a row take turns.
var rounds = flag.Int("rounds", 1, "run ours and theirs so many times in turn")

// quick makes the rows that have a fixed amount of work smaller.
var quick = flag.Bool("quick", false, "do less work in each run")

// compare runs both sides of a row in turn.
func compare(b *testing.B, ours, theirs func(*testing.B)) {
	b.Helper()
	for range *rounds {
		b.Run("ours", ours)
		b.Run("theirs", theirs)
	}
}

// pick returns how much work a run does.
func pick(full, inQuickMode int) int {
	if *quick {
		return inQuickMode
	}
	return full
}

// A meter sums up what the measured stretches of a benchmark cost. The timer of
// the benchmark runs only inside of them.
type meter struct {
	b       *testing.B
	begin   runtime.MemStats
	started time.Time

	elapsed        time.Duration
	mallocs, bytes uint64
	cycles         uint32 // of the garbage collector
}

// newMeter stops the timer of b.
func newMeter(b *testing.B) *meter {
	b.StopTimer()
	return &meter{b: b}
}

func (m *meter) start() {
	runtime.ReadMemStats(&m.begin)
	m.b.StartTimer()
	m.started = time.Now()
}

func (m *meter) stop() {
	m.elapsed += time.Since(m.started)
	m.b.StopTimer()
	var end runtime.MemStats
	runtime.ReadMemStats(&end)
	m.mallocs += end.Mallocs - m.begin.Mallocs
	m.bytes += end.TotalAlloc - m.begin.TotalAlloc
	m.cycles += end.NumGC - m.begin.NumGC
}

// report tells what one of so many operations took. The metrics have their own
// names because those of package testing are whole numbers.
func (m *meter) report(ops int) {
	m.b.ReportMetric(float64(m.elapsed.Nanoseconds())/float64(ops), "ns/op")
	m.b.ReportMetric(float64(m.mallocs)/float64(ops), "allocs")
	m.b.ReportMetric(float64(m.bytes)/float64(ops), "bytes")
}

// minTime is the least time that a row is measured for, however small a pass.
// With it, -benchtime 1x says all there is to say.
var minTime = flag.Duration("mintime", 300*time.Millisecond, "measure each side for at least so long")

// passes measures run, which does so many operations, again and again. Before
// each pass, prepare is called outside of the measurement. One iteration of b
// is enough.
func passes(b *testing.B, ops int, prepare, run func()) {
	b.Helper()
	passesOver(b, 0, ops, prepare, run)
}

// passesOver is passes, which goes on until so many cycles of the garbage
// collector have ended. For what makes much garbage: a short run meets no cycle
// at all, or pays for half of one.
func passesOver(b *testing.B, cycles uint32, ops int, prepare, run func()) {
	b.Helper()
	m := newMeter(b)
	if cycles > 0 {
		runtime.GC()
	}
	total, together := 0, 1
	for total == 0 || m.elapsed < *minTime || m.cycles < cycles {
		if prepare != nil {
			prepare()
		}
		before := m.elapsed
		m.start()
		for range together {
			run()
		}
		m.stop()
		total += together
		if prepare == nil && m.elapsed-before < shortest {
			together *= 2 // or else the meter itself takes most of the time
		}
	}
	m.report(total * ops)
}

// shortest is how long the meter is to run at least, if there is a choice.
const shortest = 10 * time.Millisecond

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// heldBy returns how many bytes are live after make that were not before. What
// make returns is alive meanwhile.
func heldBy(make func() any) float64 {
	before := heap()
	kept := make()
	after := heap()
	runtime.KeepAlive(kept)
	return float64(after) - float64(before)
}
