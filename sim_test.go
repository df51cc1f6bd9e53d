package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// simHistory is everything that is drawn about a simulation.
type simHistory struct {
	seed         uint64 // of the informer's random times
	initial      int    // objects at the start
	steps        []simStep
	faults       []simFault
	handlers     []simPlan
	traits       simTraits
	watchTimeout time.Duration
	busy         time.Duration // what an index function takes, at times
}

// events counts the writes that are more than nothing.
func (h *simHistory) events() (n int) {
	for _, s := range h.steps {
		if s.op != simNothing {
			n++
		}
	}
	return n
}

// String returns the history as it was drawn.
func (h *simHistory) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d objects at first, %+v, watches of %v, an index function of %v\nwrites:",
		h.seed, h.initial, h.traits, h.watchTimeout, h.busy)
	names := []string{"", "write", "delete", "recreate", "break", "hide", "show"}
	gap := time.Duration(0)
	for _, s := range h.steps {
		if gap += s.gap; s.op != simNothing {
			fmt.Fprintf(&b, " %v later %s %s,", gap, names[s.op], simName(nil, s.key))
			gap = 0
		}
	}
	for _, f := range h.faults {
		fmt.Fprintf(&b, "\nfault: %v later %s for %v, %s %s, after %d events", f.after, f.word, f.lasts,
			[]string{"listing", "streaming", "watching", "backing off"}[f.phase], simName(nil, f.key), f.skip)
	}
	for _, p := range h.handlers {
		fmt.Fprintf(&b, "\nhandler: %+v", p)
	}
	return b.String()
}

// GoString is for rapid, which shows what was drawn.
func (h *simHistory) GoString() string { return "see above" }

func drawSimHistory(t *rapid.T, kinds []simKind) *simHistory {
	h := &simHistory{
		seed:    rapid.Uint64().Draw(t, "seed"),
		initial: rapid.IntRange(0, simKeys/2).Draw(t, "initial"),
		traits: simTraits{
			noStreams: rapid.IntRange(0, 3).Draw(t, "streams") == 3,
			paging:    rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "page size"),
			pace:      rapid.SampledFrom([]time.Duration{0, time.Second, 50 * time.Millisecond}).Draw(t, "pace"),
			bookmarks: rapid.SampledFrom([]time.Duration{0, 10 * time.Second, time.Minute}).Draw(t, "bookmarks"),
		},
		watchTimeout: rapid.SampledFrom([]time.Duration{20 * time.Second, time.Minute, 5 * time.Second}).Draw(t, "timeout"),
		busy:         rapid.SampledFrom([]time.Duration{0, 0, 100 * time.Millisecond, time.Second, 10 * time.Second}).Draw(t, "busy"),
	}
	drawFault := func(t *rapid.T) simFault { return drawSimFault(t, kinds) }
	h.faults = rapid.SliceOfN(rapid.Custom(drawFault), 0, 20).Draw(t, "faults")
	for range rapid.IntRange(0, 7).Draw(t, "more faults") {
		h.faults = append(h.faults, drawFault(t))
	}
	h.handlers = rapid.SliceOfN(rapid.Custom(drawSimHandler), 0, 8).Draw(t, "handlers")
	for range rapid.IntRange(0, 3).Draw(t, "more handlers") {
		h.handlers = append(h.handlers, drawSimHandler(t))
	}
	// What is drawn last can shrink without a change of the rest.
	for range 64 * rapid.IntRange(0, 15).Draw(t, "writes") {
		h.steps = append(h.steps, drawSimStep(t))
	}
	return h
}

func drawSimStep(t *rapid.T) simStep {
	gaps := [...]time.Duration{0, 10 * time.Millisecond, time.Second, 3 * time.Second, 0, 300 * time.Millisecond, 0, 10 * time.Second}
	ops := [...]simOp{
		simNothing, simWrite, simWrite, simDelete, simWrite, simRecreate, simHide, simShow,
		simBreak, simWrite, simWrite, simDelete, simWrite, simDelete, simWrite, simWrite,
	}
	return simStep{
		op:  ops[rapid.IntRange(0, len(ops)-1).Draw(t, "op")],
		key: rapid.IntRange(0, simKeys-1).Draw(t, "key"),
		gap: gaps[rapid.IntRange(0, len(gaps)-1).Draw(t, "gap")],
	}
}

func drawSimFault(t *rapid.T, kinds []simKind) simFault {
	seconds := func(most int, label string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Second
	}
	row := rapid.IntRange(0, len(kinds)-1).Draw(t, "fault")
	return simFault{
		simKind: kinds[row], row: row,
		phase: simPhase(rapid.IntRange(0, int(simPhases)-1).Draw(t, "phase")),
		after: seconds(60, "after"),
		skip:  rapid.IntRange(0, 5).Draw(t, "skip"),
		lasts: seconds(60, "lasts"),
		key:   rapid.IntRange(0, simKeys-1).Draw(t, "about"),
	}
}

func drawSimHandler(t *rapid.T) simPlan {
	times := func(label string, times ...time.Duration) time.Duration {
		return rapid.SampledFrom(times).Draw(t, label)
	}
	return simPlan{
		join:    times("join", 0, 0, 20*time.Second, 3*time.Minute),
		leave:   times("leave", 0, 0, 0, time.Minute, 10*time.Minute),
		slow:    times("slow", 0, 100*time.Millisecond, time.Second, 10*time.Second),
		stuckAt: rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t, "stuck at"),
		stuck:   times("stuck", time.Minute, 5*time.Minute),
		quitAt:  rapid.SampledFrom([]int{0, 0, 0, 0, 0, 30, 5}).Draw(t, "quit at"),
		panicAt: rapid.SampledFrom([]int{0, 0, 0, 0, 7, 50}).Draw(t, "panic at"),
		opts: informer.HandlerOptions{
			Backlog: rapid.SampledFrom([]int{0, 1, 5, 40}).Draw(t, "backlog"),
			OnPanic: rapid.SampledFrom([]informer.PanicPolicy{informer.PanicReport, informer.PanicReport, informer.PanicDetach}).Draw(t, "policy"),
			Resync:  times("resync", 0, 0, 64*time.Second), // a slice each second
		},
	}
}

// simBackend is what a simulated informer talks to.
type simBackend interface {
	finished() bool            // all faults and writes are over
	faultsStruck() int         // so far
	requests() []time.Duration // when they came, but for pages after the first
	transcript() string        // all of them
}

// simulation is one run.
type simulation struct {
	history  *simHistory
	world    *simWorld
	server   simBackend
	inf      *informer.Informer[simObj]
	index    *informer.Index[int, simObj]
	handlers []*simHandler
	oracle   simOracle
	rest     chan struct{} // closed when all is over: nobody is slow any more
	filed    int           // calls of the index function

	mu     sync.Mutex // guards what follows
	wrongs []string
}

// fail notes what is wrong. Only the first few count.
func (s *simulation) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrongs) < 5 {
		s.wrongs = append(s.wrongs, fmt.Sprintf("at %v: ", time.Since(s.world.start))+fmt.Sprintf(format, args...))
	}
}

func (s *simulation) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wrongs) > 0
}

// wait is what slow code of the user's does.
func (s *simulation) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.rest:
	}
}

// cache returns what the informer holds.
func (s *simulation) cache() (holds [simKeys]simObj) {
	for obj := range s.inf.All() {
		holds[simKeyOf(obj)] = obj
	}
	return holds
}

// simTB is the test of a script.
type simTB struct {
	*testing.T
	sim *simulation
}

func (t simTB) Errorf(format string, args ...any) { t.sim.fail(format, args...) }
func (t simTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// simulate runs a history against a model of a server that writes a script,
// inside a bubble.
func simulate(t *testing.T, h *simHistory, table *simTable) *simulation {
	s := &simulation{history: h, world: newSimWorld(h.steps), rest: make(chan struct{})}
	s.world.beginLocked(simFirst, slices.Collect(func(yield func(int) bool) {
		for i := range h.initial {
			yield(i + 1)
		}
	}))
	server := &simServer{simWorld: s.world, traits: h.traits, table: table, faults: slices.Clone(h.faults)}
	s.server = server
	s.run(t, informertest.NewScriptFunc(simTB{t, s}, informertest.NewObject, server.answer))
	return s
}

// run runs the informer until everything is over, and checks the end.
func (s *simulation) run(t *testing.T, source informer.ListerWatcher[simObj]) {
	s.oracle = simOracle{sim: s}
	opts := informer.Options{WatchTimeout: s.history.watchTimeout, PageSize: s.history.traits.paging, LabelSelector: "seen=true"}
	inf, err := informer.New(source, opts)
	if err != nil {
		t.Fatal(err)
	}
	s.inf = inf
	dice := rand.New(rand.NewPCG(s.history.seed, 0))
	informer.SetRandom(inf, func(d time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(d))) })
	informer.ObserveStates(inf, s.oracle.published)
	if s.index, err = informer.AddIndex(inf, "by last digit", s.digit); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var lives sync.WaitGroup
	for i, p := range s.history.handlers {
		handler := &simHandler{simPlan: p, sim: s, name: fmt.Sprint("handler ", i)}
		s.handlers = append(s.handlers, handler)
		if p.join == 0 {
			handler.add()
		}
		lives.Go(func() { handler.live(ctx) })
	}
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	s.watch(ctx)
	if !s.failed() {
		s.checkEnd()
	}
	cancel()
	ended := time.Now()
	if err := <-done; err != nil || time.Since(ended) > 100*time.Millisecond {
		s.fail("Run() = %v, %v after the end", err, time.Since(ended))
	}
	lives.Wait()
}

// digit is the function of an index. Now and then it takes its time, and the
// queue in front of the cache has to hold what comes meanwhile.
func (s *simulation) digit(obj simObj) (int, bool) {
	if s.filed++; s.history.busy > 0 && s.filed%8 == 0 {
		s.wait(s.history.busy)
	}
	return simDigit(obj), true
}

func simDigit(obj simObj) int { return int(obj.Value[len(obj.Value)-1] - '0') }

// watch checks bounds until everything is over, and the server has been good
// for so long that the informer must be up to date.
func (s *simulation) watch(ctx context.Context) {
	for !s.server.finished() && !s.failed() && simWait(ctx, 10*time.Second) {
		s.checkBounds()
		if time.Since(s.world.start) > 24*time.Hour {
			s.fail("the history does not end")
			break
		}
	}
	close(s.rest)
	if !s.failed() {
		simWait(ctx, 15*time.Minute)
	}
	synctest.Wait()
}

// checkBounds checks what waits, and an index.
func (s *simulation) checkBounds() {
	if n := informer.Queued(s.inf); n > simKeys {
		s.fail("the queue holds %d of %d keys", n, simKeys)
	}
	for _, h := range s.handlers {
		h.checkBacklog()
	}
	at := s.inf.Snapshot()
	n := 0
	for digit := range 10 {
		for obj := range s.index.In(at, digit) {
			n++
			if simDigit(obj) != digit {
				s.fail("the index files %v under %d", obj, digit)
			}
		}
	}
	if n != at.Len() {
		s.fail("the index holds %d of %d objects", n, at.Len())
	}
}

// checkEnd checks an informer at rest.
func (s *simulation) checkEnd() {
	s.checkBounds()
	present := s.world.present()
	version, bad := s.inf.Version(), map[informer.Key]bool{}
	for key, obj := range present.objects {
		if obj.seen() && obj.bad {
			bad[informer.Key{Namespace: string("xy"[key%2]), Name: string(rune('a' + key))}] = true
		}
	}
	// The last states may differ by a write that nobody sees.
	cache := s.cache()
	for key := range simKeys {
		_, epoch, i, _ := s.world.at(present.version)
		if !s.oracle.right(key, cache[key], &present, epoch, i) {
			s.fail("the cache has %v at %s, the server %+v at %d", cache[key], version, present.objects[key], present.version)
		}
	}
	// Where bookmarks come, the cache says that it knows of all writes.
	_, model := s.server.(*simServer)
	every := s.history.traits.bookmarks
	if model && every > 0 && every < s.history.watchTimeout && version != strconv.Itoa(present.version) {
		s.fail("the cache is at %s, the server at %d", version, present.version)
	}
	status := s.inf.Status()
	for _, err := range status.Bad {
		if !bad[err.Key] {
			s.fail("%v is said to be bad: %v", err.Key, err)
		}
		delete(bad, err.Key)
	}
	if len(bad) > 0 {
		s.fail("%v are bad, and the status does not say so", bad)
	}
	if status.State != informer.StateWatching {
		s.fail("the state is %v: %v", status.State, status.Err)
	}
	for _, h := range s.handlers {
		h.checkEnd()
	}
	s.checkRate(800*time.Millisecond, 5)
	s.checkRate(time.Minute, 100)
}

// checkRate checks that there are at most n requests in any window of d, but for
// pages after the first.
func (s *simulation) checkRate(d time.Duration, n int) {
	var window []time.Duration
	for _, at := range s.server.requests() {
		window = append(window, at)
		for at-window[0] >= d {
			window = window[1:]
		}
		if len(window) > n {
			s.fail("more than %d requests in %v, up to %v", n, d, at)
			return
		}
	}
}

// err returns what was wrong, and all that happened.
func (s *simulation) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrongs) == 0 {
		return nil
	}
	var b strings.Builder
	for _, w := range s.wrongs {
		b.WriteString(w + "\n")
	}
	fmt.Fprintf(&b, "\nThe requests:\n%s\nThe history: %v\n", s.server.transcript(), s.history)
	return errors.New(b.String())
}

// simRecord is what a test run has simulated.
type simRecord struct {
	table      *simTable
	parts      int  // that run at a time
	everywhere bool // each fault is to strike in each phase

	mu                                sync.Mutex // guards the fields below
	events, faults, handlers, lagging []int
	states                            int
}

func (r *simRecord) add(s *simulation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slow := 0
	for _, h := range s.history.handlers {
		if h.isSlow() {
			slow++
		}
	}
	r.events = append(r.events, s.history.events())
	r.faults = append(r.faults, s.server.faultsStruck())
	r.handlers = append(r.handlers, len(s.history.handlers))
	r.lagging = append(r.lagging, slow)
	r.states += s.oracle.states
}

// check prints the record, and checks that it is enough of everything.
func (r *simRecord) check(t *testing.T) {
	median := func(n []int) int {
		slices.Sort(n)
		return n[len(n)/2]
	}
	n := len(r.events)
	events, faults, handlers, slow := median(r.events), median(r.faults), median(r.handlers), median(r.lagging)
	t.Logf("%d histories, %d published states; medians: %d server events, %d faults, %d handlers, %d of them slow\n%v",
		n, r.states, events, faults, handlers, slow, r.table)
	if n < 1000 {
		return
	}
	if events < 200 || faults < 5 || handlers < 3 || slow < 1 {
		t.Error("that is not enough")
	}
	for row, kind := range r.table.kinds {
		for phase := range simPhases {
			if r.table.cells[row][phase].Load() == 0 && r.everywhere {
				t.Errorf("%s never struck in phase %d", kind.word, phase)
			}
		}
	}
}

// TestSimulation: the whole informer, with any history of the server, any
// faults, and handlers that come, go, are slow, are stuck and panic. Every
// state is one of the server, in order (promises 2 and 4), but for bad objects,
// which the status names (promise 12); in the end the cache is the server, also
// after a restore that only silence tells of (promise 11), and every handler has
// been told exactly that (promises 3, 14 and 16); requests and queues are
// bounded all the time (promises 7, 9 and 15); nothing is left of it (promises
// 19 and 29).
func TestSimulation(t *testing.T) {
	simulateAll(t, &simRecord{table: newSimTable(simKinds()), parts: 2, everywhere: true}, simulate)
}

// simulateAll draws histories and runs them, as many in each part as rapid is
// told to check.
func simulateAll(t *testing.T, record *simRecord, run func(*testing.T, *simHistory, *simTable) *simulation) {
	draw := rapid.Custom(func(t *rapid.T) *simHistory { return drawSimHistory(t, record.table.kinds) })
	t.Run("part", func(t *testing.T) {
		for part := range record.parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(rt *rapid.T) {
					history := draw.Draw(rt, "history")
					var sim *simulation
					synctest.Test(t, func(t *testing.T) { sim = run(t, history, record.table) })
					record.add(sim)
					if err := sim.err(); err != nil {
						rt.Fatal(err)
					}
				})
			})
		}
	})
	if !t.Failed() {
		record.check(t)
	}
}
