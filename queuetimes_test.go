package informer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-99a027e8/informer"
)

// A timedStep is done with a queue at a time, in milliseconds.
type timedStep struct {
	at int
	do func(q *informer.WorkQueue[string])
}

// nearTimes reports that times are equal to what the clock of a queue may be wrong
// by.
func nearTimes(got []time.Duration, want []int) bool {
	return slices.EqualFunc(got, want, func(got time.Duration, want int) bool {
		return (got - time.Duration(want)*time.Millisecond).Abs() <= clockError
	})
}

// TestWorkQueue_Debounce (promise 23): when a key is leased that is added again and
// again. The lease takes work.
func TestWorkQueue_Debounce(t *testing.T) {
	const ms = time.Millisecond
	type queue = informer.WorkQueue[string]
	add := func(q *queue) { q.Add("a") }
	adds := func(from, to, every int) (steps []timedStep) {
		for at := from; at <= to; at += every {
			steps = append(steps, timedStep{at, add})
		}
		return steps
	}
	for _, test := range []struct {
		name  string
		most  time.Duration // zero for the default, 1 second
		work  time.Duration
		steps []timedStep
		want  []int
	}{
		{"one add", 0, 0, adds(0, 0, 1), []int{100}},
		{"three adds", 0, 0, adds(0, 90, 45), []int{190}},
		{"another one once it was quiet", 0, 0, adds(0, 150, 150), []int{100, 250}},
		{"never quiet", 250 * ms, 0, adds(0, 240, 40), []int{250}},
		{"never quiet for longer", 250 * ms, 0, adds(0, 470, 47), []int{250, 532}}, // the first add since is at 282
		{"never quiet, by default", 0, 0, adds(0, 990, 90), []int{1000}},
		{"at most as long as it is quiet", 100 * ms, 0, adds(0, 90, 30), []int{100}},
		{"at most, in weeks", 1200 * time.Hour, 0, adds(0, 5000, 50), []int{5100}},
		{"at most, in days", 24 * time.Hour, 0, adds(0, 5000, 50), []int{5100}},
		{"with a priority", 0, 0, []timedStep{{0, func(q *queue) { q.AddWith("a", informer.AddOptions{Priority: 2}) }}}, []int{100}},
		{"a time is kept", 0, 0, []timedStep{{0, func(q *queue) { q.AddAfter("a", 10*ms) }}}, []int{10}},
		{"no time is an add", 0, 0, []timedStep{{0, func(q *queue) { q.AddAfter("a", -ms) }}}, []int{100}},
		{"a time ends by an add", 0, 0, []timedStep{{0, func(q *queue) { q.AddAfter("a", time.Hour) }}, {10, add}}, []int{110}},
		{"an earlier time counts", 0, 0, []timedStep{{0, add}, {10, func(q *queue) { q.AddAfter("a", ms) }}}, []int{11}},
		{"the limiter is not affected", 0, 0, []timedStep{{0, func(q *queue) { q.AddLimited("a") }}}, []int{20}},
		{"rescheduled", 0, 0, []timedStep{{0, add}, {10, func(q *queue) { q.Reschedule("a", 300*ms) }}}, []int{310}},
		{"rescheduled to now is an add", 0, 0, []timedStep{{0, add}, {50, func(q *queue) { q.Reschedule("a", 0) }}}, []int{150}},
		{"cancelled", 0, 0, []timedStep{{0, add}, {50, func(q *queue) { q.Cancel("a") }}}, nil},
		{"cancelled, then anew", 150 * ms, 0, []timedStep{{0, add}, {90, func(q *queue) { q.Cancel("a") }}, {95, add}, {150, add}}, []int{245}},
		{"while leased, quiet by its end", 0, 200 * ms, adds(0, 150, 150), []int{100, 300}},
		{"while leased, not quiet by its end", 0, 200 * ms, adds(0, 250, 250), []int{100, 350}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{
					Debounce: 100 * ms, DebounceAtMost: test.most, Limiter: fixedLimiter[string](20 * ms),
				})
				start := time.Now()
				var got []time.Duration
				stop := startQueue(t, q, 1, func(context.Context, string) error {
					got = append(got, time.Since(start))
					<-time.After(test.work)
					return nil
				})
				for _, step := range test.steps {
					<-time.After(time.Duration(step.at)*ms - time.Since(start))
					step.do(q)
				}
				<-time.After(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !nearTimes(got, test.want) {
					t.Errorf("leased at %v, want at %v ms", got, test.want)
				}
			})
		})
	}
}

// TestWorkQueue_DebounceForDays (promise 23): what is longer than a queue can count
// ages is as long as it can: a key that is never quiet is ready after 50 days.
func TestWorkQueue_DebounceForDays(t *testing.T) {
	const day = 24 * time.Hour
	for _, debounce := range []time.Duration{6 * day, 70 * day, math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, informer.QueueOptions[string]{Debounce: debounce})
			for range 50 {
				if q.Add("a"); q.Items()[0].State != informer.ItemDelayed {
					t.Fatal("a is ready too early")
				}
				<-time.After(day)
			}
			<-time.After(time.Second)
			if item := q.Items()[0]; item.State != informer.ItemReady {
				t.Errorf("Debounce %v: a is %v after 50 days, want Ready", debounce, item.State)
			}
		})
	}
}

// TestWorkQueue_SumsOfTimes (promise 24): they grow no further than they can.
func TestWorkQueue_SumsOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[int]{})
		const keys, wait = 2200, 50 * 24 * time.Hour
		for k := range keys {
			q.Add(k)
		}
		<-time.After(wait)
		leases := make([]informer.Lease[int], keys)
		for i := range leases {
			leases[i] = leaseNow(t, q)
		}
		<-time.After(wait)
		unfinished := q.Stats().Unfinished
		for _, l := range leases {
			l.Done()
		}
		if s := q.Stats(); s.Waited.Total != math.MaxInt64 || s.Worked.Total != math.MaxInt64 || unfinished != math.MaxInt64 {
			t.Errorf("waited %v, worked %v, unfinished %v, want the longest time", s.Waited.Total, s.Worked.Total, unfinished)
		}
	})
}

// TestWorkQueue_AddsAndRetries (promise 23): together they are how often a key has
// become pending, which is how often it is leased.
func TestWorkQueue_AddsAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{})
		q.Add("a")
		lease := leaseNow(t, q)
		q.Add("a")
		lease.Retry(errSource)
		leaseNow(t, q).Retry(errSource)
		lease = leaseNow(t, q)
		if s := q.Stats(); s.Adds != 2 || s.Retries != 1 || s.Waited.Count != 3 {
			t.Errorf("%d adds, %d retries, %d leases, want 2, 1, 3", s.Adds, s.Retries, s.Waited.Count)
		}
		_, _ = q.Drain(canceled(t))
		lease.Retry(errSource)
		if s := q.Stats(); s.Retries != 1 {
			t.Errorf("a retry that came too late counts: %d", s.Retries)
		}
	})
}

// TestWorkQueue_DebounceOthers (promise 23): retries are not debounced, nor is
// Unpark, and a key that is ready, and is added again, is quiet no more.
func TestWorkQueue_DebounceOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		q := newQueue(t, informer.QueueOptions[string]{Debounce: 100 * ms, Limiter: fixedLimiter[string](20 * ms)})
		start := time.Now()
		check := func(what string, want int) informer.Lease[string] {
			t.Helper()
			lease := leaseNow(t, q)
			if got := []time.Duration{time.Since(start)}; !nearTimes(got, []int{want}) {
				t.Errorf("%s: leased after %v, want %d ms", what, got, want)
			}
			start = time.Now()
			return lease
		}
		q.Add("a")
		check("added", 100).Retry(errSource)
		check("retried", 20).RetryAfter(0)
		check("looked at again", 0).Park(errSource)
		q.Unpark("a")
		check("unparked", 0).Done()
		q.Add("a")
		<-time.After(120 * ms)
		q.Add("a")
		check("ready, and added again", 220).Done()
	})
}

// TestWorkQueue_Limits (promise 24): when attempts end that fail all the time, and
// what begins them anew. The limiter says 3 seconds; a key is added at the start,
// and looked at for a minute.
func TestWorkQueue_Limits(t *testing.T) {
	const s = time.Second
	type queue = informer.WorkQueue[string]
	fails := func(int) error { return errSource }
	for _, test := range []struct {
		name     string
		attempts int
		age      time.Duration
		outcome  func(attempt int) error
		steps    []timedStep
		want     []int // seconds
		tries    int   // as Items says, of the parked key; zero if it is not in the queue
	}{
		{"attempts", 3, 0, fails, nil, []int{0, 3, 6}, 3},
		{"one", 1, 0, fails, nil, []int{0}, 1},
		{"age", 0, 10 * s, fails, nil, []int{0, 3, 6, 9, 12}, 5},
		{"age, at once", 0, time.Nanosecond, fails, nil, []int{0}, 1},
		{"attempts before age", 2, 10 * s, fails, nil, []int{0, 3}, 2},
		{"age before attempts", 9, 4 * s, fails, nil, []int{0, 3, 6}, 3},
		{"the delay of the error", 3, 0, func(int) error { return informer.RetryAfter(5*s, errSource) }, nil, []int{0, 5, 10}, 3},
		{"terminal", 3, 0, func(int) error { return informer.Terminal(errSource) }, nil, []int{0}, 1},
		{"nothing went wrong", 2, s, func(n int) error { return informer.RetryAfter(20*s, nil) }, nil, []int{0, 20, 40, 60}, 0},
		{"something, then nothing", 2, 0, func(n int) error {
			if n%2 == 0 {
				return informer.RetryAfter(17*s, nil)
			}
			return errSource
		}, nil, []int{0, 3, 20, 23, 40, 43, 60}, 0},
		{"something, long after the add", 0, 5 * s, func(n int) error {
			if n <= 3 {
				return informer.RetryAfter(3*s, nil)
			}
			return errSource
		}, nil, []int{0, 3, 6, 9, 12}, 2},
		{"an add releases it", 2, 0, fails, []timedStep{{20_000, func(q *queue) { q.Add("a") }}}, []int{0, 3, 20, 23}, 2},
		{"a later add does", 2, 0, fails, []timedStep{{20_000, func(q *queue) { q.AddAfter("a", 10*s) }}}, []int{0, 3, 30, 33}, 2},
		{"a limited add does", 2, 0, fails, []timedStep{{20_000, func(q *queue) { q.AddLimited("a") }}}, []int{0, 3, 23, 26}, 2},
		{"Reschedule does", 2, 0, fails, []timedStep{{20_000, func(q *queue) { q.Reschedule("a", s) }}}, []int{0, 3, 21, 24}, 2},
		{"Unpark does", 0, 5 * s, fails, []timedStep{{20_000, func(q *queue) { q.Unpark("a") }}}, []int{0, 3, 6, 20, 23, 26}, 3},
		{"Cancel takes it out", 2, 0, fails, []timedStep{{20_000, func(q *queue) { q.Cancel("a"); q.Unpark("a") }}}, []int{0, 3}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{
					MaxAttempts: test.attempts, MaxAge: test.age, Limiter: fixedLimiter[string](3 * s),
				})
				start := time.Now()
				var got []int
				q.Add("a")
				stop := startQueue(t, q, 1, func(context.Context, string) error {
					got = append(got, int(time.Since(start).Seconds()))
					<-time.After(5 * time.Millisecond) // or a key is zero old
					return test.outcome(len(got))
				})
				for _, step := range test.steps {
					<-time.After(time.Duration(step.at)*time.Millisecond - time.Since(start))
					step.do(q)
				}
				<-time.After(61*s - time.Since(start))
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("attempts at %v s, want %v", got, test.want)
				}
				tries := 0
				for _, item := range q.Items() {
					if item.State == informer.ItemParked {
						tries = item.Attempts
					}
				}
				if stats := q.Stats(); tries != test.tries || stats.Parked != min(tries, 1) || stats.Parked > int(stats.Parks) {
					t.Errorf("parked after %d attempts, want %d: %+v", tries, test.tries, stats)
				}
			})
		})
	}
}

// TestLease_RetryAfterOfServers (promise 27): when a key is retried, by the error.
func TestLease_RetryAfterOfServers(t *testing.T) {
	busy := apierrors.NewTooManyRequests("busy", 7)
	for _, test := range []struct {
		name string
		err  error
		want int // seconds; the limiter says 2
	}{
		{"429", busy, 7},
		{"wrapped", fmt.Errorf("update: %w", busy), 7},
		{"joined", errors.Join(errSource, busy), 7},
		{"a timeout", apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods"}, "get", 9), 9},
		{"a timeout without a pause", apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods"}, "get", 0), 2},
		{"without a pause", apierrors.NewTooManyRequests("busy", 0), 2},
		{"negative", apierrors.NewTooManyRequests("busy", -7), 2},
		{"another error", apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errSource), 2},
		{"ours wins", informer.RetryAfter(time.Second, busy), 1},
		{"terminal wins", informer.Terminal(busy), 3600},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{Limiter: fixedLimiter[string](2 * time.Second)})
				q.Add("a")
				leaseNow(t, q).Retry(test.err)
				start := time.Now()
				time.AfterFunc(time.Hour, func() { q.Add("a") })
				lease := leaseNow(t, q)
				if got := time.Since(start); got != time.Duration(test.want)*time.Second {
					t.Errorf("retried after %v, want %d s", got, test.want)
				}
				lease.Done()
			})
		})
	}
}

// TestWorkQueue_Timeout (promise 24): an attempt that takes too long is a failure; one
// that is cut short by the end of Run is not.
func TestWorkQueue_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		var ends []string
		var logged bytes.Buffer
		q := newQueue(t, informer.QueueOptions[string]{
			Timeout: 10 * time.Second,
			Limiter: fixedLimiter[string](2 * time.Second),
			Name:    "jobs",
			Logger:  slog.New(slog.NewTextHandler(&logged, nil)),
			OnError: func(_ string, err error) { reported = append(reported, err.Error()) },
			OnEnd: func(l informer.Lease[string], end informer.Ending) {
				ends = append(ends, fmt.Sprintf("%s %d after %v", end.How, l.Attempt, end.Held.Round(5*time.Millisecond)))
			},
		})
		q.Add("a")
		stop := startQueue(t, q, 1, func(ctx context.Context, _ string) error {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != 10*time.Second {
				t.Errorf("the deadline is in %v (%v)", time.Until(deadline), ok)
			}
			<-ctx.Done()
			return fmt.Errorf("request: %w", ctx.Err())
		})
		<-time.After(15 * time.Second)
		if err := stop(); err != nil {
			t.Errorf("Run() = %v", err)
		}
		want := []string{"request: context deadline exceeded"}
		if !slices.Equal(reported, want) {
			t.Errorf("reported %q, want %q", reported, want)
		}
		if want := []string{"Retry 1 after 10s", "Early 2 after 3s"}; !slices.Equal(ends, want) {
			t.Errorf("the leases ended %q, want %q", ends, want)
		}
		if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "queue=jobs key=a attempt=1 ") {
			t.Errorf("logged:\n%s", text)
		}
		if lease := leaseNow(t, q); lease.Attempt != 2 {
			t.Errorf("then attempt %d, want 2", lease.Attempt)
		}
	})
}

// TestWorkQueue_Times (promise 24: nothing hides): how old leases and keys are, to
// about a millisecond, and how long they waited and were held.
func TestWorkQueue_Times(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		near := func(what string, got, want time.Duration) {
			t.Helper()
			if (got - want).Abs() > clockError {
				t.Errorf("%s is %v, want %v", what, got, want)
			}
		}
		q := newQueue(t, informer.QueueOptions[string]{Limiter: fixedLimiter[string](7 * s)})
		item := func() informer.Item[string] { return q.Items()[0] }
		q.AddAfter("a", 10*s)
		<-time.After(4 * s)
		near("Age of a delayed key", item().Age, 4*s)
		if due := time.Until(item().Due); due != 6*s {
			t.Errorf("a delayed key is due in %v, want 6s", due)
		}
		<-time.After(9 * s)
		near("Oldest", q.Stats().Oldest, 13*s)
		lease := leaseNow(t, q)
		near("Waited", lease.Waited(), 3*s)
		<-time.After(5 * s)
		near("Age of a lease", lease.Age(), 18*s)
		near("Held", item().Held, 5*s)
		near("Age of a leased key", item().Age, 18*s)
		near("LongestLease", q.Stats().LongestLease, 5*s)
		q.Add("a")
		<-time.After(s)
		near("Age of a key that was added while it is leased", item().Age, s)
		near("Age of its lease", lease.Age(), 19*s)
		lease.Retry(errSource)
		next := leaseNow(t, q)
		near("Age of the next lease", next.Age(), s)
		near("Waited of a key that was ready at once", next.Waited(), 0)
		next.Retry(errSource)
		next = leaseNow(t, q)
		near("Age of a retried key", next.Age(), 8*s)
		next.RetryAfter(20 * s)
		next = leaseNow(t, q)
		near("Age when nothing went wrong", next.Age(), 20*s)
		next.Park(errSource)
		<-time.After(2 * s)
		near("Held of a parked key", item().Held, 2*s)
		q.Unpark("a")
		near("Age of a released key", item().Age, 0)
		stats := q.Stats()
		near("Waited in all", stats.Waited.Total, 3*s)
		near("Worked in all", stats.Worked.Total, 6*s)
		near("Worked, longest", stats.Worked.Longest, 6*s)
		if stats.Waited.Count != 4 || stats.Worked.Count != 4 || stats.Retries != 2 || stats.Adds != 3 || stats.Parks != 1 {
			t.Errorf("Stats = %+v", stats)
		}
	})
}

// TestWorkQueue_LeaseOf: only the context of the queue's own worker has a lease.
func TestWorkQueue_LeaseOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, other := newQueue(t, informer.QueueOptions[string]{}), newQueue(t, informer.QueueOptions[string]{})
		if _, ok := q.LeaseOf(t.Context()); ok {
			t.Error("LeaseOf has a lease outside of Run")
		}
		q.AddWith("a", informer.AddOptions{Priority: 1})
		calls := 0
		stop := startQueue(t, q, 1, func(ctx context.Context, key string) error {
			calls++
			lease, ok := q.LeaseOf(ctx)
			if !ok || lease.Key != key || lease.Attempt != calls || lease.Priority != 1 {
				t.Errorf("LeaseOf = %+v, %v in attempt %d", lease, ok, calls)
			}
			if _, ok := other.LeaseOf(ctx); ok {
				t.Error("another queue has that lease")
			}
			if calls == 2 {
				lease.Done()
			}
			return errSource
		})
		<-time.After(time.Hour)
		if err := stop(); err != nil || calls != 2 || len(q.Items()) > 0 {
			t.Errorf("Run() = %v; %d calls, and %v", err, calls, q.Items())
		}
	})
}

// TestWorkQueue_HooksThatPanic (promise 24): when a hook panics, the key is where it
// would be without, or ready again if that is OnLease.
func TestWorkQueue_HooksThatPanic(t *testing.T) {
	panics := map[string]bool{}
	hook := func(name string) {
		if panics[name] {
			panic(errHook)
		}
	}
	q := newQueue(t, informer.QueueOptions[string]{
		Limiter: fixedLimiter[string](time.Hour),
		OnAdd:   func(string) { hook("OnAdd") },
		OnLease: func(informer.Lease[string]) { hook("OnLease") },
		OnEnd:   func(informer.Lease[string], informer.Ending) { hook("OnEnd") },
	})
	during := func(name string, f func()) {
		panics[name] = true
		defer func() {
			panics[name] = false
			if r := recover(); r != errHook { //nolint:errorlint // the very value
				t.Errorf("%s: the panic was %v", name, r)
			}
		}()
		f()
	}
	state := func(when, want string) {
		t.Helper()
		got := "none"
		for _, item := range q.Items() {
			got = fmt.Sprint(item.State, item.Attempts)
			if item.State == informer.ItemDelayed && item.Due.IsZero() {
				t.Errorf("%s: the key is delayed for ever", when)
			}
		}
		if err := informer.ValidateQueue(q); got != want || err != nil {
			t.Fatalf("%s: the key is %s, want %s; %v", when, got, want, err)
		}
	}
	during("OnAdd", func() { q.Add("a") })
	state("OnAdd", "Ready 0")
	during("OnLease", func() { _, _ = q.Get(t.Context()) })
	state("OnLease", "Ready 0")
	lease := leaseNow(t, q)
	during("OnEnd", func() { lease.Retry(errSource) })
	state("OnEnd", "Delayed 1")
	q.Add("a")
	lease = leaseNow(t, q)
	during("OnEnd", func() { lease.Park(errSource) })
	state("OnEnd", "Parked 2")
	during("OnAdd", func() { q.Unpark("a") })
	state("OnAdd", "Ready 0")
	q.Cancel("a")
	during("OnAdd", func() { q.AddLimited("a") })
	state("OnAdd", "Delayed 0")
	q.Add("a")
	lease = leaseNow(t, q)
	during("OnEnd", func() { lease.Done() })
	state("OnEnd", "none")
}
