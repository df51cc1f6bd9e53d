// Command mutate breaks the code on purpose, and tells whether tests notice.
//
//	go run ./mutate [-promise N] [-match REGEXP] [-repeat N] [-output] [-checks N] [-limit D] [-parallel N]
//
// It reads testdata/mutations.txt, a list of small changes each of which breaks
// a promise of the package, makes each of them in a copy of the module, and runs
// the tests that are to fail for it. It prints a line for each change and a table
// of the promises, and fails if
//
//   - a change survives: the tests pass;
//   - only a time limit ends the tests, or the program crashes with another
//     message than the change says;
//   - no test that matches says in its comment that it is for the promise;
//   - a change does not fit the code any more, or does not compile;
//   - a promise has fewer than two changes (in a run over all of them).
//
// # Adding a mutation
//
// Append to the list, for the part of the code that it belongs to:
//
//	= 24 Drain loses what was retried
//	run TestWorkQueue_Drain
//	file queuestate.go
//	-		return workKept
//	+		return workIdle
//
// The first line has the promise, and what is broken. "run" is a regular
// expression over names of tests; of those that match, the ones run whose comment
// names the promise ("promise 24", "promises 22 and 24"), with few cases of a
// model, so name the test that notices and keep it fast. Then come the lines of
// the file, whatever their indentation: those with "-" go, those with "+" come,
// those with "|" stay. All lines with "-" or "|" together stand in the file
// exactly once; take as many with "|" as that needs. Further lines, before them:
//
//	in DIR         the tests of this package run, not those of the file's
//	race           with the race detector
//	alone          the tests read the source: build this mutation by itself
//	crash TEXT     the program may end in a panic that says TEXT; a deadlock that
//	               a testing/synctest bubble finds may always be the end
//
// Then try it, more than once, as a model draws other cases each time:
//
//	go run ./mutate -match 'Drain loses what was retried' -repeat 5
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	promise := flag.Int("promise", 0, "only those of this promise; 0: of all")
	match := flag.String("match", "", "only those whose name matches")
	table := flag.String("table", "testdata/mutations.txt", "the list")
	checks := flag.Int("checks", 100, "how many cases a model test draws")
	limit := flag.Duration("limit", 20*time.Second, "how long the tests of one mutation may run")
	repeat := flag.Int("repeat", 1, "how often the tests of a mutation run; they must fail each time")
	output := flag.Bool("output", false, "show what tests say that do not kill")
	parallel := flag.Int("parallel", 2, "how many mutations are tested at a time")
	flag.Parse()

	name, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	all, err := readTable(*table)
	if err != nil {
		return err
	}
	l, err := newLab(".")
	if err != nil {
		return err
	}
	l.checks, l.limit, l.repeat = *checks, *limit, *repeat
	r := newRound(l, os.Stdout)
	r.parallel, r.report.output = max(*parallel, 1), *output
	for i, m := range all {
		if (*promise == 0 || m.promise == *promise) && name.MatchString(m.name) {
			r.chosen[i+1] = m
		}
	}
	r.whole = len(r.chosen) == len(all)
	return errors.Join(r.run(ctx), l.close())
}
