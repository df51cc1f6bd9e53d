// Quickstart prints how many pods each node has, and then what becomes of them,
// until it is interrupted:
//
//	go run ./examples/quickstart                              # on an embedded fake cluster
//	go run ./examples/quickstart -kubeconfig ~/.kube/config   # on a real one
//
//	node-1 has 3 pods
//	node-2 has 3 pods
//	node-3 has 2 pods
//	shop/web-1 is Pending on node-1
//	…
//	batch/job-1 is Running on node-1
//	batch/job-1 is gone
package main

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/examples/cluster"
)

func watchPods(ctx context.Context, config *rest.Config, out io.Writer) error {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods, err := informer.New(informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods("")), informer.Options{})
	if err != nil {
		return err
	}
	byNode, err := informer.AddIndex(pods, "node", func(p *corev1.Pod) (string, bool) {
		return p.Spec.NodeName, p.Spec.NodeName != ""
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- pods.Run(ctx) }() // until ctx ends

	if err := pods.WaitSynced(ctx); err != nil {
		return err // it says why
	}
	for node, n := range byNode.Keys() {
		fmt.Fprintf(out, "%s has %d pods\n", node, n)
	}
	tell := func(p *corev1.Pod) {
		fmt.Fprintf(out, "%s is %s on %s\n", informer.KeyOf(p), p.Status.Phase, p.Spec.NodeName)
	}
	_, err = pods.AddHandler(informer.HandlerFuncs[*corev1.Pod]{
		OnAdd:    func(p *corev1.Pod, _ bool) { tell(p) }, // first those that are there already
		OnUpdate: func(_, p *corev1.Pod) { tell(p) },
		OnDelete: func(p *corev1.Pod, _ bool) { fmt.Fprintln(out, informer.KeyOf(p), "is gone") },
	}.Handle, informer.HandlerOptions{})
	if err != nil {
		return err
	}
	return <-done
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, kubeconfig := cluster.Flags("quickstart")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return cluster.Use(ctx, *kubeconfig, func(ctx context.Context, config *rest.Config) error {
		return watchPods(ctx, config, out)
	})
}

func main() { cluster.Main(run) }
