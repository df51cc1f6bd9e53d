package informer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// queueKey is what the model knows of a key. A key that is not due is ready, or
// will be when its lease is finished.
type queueKey struct {
	pending, asked, leased, parked bool

	limited  bool      // the limiter said when, or is being asked
	due      time.Time // zero: now
	attempts int
	err      error // why the last of them failed

	added time.Time
	since time.Time // when it was leased or parked, or got in line

	priority informer.Priority // while pending; while leased that of the lease
	leasedAs informer.Priority
	began    time.Time // what added was for the lease

	queueRank
}

type queueLease struct {
	informer.Lease[int]
	open bool
}

type queueDrain struct {
	cancel context.CancelFunc
	result chan error
	rest   []int
}

// queueModel is a work queue so simple that it can be seen to be right.
type queueModel struct {
	*rapid.T
	queue    *informer.WorkQueue[int]
	options  informer.QueueOptions[int]
	limiter  *queueLimiter
	asks     int
	errs     []string // reported, and wanted
	reported []string
	counts   map[string]int // of the whole run

	keys   map[int]*queueKey
	line   []int    // ready, in the order in which they got in line
	ring   []string // groups that have keys which are ready; the first one is next
	leases []*queueLease
	drains []*queueDrain
	asking []*queueAsk // calls that wait for the limiter
	slow   []*queueAsk // all that might have waited
	closed bool        // adds are refused
	ended  bool        // the rest has been returned

	start  time.Time
	unique time.Duration

	told, tellings queueTold // what hooks were told, and should have been
	stats          informer.QueueStats

	onErrorPanics, onLeasePanics bool // next time
}

func (m *queueModel) key(k int) *queueKey {
	if m.keys[k] == nil {
		m.keys[k] = &queueKey{}
	}
	return m.keys[k]
}

// queueKeys is how many keys there are.
const queueKeys = 6

func (m *queueModel) drawKey() int { return rapid.IntRange(0, queueKeys-1).Draw(m.T, "key") }

// drawWhere draws one of the keys of which something is so.
func (m *queueModel) drawWhere(is func(*queueKey) bool) int {
	var some []int
	for k := range queueKeys {
		if s := m.keys[k]; s != nil && is(s) {
			some = append(some, k)
		}
	}
	if len(some) == 0 {
		m.Skip("there is none")
	}
	return rapid.SampledFrom(some).Draw(m.T, "key")
}

// set makes k pending at due, or now.
func (m *queueModel) set(k int, due time.Time) { m.setAt(k, due, time.Now()) }

func (m *queueModel) setAt(k int, due, now time.Time) {
	s := m.key(k)
	wasReady := slices.Contains(m.line, k)
	s.pending, s.due = true, due
	if ready := due.IsZero() && !s.leased && !m.closed; ready != wasReady {
		if ready {
			m.enter(k, now)
		} else {
			m.leave(k)
		}
	}
	if due.IsZero() {
		s.limited = false
	}
}

// setEarliest is set unless k is pending earlier.
func (m *queueModel) setEarliest(k int, due time.Time) {
	s := m.key(k)
	if !s.pending || !s.due.IsZero() && (due.IsZero() || due.Before(s.due)) {
		m.set(k, due)
	}
}

func (m *queueModel) drop(k int) {
	s := m.keys[k]
	if s != nil && !s.pending && !s.leased && !s.parked {
		delete(m.keys, k)
	}
}

// drawDelay draws a delay, and when it ends. It may be none.
func (m *queueModel) drawDelay() (time.Duration, time.Time) {
	return m.delay(rapid.SampledFrom([]int{-5, 0, 1, 5, 20, 100}).Draw(m.T, "ms"))
}

// delay returns a delay of so many milliseconds, and when it ends. No two end at
// the same time: that is a number of milliseconds, and a unique rest.
func (m *queueModel) delay(ms int) (time.Duration, time.Time) {
	if ms <= 0 {
		return time.Duration(ms), time.Time{}
	}
	now := time.Since(m.start)
	d := now.Truncate(time.Millisecond) + time.Duration(ms)*time.Millisecond + m.rest() - now
	return d, time.Now().Add(d)
}

// rest returns a part of a millisecond, never the same.
func (m *queueModel) rest() time.Duration {
	m.unique += 100 * time.Nanosecond
	return 10*time.Microsecond + m.unique
}

// step lets so much time pass that no two keys are due at once which are
// delayed by a number of milliseconds.
func (m *queueModel) step() {
	now := time.Since(m.start)
	m.sleep(now.Truncate(time.Millisecond) + m.rest() - now)
}

// sleep lets time pass.
func (m *queueModel) sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
	if m.closed {
		return
	}
	var due []int
	for k, s := range m.keys {
		if s.pending && !s.due.IsZero() && !s.due.After(time.Now()) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b int) int { return m.keys[a].due.Compare(m.keys[b].due) })
	for _, k := range due {
		m.setAt(k, time.Time{}, m.keys[k].due)
	}
}

func (m *queueModel) pass(*rapid.T) {
	m.sleep(time.Duration(rapid.SampledFrom([]int{1, 6, 30, 200}).Draw(m.T, "ms")) * time.Millisecond)
}

func (m *queueModel) want(what string, got, want bool) {
	if got != want {
		m.Fatalf("%s = %v, want %v", what, got, want)
	}
}

// check compares the queue with the model, after every step.
func (m *queueModel) check(*rapid.T) {
	synctest.Wait()
	m.checkDrains()
	if err := informer.ValidateQueue(m.queue); err != nil {
		m.Fatal(err)
	}
	pending, asked := 0, map[int]bool{}
	for k, s := range m.keys {
		if s.pending {
			pending++
		}
		if s.asked {
			asked[k] = true
		}
	}
	if got := m.queue.Len(); got != pending {
		m.Fatalf("Len() = %d, want %d", got, pending)
	}
	if m.limiter.asks != m.asks {
		m.Fatalf("the limiter was asked %d times, want %d", m.limiter.asks, m.asks)
	}
	known := map[int]bool{}
	for k := range m.limiter.known {
		known[k] = true
	}
	for _, a := range m.asking { // it may know the key, or not yet
		delete(known, a.key)
		delete(asked, a.key)
	}
	if !m.ended && !maps.Equal(known, asked) {
		m.Fatalf("the limiter remembers %v, want %v", known, asked)
	}
	if diff := cmp.Diff(m.errs, m.reported); diff != "" {
		m.Fatalf("reported errors (-want +got):\n%s", diff)
	}
	m.checkTold()
	m.checkItems()
	m.checkStats()
}

// newQueueModel returns an empty queue and its model.
func newQueueModel(t *testing.T, rt *rapid.T, counts map[string]int) *queueModel {
	m := &queueModel{
		T:       rt,
		limiter: &queueLimiter{known: map[int]int{}},
		keys:    map[int]*queueKey{},
		counts:  counts,
		start:   time.Now(),
	}
	m.options = informer.QueueOptions[int]{
		Ageing:      modelAgeing,
		Limiter:     m.limiter,
		MaxAttempts: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "MaxAttempts"),
		MaxAge:      rapid.SampledFrom([]time.Duration{0, 0, 50 * time.Millisecond}).Draw(rt, "MaxAge"),
		Debounce:    rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Millisecond}).Draw(rt, "Debounce"),
		OnError: func(k int, err error) {
			m.reported = append(m.reported, fmt.Sprint(k, err))
			if m.onErrorPanics {
				m.onErrorPanics = false
				panic(errHook)
			}
		},
		OnAdd:   m.onAdd,
		OnLease: m.onLease,
		OnEnd:   m.onEnd,
	}
	if m.options.Debounce > 0 {
		m.options.DebounceAtMost = rapid.SampledFrom([]time.Duration{0, 25 * time.Millisecond}).Draw(rt, "DebounceAtMost")
	}
	if groups := rapid.SampledFrom([]int{0, 2, 3}).Draw(rt, "groups"); groups > 0 {
		m.options.Group = func(k int) string { return fmt.Sprint("group ", k%groups) }
	}
	m.queue = newQueue(t, m.options)
	return m
}

// operations returns what a test does, and the check after each step.
func (m *queueModel) operations() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"Add": m.add, "Add again": m.add, "AddWith": m.addWith, "AddWith, too": m.addWith, "AddWith, limited": m.addWithLimited,
		"AddAfter": m.addAfter, "Reschedule": m.reschedule,
		"AddLimited": m.addLimited, "AddLimited, slow": m.addLimitedSlow, "AddLimited, panics": m.addLimitedPanics,
		"Cancel": m.cancel, "Cancel, parked": m.cancelParked, "Unpark": m.unpark, "Unpark, parked": m.unparkParked, "Unpark, parked, too": m.unparkParked,
		"Get": m.get, "Get, too": m.get, "Get again": m.get, "Get, OnLease panics": m.getPanics,
		"Done": m.done, "end twice": m.endTwice, "Park": m.park,
		"Retry": m.retry, "Retry, too": m.retry, "Retry after": m.retryAfter, "Terminal": m.retryTerminal,
		"RetryAfter": m.retryAfterNothing, "Retry, as a server says": m.retryServer, "Retry, no error": m.retryNothing,
		"Retry, slow": m.retrySlow, "Retry, OnError panics": m.retryPanics, "the limiter answers": m.answer,
		"Forget panics": m.forgetPanics, "Run": m.run, "time passes": m.pass,
		"Drain": m.drain, "Drain ends": m.endDrain, "Drain ends, too": m.endDrain,
		"": m.check,
	}
}

// outcomes are what operations lead to now and then. One that is rare is not
// among them: "= refused: the queue has ended".
func outcomes() []string {
	return []string{
		"= parked, as by MaxAttempts", "= parked, as by MaxAge", "= kept for Drain",
		"= debounced", "= debounced, at most", "= debounced for long enough",
		"= an add releases a parked key", "= a turn passes on", "= a raised key keeps the turn of its group",
	}
}

// close lets all that waits go.
func (m *queueModel) close() {
	for _, d := range m.drains {
		d.cancel()
	}
	synctest.Wait()
	for _, a := range m.slow {
		select {
		case a.answer <- answerDelay:
			synctest.Wait() // one by one: the limiter is simple
		default: // it has its answer
		}
	}
}

// modelRuns is how often the model draws as many cases as rapid wants: each
// draws options, and they take a moment.
const modelRuns = 6

// TestWorkQueue_Model runs random operations of every kind against a naive
// model, on queues of all options: promises 22, 23, 24, 25, 26 and 27. After
// each step it compares Items and Stats, and what hooks were told, and checks
// the invariants of the queue. With -v it tells how many of each.
func TestWorkQueue_Model(t *testing.T) {
	counts := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		for range modelRuns {
			// rapid asks a *testing.T for its deadline, which a bubble forbids.
			rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
				m := newQueueModel(t, rt, counts)
				defer m.close()
				operations := m.operations()
				for name, do := range operations {
					operations[name] = func(rt *rapid.T) {
						do(rt) // which does not return if it is skipped
						counts[name]++
					}
				}
				rt.Repeat(operations)
			})
		}
	})
	steps := counts[""]
	delete(counts, "")
	all := append(slices.Collect(maps.Keys((&queueModel{}).operations())), outcomes()...)
	for _, name := range all {
		if name != "" && counts[name] == 0 && steps > 10_000 {
			t.Errorf("of %d steps, none was %q", steps, name)
		}
	}
	t.Logf("%d steps", steps)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[name], name)
	}
}
