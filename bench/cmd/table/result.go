package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/seed-99a027e8/informer/bench/rows"
	"github.com/seed-99a027e8/informer/bench/runner"
)

// A result is a row with the medians of both sides.
type result struct {
	row          rows.Row
	theirs, ours float64
	runs         int
	verdict      rows.Verdict
	missing      string // why there are no numbers
}

func judge(chosen []rows.Row, collected runner.Samples) []result {
	results := make([]result, len(chosen))
	for i, row := range chosen {
		r := result{row: row}
		side := collected.Of(row.Bench + "/ours")
		ours, theirs := side.Values[row.Metric], collected.Of(row.Bench + "/theirs").Values[row.Metric]
		r.ours, r.theirs, r.runs = runner.Median(ours), runner.Median(theirs), len(ours)
		switch {
		case len(ours) > 0 && (len(theirs) > 0 || row.Measure == rows.AtMost):
			r.verdict = row.Judge(r.theirs, r.ours)
		case side.Failed != "":
			r.missing = side.Failed
		default:
			r.missing = "no numbers"
		}
		results[i] = r
	}
	return results
}

// render draws the table, in Markdown that reads well as it is.
func render(results []result) string {
	var b strings.Builder
	for _, other := range []bool{false, true} {
		part := make([]result, 0, len(results))
		for _, r := range results {
			if r.row.Other == other {
				part = append(part, r)
			}
		}
		if len(part) == 0 {
			continue
		}
		if other {
			b.WriteString("\nOther kinds, seeds and sizes, with half of each bar\n\n")
		}
		renderPart(&b, part)
	}
	return b.String()
}

func renderPart(b *strings.Builder, part []result) {
	w := tabwriter.NewWriter(b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| row\t| what\t| unit\t| theirs\t| ours\t| ratio\t| bar\t| aim\t| met\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range part {
		if r.missing != "" {
			fmt.Fprintf(w, "| %s\t| %s\t| %s\t|\t|\t|\t| %s\t| %s\t| %s\t|\n", r.row.ID, r.row.What, r.row.Metric, r.bar(r.row.Must), r.bar(r.row.Aim), r.missing)
			continue
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", r.row.ID, r.row.What, r.row.Metric,
			number(r.theirs), number(r.ours), r.ratio(), r.bar(r.row.Must), r.bar(r.row.Aim), r.met())
	}
	_ = w.Flush()
}

// ratio is our gain, or our share where less is better.
func (r result) ratio() string {
	switch r.row.Measure {
	case rows.Faster, rows.More:
		return number(r.verdict.Ratio) + "x"
	}
	return number(r.verdict.Ratio)
}

func (r result) bar(value float64) string {
	switch r.row.Measure {
	case rows.Faster, rows.More:
		return number(value) + "x"
	}
	return "<= " + number(value)
}

func (r result) met() string {
	switch {
	case r.verdict.AimMet:
		return "aim"
	case r.verdict.Met:
		return "yes"
	case r.verdict.Failed:
		return "NO"
	}
	return "almost"
}

// number prints three digits that count.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case math.Abs(v) >= 1e4:
		return fmt.Sprintf("%.3gk", v/1e3)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) < 0.005:
		return "0.00"
	}
	return fmt.Sprintf("%.3g", v)
}

// failures returns an error that names every row that is too far below its bar.
func failures(results []result) error {
	var errs []error
	for _, r := range results {
		switch {
		case r.missing != "":
			errs = append(errs, fmt.Errorf("%s: %s", r.row.ID, r.missing))
		case r.missing == "" && r.verdict.Failed:
			errs = append(errs, fmt.Errorf("%s: %s, and the bar is %s", r.row.ID, r.ratio(), r.bar(r.row.Must)))
		}
	}
	return errors.Join(errs...)
}

// line is a row in the file of results.
type line struct {
	Row, What, Metric  string
	Theirs, Ours       float64 `json:",omitempty"`
	Ratio, Bar, Aim    float64
	Met, AimMet, Other bool
	Runs               int
	Missing            string `json:",omitempty"`
}

func writeJSON(path string, results []result, quick bool) error {
	report := struct {
		Go, OS, Arch string
		CPUs         int
		Quick        bool
		Rows         []line
	}{runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), quick, nil}
	for _, r := range results {
		report.Rows = append(report.Rows, line{
			r.row.ID, r.row.What, r.row.Metric, r.theirs, r.ours, r.verdict.Ratio, r.row.Must, r.row.Aim,
			r.verdict.Met, r.verdict.AimMet, r.row.Other, r.runs, r.missing,
		})
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o666)
}
