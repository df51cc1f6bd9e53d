package informer_test

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// drawLease draws a lease, be it open or not.
func (m *queueModel) drawLease() *queueLease {
	if len(m.leases) == 0 {
		m.Skip("no lease")
	}
	l := rapid.SampledFrom(m.leases).Draw(m.T, "lease")
	if l.open {
		m.near("Lease.Age", l.Age(), time.Since(m.keys[l.Key].began))
	}
	return l
}

// end ends the lease of k. Then k is ready if it was added meanwhile.
func (m *queueModel) end(k int, how informer.End, err error) {
	m.tellings.ends = append(m.tellings.ends, fmt.Sprint(k, how, err))
	if how == informer.EndedPark {
		m.stats.Parks++
	}
	s := m.keys[k]
	s.leased = false
	if s.pending {
		m.set(k, s.due)
	}
	m.drop(k)
}

// forget notes that the limiter is to forget the key, unless that waits for it.
func (s *queueKey) forget() { s.asked = s.asked && s.limited }

// finished notes that the lease of k ended, and all is done.
func (m *queueModel) finished(k int) {
	s := m.keys[k]
	s.forget()
	s.attempts, s.err = 0, nil
	m.end(k, informer.EndedDone, nil)
}

// releasedKey notes that the lease of k ended as if it had not been.
func (m *queueModel) releasedKey(k int) {
	m.raise(k, m.keys[k].leasedAs)
	m.setEarliest(k, time.Time{})
	m.end(k, informer.EndedEarly, nil)
}

// retried notes that the lease of k ended in a retry, because of err.
func (m *queueModel) retried(k int, err error, due time.Time, limited bool) {
	s := m.keys[k]
	s.attempts++
	s.err = err
	m.again(k, err, due, limited)
}

// again notes that the lease of k ended, and that the key is to be ready again.
func (m *queueModel) again(k int, err error, due time.Time, limited bool) {
	s := m.keys[k]
	if m.closed {
		due = time.Time{}
	}
	if !m.ended {
		if !s.pending {
			m.stats.Retries++
		}
		m.raise(k, s.leasedAs)
		m.setEarliest(k, due)
		s.limited = s.pending && !s.due.IsZero() && (s.limited || limited)
	} else {
		m.counts["= refused: the queue has ended"]++
	}
	m.end(k, informer.EndedRetry, err)
}

// parked notes that the lease of k ended because of err, and that it is not to be
// tried again.
func (m *queueModel) parked(k int, err error) {
	s := m.keys[k]
	s.forget()
	switch {
	case s.pending: // added meanwhile
		s.attempts, s.err = 0, nil
	case m.closed && !m.ended:
		s.attempts++
		s.err, s.pending, s.due = err, true, time.Time{}
	case !m.ended:
		s.attempts++
		s.err, s.parked = err, true
	}
	m.end(k, informer.EndedPark, err)
	s.since = time.Now()
}

// exhausted reports that there is to be no attempt after that of l.
func (m *queueModel) exhausted(l *queueLease) bool {
	switch {
	case m.options.MaxAttempts > 0 && l.Attempt >= m.options.MaxAttempts:
		m.counts["= parked, as by MaxAttempts"]++
	case m.options.MaxAge > 0 && l.Age() >= m.options.MaxAge:
		m.counts["= parked, as by MaxAge"]++
	default:
		return false
	}
	return true
}

// failed ends the lease of l by an error, if it is open, and notes that it will
// be reported.
func (m *queueModel) failed(l *queueLease, err error) (open bool) {
	open, l.open = l.open, false
	if open && err != nil {
		m.errs = append(m.errs, fmt.Sprint(l.Key, err))
	}
	return open
}

func (m *queueModel) nextError() error { return fmt.Errorf("failed %d", len(m.errs)) }

func (m *queueModel) done(*rapid.T) {
	l := m.drawLease()
	m.want("Done", l.Done(), l.open) // promise 22
	if l.open {
		l.open = false
		m.finished(l.Key)
	}
}

// endTwice ends a lease that has been ended: promise 22.
func (m *queueModel) endTwice(*rapid.T) {
	l := m.drawLease()
	if l.open {
		m.Skip("the lease is open")
	}
	err := m.nextError()
	for what, again := range map[string]bool{
		"Done": l.Done(), "Retry": l.Retry(err), "Park": l.Park(err), "RetryAfter": l.RetryAfter(time.Second),
	} {
		m.want(what+" of what has ended", again, false)
	}
}

// beginRetry notes that l is retried without another wish, and reports whether
// the limiter is asked. If not, all is noted.
func (m *queueModel) beginRetry(l *queueLease, err error) (ask bool) {
	if !m.failed(l, err) {
		return false
	}
	if m.exhausted(l) {
		m.parked(l.Key, err)
		return false
	}
	s := m.keys[l.Key]
	stays := s.limited && s.pending && !s.due.IsZero()
	switch {
	case !m.closed && m.mustAsk(l.Key):
		s.asked, s.limited = true, true
		m.asks++
		return true
	case m.closed && !stays:
		m.retried(l.Key, err, time.Time{}, false)
	default: // it stays as it is
		s.attempts++
		s.err = err
		m.raise(l.Key, s.leasedAs)
		m.end(l.Key, informer.EndedRetry, err)
	}
	return false
}

func (m *queueModel) retry(*rapid.T) { m.retryWith(m.drawLease(), m.nextError()) }

func (m *queueModel) retryNothing(*rapid.T) { m.retryWith(m.drawLease(), nil) }

func (m *queueModel) retryWith(l *queueLease, err error) {
	open := l.open
	ask := m.beginRetry(l, err)
	m.want("Retry", l.Retry(err), open && !m.ended)
	if ask {
		m.retried(l.Key, err, m.limit(), true)
	}
}

func (m *queueModel) retrySlow(*rapid.T) {
	l, err := m.drawLease(), m.nextError()
	open := l.open
	ask := m.beginRetry(l, err)
	a := m.background(l.Key, func() bool { return l.Retry(err) })
	if ask {
		a.retry = err
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
	m.retried(l.Key, err, time.Time{}, false)
}

func (m *queueModel) retryAfter(*rapid.T) {
	l := m.drawLease()
	d, due := m.drawDelay()
	m.retryAt(l, informer.RetryAfter(d, m.nextError()), due)
}

// retryServer retries with the answer of a server that asks for a pause.
func (m *queueModel) retryServer(*rapid.T) {
	l := m.drawLease()
	m.step()
	err := fmt.Errorf("%w: %w", m.nextError(), apierrors.NewTooManyRequests("busy", 1))
	m.retryAt(l, err, time.Now().Add(time.Second))
}

// retryAt retries l because of an error that says when.
func (m *queueModel) retryAt(l *queueLease, err error, due time.Time) {
	parks := l.open && m.exhausted(l)
	m.want("Retry", l.Retry(err), l.open && !m.ended)
	switch {
	case !m.failed(l, err):
	case parks:
		m.parked(l.Key, err)
	default:
		m.retried(l.Key, err, due, false)
	}
}

// retryAfterNothing looks at a key again, though nothing went wrong.
func (m *queueModel) retryAfterNothing(*rapid.T) {
	l := m.drawLease()
	d, due := m.drawDelay()
	m.want("RetryAfter", l.RetryAfter(d), l.open && !m.ended)
	if l.open {
		l.open = false
		m.lookAgain(l.Key, informer.RetryAfter(d, nil), due)
	}
}

// lookAgain notes that the lease of k ended well, and that there is more to do.
func (m *queueModel) lookAgain(k int, err error, due time.Time) {
	s := m.keys[k]
	s.forget()
	s.attempts, s.err = 0, nil
	if !s.pending {
		s.added = time.Now()
	}
	m.again(k, err, due, false)
}

func (m *queueModel) retryTerminal(*rapid.T) {
	l, err := m.drawLease(), informer.Terminal(m.nextError())
	m.want("Retry", l.Retry(err), l.open && !m.ended)
	if m.failed(l, err) {
		m.parked(l.Key, err)
	}
}

func (m *queueModel) park(*rapid.T) {
	l, err := m.drawLease(), m.nextError()
	if rapid.IntRange(0, 4).Draw(m.T, "no error") == 0 {
		err = nil
	}
	m.want("Park", l.Park(err), l.open && !m.ended)
	if m.failed(l, err) {
		m.parked(l.Key, err)
	}
}

// forgetPanics ends a lease, or cancels a key, and the limiter panics.
func (m *queueModel) forgetPanics(*rapid.T) {
	for _, l := range m.leases {
		if l.open && m.keys[l.Key].asked && !m.keys[l.Key].limited {
			m.limiter.panics = true
			m.panics("Done", func() { l.Done() })
			l.open = false
			m.finished(l.Key)
			return
		}
	}
	for k := range queueKeys {
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
			rapid.SampledFrom([]string{"nil", "error", "after", "look again", "terminal", "park", "cut"}).Draw(t, "how"),
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
	lease, ok := m.queue.LeaseOf(ctx)
	if wrong := m.wrong(k); wrong != "" || !ok || lease.Key != k {
		m.Errorf("Run: %s (%v)", wrong, lease) // this is not the goroutine of the test
		return func() {}, nil
	}
	m.take(lease)
	l := &queueLease{Lease: lease, open: true}
	m.leases = append(m.leases, l) // so that it is ended again
	err = m.nextError()
	switch call.how {
	case "nil":
		l.open = false
		return func() { m.finished(k) }, nil
	case "cut":
		l.open = false
		return func() { m.releasedKey(k) }, fmt.Errorf("request: %w", ctx.Err())
	case "terminal":
		err = informer.Terminal(err)
		m.failed(l, err)
		return func() { m.parked(k, err) }, err
	case "park":
		m.failed(l, err)
		m.want("Park", lease.Park(err), true)
		m.parked(k, err)
		return func() {}, err
	case "look again":
		l.open = false
		d, due := m.delay(call.ms)
		err = informer.RetryAfter(d, nil)
		return func() { m.lookAgain(k, err, due) }, err
	case "after":
		d, due := m.delay(call.ms)
		err = informer.RetryAfter(d, err)
		m.failed(l, err)
		if m.exhausted(l) {
			return func() { m.parked(k, err) }, err
		}
		return func() { m.retried(k, err, due, false) }, err
	}
	ask := m.beginRetry(l, err)
	return func() {
		if ask {
			m.retried(k, err, m.limit(), true)
		}
	}, err
}
