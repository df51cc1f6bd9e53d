package informer_test

import (
	"context"
	"errors"
	"fmt"
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
	retry  bool
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
	m.raise(k, p)
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
	if a.retry {
		want = want && !m.ended
		m.retried(a.key, due, how == answerDelay)
	} else {
		m.answered(a.key, due)
	}
	m.want("the slow call", m.returned(a), want)
}

// failed ends the lease of l by an error, if it is open, and notes that it will
// be reported.
func (m *queueModel) failed(l *queueLease, err error) (open bool) {
	open, l.open = l.open, false
	if open {
		m.errs = append(m.errs, fmt.Sprint(l.Key, err))
	}
	return open
}

// retried notes that the lease of k ended in a retry.
func (m *queueModel) retried(k int, due time.Time, limited bool) {
	s := m.keys[k]
	s.attempts++
	if m.closed {
		due = time.Time{}
	}
	if !m.ended {
		m.raise(k, s.leasedAs)
		m.setEarliest(k, due)
		s.limited = s.pending && !s.due.IsZero() && (s.limited || limited)
	}
	m.end(k)
}

func (m *queueModel) nextError() error { return fmt.Errorf("failed %d", len(m.errs)) }

// beginRetry notes that l is retried without another wish, and reports whether
// the limiter is asked. If not, and the queue is open, the key stays as it is.
func (m *queueModel) beginRetry(l *queueLease, err error) (ask bool) {
	ask = l.open && !m.closed && m.mustAsk(l.Key)
	if !m.failed(l, err) {
		return false
	}
	s := m.keys[l.Key]
	switch {
	case ask:
		s.asked, s.limited = true, true
		m.asks++
	case m.closed:
		m.retried(l.Key, time.Time{}, false)
	default:
		s.attempts++
		m.raise(l.Key, s.leasedAs)
		m.end(l.Key)
	}
	return ask
}

func (m *queueModel) retry(*rapid.T) {
	l, err := m.drawLease(), m.nextError()
	open := l.open
	ask := m.beginRetry(l, err)
	m.want("Retry", l.Retry(err), open && !m.ended)
	if ask {
		m.retried(l.Key, m.limit(), true)
	}
}

func (m *queueModel) retrySlow(*rapid.T) {
	l, err := m.drawLease(), m.nextError()
	open := l.open
	ask := m.beginRetry(l, err)
	a := m.background(l.Key, func() bool { return l.Retry(err) })
	if ask {
		a.retry = true
		m.asking = append(m.asking, a)
		return
	}
	m.want("Retry", m.returned(a), open && !m.ended)
}

func (m *queueModel) retryPanics(*rapid.T) {
	l, err := m.drawLease(), m.nextError()
	if !l.open {
		m.Skip("the lease has ended")
	}
	m.onErrorPanics = true
	m.failed(l, err)
	m.panics("Retry", func() { l.Retry(err) })
	m.retried(l.Key, time.Time{}, false)
}

func (m *queueModel) retryAfter(*rapid.T) {
	l := m.drawLease()
	d, due := m.drawDelay()
	err := informer.RetryAfter(d, m.nextError())
	m.want("Retry", l.Retry(err), l.open && !m.ended)
	if m.failed(l, err) {
		m.retried(l.Key, due, false)
	}
}

func (m *queueModel) retryTerminal(*rapid.T) {
	l, err := m.drawLease(), informer.Terminal(m.nextError())
	m.want("Retry", l.Retry(err), l.open && !m.ended)
	if m.failed(l, err) {
		m.parked(l.Key)
	}
}

// parked notes that the lease of k ended, and that it is not to be tried again.
func (m *queueModel) parked(k int) {
	s := m.keys[k]
	s.asked = false
	switch {
	case s.pending: // added meanwhile
		s.attempts = 0
	case m.closed && !m.ended:
		s.pending = true
	case !m.ended:
		s.attempts++
		s.parked = true
	}
	m.end(k)
}

// finished notes that the lease of k ended, and all is done.
func (m *queueModel) finished(k int) {
	s := m.keys[k]
	s.asked, s.attempts = false, 0
	m.end(k)
}

// forgetPanics ends a lease, or cancels a key, and the limiter panics.
func (m *queueModel) forgetPanics(*rapid.T) {
	for _, l := range m.leases {
		if l.open && m.keys[l.Key].asked {
			m.limiter.panics = true
			m.panics("Done", func() { l.Done() })
			l.open = false
			m.finished(l.Key)
			return
		}
	}
	for k := range 6 {
		if s := m.keys[k]; s != nil && s.pending && s.asked && !s.leased {
			m.limiter.panics = true
			m.panics("Cancel", func() { m.queue.Cancel(k) })
			m.cancelled(k)
			return
		}
	}
	m.Skip("the limiter has nothing to forget")
}

// queueCall is what the function of a worker does.
type queueCall struct {
	how string
	ms  int // of RetryAfter
}

// run works off some keys.
func (m *queueModel) run(*rapid.T) {
	calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) queueCall {
		return queueCall{
			rapid.SampledFrom([]string{"nil", "error", "after", "terminal", "cut"}).Draw(t, "how"),
			rapid.SampledFrom([]int{0, 3, 21}).Draw(t, "ms"),
		}
	}), 1, 4).Draw(m.T, "calls")
	ctx, stop := context.WithCancel(m.Context())
	defer stop()
	result, over, settle := make(chan error, 1), m.closed && len(m.line) == 0, func() {}
	go func() {
		result <- m.queue.Run(ctx, 1, func(ctx context.Context, k int) (err error) {
			settle()
			call := calls[0]
			if calls = calls[1:]; len(calls) == 0 || call.how == "cut" {
				stop()
			}
			settle, err = m.work(ctx, k, call)
			return err
		})
	}()
	synctest.Wait()
	stopped := ctx.Err() != nil
	stop()
	m.want("Run says ErrStopped", errors.Is(<-result, informer.ErrStopped), over)
	settle()
	if !stopped && len(m.line) > 0 {
		m.Fatalf("Run leaves %v", m.line)
	}
}

// work is the function of a worker. What it returns is to be noted by settle,
// once the queue knows of it too.
func (m *queueModel) work(ctx context.Context, k int, call queueCall) (settle func(), err error) {
	if wrong := m.wrong(k); wrong != "" {
		m.Error("Run: " + wrong) // this is not the goroutine of the test
		return func() {}, nil
	}
	m.take(k)
	l := &queueLease{Lease: informer.Lease[int]{Key: k}, open: true}
	err = m.nextError()
	switch call.how {
	case "nil":
		return func() { m.finished(k) }, nil
	case "cut":
		return func() {
			m.raise(k, m.keys[k].leasedAs)
			m.setEarliest(k, time.Time{})
			m.end(k)
		}, fmt.Errorf("request: %w", ctx.Err())
	case "terminal":
		err = informer.Terminal(err)
		m.failed(l, err)
		return func() { m.parked(k) }, err
	case "after":
		d, due := m.delay(call.ms)
		err = informer.RetryAfter(d, err)
		m.failed(l, err)
		return func() { m.retried(k, due, false) }, err
	}
	ask := m.beginRetry(l, err)
	return func() {
		if ask {
			m.retried(k, m.limit(), true)
		}
	}, err
}
