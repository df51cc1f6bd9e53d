package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// copierAgent and rivalAgent are how the server knows who writes.
	copierAgent = "copier"
	rivalAgent  = "rival"

	// pace is the time between two things that the others do.
	pace = 250 * time.Millisecond
)

// rival stands for all others who write to the same objects.
type rival struct {
	client kubernetes.Interface
	log    *slog.Logger
}

// disturb does something, now and then, until ctx ends.
func disturb(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	r := rival{client: client, log: log}
	// What has begun is finished, so that the record of requests is complete.
	whole := context.WithoutCancel(ctx)
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if err := r.step(whole, n); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("someone else: %w", err)
		}
	}
}

// step is the n-th thing that happens. All of it happens again and again, to
// one namespace after the other.
func (r rival) step(ctx context.Context, n int) error {
	round, labelled := n/8, team(n*teamStride)
	switch n % 8 {
	case 0:
		return r.edit(ctx, labelled, 1)
	case 1:
		return r.label(ctx, team(teamStride*round+5), `""`)
	case 2, 6: // the second edit comes while the controller undoes the first
		return r.edit(ctx, labelled, 2)
	case 3:
		return r.label(ctx, team(teamStride*(2*round+1)), "null")
	case 4:
		r.log.Info("someone deletes the copy", "namespace", labelled)
		return r.client.CoreV1().ConfigMaps(labelled).Delete(ctx, sourceKey().Name, metav1.DeleteOptions{})
	case 5:
		r.log.Info("someone changes the source", "revision", round+1)
		return r.patch(ctx, sourceKey().Namespace, fmt.Sprintf(`{"data":{"revision":"%d"}}`, round+1))
	}
	return nil
}

// edit changes a copy, so many times in a row.
func (r rival) edit(ctx context.Context, namespace string, times int) error {
	for i := range times {
		if i > 0 {
			time.Sleep(writeDelay / 2)
		}
		r.log.Info("someone changes the copy", "namespace", namespace)
		if err := r.patch(ctx, namespace, fmt.Sprintf(`{"data":{"log-level":"debug-%d"}}`, i)); err != nil {
			return err
		}
	}
	return nil
}

// patch changes the ConfigMap of a namespace, whatever version it is at.
func (r rival) patch(ctx context.Context, namespace, change string) error {
	_, err := r.client.CoreV1().ConfigMaps(namespace).Patch(
		ctx, sourceKey().Name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	return err
}

// label gives a namespace the label, or takes it away: a value in JSON.
func (r rival) label(ctx context.Context, namespace, value string) error {
	if value == "null" {
		r.log.Info("someone takes the label away", "namespace", namespace)
	} else {
		r.log.Info("someone adds the label", "namespace", namespace)
	}
	_, err := r.client.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, demoLabel, value), metav1.PatchOptions{})
	return err
}
