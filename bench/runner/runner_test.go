package runner

import (
	"maps"
	"testing"
)

func TestParse(t *testing.T) {
	name, values, ok := parse("BenchmarkS6_Get/n=10000/ours#01-2   \t 1\t 112.0 ns/op\t 0.5 allocs")
	want := map[string]float64{"ns/op": 112, "allocs": 0.5}
	if !ok || name != "S6_Get/n=10000/ours" || !maps.Equal(values, want) {
		t.Errorf("%q %v %v", name, values, ok)
	}
	for _, line := range []string{"PASS", "BenchmarkS6_Get/n=10000/ours-2", "--- FAIL: BenchmarkW3/ours", "cpu: Some CPU 2 GHz"} {
		if _, _, ok := parse(line); ok {
			t.Errorf("%q is no result", line)
		}
	}
}

func TestReason(t *testing.T) {
	if got := reason("    child_test.go:73: the answer was application/json: exit status 1"); got != "the answer was application/json: exit status 1" {
		t.Errorf("%q", got)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := Median(test.values); got != test.want {
			t.Errorf("%v: %v, want %v", test.values, got, test.want)
		}
	}
}
