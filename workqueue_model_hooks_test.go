package informer_test

import (
	"errors"
	"runtime"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// errHook is what hooks of the user panic with.
var errHook = errors.New("hook")

// never is when a key is due for which the limiter is being asked.
var never = time.Unix(1<<40, 0)

// queueLimiter counts how often it is asked, and never gives the same delay
// twice, so that no two keys of a test are due at once.
type queueLimiter struct {
	asks  int
	known map[int]int
	last  time.Duration

	slow   chan queueAnswer // if set, the next call waits for this
	panics bool             // the next call does
}

// A queueAnswer is how a call of a limiter ends.
type queueAnswer string

const (
	answerDelay  queueAnswer = "delay"
	answerPanic  queueAnswer = "panic"
	answerGoexit queueAnswer = "Goexit"
)

func (l *queueLimiter) When(key int) time.Duration {
	l.asks++
	unique, answer := l.asks, answerDelay
	if slow := l.slow; slow != nil {
		l.slow = nil
		answer = <-slow
	}
	l.known[key]++
	l.panicMaybe()
	switch answer {
	case answerPanic:
		panic(errHook)
	case answerGoexit:
		runtime.Goexit()
	}
	l.last = time.Duration(l.known[key])*7*time.Millisecond + time.Duration(unique)*time.Nanosecond
	return l.last
}

func (l *queueLimiter) Forget(key int) {
	delete(l.known, key)
	l.panicMaybe()
}

func (l *queueLimiter) panicMaybe() {
	if l.panics {
		l.panics = false
		panic(errHook)
	}
}

// queueAsk is a call that waits for the limiter.
type queueAsk struct {
	key    int
	answer chan queueAnswer
	result chan bool // what the call returned; closed if it did not return
	retry  error     // set if it is a Retry
	began  bool      // OnAdd is to be told
}

// background starts a call for key in which the limiter is slow, and waits
// until it asks or ends.
func (m *queueModel) background(key int, call func() bool) *queueAsk {
	a := &queueAsk{key: key, answer: make(chan queueAnswer, 1), result: make(chan bool, 1)}
	m.limiter.slow, m.slow = a.answer, append(m.slow, a)
	go func() {
		defer close(a.result)
		defer func() { _ = recover() }()
		a.result <- call()
	}()
	synctest.Wait()
	m.limiter.slow = nil
	return a
}

// returned returns what the call of a returned, which must have.
func (m *queueModel) returned(a *queueAsk) bool {
	select {
	case ok := <-a.result:
		return ok
	default:
		m.Fatalf("a call for %d asks the limiter, or waits for something else", a.key)
		return false
	}
}

// panics calls f, which is to panic as hooks do.
func (m *queueModel) panics(what string, f func()) {
	defer func() {
		if r := recover(); r != errHook { //nolint:errorlint // the very value
			m.Fatalf("%s panicked with %v, want %v", what, r, errHook)
		}
	}()
	f()
}

// mustAsk: promise 27, a key already pending takes no new token.
func (m *queueModel) mustAsk(k int) bool {
	s := m.keys[k]
	return s == nil || !s.limited && (!s.pending || !s.due.IsZero())
}

// expect notes that k was added by AddLimited, or AddWith with a priority, and
// reports whether the limiter is asked.
func (m *queueModel) expect(k int, p informer.Priority) (ask bool) {
	ask = !m.closed && m.mustAsk(k)
	if m.closed {
		return false
	}
	m.begin(k, p)
	s := m.key(k)
	if !s.pending {
		m.set(k, never)
	}
	if ask {
		s.limited = true
		m.asks++
	}
	return ask
}

// answered notes that the limiter said when k is due, which AddLimited added.
func (m *queueModel) answered(k int, due time.Time) {
	s := m.keys[k]
	if s == nil {
		return // it has been told to forget k
	}
	s.asked = true
	if s.limited && s.pending && !s.due.IsZero() {
		m.setEarliest(k, due)
	}
}

// limit returns when the limiter said that a key is due.
func (m *queueModel) limit() time.Time { return time.Now().Add(m.limiter.last) }

func (m *queueModel) addLimited(*rapid.T) {
	k := m.drawKey()
	ask := m.expect(k, informer.PriorityNormal)
	m.want("AddLimited", m.queue.AddLimited(k), !m.closed)
	if ask {
		m.answered(k, m.limit())
	}
}

func (m *queueModel) addWithLimited(*rapid.T) {
	k := m.drawKey()
	give, p := m.drawPriority()
	d, due := m.drawDelay()
	ask := m.expect(k, p)
	m.want("AddWith", m.queue.AddWith(k, informer.AddOptions{Limited: true, Priority: give, After: d}), !m.closed)
	if ask {
		if limit := m.limit(); limit.After(due) {
			due = limit
		}
		m.answered(k, due)
	}
}

func (m *queueModel) addLimitedPanics(*rapid.T) {
	k := m.drawKey()
	if m.closed || !m.mustAsk(k) {
		m.Skip("the limiter is not asked")
	}
	m.expect(k, informer.PriorityNormal)
	m.limiter.panics = true
	m.panics("AddLimited", func() { m.queue.AddLimited(k) })
	m.answered(k, time.Time{})
}

func (m *queueModel) addLimitedSlow(*rapid.T) {
	k := m.drawKey()
	ask := m.expect(k, informer.PriorityNormal)
	a := m.background(k, func() bool { return m.queue.AddLimited(k) })
	if ask {
		if a.began = len(m.tellings.adds) > 0; a.began { // not yet
			m.tellings.adds = nil
		}
		m.asking = append(m.asking, a)
		return
	}
	m.want("AddLimited", m.returned(a), !m.closed)
}

// answer ends one of the calls that wait for the limiter.
func (m *queueModel) answer(*rapid.T) {
	if len(m.asking) == 0 {
		m.Skip("the limiter is not being asked")
	}
	i := rapid.IntRange(0, len(m.asking)-1).Draw(m.T, "call")
	how := rapid.SampledFrom([]queueAnswer{answerDelay, answerDelay, answerPanic, answerGoexit}).Draw(m.T, "how")
	a := m.asking[i]
	m.asking = slices.Delete(m.asking, i, i+1)
	a.answer <- how
	synctest.Wait()
	due := time.Time{}
	if how == answerDelay {
		due = m.limit()
	}
	want := how == answerDelay
	if a.retry != nil {
		want = want && !m.ended
		m.retried(a.key, a.retry, due, how == answerDelay)
	} else {
		m.answered(a.key, due)
	}
	if a.began {
		m.tellings.adds = append(m.tellings.adds, a.key)
	}
	m.want("the slow call", m.returned(a), want)
}
