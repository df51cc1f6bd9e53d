package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDynamic(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want []string // lines of the output, in order
	}{
		{"whole objects", nil, []string{
			"8 pods in 2 namespaces, watching with *unstructured.Unstructured", "  blog: 3", "  shop: 5",
			"Added batch/job-1 (status.phase: Pending)", "Updated batch/job-1 (status.phase: Running)",
			"Updated shop/web-1 (status.phase: Running)", "Deleted batch/job-1 (status.phase: Succeeded)",
		}},
		{"metadata", []string{"-metadata", "pods"}, []string{
			"8 pods in 2 namespaces, watching with *v1.PartialObjectMetadata", "  blog: 3", "  shop: 5",
			"Added batch/job-1 (labels: app=job)", "Updated shop/web-1 (labels: app=web)", "Deleted batch/job-1 (labels: app=job)",
		}},
		{"a namespace", []string{"-namespace=shop", "pods"}, []string{
			"5 pods in 1 namespaces, watching with *unstructured.Unstructured", "  shop: 5",
			"Updated shop/web-1 (status.phase: Running)",
		}},
		{"a group", []string{"deployments.apps"}, []string{
			"1 deployments in 1 namespaces, watching with *unstructured.Unstructured", "  shop: 1",
		}},
		{"a group and version, no namespaces", []string{"nodes.v1."}, []string{
			"3 nodes in 1 namespaces, watching with *unstructured.Unstructured", "  (none): 3",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var out bytes.Buffer
				if err := run(ctx, test.args, &out); err != nil {
					t.Fatalf("run = %v", err)
				}
				rest := "\n" + out.String()
				for _, line := range test.want {
					_, after, found := strings.Cut(rest, "\n"+line+"\n")
					if !found {
						t.Fatalf("output:\n%s\nwant in it, and in that order:\n%s", out.String(), strings.Join(test.want, "\n"))
					}
					rest = "\n" + after
				}
			})
		})
	}
}

func TestDynamicRefusals(t *testing.T) {
	for _, args := range [][]string{{"unicorns"}, {"pods", "nodes"}, {"-kubeconfig", "/does/not/exist"}} {
		if err := run(t.Context(), args, new(bytes.Buffer)); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}
