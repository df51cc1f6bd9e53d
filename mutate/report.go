package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// promises is how many promises there are.
const promises = 31

// report tells of the mutations that were tried.
type report struct {
	out    io.Writer
	output bool // what tests say is shown

	mu       sync.Mutex // guards the fields below
	outcomes map[*mutation]outcome
}

// tell prints a line about a mutation.
func (r *report) tell(m *mutation, o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[m] = o
	_, _ = fmt.Fprintf(r.out, "%-10s %-62s %5.1fs  %s\n", o.verdict, m, o.took.Seconds(), o.why)
	if r.output && o.verdict != killed {
		_, _ = fmt.Fprintln(r.out, o.output)
	}
}

// summary is what there is to say of one promise.
type summary struct {
	mutations, killed int
	slowest           time.Duration
	which             *mutation
}

// summarize prints a table of the promises, and what is wrong: mutations that
// were not killed, and, of a whole run, promises that have too few. The error
// says how many.
func (r *report) summarize(whole bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sums [promises + 1]summary
	counts, wrong := map[verdict]int{}, []string{}
	for m, o := range r.outcomes {
		counts[o.verdict]++
		if m.promise < 1 || m.promise > promises {
			return fmt.Errorf("mutation %q: there is no promise %d", m, m.promise)
		}
		sums[m.promise].add(m, o)
		if o.verdict != killed {
			wrong = append(wrong, fmt.Sprintf("%s: %s", o.verdict, m))
		}
	}
	_, _ = fmt.Fprintf(r.out, "\n| promise | mutations | killed | slowest |\n|---|---|---|---|\n")
	for promise, s := range sums[1:] {
		promise++
		if s.mutations > 0 {
			_, _ = fmt.Fprintf(r.out, "| %d | %d | %d | %.1f s: %s |\n",
				promise, s.mutations, s.killed, s.slowest.Seconds(), s.which.name)
		}
		if whole && s.mutations < 2 {
			wrong = append(wrong, fmt.Sprintf("promise %d has %d mutations: must be two at least", promise, s.mutations))
		}
	}
	_, _ = fmt.Fprintf(r.out, "\n%d mutations: %v\n", len(r.outcomes), counts)
	for _, text := range wrong {
		_, _ = fmt.Fprintln(r.out, text)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d mutations are missing or were not killed", len(wrong))
	}
	return nil
}

// add adds a mutation.
func (s *summary) add(m *mutation, o outcome) {
	s.mutations++
	if o.verdict == killed {
		s.killed++
	}
	if s.which == nil || o.took > s.slowest {
		s.which, s.slowest = m, o.took
	}
}
