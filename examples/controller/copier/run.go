package copier

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/seed-99a027e8/informer"
)

// ErrLostLease means that another replica may be the leader now: this one has
// stopped, and should be started anew.
var ErrLostLease = errors.New("copier: lost the lease")

// progressInterval is the time between two lines of the log while the caches
// are filled.
const progressInterval = 200 * time.Millisecond

// Run keeps the copies right until ctx ends. Any number of replicas may run:
// all of them keep their caches warm, the leader does the work.
//
// It stops in this order, each step because of the one before:
//
//  1. The queue takes no new keys, and the workers finish those that are ready.
//     Until then the caches go on, as a worker waits to read its own write,
//     and so does the lease, as nobody else may write meanwhile.
//  2. The informers stop: nobody reads from them any more.
//  3. The lease is released: the next leader begins at once, and nothing of
//     this one comes after.
//
// Run returns nil if all of that went well, [ErrLostLease] if it could not renew
// the lease, and otherwise what went wrong.
func (c *Copier) Run(ctx context.Context) error {
	elected := make(chan context.Context, 1)
	elector, err := c.elector(elected)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// The caches and the lease do not end with ctx, but when it is their turn.
	// If one of them ends by itself, all is over.
	later := context.WithoutCancel(ctx)
	election := begin(later, func(ctx context.Context) error {
		defer stop()
		elector.Run(ctx)
		return nil
	})
	caches := begin(later, func(ctx context.Context) error {
		defer stop()
		return informer.Run(ctx, c.namespaces, c.configMaps)
	})
	err = c.work(ctx, elected)
	c.log.Info("stopping the informers")
	err = errors.Join(err, caches.end())
	c.log.Info("releasing the lease")
	return errors.Join(err, election.end())
}

// work waits for the lease and the caches, and then works off the queue until
// ctx ends and the queue is drained, or the lease is lost.
func (c *Copier) work(ctx context.Context, elected <-chan context.Context) error {
	if err := c.sync(ctx); err != nil {
		return err
	}
	var leading context.Context // ends when the lease is lost
	select {
	case <-ctx.Done():
		return nil // the keys in the queue are the leader's to care for
	case leading = <-elected:
	}
	c.log.Info("leading", "identity", c.opts.Identity)

	working, stop := context.WithCancel(leading)
	defer stop()
	drained := make(chan error, 1)
	drain := context.AfterFunc(ctx, func() {
		defer stop() // cuts off work that outlasts the grace
		drained <- c.drain(leading)
	})
	err := c.queue.Run(working, c.opts.Workers, c.reconcile)
	switch {
	case leading.Err() != nil:
		return errors.Join(err, ErrLostLease)
	case drain():
		return err // ctx has not ended: the workers failed
	}
	return errors.Join(err, <-drained)
}

// drain shuts the queue, and waits until the workers are done with it.
func (c *Copier) drain(ctx context.Context) error {
	c.log.Info("draining the queue", "keys", c.queue.Len())
	grace, cancel := context.WithTimeout(ctx, c.opts.Grace)
	defer cancel()
	rest, err := c.queue.Drain(grace)
	if len(rest) > 0 { // they were to be retried; the next leader looks at every key anyway
		c.log.Info("left to the next leader", "namespaces", rest)
	}
	return err
}

// sync waits until both caches are complete, and tells how far they are.
func (c *Copier) sync(ctx context.Context) error {
	for start := time.Now(); ; {
		turn, cancel := context.WithTimeout(ctx, progressInterval)
		err := c.WaitSynced(turn)
		cancel()
		namespaces, configMaps := c.namespaces.Status(), c.configMaps.Status()
		counts := []any{"namespaces", namespaces.Objects, "configmaps", configMaps.Objects}
		switch {
		case err == nil:
			c.synced.Store(int64(namespaces.Objects + configMaps.Objects))
			c.log.Info("synced", append(counts, "after", time.Since(start).Round(time.Millisecond))...)
			return nil
		case errors.Is(err, informer.ErrStopped):
			return err
		case ctx.Err() != nil:
			return nil
		}
		if failed := errors.Join(namespaces.Err, configMaps.Err); failed != nil {
			counts = append(counts, "err", failed)
		}
		c.log.Info("syncing", counts...)
	}
}

// elector returns what competes for the lease. It sends the context of the
// leadership to elected, once.
func (c *Copier) elector(elected chan<- context.Context) (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.opts.Source.Namespace, Name: "copier-" + c.opts.Source.Name},
			Client:     c.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.opts.Identity},
		},
		LeaseDuration:   c.opts.LeaseDuration,
		RenewDeadline:   c.opts.LeaseDuration * 2 / 3,
		RetryPeriod:     c.opts.LeaseDuration / 8,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { elected <- ctx },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("copier: leader election: %w", err)
	}
	return elector, nil
}

// part is a part of Run that has a goroutine and an end of its own.
type part struct {
	stop context.CancelFunc
	done <-chan error
}

func begin(ctx context.Context, run func(context.Context) error) part {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return part{stop, done}
}

// end stops the part, and returns its error once it has returned.
func (p part) end() error {
	p.stop()
	return <-p.done
}
