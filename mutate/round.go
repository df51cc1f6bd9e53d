package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// round is one run over the chosen mutations, by their numbers.
type round struct {
	*lab
	chosen   map[int]*mutation
	parallel int
	whole    bool // all mutations are chosen

	report report
	files  map[string]*blended
	tests  map[string]tests // by directory
	alone  []int            // to be built one by one
}

func newRound(l *lab, out io.Writer) *round {
	return &round{
		lab: l, chosen: map[int]*mutation{}, parallel: 1,
		report: report{out: out, outcomes: map[*mutation]outcome{}},
		files:  map[string]*blended{}, tests: map[string]tests{},
	}
}

// target is what is built once for many mutations.
type target struct {
	dir  string
	race bool
}

func (r *round) run(ctx context.Context) error {
	began := time.Now()
	if err := r.blend(); err != nil {
		return err
	}
	if err := r.together(ctx); err != nil {
		return err
	}
	if err := r.separate(); err != nil {
		return err
	}
	for _, number := range r.alone {
		if err := r.single(ctx, number); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := r.report.summarize(r.whole)
	_, _ = fmt.Fprintf(r.report.out, "%v\n", time.Since(began).Round(time.Second))
	return err
}

// blend puts all mutants that can be into one source, and finds the tests.
func (r *round) blend() error {
	var errs []error
	for _, number := range slices.Sorted(maps.Keys(r.chosen)) {
		m := r.chosen[number]
		if err := r.blendOne(number, m); err != nil {
			errs = append(errs, fmt.Errorf("mutation %q: %w", m, err))
		}
	}
	return errors.Join(errs...)
}

func (r *round) blendOne(number int, m *mutation) (err error) {
	if r.tests[m.dir] == nil {
		if r.tests[m.dir], err = readTests(filepath.Join(r.dir, m.dir)); err != nil {
			return err
		}
	}
	if len(r.tests[m.dir].of(m)) == 0 {
		r.report.tell(m, outcome{verdict: untested, why: fmt.Sprintf("of the tests %q, none names the promise", m.run)})
		delete(r.chosen, number)
		return nil
	}
	source, err := r.read(m.file)
	if err != nil {
		return err
	}
	changed, err := m.apply(source)
	if err != nil {
		r.report.tell(m, outcome{verdict: misfit, why: err.Error()})
		delete(r.chosen, number)
		return nil
	}
	if r.files[m.file] == nil {
		if r.files[m.file], err = blend(m.file, source); err != nil {
			return err
		}
	}
	if m.alone || r.files[m.file].add(number, changed) != nil {
		r.alone = append(r.alone, number)
	}
	return nil
}

// together builds the blended source, and runs the tests of each mutant in it.
func (r *round) together(ctx context.Context) error {
	groups := map[target][]int{}
	for number, m := range r.chosen {
		if !slices.Contains(r.alone, number) {
			groups[target{m.dir, m.race}] = append(groups[target{m.dir, m.race}], number)
		}
	}
	for t, numbers := range groups {
		slices.Sort(numbers)
		bin, bad, err := r.buildAll(ctx, t)
		if err != nil {
			return err
		}
		if err := r.unbroken(ctx, t, bin, numbers); err != nil {
			return err
		}
		slots := make(chan struct{}, r.parallel)
		var running sync.WaitGroup
		for _, number := range numbers {
			m := r.chosen[number]
			if text, ok := bad[number]; ok {
				r.report.tell(m, outcome{verdict: broken, why: text})
				continue
			}
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				if ctx.Err() == nil {
					r.report.tell(m, r.try(ctx, m, r.trial(bin, m, number)))
				}
			})
		}
		running.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// trial returns the trial of a mutation whose mutant, if it is not alone, has a
// number.
func (r *round) trial(bin string, m *mutation, number int) trial {
	return trial{bin, m.dir, r.tests[m.dir].of(m), number, r.limit}
}

// unbroken checks that the tests of all mutations pass without one.
func (r *round) unbroken(ctx context.Context, t target, bin string, numbers []int) error {
	all := map[string]bool{}
	for _, number := range numbers {
		for _, name := range r.tests[t.dir].of(r.chosen[number]) {
			all[name] = true
		}
	}
	o := r.test(ctx, trial{bin, t.dir, slices.Sorted(maps.Keys(all)), 0, unbrokenLimit})
	if o.verdict != survived {
		return fmt.Errorf("without a mutation, the tests in %s fail: %s %s\n%s", t.dir, o.verdict, o.why, o.output)
	}
	return nil
}

const (
	selectorName  = "zz_mutant.go"
	unbrokenLimit = 10 * time.Minute // for all tests together
)

// buildAll builds the blended source, and leaves out what does not compile.
func (r *round) buildAll(ctx context.Context, t target) (bin string, bad map[int]string, err error) {
	for name, file := range r.files {
		if err := r.write(path.Join(path.Dir(name), selectorName), selector(file.pkg)); err != nil {
			return "", nil, err
		}
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
		bin, output, err := r.build(ctx, t)
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

// separate puts back the files of before.
func (r *round) separate() error {
	for name, file := range r.files {
		if err := r.write(name, file.source); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(r.dir, path.Dir(name), selectorName)); err != nil {
			return err
		}
	}
	return nil
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
	if bin, output, err := r.build(ctx, target{m.dir, m.race}); err != nil {
		r.report.tell(m, outcome{verdict: broken, why: output})
	} else {
		r.report.tell(m, r.try(ctx, m, r.trial(bin, m, 0)))
	}
	return r.write(m.file, source)
}
