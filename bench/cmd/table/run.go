package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-99a027e8/informer/bench/rows"
	"github.com/seed-99a027e8/informer/bench/runner"
)

// args returns those of the test binary.
func args(quick bool) []string {
	if quick {
		return []string{"-quick", "-rounds", "1", "-mintime", "200ms"}
	}
	return []string{"-rounds", "5", "-mintime", "500ms"}
}

// measure builds the benchmarks once, and runs those that the rows need: each
// family in a process of its own, so that none has to live with the objects of
// another.
func measure(ctx context.Context, chosen []rows.Row, quick bool) ([]result, error) {
	binary, remove, err := runner.Build(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	samples := make(runner.Samples)
	for _, tops := range families(chosen) {
		if err := samples.Run(ctx, binary, tops, args(quick)...); err != nil {
			return nil, fmt.Errorf("running %s: %w", strings.Join(tops, ", "), err)
		}
	}
	return judge(chosen, samples), nil
}

// families returns the benchmarks of the rows, in order, in groups that have the
// same first letter.
func families(chosen []rows.Row) [][]string {
	var groups [][]string
	for _, row := range chosen {
		top := row.Top()
		last := len(groups) - 1
		switch {
		case last >= 0 && slices.Contains(groups[last], top):
		case last >= 0 && groups[last][0][len("Benchmark")] == top[len("Benchmark")]:
			groups[last] = append(groups[last], top)
		default:
			groups = append(groups, []string{top})
		}
	}
	return groups
}
