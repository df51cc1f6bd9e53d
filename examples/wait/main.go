// Wait waits until all pods of a selector are ready, or says which are not, and
// why:
//
//	go run ./examples/wait -timeout 4200ms   # on an embedded fake cluster
//	go run ./examples/wait -kubeconfig ~/.kube/config -namespace shop -selector app=web
//
//	0 of 5 pods are ready
//	1 of 5 pods are ready
//	shop/web-5 is not ready: main: ImagePullBackOff (image "shop/web:2" not found)
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/examples/cluster"
)

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, kubeconfig := cluster.Flags("wait")
	namespace := flags.String("namespace", "shop", "namespace of the pods; empty for all")
	selector := flags.String("selector", "app=web", "label selector of the pods")
	timeout := flags.Duration("timeout", time.Minute, "how long to wait")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return cluster.Use(ctx, *kubeconfig, func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		clientset, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		pods, err := informer.New(informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods(*namespace)),
			informer.Options{Name: "pods", LabelSelector: *selector})
		if err != nil {
			return err
		}
		go pods.Run(ctx) // WaitUntil returns its errors
		return wait(ctx, pods, out)
	})
}

// wait returns nil once there are pods and all of them are ready.
func wait(ctx context.Context, pods *informer.Informer[*corev1.Pod], out io.Writer) error {
	last := ""
	err := pods.WaitUntil(ctx, func(pods informer.Reader[*corev1.Pod]) bool {
		ready := 0
		for p := range pods.All() {
			if whyNot(p) == "" {
				ready++
			}
		}
		if line := fmt.Sprintf("%d of %d pods are ready", ready, pods.Len()); line != last {
			last = line
			fmt.Fprintln(out, line)
		}
		return ready > 0 && ready == pods.Len()
	})
	if err != nil {
		for p := range pods.All() {
			if why := whyNot(p); why != "" {
				fmt.Fprintf(out, "%s is not ready: %s\n", informer.KeyOf(p), why)
			}
		}
	}
	return err
}

func main() { cluster.Main(run) }
