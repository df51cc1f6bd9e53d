package informer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// shutdownRig is a queue whose one worker takes an hour for its first key, and
// what became of the keys that were added.
type shutdownRig struct {
	*testing.T
	queue   *informer.WorkQueue[string]
	stop    func() error // ends the Run
	mu      sync.Mutex   // guards the fields below
	added   []string     // a key that was added twice, with a lease in between, is here twice
	handled []string
	rest    []string
	errs    []error // of the calls of Drain
}

// note appends to one of the lists.
func (r *shutdownRig) note(list *[]string, keys ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, keys...)
}

func newShutdownRig(t *testing.T) *shutdownRig {
	r := &shutdownRig{T: t, queue: newQueue(t, informer.QueueOptions[string]{})}
	r.stop = startQueue(t, r.queue, 1, func(ctx context.Context, key string) error {
		if key != "running" {
			r.note(&r.handled, key)
			return nil
		}
		select {
		case <-time.After(time.Hour):
			r.note(&r.handled, key)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	r.add(r.queue.Add("running"), "running")
	synctest.Wait()
	return r
}

// add notes that key was added.
func (r *shutdownRig) add(ok bool, key string) {
	if !ok {
		r.Errorf("%s was refused", key)
	}
	r.note(&r.added, key)
}

// drain calls Drain from several goroutines, and waits for them all.
func (r *shutdownRig) drain(ctx context.Context, callers int) {
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			rest, err := r.queue.Drain(ctx)
			r.note(&r.rest, rest...)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.errs = append(r.errs, err)
		})
	}
	running.Wait()
}

// TestWorkQueue_Case25Shutdown (promise 24; k8s#101928, k8s#141079, cr#649): in
// whatever state the keys are, however the queue is shut, and by how many: what
// was handled and what was returned is what was added. What is still leased when
// the context of the drain ends is its worker's.
func TestWorkQueue_Case25Shutdown(t *testing.T) {
	errEnough := errors.New("enough")
	states := map[string]func(r *shutdownRig){
		"running":  func(*shutdownRig) {},
		"ready":    func(r *shutdownRig) { r.add(r.queue.Add("ready"), "ready") },
		"re-added": func(r *shutdownRig) { r.add(r.queue.Add("running"), "running") },
		"delayed":  func(r *shutdownRig) { r.add(r.queue.AddAfter("delayed", 90*time.Minute), "delayed") },
		"delayed, due meanwhile": func(r *shutdownRig) {
			r.add(r.queue.AddAfter("delayed", time.Minute), "delayed")
		},
		"delayed and re-added": func(r *shutdownRig) {
			r.add(r.queue.AddAfter("running", time.Minute), "running")
		},
		"limited": func(r *shutdownRig) { r.add(r.queue.AddLimited("limited"), "limited") },
		"all": func(r *shutdownRig) {
			r.add(r.queue.Add("ready"), "ready")
			r.add(r.queue.Add("running"), "running")
			r.add(r.queue.AddAfter("delayed", time.Minute), "delayed")
			r.add(r.queue.AddLimited("limited"), "limited")
		},
	}
	ends := map[string]struct {
		do   func(r *shutdownRig, callers int)
		left bool // "running" is still leased when the drains have returned
	}{
		"drain": {do: func(r *shutdownRig, callers int) { r.drain(r.Context(), callers) }},
		"shutdown": {do: func(r *shutdownRig, callers int) {
			if err := r.stop(); err != nil { // the worker puts its key back
				r.Error(err)
			}
			ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
			defer cancel()
			r.drain(ctx, callers)
		}},
		"context ends": {left: true, do: func(r *shutdownRig, callers int) {
			ctx, cancel := context.WithTimeoutCause(r.Context(), time.Minute, errEnough)
			defer cancel()
			r.drain(ctx, callers)
			for _, err := range r.errs {
				mustContain(r.T, "Drain", err, "1 keys still leased", "enough")
				if !errors.Is(err, errEnough) {
					r.Errorf("Drain() = %v, want the cause of its context", err)
				}
			}
		}},
	}
	for state, prepare := range states {
		for end, how := range ends {
			for _, callers := range []int{1, 3} {
				t.Run(fmt.Sprint(state, "/", end, "/", callers), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newShutdownRig(t)
						prepare(r)
						how.do(r, callers)
						got := slices.Concat(r.handled, r.rest)
						if how.left {
							got = append(got, "running")
						}
						want := r.added
						if end == "shutdown" { // which puts the key back: it is pending once
							want = slices.Compact(slices.Sorted(slices.Values(want)))
						}
						slices.Sort(got)
						slices.Sort(want)
						if !slices.Equal(got, want) {
							t.Errorf("handled %q, returned %q; added %q", r.handled, r.rest, r.added)
						}
						if r.queue.Add("late") || r.queue.Len() != 0 {
							t.Errorf("the queue takes keys, or has %d", r.queue.Len())
						}
						if err := r.stop(); err != nil {
							t.Errorf("Run() = %v", err)
						}
						if err := informer.ValidateQueue(r.queue); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}
