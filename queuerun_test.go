package informer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// startQueue runs q, and returns a function that ends the run and waits.
func startQueue[K comparable](
	t *testing.T, q *informer.WorkQueue[K], workers int, fn func(context.Context, K) error,
) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx, workers, fn) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// TestWorkQueue_RunOutcomes (promise 24): what becomes of a key, by what fn
// returns.
func TestWorkQueue_RunOutcomes(t *testing.T) {
	boom := errors.New("boom")
	const s = time.Second
	tests := []struct {
		name     string
		first    func() error // the outcome of the first call; then nil
		want     []time.Duration
		reported string
	}{
		{"nil", func() error { return nil }, []time.Duration{0}, ""},
		{"error", func() error { return boom }, []time.Duration{0, 2 * s}, "boom"},
		{"retry after", func() error { return fmt.Errorf("x: %w", informer.RetryAfter(9*s, boom)) },
			[]time.Duration{0, 9 * s}, "x: boom (retry after 9s)"},
		{"retry after, no failure", func() error { return informer.RetryAfter(9*s, nil) },
			[]time.Duration{0, 9 * s}, ""},
		{"retry after, and a failure", func() error { return fmt.Errorf("x: %w", errors.Join(informer.RetryAfter(9*s, nil), boom)) },
			[]time.Duration{0, 9 * s}, "x: retry after 9s\nboom"},
		{"retry after, twice", func() error { return errors.Join(informer.RetryAfter(9*s, nil), informer.RetryAfter(s, nil)) },
			[]time.Duration{0, 9 * s}, ""},
		{"retry after, negative", func() error { return informer.RetryAfter(-s, nil) },
			[]time.Duration{0, 0}, ""},
		{"terminal", func() error { return informer.Terminal(boom) }, []time.Duration{0}, "boom (not retried)"},
		{"terminal wins", func() error { return informer.RetryAfter(s, informer.Terminal(boom)) },
			[]time.Duration{0}, "boom (not retried) (retry after 1s)"},
		{"terminal, of no failure", func() error { return informer.Terminal(informer.RetryAfter(s, nil)) },
			[]time.Duration{0}, "retry after 1s (not retried)"},
		{"terminal nil", func() error { return informer.Terminal(nil) }, []time.Duration{0}, ""},
		{"panic", func() error { panic(boom) }, []time.Duration{0, 2 * s},
			"informer: queue jobs: key a: panic: boom"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reported []string
				q := newQueue(t, informer.QueueOptions[string]{
					Limiter: fixedLimiter[string](2 * s),
					Name:    "jobs",
					OnError: func(key string, err error) { reported = append(reported, err.Error()) },
					OnPanic: informer.PanicReport,
				})
				var got []time.Duration
				start := time.Now()
				q.Add("a")
				stop := startQueue(t, q, 3, func(context.Context, string) error {
					got = append(got, time.Since(start))
					if len(got) == 1 {
						return test.first()
					}
					return nil
				})
				<-time.After(time.Hour)
				if err := stop(); err != nil {
					t.Errorf("Run() = %v", err)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("called at %v, want %v", got, test.want)
				}
				all := strings.Join(reported, "|")
				if test.name == "panic" {
					var stack string
					all, stack, _ = strings.Cut(all, "\n")
					if !strings.Contains(stack, "TestWorkQueue_RunOutcomes") {
						t.Errorf("reported without the stack of the panic: %q", stack)
					}
				}
				if all != test.reported {
					t.Errorf("reported %q, want %q", all, test.reported)
				}
			})
		})
	}
}

// TestWorkQueue_Attempts (promises 24 and 27): a lease tells its attempt, and
// Done begins anew, as does Terminal.
func TestWorkQueue_Attempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("a")
		start := time.Now()
		for want := 1; want <= 4; want++ {
			lease := leaseNow(t, q)
			if lease.Attempt != want {
				t.Errorf("Attempt = %d, want %d", lease.Attempt, want)
			}
			lease.Retry(errors.New("boom"))
		}
		if got := time.Since(start); got != 35*time.Millisecond { // 5 + 10 + 20
			t.Errorf("three retries took %v, want 35ms", got)
		}
		leaseNow(t, q).Done()
		q.AddLimited("a")
		start = time.Now()
		if lease := leaseNow(t, q); lease.Attempt != 1 || time.Since(start) != 5*time.Millisecond {
			t.Errorf("after Done: attempt %d after %v, want 1 after 5ms", lease.Attempt, time.Since(start))
		} else {
			lease.Retry(errors.New("boom"))
		}
		lease := leaseNow(t, q)
		q.Add("a") // so the queue does not forget the key
		lease.Retry(informer.Terminal(errors.New("boom")))
		if next := leaseNow(t, q); lease.Attempt != 2 || next.Attempt != 1 {
			t.Errorf("attempt %d ended in Terminal, then came attempt %d, want 2 and 1", lease.Attempt, next.Attempt)
		}
	})
}

// TestWorkQueue_CancelledRun (promise 24): a Run that is cancelled leases no
// other key, cancels and waits for its workers, puts back the key of a call
// that was cut short, and leaves the queue open.
func TestWorkQueue_CancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported atomic.Int64
		q := newQueue(t, informer.QueueOptions[string]{
			OnError: func(string, error) { reported.Add(1) },
		})
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
		}
		var calls atomic.Int64
		stop := startQueue(t, q, 2, func(ctx context.Context, key string) error {
			calls.Add(1)
			<-ctx.Done()
			<-time.After(time.Minute)
			return fmt.Errorf("request: %w", ctx.Err())
		})
		synctest.Wait()
		start := time.Now()
		if err := stop(); err != nil || time.Since(start) != time.Minute || calls.Load() != 2 {
			t.Errorf("Run() = %v after %v and %d calls, want nil after 1m and 2 calls", err, time.Since(start), calls.Load())
		}
		if reported.Load() != 0 || q.Len() != 3 {
			t.Errorf("%d errors, %d keys, want none and 3", reported.Load(), q.Len())
		}
		for range 3 {
			lease := leaseNow(t, q)
			if lease.Attempt != 1 {
				t.Errorf("%s: Attempt = %d, want 1", lease.Key, lease.Attempt)
			}
			lease.Done()
		}
		if !q.Add("d") {
			t.Error("the queue is not open")
		}
		// And another Run goes on.
		stop = startQueue(t, q, 1, func(context.Context, string) error { return nil })
		synctest.Wait()
		if err := stop(); err != nil || q.Len() != 0 {
			t.Errorf("second Run() = %v, %d keys left", err, q.Len())
		}
	})
}

// TestWorkQueue_RunMistakes: each is an error.
func TestWorkQueue_RunMistakes(t *testing.T) {
	q := newQueue(t, informer.QueueOptions[string]{Name: "jobs"})
	nothing := func(context.Context, string) error { return nil }
	for _, workers := range []int{0, -1} {
		if err := q.Run(t.Context(), workers, nothing); err == nil || !strings.Contains(err.Error(), "workers") {
			t.Errorf("Run(%d workers) = %v", workers, err)
		}
	}
	if err := q.Run(t.Context(), 1, nil); err == nil || !strings.Contains(err.Error(), "jobs") {
		t.Errorf("Run(nil) = %v", err)
	}
	drainEmpty(t, q)
	if err := q.Run(t.Context(), 1, nothing); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("Run after Drain = %v, want ErrStopped", err)
	}
}

// TestWorkQueue_Goexit (promise 24): a function that ends its goroutine ends
// the Run, and the key is not lost.
func TestWorkQueue_Goexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("a")
		err := q.Run(t.Context(), 2, func(context.Context, string) error {
			runtime.Goexit()
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "Goexit") || !strings.Contains(err.Error(), "key a") {
			t.Errorf("Run() = %v", err)
		}
		if lease := leaseNow(t, q); lease.Attempt != 2 {
			t.Errorf("Attempt = %d, want 2", lease.Attempt)
		}
	})
}

// TestWorkQueue_GoexitAfterCancel (promise 24): that is an error of Run, and logged,
// also when its context has ended before.
func TestWorkQueue_GoexitAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		q := newQueue(t, informer.QueueOptions[string]{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		q.Add("a")
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Run(ctx, 1, func(context.Context, string) error {
			cancel()
			runtime.Goexit()
			return nil
		})
		mustContain(t, "Run", err, "key a", "Goexit")
		mustContain(t, "the log", errors.New(log.String()), "attempt failed", "key=a attempt=1 parked=false", "Goexit")
	})
}

// TestWorkQueue_LogsWhatFollows (promise 24): the log says that a key is parked also
// if MaxAge has passed only while OnError was told.
func TestWorkQueue_LogsWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		q := newQueue(t, informer.QueueOptions[string]{
			MaxAge:  time.Second,
			Logger:  slog.New(slog.NewTextHandler(&log, nil)),
			OnError: func(string, error) { <-time.After(200 * time.Millisecond) },
		})
		q.Add("a")
		stop := startQueue(t, q, 1, func(context.Context, string) error {
			<-time.After(900 * time.Millisecond)
			return errSource
		})
		<-time.After(2 * time.Second)
		if item := q.Items()[0]; item.State != informer.ItemParked {
			t.Errorf("a is %v, want Parked", item.State)
		}
		mustContain(t, "the log", errors.New(log.String()), "key=a attempt=1 parked=true")
		_ = stop()
	})
}

// TestWorkQueue_PanicAfterTheEnd (promise 24): a panic of a function that has finished
// its lease is told to OnError.
func TestWorkQueue_PanicAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []error
		q := newQueue(t, informer.QueueOptions[string]{
			OnPanic: informer.PanicReport,
			OnError: func(_ string, err error) { told = append(told, err) },
		})
		q.Add("a")
		stop := startQueue(t, q, 1, func(ctx context.Context, _ string) error {
			lease, _ := q.LeaseOf(ctx)
			lease.Done()
			panic("surprise")
		})
		synctest.Wait()
		if err := stop(); err != nil || len(told) != 1 {
			t.Fatalf("Run = %v, and OnError was told of %v, want one panic", err, told)
		}
		mustContain(t, "OnError", told[0], "key a: panic: surprise")
	})
}

// TestWorkQueue_PanicCrashes runs itself in another process, which crashes with
// the name of the queue and the key (as promise 17 for handlers).
func TestWorkQueue_PanicCrashes(t *testing.T) {
	if os.Getenv("INFORMER_TEST_CRASH") == "queue" {
		q := newQueue(t, informer.QueueOptions[string]{Name: "jobs", OnError: func(_ string, err error) {
			fmt.Println("reported", err)
		}})
		q.Add("a")
		_ = q.Run(t.Context(), 1, func(context.Context, string) error { panic("boom") })
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWorkQueue_PanicCrashes$")
	cmd.Env = append(os.Environ(), "INFORMER_TEST_CRASH=queue")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "informer: queue jobs: key a: panic: boom") ||
		strings.Contains(string(out), "reported") {
		t.Errorf("the program ended with %v and:\n%s", err, out)
	}
}

// TestWorkQueue_PanickingHooks (promise 24): a panic of OnError or of the
// limiter does not lose the key.
func TestWorkQueue_PanickingHooks(t *testing.T) {
	q := newQueue(t, informer.QueueOptions[string]{OnError: func(string, error) { panic("hook") }})
	q.Add("a")
	lease := leaseNow(t, q)
	func() {
		defer func() { _ = recover() }()
		lease.Retry(errors.New("boom"))
	}()
	if lease.Done() || q.Len() != 1 || leaseNow(t, q).Key != "a" {
		t.Error("the key is lost, or the lease open")
	}
}

// TestWorkQueue_SeveralRuns may share a queue.
func TestWorkQueue_SeveralRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[int]{})
		var busy, most atomic.Int64
		work := func(context.Context, int) error {
			most.Store(max(most.Load(), busy.Add(1)))
			<-time.After(time.Second)
			busy.Add(-1)
			return nil
		}
		stop1, stop2 := startQueue(t, q, 2, work), startQueue(t, q, 3, work)
		for i := range 50 {
			q.Add(i)
		}
		<-time.After(time.Minute)
		if err := errors.Join(stop1(), stop2()); err != nil || q.Len() != 0 || most.Load() != 5 {
			t.Errorf("err %v, %d keys left, %d at once, want nil, 0, 5", err, q.Len(), most.Load())
		}
	})
}

// TestQueueErrors: the wrappers can be looked into.
func TestQueueErrors(t *testing.T) {
	boom := errors.New("boom")
	if err := informer.RetryAfter(time.Second, boom); !errors.Is(err, boom) {
		t.Errorf("RetryAfter hides %v", boom)
	}
	if err := informer.Terminal(&informer.ObjectError{Err: boom}); !errors.Is(err, boom) {
		t.Errorf("Terminal hides %v", boom)
	} else if _, ok := errors.AsType[*informer.ObjectError](err); !ok {
		t.Error("Terminal hides the type")
	}
	if err := informer.RetryAfter(time.Second, nil); err == nil || err.Error() != "retry after 1s" {
		t.Errorf("RetryAfter(nil) = %v", err)
	}
	if err := informer.Terminal(nil); err != nil {
		t.Errorf("Terminal(nil) = %v", err)
	}
}

// TestWorkQueue_RunWhileDraining: a Run that comes when all is leased or worked
// off has nothing to do, and says so as Get does, whether the Drain has returned
// or waits for a lease; one that comes before works off what is ready (promise
// 24).
func TestWorkQueue_RunWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("leased")
		q.Add("ready")
		lease := leaseNow(t, q)
		drained := make(chan error, 1)
		go func() {
			_, err := q.Drain(t.Context())
			drained <- err
		}()
		synctest.Wait()
		worked := 0
		work := func(context.Context, string) error { worked++; return nil }
		if err := q.Run(t.Context(), 1, work); err != nil || worked != 1 {
			t.Errorf("Run() = %v, and worked off %d keys, want nil, 1", err, worked)
		}
		for range 2 {
			_, get := q.Get(t.Context())
			if run := q.Run(t.Context(), 1, work); !errors.Is(run, informer.ErrStopped) || !errors.Is(get, informer.ErrStopped) {
				t.Errorf("Run() = %v, Get() = %v, want ErrStopped", run, get)
			}
			lease.Done()
			synctest.Wait()
		}
		if err := <-drained; err != nil || worked != 1 {
			t.Errorf("Drain() = %v, %d keys worked off", err, worked)
		}
	})
}

// errCut is to be the end of the context.
var errCut = errors.New("cut short")

// TestWorkQueue_LogsWhatNobodyIsToldOf (promise 24): a key that was to be leased
// again when the queue has ended is logged, as it is lost, and so is a panic of a
// function that has finished its lease before.
func TestWorkQueue_LogsWhatNobodyIsToldOf(t *testing.T) {
	for _, test := range []struct {
		name string
		fn   func(lease informer.Lease[string]) error
		want []string
	}{
		{"failure", func(informer.Lease[string]) error { return errSource },
			[]string{"the queue has ended, and does not take the key back", "key=a attempt=1 parked=false", errSource.Error()}},
		{"cut short", func(informer.Lease[string]) error { return errCut },
			[]string{"the queue has ended, and does not take the key back", "key=a attempt=1 parked=false", "context canceled"}},
		{"cut short, and finished", func(l informer.Lease[string]) error { l.Done(); return errCut }, nil},
		{"panic", func(l informer.Lease[string]) error { l.Done(); panic("surprise") },
			[]string{"panic after the end of the lease", "key=a attempt=1", "surprise"}},
		{"finished", func(l informer.Lease[string]) error { l.Park(errSource); return errSource }, nil},
		{"no failure", func(informer.Lease[string]) error { return informer.RetryAfter(time.Second, nil) },
			[]string{"the queue has ended, and does not take the key back", "retry after 1s"}},
		{"goexit", func(informer.Lease[string]) error { runtime.Goexit(); return nil },
			[]string{"the queue has ended, and does not take the key back", "key=a attempt=1", "Goexit"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				q := newQueue(t, informer.QueueOptions[string]{
					OnPanic: informer.PanicReport,
					Logger:  slog.New(slog.NewTextHandler(&log, nil)),
				})
				q.Add("a")
				stop := startQueue(t, q, 1, func(ctx context.Context, _ string) error {
					<-time.After(time.Minute)
					lease, _ := q.LeaseOf(ctx)
					err := test.fn(lease)
					if err == errCut {
						<-ctx.Done()
						return ctx.Err()
					}
					return err
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := q.Drain(ctx); err == nil {
					t.Error("Drain = nil, want an error, as a is leased")
				}
				<-time.After(time.Hour)
				if err := stop(); (err != nil) != (test.name == "goexit") {
					t.Error(err)
				}
				mustContain(t, "the log", errors.New(log.String()), test.want...)
				if lines := strings.Count(log.String(), "\n"); lines != min(len(test.want), 1) {
					t.Errorf("%d lines: %s", lines, log.String())
				}
			})
		})
	}
}
