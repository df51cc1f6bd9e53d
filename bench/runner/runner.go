// Package runner runs the benchmarks, and reads what they report.
package runner

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
)

// Has says whether any part of a benchmark has been run.
func (s Samples) Has(bench string) bool {
	for name := range s {
		if strings.HasPrefix(name, bench+"/") {
			return true
		}
	}
	return false
}

// Build compiles the benchmarks of the current directory, and returns the test
// binary and a function that removes it.
func Build(ctx context.Context) (binary string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	binary = filepath.Join(dir, "bench.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		remove()
		return "", nil, fmt.Errorf("building the benchmarks: %w", err)
	}
	return binary, remove, nil
}

// A Sample is what one benchmark reported.
type Sample struct {
	// Values are by metric: a number for each run.
	Values map[string][]float64
	// Failed is why there are none.
	Failed string
}

// Samples are by the name of the benchmark and the side.
type Samples map[string]*Sample

// Of returns the sample of a benchmark, which may be empty.
func (s Samples) Of(name string) *Sample {
	if s[name] == nil {
		s[name] = &Sample{Values: make(map[string][]float64)}
	}
	return s[name]
}

// Run runs benchmarks in one process, shows each line as it comes, and adds what
// they report to s.
func (s Samples) Run(ctx context.Context, binary string, benchmarks []string, args ...string) error {
	args = append([]string{"-test.run", "NONE", "-test.benchtime", "1x", "-test.timeout", "2h",
		"-test.bench", "^(" + strings.Join(benchmarks, "|") + ")$"}, args...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := false
	var failing *Sample // whose reason is in the next line
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		line := lines.Text()
		fmt.Fprintln(os.Stderr, line)
		if failing != nil && failing.Failed == "" {
			failing.Failed = reason(line)
		}
		failing = nil
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: Benchmark"); ok {
			failed, failing = true, s.Of(suffixes.ReplaceAllString(name, ""))
		}
		if name, values, ok := parse(line); ok {
			for metric, value := range values {
				s.Of(name).Values[metric] = append(s.Of(name).Values[metric], value)
			}
		}
	}
	_, _ = io.Copy(io.Discard, pipe)
	if err := cmd.Wait(); err != nil && !failed {
		return err
	}
	return nil // the row of what failed says so
}

// reason takes the place off a line of a failed benchmark.
func reason(line string) string {
	_, why, _ := strings.Cut(line, "_test.go:")
	_, why, _ = strings.Cut(why, ": ")
	return why
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

// Median returns the middle one, or 0 if there are none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
