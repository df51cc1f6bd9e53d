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
	s := &session{lab: l, chosen: chosen, counts: map[verdict]int{}}
	return errors.Join(s.run(ctx), l.close())
}

// session is one run over the chosen mutations, by their numbers.
type session struct {
	*lab
	chosen map[int]*mutation
	alone  []int // to be built one by one
	counts map[verdict]int
	files  map[string]*blended
}

func (s *session) run(ctx context.Context) error {
	began := time.Now()
	if err := s.blend(); err != nil {
		return err
	}
	originals := map[string]string{}
	for name, file := range s.files {
		originals[name] = file.source
	}
	for _, race := range []bool{false, true} {
		if err := s.together(ctx, race); err != nil {
			return err
		}
	}
	for name, source := range originals {
		if err := s.write(name, source); err != nil {
			return err
		}
	}
	for _, number := range s.alone {
		if err := s.single(ctx, number); err != nil {
			return err
		}
	}
	fmt.Printf("%d mutations in %v: %v\n", len(s.chosen), time.Since(began).Round(time.Second), s.counts)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.counts[killed] != len(s.chosen) {
		return fmt.Errorf("%d mutations were not killed", len(s.chosen)-s.counts[killed])
	}
	return nil
}

// numbers returns the numbers of the chosen mutations, in order.
func (s *session) numbers() []int {
	var all []int
	for number := range s.chosen {
		all = append(all, number)
	}
	sort.Ints(all)
	return all
}

// blend puts all mutants that can be into one source.
func (s *session) blend() error {
	s.files = map[string]*blended{}
	for _, number := range s.numbers() {
		m := s.chosen[number]
		source, err := s.read(m.file)
		if err != nil {
			return err
		}
		changed, err := m.apply(source)
		if err != nil {
			return fmt.Errorf("mutation %q: %w", m, err)
		}
		if s.files[m.file] == nil {
			s.files[m.file] = &blended{name: m.file, source: source, heads: map[int]string{}}
		}
		if m.alone || s.files[m.file].add(number, changed) != nil {
			s.alone = append(s.alone, number)
		}
	}
	return nil
}

// together builds the blended source, and runs the tests of each mutant.
func (s *session) together(ctx context.Context, race bool) error {
	blend := map[int]bool{}
	for number, m := range s.chosen {
		blend[number] = m.race == race
	}
	for _, number := range s.alone {
		blend[number] = false
	}
	if !hasTrue(blend) {
		return nil
	}
	bin, bad, err := s.buildAll(ctx, race)
	if err != nil {
		return err
	}
	passed := map[string]bool{}
	for _, number := range s.numbers() {
		m := s.chosen[number]
		if !blend[number] || ctx.Err() != nil {
			continue
		}
		if text, ok := bad[number]; ok {
			s.tell(m, outcome{verdict: broken, why: text})
			continue
		}
		if !passed[m.run] {
			if o := s.test(ctx, bin, m.run, 0); o.verdict != survived {
				return fmt.Errorf("without a mutation, the tests %q fail: %s %s", m.run, o.verdict, o.why)
			}
			passed[m.run] = true
		}
		s.tell(m, s.test(ctx, bin, m.run, number))
	}
	return nil
}

// buildAll builds the blended source, and leaves out what does not compile.
func (s *session) buildAll(ctx context.Context, race bool) (bin string, bad map[int]string, err error) {
	if err := s.write("zz_mutant.go", selector); err != nil {
		return "", nil, err
	}
	bad, without := map[int]string{}, map[int]bool{}
	for {
		lines := map[string]map[int]int{}
		for name, file := range s.files {
			var text string
			text, lines[name] = file.text(without)
			if err := s.write(name, text); err != nil {
				return "", nil, err
			}
		}
		bin, output, err := s.build(ctx, race)
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
func (s *session) single(ctx context.Context, number int) error {
	m := s.chosen[number]
	source, err := s.read(m.file)
	if err != nil {
		return err
	}
	changed, err := m.apply(source)
	if err != nil {
		return err
	}
	if err := s.write(m.file, changed); err != nil {
		return err
	}
	if bin, output, err := s.build(ctx, m.race); err != nil {
		s.tell(m, outcome{verdict: broken, why: output})
	} else {
		s.tell(m, s.test(ctx, bin, m.run, 0))
	}
	return s.write(m.file, source)
}

// tell prints a line about a mutation.
func (s *session) tell(m *mutation, o outcome) {
	s.counts[o.verdict]++
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
