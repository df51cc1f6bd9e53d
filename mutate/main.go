// Command mutate breaks the code on purpose, and tells whether tests notice.
//
//	go run ./mutate [-promise N] [-match REGEXP] [-checks N] [-limit D]
//
// It reads testdata/mutations.txt, a list of small changes each of which breaks
// a promise of the package, and the tests that are to fail for it. It works on a
// copy of the module. It prints a line for each change, and fails if a change
// survives: if the tests pass, run into a time limit, or do not compile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"sort"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	limit := flag.Duration("limit", time.Minute, "how long the tests of one mutation may run")
	flag.Parse()

	name, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	all, err := readTable(*table)
	if err != nil {
		return err
	}
	chosen := map[int]*mutation{}
	for i, m := range all {
		if (*promise == 0 || m.promise == *promise) && name.MatchString(m.name) {
			chosen[i+1] = m
		}
	}
	l, err := newLab(".")
	if err != nil {
		return err
	}
	l.checks, l.limit = *checks, *limit
	r := &round{lab: l, chosen: chosen, counts: map[verdict]int{}}
	return errors.Join(r.run(ctx), l.close())
}

// round is one run over the chosen mutations, by their numbers.
type round struct {
	*lab
	chosen map[int]*mutation
	alone  []int // to be built one by one
	counts map[verdict]int
	files  map[string]*blended
}

func (r *round) run(ctx context.Context) error {
	began := time.Now()
	if err := r.blend(); err != nil {
		return err
	}
	originals := map[string]string{}
	for name, file := range r.files {
		originals[name] = file.source
	}
	for _, race := range []bool{false, true} {
		if err := r.together(ctx, race); err != nil {
			return err
		}
	}
	for name, source := range originals {
		if err := r.write(name, source); err != nil {
			return err
		}
	}
	for _, number := range r.alone {
		if err := r.single(ctx, number); err != nil {
			return err
		}
	}
	fmt.Printf("%d mutations in %v: %v\n", len(r.chosen), time.Since(began).Round(time.Second), r.counts)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.counts[killed] != len(r.chosen) {
		return fmt.Errorf("%d mutations were not killed", len(r.chosen)-r.counts[killed])
	}
	return nil
}

// numbers returns the numbers of the chosen mutations, in order.
func (r *round) numbers() []int {
	var all []int
	for number := range r.chosen {
		all = append(all, number)
	}
	sort.Ints(all)
	return all
}

// blend puts all mutants that can be into one source.
func (r *round) blend() error {
	r.files = map[string]*blended{}
	var errs []error
	for _, number := range r.numbers() {
		m := r.chosen[number]
		source, err := r.read(m.file)
		if err != nil {
			return err
		}
		changed, err := m.apply(source)
		if err != nil {
			errs = append(errs, fmt.Errorf("mutation %q: %w", m, err))
			continue
		}
		if r.files[m.file] == nil {
			r.files[m.file] = &blended{name: m.file, source: source, heads: map[int]string{}}
		}
		if m.alone || r.files[m.file].add(number, changed) != nil {
			r.alone = append(r.alone, number)
		}
	}
	return errors.Join(errs...)
}

// together builds the blended source, and runs the tests of each mutant.
func (r *round) together(ctx context.Context, race bool) error {
	blend := map[int]bool{}
	for number, m := range r.chosen {
		blend[number] = m.race == race
	}
	for _, number := range r.alone {
		blend[number] = false
	}
	if !hasTrue(blend) {
		return nil
	}
	bin, bad, err := r.buildAll(ctx, race)
	if err != nil {
		return err
	}
	passed := map[string]bool{}
	for _, number := range r.numbers() {
		m := r.chosen[number]
		if !blend[number] || ctx.Err() != nil {
			continue
		}
		if text, ok := bad[number]; ok {
			r.tell(m, outcome{verdict: broken, why: text})
			continue
		}
		if !passed[m.run] {
			if o := r.test(ctx, bin, m.run, 0); o.verdict != survived {
				return fmt.Errorf("without a mutation, the tests %q fail: %s %s", m.run, o.verdict, o.why)
			}
			passed[m.run] = true
		}
		r.tell(m, r.test(ctx, bin, m.run, number))
	}
	return nil
}

// buildAll builds the blended source, and leaves out what does not compile.
func (r *round) buildAll(ctx context.Context, race bool) (bin string, bad map[int]string, err error) {
	if err := r.write("zz_mutant.go", selector); err != nil {
		return "", nil, err
	}
	bad, without := map[int]string{}, map[int]bool{}
	for {
		lines := map[string]map[int]int{}
		for name, file := range r.files {
			var text string
			text, lines[name] = file.text(without)
			if err := r.write(name, text); err != nil {
				return "", nil, err
			}
		}
		bin, output, err := r.build(ctx, race)
		if err == nil || ctx.Err() != nil {
			return bin, bad, ctx.Err()
		}
		more, err := compileErrors(output, lines)
		if err != nil {
			return "", nil, err
		}
		for number, text := range more {
			bad[number], without[number] = text, true
		}
	}
}

// single builds and tests one mutation by itself.
func (r *round) single(ctx context.Context, number int) error {
	m := r.chosen[number]
	source, err := r.read(m.file)
	if err != nil {
		return err
	}
	changed, err := m.apply(source)
	if err != nil {
		return err
	}
	if err := r.write(m.file, changed); err != nil {
		return err
	}
	if bin, output, err := r.build(ctx, m.race); err != nil {
		r.tell(m, outcome{verdict: broken, why: output})
	} else {
		r.tell(m, r.test(ctx, bin, m.run, 0))
	}
	return r.write(m.file, source)
}

// tell prints a line about a mutation.
func (r *round) tell(m *mutation, o outcome) {
	r.counts[o.verdict]++
	fmt.Printf("%-8s %-60s %5.1fs  %s\n", o.verdict, m, o.took.Seconds(), o.why)
}

func hasTrue(set map[int]bool) bool {
	for _, ok := range set {
		if ok {
			return true
		}
	}
	return false
}
