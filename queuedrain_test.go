package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// TestWorkQueue_Drain (promise 24; k8s#101928, cr#649): whatever the state of a
// key, and however the drain ends, what was handled and what was returned is
// what was added.
func TestWorkQueue_Drain(t *testing.T) {
	type queue = informer.WorkQueue[string]
	boom := errors.New("boom")
	add := func(q *queue) { q.Add("k") }
	tests := []struct {
		name    string
		setup   func(q *queue)       // before the worker starts
		work    func(q *queue) error // on the first call, after 1s
		after   func(q *queue)       // when the drain has begun
		timeout time.Duration        // of the drain; 0: none
		worked  int                  // calls
		rest    []string
		stuck   bool // Drain returns an error
	}{
		{name: "empty", setup: func(*queue) {}},
		{name: "ready", setup: add, worked: 1},
		{name: "added again", setup: add, work: func(q *queue) error { q.Add("k"); return nil },
			worked: 1},
		{name: "cancelled while it drains", setup: func(q *queue) { q.AddAfter("k", time.Hour) },
			after: func(q *queue) { q.Cancel("k") }},
		{name: "delayed", setup: func(q *queue) { q.AddAfter("k", time.Hour) }, rest: []string{"k"}},
		{name: "delayed, soon due", setup: func(q *queue) {
			q.Add("j")
			q.AddAfter("k", time.Millisecond)
		}, worked: 1, rest: []string{"k"}},
		{name: "retried", setup: add, work: func(*queue) error { return boom }, worked: 1, rest: []string{"k"}},
		{name: "retried later", setup: add, work: func(*queue) error { return informer.RetryAfter(time.Hour, boom) },
			worked: 1, rest: []string{"k"}},
		{name: "terminal", setup: add, work: func(*queue) error { return informer.Terminal(boom) }, worked: 1,
			rest: []string{"k"}},
		{name: "running, context ends", setup: add, timeout: time.Millisecond, worked: 1, stuck: true},
		{name: "ready, context ends", setup: func(q *queue) { add(q); q.Add("l") }, timeout: time.Millisecond,
			worked: 1, rest: []string{"l"}, stuck: true},
		{name: "delayed, context ends", setup: func(q *queue) { add(q); q.AddAfter("l", time.Hour) },
			timeout: time.Millisecond, worked: 1, rest: []string{"l"}, stuck: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{})
				test.setup(q)
				worked := 0
				stop := startQueue(t, q, 1, func(context.Context, string) error {
					worked++
					<-time.After(time.Second)
					if test.work != nil {
						return test.work(q)
					}
					return nil
				})
				synctest.Wait()
				ctx := t.Context()
				if test.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.timeout)
					defer cancel()
				}
				if test.after != nil {
					q.Add("j") // keeps the drain going for a second
					time.AfterFunc(time.Millisecond, func() { test.after(q) })
					test.worked++
				}
				rest, err := q.Drain(ctx)
				if !slices.Equal(rest, test.rest) && len(rest)+len(test.rest) > 0 {
					t.Errorf("Drain() = %q, want %q", rest, test.rest)
				}
				if (err != nil) != test.stuck || test.stuck && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Drain() = %v, want an error: %v", err, test.stuck)
				}
				if worked != test.worked {
					t.Errorf("%d keys worked off, want %d", worked, test.worked)
				}
				if _, err := q.Get(t.Context()); !errors.Is(err, informer.ErrStopped) {
					t.Errorf("Get() = %v, want ErrStopped", err)
				}
				// A later call waits for the leases that are left.
				if rest, err := q.Drain(t.Context()); rest != nil || err != nil {
					t.Errorf("second Drain() = %v, %v", rest, err)
				}
				if err := stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				if err := informer.ValidateQueue(q); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestWorkQueue_DrainReAdded (promise 24): a key that was added again before
// the drain began is returned: its second add was not followed by a lease.
func TestWorkQueue_DrainReAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("k")
		lease := leaseNow(t, q)
		q.Add("k")
		time.AfterFunc(time.Second, func() { lease.Done() })
		if rest, err := q.Drain(t.Context()); err != nil || !slices.Equal(rest, []string{"k"}) {
			t.Errorf("Drain() = %q, %v, want k", rest, err)
		}
	})
}

// TestWorkQueue_DrainLateRetry (promise 24): once Drain has returned, a lease
// that is left cannot be retried, and says so.
func TestWorkQueue_DrainLateRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("a")
		q.Add("b")
		a, b := leaseNow(t, q), leaseNow(t, q)
		q.Add("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if rest, err := q.Drain(ctx); err == nil || !slices.Equal(rest, []string{"a"}) {
			t.Errorf("Drain() = %q, %v, want a and an error", rest, err)
		}
		if a.Retry(nil) || !b.Done() || a.Done() {
			t.Error("a late Retry must fail, a late Done must not")
		}
		drainEmpty(t, q)
	})
}

// TestWorkQueue_SeveralDrains (promise 24): the rest goes to exactly one of
// several callers.
func TestWorkQueue_SeveralDrains(t *testing.T) {
	for _, patient := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, informer.QueueOptions[string]{})
			q.Add("a")
			q.AddAfter("b", time.Hour)
			lease := leaseNow(t, q)
			var mu sync.Mutex // guards results
			results := []string{}
			var running sync.WaitGroup
			for i := range 4 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				if i == 3 && patient {
					ctx = t.Context()
				}
				running.Go(func() {
					defer cancel()
					rest, err := q.Drain(ctx)
					mu.Lock()
					defer mu.Unlock()
					results = append(results, fmt.Sprint(rest, err != nil))
				})
			}
			time.AfterFunc(time.Minute, func() { lease.Done() })
			running.Wait()
			want := []string{"[] true", "[] true", "[] true", "[b] true"}
			if patient {
				want[3] = "[b] false"
			}
			if !slices.Equal(results, want) {
				t.Errorf("drains = %q, want %q", results, want)
			}
			<-time.After(time.Minute)
		})
	}
}

// TestWorkQueue_DrainFromWorker (promise 24): a worker that drains does not
// wait for itself, whether it is the only one that does or not.
func TestWorkQueue_DrainFromWorker(t *testing.T) {
	for _, drainers := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, informer.QueueOptions[int]{})
			for i := range 6 {
				q.Add(i)
			}
			q.AddAfter(6, time.Hour)
			var mu sync.Mutex // guards what follows
			var all []int
			worked := 0
			err := q.Run(t.Context(), 4, func(ctx context.Context, key int) error {
				<-time.After(time.Second)
				mu.Lock()
				worked++
				mu.Unlock()
				if key < drainers {
					rest, err := q.Drain(ctx)
					mu.Lock()
					all = append(all, rest...)
					mu.Unlock()
					return err
				}
				return nil
			})
			if err != nil || worked != 6 || !slices.Equal(all, []int{6}) {
				t.Errorf("%d drain: Run() = %v, %d worked off, rest %v, want nil, 6, [6]", drainers, err, worked, all)
			}
		})
	}
}

// TestWorkQueue_DrainTwiceFromOneLease (promise 24): two calls by one worker
// are not taken for two workers.
func TestWorkQueue_DrainTwiceFromOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("slow")
		slow := leaseNow(t, q)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { slow.Done() })
		q.Add("drains")
		_ = q.Run(t.Context(), 1, func(ctx context.Context, _ string) error {
			var running sync.WaitGroup
			for range 2 {
				running.Go(func() {
					if _, err := q.Drain(ctx); err != nil || time.Since(start) < time.Minute {
						t.Errorf("Drain() = %v after %v, want nil after 1m", err, time.Since(start))
					}
				})
			}
			running.Wait()
			return nil
		})
	})
}

// TestWorkQueue_DrainStorm (promise 24): with everything going on at once,
// every accepted add is followed by a lease or by the key's return. The drain
// begins when the storm rages: a Run that has not leased a key by then may find
// the queue stopped.
func TestWorkQueue_DrainStorm(t *testing.T) {
	for range 20 {
		q := newQueue(t, informer.QueueOptions[int]{Limiter: fixedLimiter[int](50 * time.Microsecond)})
		const keys = 50
		var mu [keys]sync.Mutex // guards owed[i]
		var owed [keys]bool     // an add was accepted, and no lease has begun since
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				for {
					k := rand.IntN(keys)
					mu[k].Lock()
					ok := false
					switch rand.IntN(4) {
					case 0:
						ok = q.Add(k)
					case 1:
						ok = q.AddAfter(k, time.Duration(rand.IntN(1000))*time.Microsecond)
					case 2:
						ok = q.AddLimited(k)
					case 3:
						ok = q.Reschedule(k, time.Duration(rand.IntN(1000))*time.Microsecond)
					}
					owed[k] = owed[k] || ok
					mu[k].Unlock()
					if !ok {
						return
					}
				}
			})
		}
		var leases atomic.Int32
		raging := make(chan struct{})
		stop := startQueue(t, q, 4, func(_ context.Context, k int) error {
			mu[k].Lock()
			owed[k] = false
			mu[k].Unlock()
			if leases.Add(1) == 200 {
				close(raging)
			}
			if rand.IntN(3) == 0 {
				return errors.New("again")
			}
			return nil
		})
		<-raging
		rest, err := q.Drain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		running.Wait()
		for _, k := range rest {
			owed[k] = false
		}
		for k, owes := range owed {
			if owes {
				t.Errorf("key %d was added, and neither leased nor returned", k)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestWorkQueue_DrainTwiceFromWorker (promise 24): a worker that drains twice at a
// time is not waited for by the one when the other has given up.
func TestWorkQueue_DrainTwiceFromWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("other")
		other := leaseNow(t, q)
		q.Add("drains")
		err := q.Run(t.Context(), 1, func(ctx context.Context, _ string) error {
			gives, stop := context.WithCancel(ctx)
			results := make(chan error, 2)
			for _, ctx := range []context.Context{gives, ctx} {
				go func() {
					_, err := q.Drain(ctx)
					results <- err
				}()
			}
			synctest.Wait()
			stop()
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("the Drain that gives up = %v, want Canceled", err)
			}
			other.Done()
			synctest.Wait()
			if len(results) == 0 {
				t.Error("a Drain waits for the lease of its caller")
				return nil
			}
			if err := <-results; err != nil {
				t.Errorf("the other Drain = %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestWorkQueue_DrainFromInsideAndOutside (promise 24): a worker that drains does
// not wait for its own lease, but who drains from elsewhere does; if that one is
// there, it gets what is left, and the key of the worker, if that is retried.
func TestWorkQueue_DrainFromInsideAndOutside(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name                    string
		outside                 time.Duration // when the call from elsewhere begins
		patience                time.Duration
		fromInside, fromOutside string
	}{
		{"outside first", 0, time.Hour, "[] <nil> 1s", "[drains later] <nil> 3s"},
		{"inside first", 2 * s, time.Hour, "[later] <nil> 1s", "[] <nil> 3s"},
		{"outside gives up", 0, 2 * s, "[] <nil> 1s", "[later] informer: queue jobs: drain: 1 keys still leased, 0 ready: context deadline exceeded 2s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{Name: "jobs"})
				q.Add("drains")
				q.AddAfter("later", time.Hour)
				start := time.Now()
				drain := func(ctx context.Context) string {
					rest, err := q.Drain(ctx)
					slices.Sort(rest)
					return fmt.Sprint(rest, " ", err, " ", time.Since(start))
				}
				inside := make(chan string, 1)
				stop := startQueue(t, q, 1, func(ctx context.Context, _ string) error {
					<-time.After(s)
					inside <- drain(ctx)
					<-time.After(2 * s)
					return errSource
				})
				<-time.After(test.outside)
				ctx, cancel := context.WithTimeout(t.Context(), test.patience)
				defer cancel()
				if got := drain(ctx); got != test.fromOutside {
					t.Errorf("Drain from outside: %s, want %s", got, test.fromOutside)
				}
				if got := <-inside; got != test.fromInside {
					t.Errorf("Drain by the worker: %s, want %s", got, test.fromInside)
				}
				<-time.After(time.Minute)
				if err := errors.Join(stop(), informer.ValidateQueue(q)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A lookingError looks at the queue when it is asked for its text.
type lookingError struct{ queue *informer.WorkQueue[string] }

func (e lookingError) Error() string { return fmt.Sprint(e.queue.Len(), " pending") }

// TestWorkQueue_DrainCause (promise 24): the cause of the end of a context is not
// asked for its text under the lock.
func TestWorkQueue_DrainCause(t *testing.T) {
	q := newQueue(t, informer.QueueOptions[string]{})
	q.Add("a")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(lookingError{q})
	drained := make(chan error, 1)
	go func() {
		_, err := q.Drain(ctx)
		drained <- err
	}()
	select {
	case err := <-drained:
		mustContain(t, "Drain", err, "1 ready: 0 pending")
	case <-time.After(10 * time.Second):
		t.Fatal("Drain waits for its own lock")
	}
}

// heldForget is a limiter whose Forget waits.
type heldForget struct{ hold chan struct{} }

func (l heldForget) When(string) time.Duration { return 0 }
func (l heldForget) Forget(string)             { <-l.hold }

// TestWorkQueue_DrainWhileItsLeaseEnds (promise 24): a worker drains on a goroutine of
// its own, and that call ends while OnError, or the limiter that forgets, has the
// end of its lease in hand. It still is no call from elsewhere: the one that is
// gets the rest, with the key that fails.
func TestWorkQueue_DrainWhileItsLeaseEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{{"OnError", errSource, "[later works]"}, {"Forget", nil, "[later]"}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold := make(chan struct{})
				q := newQueue(t, informer.QueueOptions[string]{
					Limiter: heldForget{hold},
					OnError: func(string, error) { <-hold },
				})
				q.Add("other")
				other := leaseNow(t, q)
				q.AddLimited("works")
				q.AddAfter("later", time.Hour)
				drain := func(ctx context.Context) <-chan []string {
					result := make(chan []string, 1)
					go func() {
						rest, err := q.Drain(ctx)
						if err != nil {
							t.Error(err)
						}
						result <- rest
					}()
					return result
				}
				var inside <-chan []string
				stop := startQueue(t, q, 1, func(ctx context.Context, _ string) error {
					inside = drain(context.WithoutCancel(ctx))
					<-time.After(time.Second)
					return test.err
				})
				synctest.Wait()
				outside := drain(t.Context())
				<-time.After(2 * time.Second) // the lease is about to end
				other.Done()
				synctest.Wait()
				if err := informer.ValidateQueue(q); err != nil {
					t.Error(err)
				}
				close(hold)
				in, out := <-inside, <-outside
				slices.Sort(out)
				if len(in) > 0 || fmt.Sprint(out) != test.want {
					t.Errorf("Drain inside = %v, outside = %v, want [] and %s", in, out, test.want)
				}
				_ = stop()
			})
		})
	}
}

// TestWorkQueue_DrainWhileItsLeaseFails (promise 24): OnError may call Drain with the
// context of the function, and does not wait for the lease that waits for it.
func TestWorkQueue_DrainWhileItsLeaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *informer.WorkQueue[string]
		var inside context.Context
		q = newQueue(t, informer.QueueOptions[string]{OnError: func(string, error) {
			ctx, cancel := context.WithTimeout(inside, time.Hour)
			defer cancel()
			if rest, err := q.Drain(ctx); err != nil || !slices.Equal(rest, []string{"later"}) {
				t.Errorf("Drain = %v, %v, want [later]", rest, err)
			}
		}})
		q.Add("fails")
		q.AddAfter("later", time.Hour)
		_ = q.Run(t.Context(), 1, func(ctx context.Context, _ string) error {
			inside = ctx
			return errSource
		})
		if err := informer.ValidateQueue(q); err != nil {
			t.Error(err)
		}
	})
}
