package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-99a027e8/informer/bench/rows"
)

type runOptions struct {
	quick bool
	tags  string
}

// args are those of the test binary.
func (o runOptions) args() []string {
	if o.quick {
		return []string{"-quick", "-rounds", "1", "-mintime", "200ms"}
	}
	return []string{"-rounds", "5", "-mintime", "1s"}
}

// A sample is what one benchmark reported, by metric: a number for each run.
type sample map[string][]float64

// measure builds the benchmarks once, and runs those that the rows need: each
// family in a process of its own, so that none has to live with the objects of
// another.
func measure(ctx context.Context, chosen []rows.Row, opts runOptions) ([]result, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "bench.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-tags", opts.tags, "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the benchmarks: %w", err)
	}
	samples := make(map[string]sample)
	for _, tops := range families(chosen) {
		if err := runFamily(ctx, binary, tops, opts, samples); err != nil {
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

// runFamily runs the benchmarks in one process, and shows each line as it comes.
func runFamily(ctx context.Context, binary string, tops []string, opts runOptions, samples map[string]sample) error {
	args := append([]string{"-test.run", "NONE", "-test.benchtime", "1x", "-test.timeout", "2h",
		"-test.bench", "^(" + strings.Join(tops, "|") + ")$"}, opts.args()...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var failed []string
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		line := lines.Text()
		fmt.Fprintln(os.Stderr, line)
		if strings.HasPrefix(line, "--- FAIL") {
			failed = append(failed, line)
		}
		if name, values, ok := parse(line); ok {
			if samples[name] == nil {
				samples[name] = make(sample)
			}
			for metric, value := range values {
				samples[name][metric] = append(samples[name][metric], value)
			}
		}
	}
	_, _ = io.Copy(io.Discard, pipe)
	if err := cmd.Wait(); err != nil && len(failed) == 0 {
		return err
	}
	return nil // what failed has no numbers, and its rows say so
}

// suffixes are what package testing adds to the name of a benchmark: the number
// of a run, and of processors.
var suffixes = regexp.MustCompile(`(#\d+)?(-\d+)?$`)

// parse reads a line such as
//
//	BenchmarkS3_UpdateSame/ours#01-2   1   2749 ns/op   0.01 allocs
func parse(line string) (name string, values map[string]float64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", nil, false
	}
	name = suffixes.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
	values = make(map[string]float64)
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return "", nil, false
		}
		values[fields[i+1]] = value
	}
	return name, values, true
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
