package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The program prints the index, the objects that are there, and changes of all
// three kinds as they happen.
func TestQuickstart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var out bytes.Buffer
		if err := run(ctx, nil, &out); err != nil {
			t.Fatalf("run = %v", err)
		}
		for _, line := range []string{
			"node-1 has 3 pods", "node-2 has 3 pods", "node-3 has 2 pods",
			"shop/web-1 is Pending on node-1", "blog/blog-3 is Running on node-3",
			"shop/web-1 is Running on node-1", "batch/job-2 is Pending on node-2",
			"batch/job-1 is gone",
		} {
			if n := strings.Count("\n"+out.String(), "\n"+line+"\n"); n != 1 {
				t.Errorf("the line %q is there %d times, want once", line, n)
			}
		}
		// A pod that is deleted is marked first, which may be told or not.
		if line := "\nbatch/job-1 is Succeeded on node-1\n"; !strings.Contains(out.String(), line) {
			t.Errorf("the line %q is not there", line)
		}
		if t.Failed() {
			t.Logf("output:\n%s", out.String())
		}
	})
}

func TestQuickstartRefusals(t *testing.T) {
	for _, args := range [][]string{{"-kubeconfig", "/does/not/exist"}, {"-no-such-flag"}} {
		if err := run(t.Context(), args, new(bytes.Buffer)); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}
