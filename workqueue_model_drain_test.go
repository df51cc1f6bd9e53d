package informer_test

import (
	"context"
	"slices"

	"pgregory.net/rapid"
)

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

// leftOver is what Drain has to return: promise 24.
func (m *queueModel) leftOver() []int {
	var rest []int
	for k, s := range m.keys {
		if s.pending || s.parked {
			rest = append(rest, k)
			if !s.leased && s.due.IsZero() && !s.parked && !slices.Contains(m.line, k) {
				m.counts["= kept for Drain"]++
			}
			s.pending, s.limited, s.parked = false, false, false
		}
	}
	for _, k := range rest {
		m.drop(k)
	}
	m.line, m.ring, m.ended = nil, nil, true
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
		want = m.leftOver()
	}
	if !slices.Equal(rest, want) {
		m.Fatalf("Drain = %v, want %v", rest, want)
	}
}
