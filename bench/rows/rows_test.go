package rows_test

import (
	"testing"

	"github.com/seed-99a027e8/informer/bench/rows"
)

func TestJudge(t *testing.T) {
	faster := rows.Row{Measure: rows.Faster, Must: 2, Aim: 4}
	more := rows.Row{Measure: rows.More, Must: 2, Aim: 4}
	smaller := rows.Row{Measure: rows.Smaller, Must: 0.5, Aim: 0.25}
	atMost := rows.Row{Measure: rows.AtMost, Must: 100, Aim: 50}
	none := rows.Row{Measure: rows.AtMost, Metric: rows.Allocs}
	for name, test := range map[string]struct {
		row          rows.Row
		theirs, ours float64
		want         rows.Verdict
	}{
		"faster, aim":        {faster, 800, 200, rows.Verdict{Ratio: 4, Met: true, AimMet: true}},
		"faster, bar":        {faster, 400, 200, rows.Verdict{Ratio: 2, Met: true}},
		"faster, almost":     {faster, 350, 200, rows.Verdict{Ratio: 1.75}},
		"faster, failed":     {faster, 300, 200, rows.Verdict{Ratio: 1.5, Failed: true}},
		"more, bar":          {more, 100, 200, rows.Verdict{Ratio: 2, Met: true}},
		"more, failed":       {more, 100, 50, rows.Verdict{Ratio: 0.5, Failed: true}},
		"smaller, aim":       {smaller, 100, 25, rows.Verdict{Ratio: 0.25, Met: true, AimMet: true}},
		"smaller, almost":    {smaller, 100, 55, rows.Verdict{Ratio: 0.55}},
		"smaller, failed":    {smaller, 100, 60, rows.Verdict{Ratio: 0.6, Failed: true}},
		"at most, bar":       {atMost, 1, 90, rows.Verdict{Ratio: 90, Met: true}},
		"at most, failed":    {atMost, 1, 116, rows.Verdict{Ratio: 116, Failed: true}},
		"no allocations":     {none, 9, 0.01, rows.Verdict{Ratio: 0.01, Met: true, AimMet: true}},
		"a whole allocation": {none, 9, 1, rows.Verdict{Ratio: 1, Failed: true}},
	} {
		if got := test.row.Judge(test.theirs, test.ours); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestSelect(t *testing.T) {
	all := []rows.Row{{ID: "S1"}, {ID: "S1 allocs"}, {ID: "S10"}, {ID: "W1"}, {ID: "OS1 pods"}}
	for prefixes, want := range map[string]int{"": 5, "S": 3, "S1": 2, "S10": 1, "W1,S1": 3, "O": 1, "X": 0} {
		if got := rows.Select(all, prefixes); len(got) != want {
			t.Errorf("%q selects %v, want %d rows", prefixes, got, want)
		}
	}
}

// Each row has its own name, a benchmark and a bar that the aim does not miss.
func TestAll(t *testing.T) {
	seen := make(map[string]bool)
	for _, row := range rows.All() {
		if seen[row.ID] || row.Bench == "" || row.Metric == "" || row.What == "" {
			t.Errorf("row %+v: twice, or not complete", row)
		}
		seen[row.ID] = true
		higher := row.Measure == rows.Faster || row.Measure == rows.More
		if higher && row.Aim < row.Must || !higher && row.Aim > row.Must {
			t.Errorf("row %s: aim %v and bar %v", row.ID, row.Aim, row.Must)
		}
	}
	for _, id := range []string{"W1", "I1 16", "S3 allocs", "S8 10k", "Q4 4x4", "P2", "OW2 custom"} {
		if !seen[id] {
			t.Errorf("no row %s", id)
		}
	}
}
