package informer

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Synced returns a channel that is closed when the cache holds the first list.
// It stays open if Run ends before.
func (inf *Informer[T]) Synced() <-chan struct{} { return inf.fan.synced }

// WaitSynced waits until the cache holds the first list. If ctx ends before, it
// returns an error that wraps the cause of ctx and, if there was one, the last
// failure, so that the predicates of k8s.io/apimachinery/pkg/api/errors tell
// why. Once Run has ended, it returns [ErrStopped], whether the cache was synced
// or not.
func (inf *Informer[T]) WaitSynced(ctx context.Context) error {
	return inf.wait(ctx, "not synced", func(v view[T]) (bool, error) { return v.listed, nil })
}

// WaitForResourceVersion waits until the cache shows everything up to version,
// such as what an Update has returned: then the caller reads its own write, or
// something later.
//
// It returns [ErrNotComparable] at once if version, or the version of the cache,
// is not one that can be compared; [ErrNewEpoch] if the server goes back to
// older versions meanwhile, [ErrStopped] if Run ends, and otherwise errors as
// WaitSynced does.
func (inf *Informer[T]) WaitForResourceVersion(ctx context.Context, version string) error {
	target := versionOf(version)
	if !target.isComparable() {
		return inf.errorf("wait for version %q: %w", version, ErrNotComparable)
	}
	epoch := inf.fan.view().epoch
	return inf.wait(ctx, fmt.Sprintf("version %q not reached", version), func(v view[T]) (bool, error) {
		if !v.listed {
			return false, nil
		}
		order, err := versionOf(v.Version()).compare(target)
		switch {
		case err != nil:
			return false, inf.errorf("wait for version %q, at %q: %w", version, v.Version(), ErrNotComparable)
		case v.epoch != epoch:
			return false, inf.errorf("wait for version %q: %w", version, ErrNewEpoch)
		}
		return order >= 0, nil
	})
}

// WaitUntil waits until the cache is synced and ok says so of a state of it. It
// calls ok on the caller's goroutine, under no lock, with one state at a time
// and not with every one: ok may keep the Reader, which is a snapshot. It returns
// errors as WaitSynced does, and one if ok is nil.
func (inf *Informer[T]) WaitUntil(ctx context.Context, ok func(Reader[T]) bool) error {
	if ok == nil {
		return inf.errorf("WaitUntil: the function is nil")
	}
	return inf.wait(ctx, "condition not met", func(v view[T]) (bool, error) {
		return v.listed && ok(v.Reader), nil
	})
}

// wait calls done with the newest state whenever there is one, until it says
// yes or fails.
func (inf *Informer[T]) wait(ctx context.Context, what string, done func(view[T]) (bool, error)) error {
	for {
		v := inf.fan.view()
		select {
		case <-inf.ended:
			return inf.errorf("%s: %w", what, inf.why(v, ErrStopped))
		default:
		}
		if ok, err := done(v); ok || err != nil {
			return err
		}
		select {
		case <-v.moved:
		case <-inf.ended:
		case <-ctx.Done():
			return inf.errorf("%s: %w", what, inf.why(v, context.Cause(ctx)))
		}
	}
}

// why wraps what ended a wait, and what may have been the reason for it.
func (inf *Informer[T]) why(v view[T], end error) error {
	s, fatal := inf.Status(), inf.fatal()
	switch {
	case fatal != nil:
		return fmt.Errorf("%w (%w)", fatal, end)
	case s.Err != nil:
		return fmt.Errorf("%w (%w)", s.Err, end)
	case !v.listed && s.State == StateListing:
		return fmt.Errorf("still listing, %d objects so far: %w", s.Objects, end)
	case s.State == StateIdle:
		return fmt.Errorf("not running: %w", end)
	}
	return end
}

// member is an [Informer] of any type.
type member interface {
	Run(context.Context) error
	WaitSynced(context.Context) error
}

// Run runs several informers, of any types, until ctx ends, or one of them
// returns an error: then it ends the others. It returns when all have returned,
// with their errors, joined; nil after a normal cancel.
func Run(ctx context.Context, informers ...member) error {
	group, ctx := errgroup.WithContext(ctx)
	errs := make([]error, len(informers))
	for i, inf := range informers {
		group.Go(func() error {
			errs[i] = inf.Run(ctx)
			return errs[i]
		})
	}
	_ = group.Wait() // it is among errs
	return errors.Join(errs...)
}

// WaitSynced waits for several informers, of any types. It returns the errors of
// all that are not synced when ctx ends, joined; see [Informer.WaitSynced].
func WaitSynced(ctx context.Context, informers ...member) error {
	errs := make([]error, len(informers))
	for i, inf := range informers {
		errs[i] = inf.WaitSynced(ctx)
	}
	return errors.Join(errs...)
}
