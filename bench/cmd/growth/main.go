// Command growth measures what each operation costs with 1,000 to 1,000,000
// objects, on both sides, and draws it: plots/time.svg and plots/bytes.svg, with
// the numbers in plots/growth.csv. It is what `make growth` runs, in the
// directory of the benchmarks.
package main

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-99a027e8/informer/bench/runner"
)

// A curve is one operation: what it costs per object.
type curve struct {
	title, bench, metric string
	// whole says that the number is of all objects together, in milliseconds or
	// megabytes, and is to be divided.
	whole bool
}

func timeCurves() []curve {
	const time = "ns/op"
	return []curve{
		{"add", "G_Add", time, false},
		{"update, same index values", "G_UpdateSame", time, false},
		{"update, 2 of 7 values move", "G_UpdateMove", time, false},
		{"delete", "G_Delete", time, false},
		{"get", "G_Get", time, false},
		{"by index, 100 matches", "G_ByIndex", time, false},
		{"list, per object", "G_List", time, false},
		{"FIFO: replace, half changed", "G_Replace", time, false},
		{"queue: add, get, done", "G_Queue", time, false},
		{"queue: delayed add", "G_AddAfter", time, false},
		{"exponential limiter", "G_Limiter", time, false},
		{"sync in memory", "G_Sync", time, false},
		{"sync, JSON watch-list", "G_WireSync", "sync-ms", true},
	}
}

func byteCurves() []curve {
	const allocated = "bytes"
	return []curve{
		{"held by store and indexes", "G_Held", "held-B/object", false},
		{"held by a delayed key", "G_AddAfter", "held-B/item", false},
		{"allocated: add", "G_Add", allocated, false},
		{"allocated: update", "G_UpdateSame", allocated, false},
		{"allocated: list", "G_List", allocated, false},
		{"allocated: replace", "G_Replace", allocated, false},
		{"allocated: sync in memory", "G_Sync", allocated, false},
		{"peak of a sync, JSON watch-list", "G_WireSync", "peak-MB", true},
	}
}

// A point is what one operation costs with so many objects.
type point struct {
	n    int
	side string
	cost float64
}

func main() {
	var (
		sizes = flag.String("sizes", "1000,10000,100000,1000000", "how many objects")
		dir   = flag.String("out", "plots", "directory to write to")
		form  = flag.String("format", "svg", "svg or png")
		light = flag.Bool("quick", false, "measure for a shorter time")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sizes, *dir, *form, *light); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sizes, dir, form string, light bool) error {
	args := []string{"-sizes", sizes, "-rounds", "3", "-mintime", "300ms"}
	if light {
		args = []string{"-sizes", sizes, "-rounds", "1", "-mintime", "50ms", "-quick"}
	}
	binary, remove, err := runner.Build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	samples := make(runner.Samples)
	for _, curves := range [][]curve{timeCurves(), byteCurves()} {
		for _, c := range curves {
			if samples.Has(c.bench) {
				continue
			}
			if err := samples.Run(ctx, binary, []string{"Benchmark" + c.bench}, args...); err != nil {
				return fmt.Errorf("running %s: %w", c.bench, err)
			}
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return write(dir, form, samples, strings.Split(sizes, ","))
}

func write(dir, form string, samples runner.Samples, sizes []string) error {
	table := [][]string{{"operation", "metric", "objects", "side", "per object"}}
	for _, figure := range []struct {
		file, unit string
		curves     []curve
	}{{"time", "ns per object", timeCurves()}, {"bytes", "bytes per object", byteCurves()}} {
		var panels []panel
		for _, c := range figure.curves {
			p := panel{c.title, c.points(samples, sizes)}
			panels = append(panels, p)
			for _, at := range p.points {
				table = append(table, []string{c.title, c.metric, strconv.Itoa(at.n), at.side, strconv.FormatFloat(at.cost, 'g', 4, 64)})
			}
		}
		if err := writeFigure(filepath.Join(dir, figure.file+"."+form), figure.unit, panels); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, "growth.csv"))
	if err != nil {
		return err
	}
	err = csv.NewWriter(file).WriteAll(table)
	return firstError(err, file.Close())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// points returns what was measured, smallest first.
func (c curve) points(samples runner.Samples, sizes []string) []point {
	const mega = 1e6 // nanoseconds of a millisecond, and bytes of a megabyte
	var points []point
	for _, size := range sizes {
		n, err := strconv.Atoi(size)
		if err != nil {
			continue
		}
		for _, side := range []string{"ours", "theirs"} {
			values := samples.Of(c.bench + "/n=" + size + "/" + side).Values[c.metric]
			if len(values) == 0 {
				continue
			}
			cost := runner.Median(values)
			if c.whole {
				cost *= mega / float64(n)
			}
			points = append(points, point{n, side, cost})
		}
	}
	return points
}
