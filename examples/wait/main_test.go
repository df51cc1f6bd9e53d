package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestWait(t *testing.T) {
	const stuck = `shop/web-5 is not ready: main: ImagePullBackOff (image "shop/web:2" not found)`
	for _, test := range []struct {
		name string
		args []string
		fail error
		last string        // of the output
		took time.Duration // at least
	}{
		{"all become ready", nil, nil, "5 of 5 pods are ready", 4 * time.Second},
		{"they are ready", []string{"-namespace=blog", "-selector=app=blog"}, nil, "3 of 3 pods are ready", 0},
		{"one is not", []string{"-timeout=4200ms"}, context.DeadlineExceeded, stuck, 4200 * time.Millisecond},
		{"there are none", []string{"-selector=app=none", "-timeout=1s"}, context.DeadlineExceeded, "0 of 0 pods are ready", time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				start := time.Now()
				err := run(t.Context(), test.args, &out)
				took := time.Since(start)
				if !errors.Is(err, test.fail) || took < test.took || took > test.took+time.Second {
					t.Errorf("run = %v after %v, want %v after %v", err, took, test.fail, test.took)
				}
				if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); lines[len(lines)-1] != test.last {
					t.Errorf("output:\n%s\nwant at its end: %s", out.String(), test.last)
				}
			})
		})
	}
}

// A selector that makes no sense is refused at once.
func TestWaitRefusals(t *testing.T) {
	for _, args := range [][]string{{"-selector=a=b=c"}, {"-kubeconfig", "/does/not/exist"}} {
		if err := run(t.Context(), args, new(bytes.Buffer)); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}

func TestWhyNot(t *testing.T) {
	condition := func(c corev1.PodConditionType, s corev1.ConditionStatus, reason string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: c, Status: s, Reason: reason, Message: "m"}}}
	}
	crashed := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
	}}}
	for _, test := range []struct {
		status corev1.PodStatus
		want   string
	}{
		{condition(corev1.PodReady, corev1.ConditionTrue, ""), ""},
		{condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable"), "Unschedulable (m)"},
		{condition(corev1.PodReady, corev1.ConditionFalse, ""), "m"},
		{crashed, "c: Error, exit code 3"},
		{corev1.PodStatus{Phase: corev1.PodPending}, "it is Pending"},
	} {
		if got := whyNot(&corev1.Pod{Status: test.status}); got != test.want {
			t.Errorf("whyNot(%+v) = %q, want %q", test.status, got, test.want)
		}
	}
}
