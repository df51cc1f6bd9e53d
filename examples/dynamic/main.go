// Dynamic follows any resource, which need not be known when the program is
// compiled: as whole objects without a Go type or, with -metadata, as metadata
// only, which is all that the server then sends.
//
//	go run ./examples/dynamic                     # pods, on an embedded fake cluster
//	go run ./examples/dynamic -metadata pods
//	go run ./examples/dynamic -kubeconfig ~/.kube/config deployments.apps
//
//	8 pods in 2 namespaces, watching with *unstructured.Unstructured
//	  blog: 3
//	  shop: 5
//	Added batch/job-1 (status.phase: Pending)
//	Updated batch/job-1 (status.phase: Running)
//
// The same function follows both: the type of the objects is a parameter of it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/examples/cluster"
)

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, kubeconfig := cluster.Flags("dynamic")
	metadataOnly := flags.Bool("metadata", false, "follow the metadata of the objects only")
	namespace := flags.String("namespace", "", "follow one `namespace` only")
	if err := flags.Parse(args); err != nil {
		return err
	}
	resource := "pods"
	switch flags.NArg() {
	case 0:
	case 1:
		resource = flags.Arg(0)
	default:
		return errors.New("give one resource, such as pods or deployments.apps")
	}
	return cluster.Use(ctx, *kubeconfig, func(ctx context.Context, config *rest.Config) error {
		gvr, err := resolve(config, resource)
		if err != nil {
			return err
		}
		if *metadataOnly {
			client, err := metadata.NewForConfig(config)
			if err != nil {
				return err
			}
			source := informer.FromClient[*metav1.PartialObjectMetadata](client.Resource(gvr).Namespace(*namespace))
			return follow(ctx, source, gvr.Resource, labelsOf, out)
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		source := informer.FromClient[*unstructured.Unstructured](client.Resource(gvr).Namespace(*namespace))
		return follow(ctx, source, gvr.Resource, phaseOf, out)
	})
}

// follow says how many objects there are in which namespace, and then what
// happens to them, with a word about each from detail.
func follow[T informer.Object](
	ctx context.Context, source informer.ListerWatcher[T], name string, detail func(T) string, out io.Writer,
) error {
	objects, err := informer.New(source, informer.Options{Name: name})
	if err != nil {
		return err
	}
	byNamespace, err := informer.AddIndex(objects, "namespace", func(obj T) (string, bool) {
		return obj.GetNamespace(), true
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- objects.Run(ctx) }()
	if err := objects.WaitSynced(ctx); err != nil {
		return err
	}
	counts := maps.Collect(byNamespace.Keys())
	fmt.Fprintf(out, "%d %s in %d namespaces, watching with %T\n", objects.Len(), name, len(counts), *new(T))
	for _, namespace := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "  %s: %d\n", cmp.Or(namespace, "(none)"), counts[namespace])
	}
	_, err = objects.AddHandler(func(c informer.Change[T]) {
		if c.Cause != informer.CauseInitial {
			fmt.Fprintf(out, "%v %v (%s)\n", c.Type, c.Key, detail(c.New))
		}
	}, informer.HandlerOptions{})
	if err != nil {
		return err
	}
	return <-done
}

func main() { cluster.Main(run) }
