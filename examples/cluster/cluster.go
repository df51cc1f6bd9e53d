// Package cluster gives the example programs something to run on: the cluster
// of a kubeconfig file or, without one, an embedded fake API server that is
// filled with data and changes by itself.
package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/seed-99a027e8/informer/informertest"
)

// Main is the main function of a program: it calls run with the command line
// and a context that ends with Ctrl-C or SIGTERM, and exits with 1 if run
// returns an error, which it prints.
func Main(run func(ctx context.Context, args []string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Flags returns the flags of a program, with the one that all have in common:
// -kubeconfig, whose value is for [Use].
func Flags(name string) (flags *flag.FlagSet, kubeconfig *string) {
	flags = flag.NewFlagSet(name, flag.ContinueOnError)
	kubeconfig = flags.String("kubeconfig", "", "`file` that says which cluster; without it, an embedded fake one")
	return flags, kubeconfig
}

// Use calls program with what a client needs to talk to the cluster of the
// kubeconfig file. If that is empty, the cluster is an embedded fake one, whose
// small world changes by itself for as long as program runs.
func Use(ctx context.Context, kubeconfig string, program func(context.Context, *rest.Config) error) error {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		return program(ctx, config)
	}
	server, err := informertest.NewServer(informertest.Options{})
	if err != nil {
		return err
	}
	w := world{server: server}
	if err := w.fill(); err != nil {
		return err
	}
	return Serve(ctx, server, w.live, program)
}

// Serve runs the server, and beside it life, which changes what is there until
// its context ends; and calls program. When program returns, Serve ends the
// other two, and returns the errors of all three.
//
// The server outlives ctx until program has returned, so that a program can
// still write while it shuts down, as it could in a real cluster.
func Serve(
	ctx context.Context, server *informertest.Server,
	life func(context.Context) error, program func(context.Context, *rest.Config) error,
) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	var servers, others errgroup.Group
	servers.Go(func() error {
		defer stop() // without a server there is nothing to do
		return server.Run(serving)
	})
	others.Go(func() error { return life(ctx) })
	err := program(ctx, server.Config())
	stop()
	err = errors.Join(err, others.Wait())
	stopServing()
	return errors.Join(err, servers.Wait())
}
