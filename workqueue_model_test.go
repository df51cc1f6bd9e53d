package informer_test

import (
	"context"
	"errors"
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

	priority informer.Priority // while pending
	leasedAs informer.Priority

	// While ready: when it would have to get in line with PriorityNormal now to
	// be where it is, and where that is. They are two times, and the line is not
	// known, if it was raised to where it may have been already.
	rank, rankAtMost time.Time
	line             informer.Priority
}

// modelAgeing is the ageing of the queue. Its clock ticks eight times as often,
// and tells times that are less than a tick apart from each other or not.
const (
	modelAgeing = 40 * time.Millisecond
	modelTick   = modelAgeing / 8
	lineUnknown = informer.Priority(99)
)

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
	limiter  *queueLimiter
	asks     int
	errs     []string // reported, and wanted
	reported []string

	keys   map[int]*queueKey
	line   []int // ready, in the order in which they got in line
	leases []*queueLease
	drains []*queueDrain
	asking []*queueAsk // calls that wait for the limiter
	slow   []*queueAsk // all that might have waited
	closed bool        // adds are refused
	ended  bool        // the rest has been returned
	unique time.Duration

	onErrorPanics bool // next time
}

func (m *queueModel) key(k int) *queueKey {
	if m.keys[k] == nil {
		m.keys[k] = &queueKey{}
	}
	return m.keys[k]
}

// rankOf returns the rank of a key that gets in line at a time.
func rankOf(p informer.Priority, at time.Time) time.Time {
	return at.Add(-time.Duration(p) * modelAgeing)
}

// drawPriority draws a priority, and what it counts as.
func (m *queueModel) drawPriority() (give, counts informer.Priority) {
	p := rapid.SampledFrom([]informer.Priority{0, 0, 0, -2, -1, 1, 2, -128, 127}).Draw(m.T, "priority")
	return p, min(max(p, informer.PriorityLow), informer.PriorityHigh)
}

// raise gives k, which is to be pending, a priority if that is higher than what
// it has.
func (m *queueModel) raise(k int, p informer.Priority) {
	s := m.key(k)
	if !s.pending {
		s.priority = p
		if s.parked { // and it begins anew
			s.parked, s.attempts = false, 0
		}
		return
	}
	if p <= s.priority {
		return
	}
	s.priority = p
	if !slices.Contains(m.line, k) {
		return
	}
	rank := rankOf(p, time.Now())
	switch {
	case !rank.Add(modelTick).After(s.rank): // surely better
		m.line = slices.DeleteFunc(m.line, func(other int) bool { return other == k })
		m.line = append(m.line, k)
		s.rank, s.rankAtMost, s.line = rank, rank, p
	case rank.Before(s.rankAtMost): // better or not
		s.line = lineUnknown
		if rank.Before(s.rank) {
			s.rank = rank
		}
	}
}

// wrong tells why k must not be leased now: promise 26.
func (m *queueModel) wrong(k int) string {
	i := slices.Index(m.line, k)
	if i < 0 {
		return fmt.Sprintf("%d is leased, want one of %v", k, m.line)
	}
	s := m.keys[k]
	for j, other := range m.line {
		o := m.keys[other]
		inLine := j < i && o.line == s.line && s.line != lineUnknown
		if other != k && (inLine || !o.rankAtMost.Add(modelTick).After(s.rank)) {
			return fmt.Sprintf("%d is leased: %+v, want %d first: %+v", k, *s, other, *o)
		}
	}
	return ""
}

// take leases k, which may be the next.
func (m *queueModel) take(k int) {
	m.line = slices.DeleteFunc(m.line, func(other int) bool { return other == k })
	s := m.keys[k]
	s.pending, s.leased, s.leasedAs = false, true, s.priority
}

// set makes k pending at due, or now.
func (m *queueModel) set(k int, due time.Time) { m.setAt(k, due, time.Now()) }

func (m *queueModel) setAt(k int, due, now time.Time) {
	s := m.key(k)
	wasReady := slices.Contains(m.line, k)
	s.pending, s.due = true, due
	if ready := due.IsZero() && !s.leased && !m.closed; ready != wasReady {
		if ready {
			m.line = append(m.line, k)
			s.rank = rankOf(s.priority, now)
			s.rankAtMost, s.line = s.rank, s.priority
		} else {
			m.line = slices.DeleteFunc(m.line, func(other int) bool { return other == k })
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

func (m *queueModel) drawKey() int { return rapid.IntRange(0, 5).Draw(m.T, "key") }

// drawDelay draws a delay, and when it ends. It may be none.
func (m *queueModel) drawDelay() (time.Duration, time.Time) {
	return m.delay(rapid.SampledFrom([]int{-5, 0, 1, 5, 20, 100}).Draw(m.T, "ms"))
}

// delay returns a delay of so many milliseconds, and when it ends. No two end at
// the same time.
func (m *queueModel) delay(ms int) (time.Duration, time.Time) {
	if ms <= 0 {
		return time.Duration(ms), time.Time{}
	}
	m.unique += 100 * time.Nanosecond
	d := time.Duration(ms)*time.Millisecond + 10*time.Microsecond + m.unique
	return d, time.Now().Add(d)
}

func (m *queueModel) want(what string, got, want bool) {
	if got != want {
		m.Fatalf("%s = %v, want %v", what, got, want)
	}
}

func (m *queueModel) add(*rapid.T) {
	k := m.drawKey()
	m.want("Add", m.queue.Add(k), !m.closed)
	if !m.closed {
		m.raise(k, informer.PriorityNormal)
		m.setEarliest(k, time.Time{})
	}
}

func (m *queueModel) addAfter(*rapid.T) {
	k := m.drawKey()
	d, due := m.drawDelay()
	m.want("AddAfter", m.queue.AddAfter(k, d), !m.closed)
	if !m.closed {
		m.raise(k, informer.PriorityNormal)
		m.setEarliest(k, due)
	}
}

func (m *queueModel) addWith(*rapid.T) {
	k := m.drawKey()
	give, p := m.drawPriority()
	d, due := time.Duration(0), time.Time{}
	if rapid.Bool().Draw(m.T, "after") {
		d, due = m.drawDelay()
	}
	m.want("AddWith", m.queue.AddWith(k, informer.AddOptions{Priority: give, After: d}), !m.closed)
	if !m.closed {
		m.raise(k, p)
		m.setEarliest(k, due)
	}
}

func (m *queueModel) reschedule(*rapid.T) {
	k := m.drawKey()
	d, due := m.drawDelay()
	m.want("Reschedule", m.queue.Reschedule(k, d), !m.closed)
	if m.closed {
		return
	}
	m.raise(k, informer.PriorityNormal)
	if s := m.key(k); !(s.pending && s.due.IsZero() && due.IsZero()) {
		m.set(k, due)
		s.limited = false
	}
}

func (m *queueModel) cancel(*rapid.T) {
	k := m.drawKey()
	s := m.keys[k]
	in := s != nil && (s.pending || s.parked)
	m.want("Cancel", m.queue.Cancel(k), in)
	if in {
		m.cancelled(k)
	}
}

// cancelled notes that k is not pending any more.
func (m *queueModel) cancelled(k int) {
	s := m.keys[k]
	s.pending, s.limited, s.parked = false, false, false
	m.line = slices.DeleteFunc(m.line, func(other int) bool { return other == k })
	m.drop(k)
}

func (m *queueModel) get(*rapid.T) {
	ctx, stop := context.WithCancel(m.Context())
	defer stop()
	cancelled := rapid.IntRange(0, 5).Draw(m.T, "cancelled") == 0
	if cancelled || len(m.line) == 0 && !m.closed {
		stop()
	}
	lease, err := m.queue.Get(ctx)
	switch {
	case ctx.Err() != nil:
		m.want("Get says Canceled", errors.Is(err, context.Canceled), true)
	case len(m.line) == 0:
		m.want("Get says ErrStopped", errors.Is(err, informer.ErrStopped), true)
	default:
		if err != nil {
			m.Fatalf("Get = %v, want one of %v", err, m.line)
		}
		if wrong := m.wrong(lease.Key); wrong != "" {
			m.Fatal("Get: " + wrong)
		}
		m.take(lease.Key)
		if s := m.keys[lease.Key]; lease.Attempt != s.attempts+1 || lease.Priority != s.priority {
			m.Fatalf("Get = %+v, want attempt %d, priority %d", lease, s.attempts+1, s.priority)
		}
		m.leases = append(m.leases, &queueLease{lease, true})
	}
}

// drawLease draws a lease, be it open or not.
func (m *queueModel) drawLease() *queueLease {
	if len(m.leases) == 0 {
		m.Skip("no lease")
	}
	return rapid.SampledFrom(m.leases).Draw(m.T, "lease")
}

// end ends the lease of k. Then k is ready if it was added meanwhile.
func (m *queueModel) end(k int) {
	s := m.keys[k]
	s.leased = false
	if s.pending {
		m.set(k, s.due)
	}
	m.drop(k)
}

func (m *queueModel) done(*rapid.T) {
	l := m.drawLease()
	m.want("Done", l.Done(), l.open) // promise 22
	if l.open {
		l.open = false
		m.finished(l.Key)
	}
}

func (m *queueModel) pass(*rapid.T) {
	<-time.After(time.Duration(rapid.SampledFrom([]int{1, 6, 30, 200}).Draw(m.T, "ms")) * time.Millisecond)
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

func (m *queueModel) drain(*rapid.T) {
	if rapid.IntRange(0, 9).Draw(m.T, "drain") > 0 {
		m.Skip("rarely")
	}
	ctx, stop := context.WithCancel(m.Context())
	d := &queueDrain{cancel: stop, result: make(chan error, 1)}
	m.drains = append(m.drains, d)
	m.closed = true
	go func() {
		var err error
		d.rest, err = m.queue.Drain(ctx)
		d.result <- err
	}()
}

func (m *queueModel) endDrain(*rapid.T) {
	if len(m.drains) == 0 {
		m.Skip("no drain")
	}
	if len(m.line) > 0 || m.leased() > 0 {
		m.drains[0].cancel()
	}
}

func (m *queueModel) leased() (n int) {
	for _, s := range m.keys {
		if s.leased {
			n++
		}
	}
	return n
}

// rest is what Drain has to return: promise 24.
func (m *queueModel) rest() []int {
	var rest []int
	for k, s := range m.keys {
		if s.pending || s.parked {
			rest = append(rest, k)
			s.pending, s.limited, s.parked = false, false, false
		}
	}
	for _, k := range rest {
		m.drop(k)
	}
	m.line, m.ended = nil, true
	slices.Sort(rest)
	return rest
}

// checkDrains checks the calls of Drain that have returned.
func (m *queueModel) checkDrains() {
	settled := m.closed && len(m.line) == 0 && m.leased() == 0
	var rest []int
	returned := 0
	for _, d := range slices.Clone(m.drains) {
		select {
		case err := <-d.result:
			d.cancel()
			m.drains = slices.DeleteFunc(m.drains, func(other *queueDrain) bool { return other == d })
			m.want("Drain has an error", err != nil, !settled)
			rest = append(rest, d.rest...)
			returned++
		default:
			if settled {
				m.Fatal("Drain waits on")
			}
		}
	}
	if returned == 0 {
		return
	}
	slices.Sort(rest)
	var want []int
	if settled || len(m.drains) == 0 {
		want = m.rest()
	}
	if !slices.Equal(rest, want) {
		m.Fatalf("Drain = %v, want %v", rest, want)
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
}

// newQueueModel returns an empty queue and its model.
func newQueueModel(t *testing.T, rt *rapid.T) *queueModel {
	m := &queueModel{
		T:       rt,
		limiter: &queueLimiter{known: map[int]int{}},
		keys:    map[int]*queueKey{},
	}
	m.queue = newQueue(t, informer.QueueOptions[int]{
		Ageing:  modelAgeing,
		Limiter: m.limiter,
		OnError: func(k int, err error) {
			m.reported = append(m.reported, fmt.Sprint(k, err))
			if m.onErrorPanics {
				m.onErrorPanics = false
				panic(errHook)
			}
		},
	})
	return m
}

// operations returns what a test does, and the check after each step.
func (m *queueModel) operations() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"Add": m.add, "AddWith": m.addWith, "AddWith, too": m.addWith, "AddWith, limited": m.addWithLimited,
		"AddAfter": m.addAfter, "Reschedule": m.reschedule,
		"AddLimited": m.addLimited, "AddLimited, slow": m.addLimitedSlow, "AddLimited, panics": m.addLimitedPanics,
		"Cancel": m.cancel, "Get": m.get, "Get, too": m.get, "Get again": m.get, "Done": m.done,
		"Retry": m.retry, "RetryAfter": m.retryAfter, "Terminal": m.retryTerminal,
		"Retry, slow": m.retrySlow, "Retry, OnError panics": m.retryPanics, "the limiter answers": m.answer,
		"Forget panics": m.forgetPanics, "Run": m.run, "time passes": m.pass,
		"Drain": m.drain, "Drain ends": m.endDrain,
		"": m.check,
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

// TestWorkQueue_Model runs random operations of every kind against a naive
// model: promises 22, 23, 24, 25, 26 and 27. With -v it tells how many of each.
func TestWorkQueue_Model(t *testing.T) {
	counts := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		// rapid asks a *testing.T for its deadline, which a bubble forbids.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			m := newQueueModel(t, rt)
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
	})
	steps := counts[""]
	delete(counts, "")
	for _, name := range slices.Sorted(maps.Keys((&queueModel{}).operations())) {
		if name != "" && counts[name] == 0 && steps > 2000 {
			t.Errorf("of %d steps, none was %q", steps, name)
		}
	}
	t.Logf("%d steps: %v", steps, counts)
}
