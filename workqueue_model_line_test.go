package informer_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// modelAgeing is the ageing of the queue. Its clock ticks eight times as often,
// and tells times that are less than a tick apart from each other or not.
const (
	modelAgeing = 40 * time.Millisecond
	modelTick   = modelAgeing / 8
	lineUnknown = informer.Priority(99)
)

// A queueRank is the place of a key that is ready: when it would have to get in
// line with PriorityNormal now to be where it is, and where that is. It is two
// times, and the line is not known, if the key was raised to where it may have
// been already.
type queueRank struct {
	rank, rankAtMost time.Time
	line             informer.Priority
}

// rankOf returns the rank of a key that gets in line at a time.
func rankOf(p informer.Priority, at time.Time) queueRank {
	rank := at.Add(-time.Duration(p) * modelAgeing)
	return queueRank{rank, rank, p}
}

// drawPriority draws a priority, and what it counts as.
func (m *queueModel) drawPriority() (give, counts informer.Priority) {
	p := rapid.SampledFrom([]informer.Priority{0, 0, 0, -2, -1, 1, 2, -128, 127}).Draw(m.T, "priority")
	return p, min(max(p, informer.PriorityLow), informer.PriorityHigh)
}

// group returns the group of k.
func (m *queueModel) group(k int) string {
	if m.options.Group == nil {
		return ""
	}
	return m.options.Group(k)
}

// enter puts k, which became ready at a time, in line, and its group into the
// ring.
func (m *queueModel) enter(k int, at time.Time) {
	s := m.keys[k]
	m.line = append(m.line, k)
	s.queueRank, s.since = rankOf(s.priority, at), at
	if !slices.Contains(m.ring, m.group(k)) {
		m.ring = append(m.ring, m.group(k))
	}
}

// leave takes k out of the line, and its group out of the ring if no key of it is
// left.
func (m *queueModel) leave(k int) {
	m.line = slices.DeleteFunc(m.line, func(other int) bool { return other == k })
	group := m.group(k)
	if !slices.ContainsFunc(m.line, func(other int) bool { return m.group(other) == group }) {
		m.ring = slices.DeleteFunc(m.ring, func(other string) bool { return other == group })
	}
}

// raise gives k, which is to be pending, a priority if that is higher than what
// it has.
func (m *queueModel) raise(k int, p informer.Priority) {
	s := m.key(k)
	if !s.pending {
		s.priority = p
		return
	}
	if p <= s.priority {
		return
	}
	s.priority = p
	if !slices.Contains(m.line, k) {
		return
	}
	now := time.Now()
	rank := rankOf(p, now)
	switch {
	case !rank.rank.Add(modelTick).After(s.rank): // surely better
		m.line = slices.DeleteFunc(m.line, func(other int) bool { return other == k })
		m.line = append(m.line, k)
		s.queueRank, s.since = rank, now
		if len(m.ring) > 1 && m.ring[0] == m.group(k) {
			m.counts["= a raised key keeps the turn of its group"]++
		}
	case rank.rank.Add(-modelTick).Before(s.rankAtMost): // better or not
		s.line = lineUnknown
		if rank.rank.Before(s.rank) {
			s.rank = rank.rank
		}
	}
}

// wrong tells why k must not be leased now: promise 26.
func (m *queueModel) wrong(k int) string {
	i := slices.Index(m.line, k)
	if i < 0 {
		return fmt.Sprintf("%d is leased, want one of %v", k, m.line)
	}
	if m.group(k) != m.ring[0] {
		return fmt.Sprintf("%d is leased, of %s, want the groups in turn: %q", k, m.group(k), m.ring)
	}
	s := m.keys[k]
	for j, other := range m.line {
		if m.group(other) != m.group(k) {
			continue
		}
		o := m.keys[other]
		inLine := j < i && o.line == s.line && s.line != lineUnknown
		if other != k && (inLine || !o.rankAtMost.Add(modelTick).After(s.rank)) {
			return fmt.Sprintf("%d is leased: %+v, want %d first: %+v", k, *s, other, *o)
		}
	}
	return ""
}

// take notes a lease, which may be the next.
func (m *queueModel) take(l informer.Lease[int]) {
	k, s, now := l.Key, m.keys[l.Key], time.Now()
	if len(m.ring) > 1 {
		m.counts["= a turn passes on"]++
	}
	turn := m.ring[0]
	m.leave(k)
	if len(m.ring) > 0 && m.ring[0] == turn {
		m.ring = append(m.ring[1:], turn)
	}
	if l.Attempt != s.attempts+1 || l.Priority != s.priority {
		m.Errorf("leased %+v, want attempt %d, priority %d", l, s.attempts+1, s.priority)
	}
	m.near("Lease.Age", l.Age(), now.Sub(s.added))
	if s.line != lineUnknown {
		m.near("Lease.Waited", l.Waited(), now.Sub(s.since))
	}
	m.stats.Waited.Count++
	m.stats.Waited.Total += l.Waited()
	m.stats.Waited.Longest = max(m.stats.Waited.Longest, l.Waited())
	m.tellings.leases = append(m.tellings.leases, fmt.Sprint(k, l.Attempt))
	s.pending, s.leased, s.leasedAs, s.since, s.began = false, true, s.priority, now, s.added
}
