package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-99a027e8/informer"
)

const (
	burst = 1000             // keys that the noisy tenant adds at once
	more  = burst / 10       // and once more, just before the end
	work  = time.Millisecond // that a key takes
)

// A worker is the reconciler, and what it works on.
type worker struct {
	queue  *informer.WorkQueue[informer.Key]
	logger *slog.Logger
	mended atomic.Bool  // what is wrong with the broken key
	noisy  atomic.Int64 // keys of the noisy tenant that are done
}

// reconcile does what there is to do for key.
func (w *worker) reconcile(ctx context.Context, key informer.Key) error {
	select {
	case <-time.After(work):
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case key.Name == "broken" && !w.mended.Load():
		return errors.New("no such image")
	case key.Namespace == "noisy":
		if n := w.noisy.Add(1); n == burst {
			w.logger.Info("all of noisy is done", "keys", n)
		}
		return nil
	}
	if lease, ok := w.queue.LeaseOf(ctx); ok {
		w.logger.Info("done", "key", key, "attempt", lease.Attempt, "waited", lease.Waited().Round(time.Millisecond))
	}
	return nil
}

// liveUntil is what happens to the tenants until ctx ends.
func liveUntil(ctx context.Context, w *worker) {
	w.addNoisy(burst)
	for _, name := range []string{"web", "broken", "db"} {
		w.queue.Add(informer.Key{Namespace: "quiet", Name: name})
	}
	w.queue.AddAfter(informer.Key{Namespace: "quiet", Name: "nightly"}, time.Hour)

	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			w.mend()
		case <-ctx.Done():
			w.addNoisy(more)
			return
		}
	}
}

// addNoisy adds n keys of the noisy tenant.
func (w *worker) addNoisy(n int) {
	w.logger.Info("added", "key", fmt.Sprintf("noisy/job-1…%d", n))
	for i := range n {
		w.queue.Add(informer.Key{Namespace: "noisy", Name: fmt.Sprintf("job-%d", i+1)})
	}
}

// mend is what someone does who has been told of keys that are parked: find out
// why, mend that, and release them. A new event would release them as well.
func (w *worker) mend() {
	for _, item := range w.queue.Items() {
		if item.State == informer.ItemParked {
			w.logger.Info("parked", "key", item.Key, "attempts", item.Attempts, "err", item.Err)
			w.mended.Store(true)
			w.queue.Unpark(item.Key)
		}
	}
}
