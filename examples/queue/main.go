// Queue shows what a work queue does for tenants who do not care for each other.
// One of them adds a thousand keys at once; the few of the other one do not wait
// for these. One key fails each time: after three attempts it is parked, until
// someone has mended what is wrong. When the program is interrupted, or gets
// SIGTERM, it works off what is ready, and says what is left:
//
//	go run ./examples/queue
//
//	msg=added key=noisy/job-1…1000
//	msg=done key=quiet/web attempt=1 waited=1ms
//	msg="attempt failed" queue=tenants key=quiet/broken attempt=1 parked=false err="no such image"
//	msg=done key=quiet/db attempt=1 waited=3ms
//	msg="attempt failed" queue=tenants key=quiet/broken attempt=2 parked=false err="no such image"
//	msg="attempt failed" queue=tenants key=quiet/broken attempt=3 parked=true err="no such image"
//	msg="all of noisy is done" keys=1000
//	msg=parked key=quiet/broken attempts=3 err="no such image"
//	msg=done key=quiet/broken attempt=1 waited=0s
//	msg=added key=noisy/job-1…100
//	msg=draining ready=100 delayed=1
//	msg=drained left=[quiet/nightly] retries=2 parks=1
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-99a027e8/informer"
)

const (
	workers  = 2
	attempts = 3               // then a key is parked
	grace    = 5 * time.Second // for what is ready when the program is to end
)

// run works off the keys of both tenants until ctx ends, and then what is ready.
func run(ctx context.Context, out io.Writer) error {
	logger := newLogger(out)
	queue, err := informer.NewWorkQueue(informer.QueueOptions[informer.Key]{
		Name:        "tenants",
		Group:       func(key informer.Key) string { return key.Namespace }, // these take turns
		MaxAttempts: attempts,
		Logger:      logger,
	})
	if err != nil {
		return err
	}
	w := &worker{queue: queue, logger: logger}

	// The workers outlive ctx: it is Drain that ends them.
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- queue.Run(working, workers, w.reconcile) }()

	liveUntil(ctx, w)

	err = drain(queue, logger)
	stop() // what is not done by now
	return errors.Join(err, <-ran)
}

// drain works off what is ready, and tells what is left: an API server would tell
// all of it again to the next one who asks, so here it is only shown.
func drain(queue *informer.WorkQueue[informer.Key], logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stats := queue.Stats()
	logger.Info("draining", "ready", stats.Ready[informer.PriorityNormal], "delayed", stats.Delayed)
	left, err := queue.Drain(ctx)
	stats = queue.Stats()
	logger.Info("drained", "left", fmt.Sprint(left), "retries", stats.Retries, "parks", stats.Parks)
	return err
}

// newLogger returns a logger whose lines are the same each time.
func newLogger(out io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
