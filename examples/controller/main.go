// Controller keeps a copy of one ConfigMap in every namespace that carries a
// label: see package copier, beside this file, for all that this means.
//
//	go run ./examples/controller -for 15s     # on an embedded fake cluster; also: make demo
//	go run ./examples/controller -kubeconfig ~/.kube/config -source default/app-config -label example.com/app-config
//
// On the embedded cluster, others change the same objects, and some requests
// fail. It prints what these others do, what the controller does about it, and
// at the end what it all came to:
//
//	t=0.4s msg=syncing namespaces=224 configmaps=28
//	t=1.1s msg=synced namespaces=404 configmaps=28 after=1.001s
//	t=2.5s msg="someone changes the copy" namespace=team-070
//	t=2.5s msg="repaired: the copy was changed" namespace=team-070
//	demo: synced=432 changes=259 reconciled=719 retries=24 repaired=25
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/examples/cluster"
	"github.com/seed-99a027e8/informer/examples/controller/copier"
)

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, kubeconfig := cluster.Flags("controller")
	length := flags.Duration("for", 0, "how long to run; without it, until interrupted")
	source := flags.String("source", sourceKey().String(), "`namespace/name` of the ConfigMap")
	label := flags.String("label", demoLabel, "`key` of the label of namespaces that get a copy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *kubeconfig == "" {
		if *source != sourceKey().String() || *label != demoLabel {
			return errors.New("-source and -label need -kubeconfig: the embedded cluster has its own")
		}
		d, err := newDemo(*length, out)
		if err != nil {
			return err
		}
		return d.run(ctx)
	}
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	return cluster.Use(ctx, *kubeconfig, func(ctx context.Context, config *rest.Config) error {
		namespace, name, _ := strings.Cut(*source, "/")
		c, err := newCopier(config, copier.Options{
			Source: informer.Key{Namespace: namespace, Name: name}, Label: *label, Logger: newLogger(out),
		})
		if err != nil {
			return err
		}
		return c.Run(ctx)
	})
}

// newCopier returns the controller for a cluster.
func newCopier(config *rest.Config, opts copier.Options) (*copier.Copier, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = copierAgent
	config.QPS, config.Burst = 50, 100 // the default of 5 a second is for people
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return copier.New(clientset, opts)
}

// newLogger returns a logger whose lines begin with the time since now.
func newLogger(out io.Writer) *slog.Logger {
	start := time.Now()
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.TimeKey:
				return slog.String("t", fmt.Sprintf("%.1fs", a.Value.Time().Sub(start).Seconds()))
			case slog.LevelKey:
				return slog.Attr{}
			}
			return a
		},
	}))
}

func main() { cluster.Main(run) }
