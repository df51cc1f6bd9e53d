// Command memory prints what one idle informer, one more handler and a small
// program cost, on both sides. It is what `make memory` runs, in the directory
// of the benchmarks.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/seed-99a027e8/informer/bench/runner"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	binary, remove, err := runner.Build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	samples := make(runner.Samples)
	for _, bench := range []string{"BenchmarkM_Idle", "BenchmarkM_Handler"} {
		if err := samples.Run(ctx, binary, []string{bench}, "-rounds", "3"); err != nil {
			return err
		}
	}
	fmt.Println("| what | unit | client-go | ours |")
	fmt.Println("|---|---|---|---|")
	for _, row := range []struct{ what, bench string }{
		{"one idle informer", "M_Idle"}, {"one more handler", "M_Handler"},
	} {
		for _, metric := range []string{"goroutines", "heap-B", "stack-B"} {
			side := func(name string) float64 {
				return runner.Median(samples.Of(row.bench + "/" + name).Values[metric])
			}
			fmt.Printf("| %s | %s | %.0f | %.0f |\n", row.what, metric, side("theirs"), side("ours"))
		}
	}
	fmt.Print("\n| a program with one informer | packages | binary, MB | stripped, MB |\n|---|---|---|---|\n")
	for _, program := range []struct{ name, what string }{
		{"clientgo", "client-go"}, {"client", "ours, FromClient"}, {"rest", "ours, FromREST"},
	} {
		if err := weigh(ctx, filepath.Dir(binary), program.name, program.what); err != nil {
			return err
		}
	}
	return nil
}

// weigh builds a program and prints how large it is.
func weigh(ctx context.Context, dir, name, what string) error {
	pkg := "./cmd/memory/" + name
	deps, err := exec.CommandContext(ctx, "go", "list", "-deps", pkg).Output()
	if err != nil {
		return fmt.Errorf("listing the packages of %s: %w", name, err)
	}
	var sizes []float64
	for _, flags := range []string{"", "-s -w"} {
		out := filepath.Join(dir, name)
		if said, err := exec.CommandContext(ctx, "go", "build", "-ldflags", flags, "-o", out, pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w: %s", name, err, said)
		}
		info, err := os.Stat(out)
		if err != nil {
			return err
		}
		sizes = append(sizes, float64(info.Size())/1e6)
	}
	fmt.Printf("| %s | %d | %.1f | %.1f |\n", what, bytes.Count(deps, []byte("\n")), sizes[0], sizes[1])
	return nil
}
