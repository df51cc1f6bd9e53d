package informer_test

import (
	"context"
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// begin notes that k is added with a priority, at whatever time.
func (m *queueModel) begin(k int, p informer.Priority) {
	s := m.key(k)
	if !s.pending {
		s.added = time.Now()
		m.stats.Adds++
		m.tellings.adds = append(m.tellings.adds, k)
		if s.parked { // and it begins anew
			s.parked, s.attempts, s.err = false, 0, nil
			m.counts["= an add releases a parked key"]++
		}
	}
	m.raise(k, p)
}

// now notes that k, which has begun, is to be ready at once, or when it has been
// quiet for long enough.
func (m *queueModel) now(k int) {
	s, d := m.key(k), m.options.Debounce
	if d == 0 {
		m.setEarliest(k, time.Time{})
		return
	}
	most := m.options.DebounceAtMost
	if most == 0 {
		most = 10 * d
	}
	m.counts["= debounced"]++
	now := time.Now()
	due, last := now.Add(d), s.added.Add(most)
	if last.Add(-clockError).Before(due) { // it counts, or may
		got := now
		if item := m.item(k); !item.Due.IsZero() {
			got = item.Due
		}
		if got.After(due) || last.After(now) && last.Sub(got).Abs() > clockError && got != due ||
			!last.After(now) && got.Sub(now) > clockError {
			m.Fatalf("%d will be ready in %v, want %v or, if it is less, %v", k, got.Sub(now), d, last.Sub(now))
		}
		if due = got; due == now {
			due = time.Time{}
			m.counts["= debounced for long enough"]++
		}
		m.counts["= debounced, at most"]++
	}
	switch {
	case !due.IsZero():
		m.set(k, due)
		s.limited = false
	default:
		m.setEarliest(k, due)
	}
}

// step lets time pass if keys are debounced, which would be due at once else.
func (m *queueModel) stepForDebounce() {
	if m.options.Debounce > 0 {
		m.step()
	}
}

func (m *queueModel) add(*rapid.T) {
	k := m.drawKey()
	m.stepForDebounce()
	m.want("Add", m.queue.Add(k), !m.closed)
	if !m.closed {
		m.begin(k, informer.PriorityNormal)
		m.now(k)
	}
}

// addedAt notes that k has been added with a time.
func (m *queueModel) addedAt(k int, p informer.Priority, due time.Time) {
	m.begin(k, p)
	if due.IsZero() {
		m.now(k)
	} else {
		m.setEarliest(k, due)
	}
}

func (m *queueModel) addAfter(*rapid.T) {
	k := m.drawKey()
	m.stepForDebounce()
	d, due := m.drawDelay()
	m.want("AddAfter", m.queue.AddAfter(k, d), !m.closed)
	if !m.closed {
		m.addedAt(k, informer.PriorityNormal, due)
	}
}

func (m *queueModel) addWith(*rapid.T) {
	k := m.drawKey()
	m.stepForDebounce()
	give, p := m.drawPriority()
	d, due := time.Duration(0), time.Time{}
	if rapid.Bool().Draw(m.T, "after") {
		d, due = m.drawDelay()
	}
	m.want("AddWith", m.queue.AddWith(k, informer.AddOptions{Priority: give, After: d}), !m.closed)
	if !m.closed {
		m.addedAt(k, p, due)
	}
}

func (m *queueModel) reschedule(*rapid.T) {
	k := m.drawKey()
	m.stepForDebounce()
	d, due := m.drawDelay()
	m.want("Reschedule", m.queue.Reschedule(k, d), !m.closed)
	if m.closed {
		return
	}
	m.begin(k, informer.PriorityNormal)
	if due.IsZero() {
		m.now(k)
		return
	}
	m.set(k, due)
	m.key(k).limited = false
}

func (m *queueModel) cancel(*rapid.T) { m.cancelKey(m.drawKey()) }

func (m *queueModel) cancelParked(*rapid.T) {
	m.cancelKey(m.drawWhere(func(s *queueKey) bool { return s.parked }))
}

func (m *queueModel) cancelKey(k int) {
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
	m.leave(k)
	m.drop(k)
}

func (m *queueModel) unpark(*rapid.T) { m.unparkKey(m.drawKey()) }

func (m *queueModel) unparkParked(*rapid.T) {
	m.unparkKey(m.drawWhere(func(s *queueKey) bool { return s.parked }))
}

func (m *queueModel) unparkKey(k int) {
	s := m.keys[k]
	parked := s != nil && s.parked && !m.closed
	m.want("Unpark", m.queue.Unpark(k), parked)
	if parked {
		m.begin(k, s.priority)
		m.set(k, time.Time{})
	}
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
		m.take(lease)
		m.leases = append(m.leases, &queueLease{lease, true})
	}
}

// getPanics leases a key, and OnLease panics: it is ready again.
func (m *queueModel) getPanics(*rapid.T) {
	if len(m.line) == 0 {
		m.Skip("no key is ready")
	}
	m.onLeasePanics = true
	m.panics("Get", func() { _, _ = m.queue.Get(m.Context()) })
	l := m.told.last
	if wrong := m.wrong(l.Key); wrong != "" {
		m.Fatal("Get: " + wrong)
	}
	m.take(l)
	m.releasedKey(l.Key)
}
