// Package rows lists what the benchmarks promise: the rows of the table, each
// with its bar and what we aim at.
package rows

import (
	"slices"
	"strings"
)

// A Measure says how a row is judged.
type Measure int

const (
	// Faster: their value divided by ours is at least the bar.
	Faster Measure = iota + 1
	// More: our value divided by theirs is at least the bar.
	More
	// Smaller: our value divided by theirs is at most the bar.
	Smaller
	// AtMost: our value is at most the bar, whatever theirs is.
	AtMost
)

// A Row is one line of the table: one number of one benchmark.
type Row struct {
	// ID names the row, What says in words what is measured.
	ID, What string
	// Bench is the benchmark, without the prefix and without the side.
	Bench string
	// Metric is the unit that the benchmark reports the number in.
	Metric string
	// Measure says which way is better.
	Measure Measure
	// Must is the bar. Aim is what we want.
	Must, Aim float64
	// Other says that the row belongs to the second part of the table: other
	// kinds, seeds and sizes, with half of each bar.
	Other bool
}

// Top returns the name of the Go benchmark that the row needs.
func (r Row) Top() string {
	top, _, _ := strings.Cut(r.Bench, "/")
	return "Benchmark" + top
}

// A Verdict is how a row came out.
type Verdict struct {
	// Ratio is what is compared with the bar.
	Ratio float64
	// Met and AimMet say whether it reaches the bar and the aim.
	Met, AimMet bool
	// Failed says that it misses the bar by more than noise.
	Failed bool
}

const (
	// slack is how far below its bar a row may fall before it counts as failed:
	// no two runs are the same.
	slack = 0.15
	// fraction is how many allocations may be left over where a bar counts
	// them: tables that grow, a timer, the benchmark itself.
	fraction = 0.1
)

// Judge compares both sides.
func (r Row) Judge(theirs, ours float64) Verdict {
	switch r.Measure {
	case Faster:
		return atLeast(theirs/ours, r)
	case More:
		return atLeast(ours/theirs, r)
	case Smaller:
		return atMost(ours/theirs, r, slack*r.Must)
	}
	if r.Metric == Allocs {
		r.Must, r.Aim = r.Must+fraction, r.Aim+fraction
		return atMost(ours, r, 0)
	}
	return atMost(ours, r, slack*r.Must)
}

func atLeast(ratio float64, r Row) Verdict {
	return Verdict{ratio, ratio >= r.Must, ratio >= r.Aim, !(ratio >= r.Must*(1-slack))}
}

func atMost(ratio float64, r Row, more float64) Verdict {
	return Verdict{ratio, ratio <= r.Must, ratio <= r.Aim, !(ratio <= r.Must+more)}
}

// Select returns the rows whose ID starts with one of the prefixes, which are
// separated by commas. "S1" stands for S1 and its parts, not for S10.
func Select(all []Row, prefixes string) []Row {
	if prefixes == "" {
		return all
	}
	var chosen []Row
	for _, row := range all {
		if slices.ContainsFunc(strings.FieldsFunc(prefixes, between), row.begins) {
			chosen = append(chosen, row)
		}
	}
	return chosen
}

func between(c rune) bool { return c == ',' || c == ' ' }

// begins reports whether the prefix, which is not empty, chooses the row.
func (r Row) begins(prefix string) bool {
	rest, ok := strings.CutPrefix(r.ID, prefix)
	return ok && (rest == "" || rest[0] == ' ' || prefix[len(prefix)-1] > '9')
}
