// Command table runs the benchmarks, both sides in turn, and prints what came
// of them as one table: each row with its bar. It is what `make bench` runs, in
// the directory of the benchmarks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/seed-99a027e8/informer/bench/rows"
)

func main() {
	var (
		only  = flag.String("rows", "", "only rows whose ID starts with one of these, such as `W1,S`")
		quick = flag.Bool("quick", false, "less work, one or two runs of each side")
		check = flag.Bool("check", false, "fail if a row is more than 15 % below its bar, or allocates more")
		out   = flag.String("json", "", "write the results to this `file`")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	results, err := measure(ctx, rows.Select(rows.All(), *only), *quick)
	if err == nil {
		fmt.Print(render(results))
	}
	if err == nil && *out != "" {
		err = writeJSON(*out, results, *quick)
	}
	if err == nil && *check {
		err = failures(results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}
