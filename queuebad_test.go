package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// TestNewWorkQueue_BadOptions: every option that is out of range, or contradicts
// another one, is named, and all of them at once.
func TestNewWorkQueue_BadOptions(t *testing.T) {
	const s = time.Second
	type options = informer.QueueOptions[string]
	for _, test := range []struct {
		name    string
		options options
		want    []string // in the error; none if there is no error
	}{
		{"none", options{}, nil},
		{"negative ageing", options{Ageing: -s}, []string{"Ageing is -1s: must not be negative"}},
		{"long ageing", options{Ageing: math.MaxInt64}, nil},
		{"negative debounce", options{Debounce: -s}, []string{"Debounce is -1s: must not be negative"}},
		{"endless debounce", options{Debounce: math.MaxInt64}, nil},
		{"negative limit of debounce", options{Debounce: s, DebounceAtMost: -s}, []string{"DebounceAtMost is -1s: must not be negative"}},
		{"a limit below", options{Debounce: 2 * s, DebounceAtMost: s}, []string{"DebounceAtMost is 1s: must not be below Debounce, 2s"}},
		{"a limit of nothing", options{DebounceAtMost: s}, []string{"DebounceAtMost is 1s, but Debounce is not set"}},
		{"a great limit", options{Debounce: s, DebounceAtMost: 1201 * time.Hour},
			[]string{"DebounceAtMost is 1201h0m0s: must not be above 1200h0m0s"}},
		{"the greatest limit", options{Debounce: s, DebounceAtMost: 1200 * time.Hour}, nil},
		{"a limit that is equal", options{Debounce: s, DebounceAtMost: s}, nil},
		{"negative attempts", options{MaxAttempts: -1}, []string{"MaxAttempts is -1: must be from 0 to 65535"}},
		{"many attempts", options{MaxAttempts: 65536}, []string{"MaxAttempts is 65536: must be from 0 to 65535"}},
		{"most attempts", options{MaxAttempts: 65535}, nil},
		{"negative age", options{MaxAge: -s}, []string{"MaxAge is -1s: must not be negative"}},
		{"great age", options{MaxAge: 1201 * time.Hour}, []string{"MaxAge is 1201h0m0s: must not be above 1200h0m0s"}},
		{"greatest age", options{MaxAge: 1200 * time.Hour}, nil},
		{"negative timeout", options{Timeout: -s}, []string{"Timeout is -1s: must not be negative"}},
		{"policy for handlers", options{OnPanic: informer.PanicDetach}, []string{"OnPanic is 2: must be PanicCrash or PanicReport"}},
		{"unknown policy", options{OnPanic: 9}, []string{"OnPanic is 9"}},
		{"all at once", options{Ageing: -1, Debounce: -1, DebounceAtMost: -1, MaxAge: -1, Timeout: -1, MaxAttempts: -1, OnPanic: 9},
			[]string{"Ageing", "Debounce is", "DebounceAtMost", "MaxAge", "Timeout", "MaxAttempts", "OnPanic"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.options.Name = "jobs"
			q, err := informer.NewWorkQueue(test.options)
			if len(test.want) > 0 {
				mustContain(t, "NewWorkQueue", err, append(test.want, "queue jobs")...)
				return
			}
			if err != nil {
				t.Fatalf("NewWorkQueue = %v", err)
			}
			if err := errors.Join(informer.ValidateQueue(q), boolErr(q.Add("a"))); err != nil {
				t.Error(err)
			}
		})
	}
}

// boolErr makes false an error.
func boolErr(ok bool) error {
	if !ok {
		return errors.New("false")
	}
	return nil
}

// badQueue is a queue whose options misbehave when they are told to.
type badQueue struct {
	t *testing.T
	*informer.WorkQueue[any]
	panics bool          // of the next call of the group function or the limiter
	delay  time.Duration // of the limiter
	text   []string      // what happened
}

func (q *badQueue) misbehave() {
	if q.panics {
		q.panics = false
		panic("user")
	}
}

func (q *badQueue) When(any) time.Duration { q.misbehave(); return q.delay }
func (q *badQueue) Forget(any)             { q.misbehave() }

// say notes what happened.
func (q *badQueue) say(what ...any) { q.text = append(q.text, fmt.Sprint(what...)) }

// panicking does something that is to panic.
func (q *badQueue) panicking(f func()) {
	defer func() {
		q.panics = false
		if r := recover(); r != nil {
			q.say("panic")
		}
	}()
	q.panics = true
	f()
}

// state says where keys are.
func (q *badQueue) state() {
	for _, item := range q.Items() {
		q.say(item.Key, " ", item.State)
	}
	if len(q.Items()) == 0 {
		q.say("empty")
	}
}

func (q *badQueue) lease() informer.Lease[any] { return leaseNow(q.t, q.WorkQueue) }

// drain shuts the queue, and says what was left.
func (q *badQueue) drain() {
	rest, err := q.Drain(canceled(q.t))
	q.say("drained ", rest, " ", err != nil)
}

func (q *badQueue) run(workers int, fn func(context.Context, any) error) {
	err := q.Run(q.t.Context(), workers, fn)
	q.say(err)
}

// TestWorkQueue_BadInput is what comes of bad input (promises 22, 23 and 24): no
// key is lost or leased twice, the queue is not harmed, and the next call works.
func TestWorkQueue_BadInput(t *testing.T) {
	const s = time.Second
	nothing := func(context.Context, any) error { return nil }
	low, high := informer.AddOptions{Priority: -128}, informer.AddOptions{Priority: 127}
	for _, test := range []struct {
		name string
		do   func(q *badQueue)
		want string
	}{
		{"negative delay", func(q *badQueue) { q.say(q.AddAfter("a", -s)); q.state() }, "true, a Ready"},
		{"the least delay", func(q *badQueue) { q.say(q.AddAfter("a", math.MinInt64)); q.state() }, "true, a Ready"},
		{"the longest delay", func(q *badQueue) { q.say(q.AddAfter("a", math.MaxInt64)); q.state() }, "true, a Delayed"},
		{"negative, rescheduled", func(q *badQueue) { q.AddAfter("a", s); q.say(q.Reschedule("a", -s)); q.state() }, "true, a Ready"},
		{"negative, with options", func(q *badQueue) { q.say(q.AddWith("a", informer.AddOptions{After: -s})); q.state() }, "true, a Ready"},
		{"negative, by the limiter", func(q *badQueue) { q.delay = -s; q.say(q.AddLimited("a")); q.state() }, "true, a Ready"},
		{"negative, of a lease", func(q *badQueue) { q.Add("a"); q.say(q.lease().RetryAfter(-s)); q.state() }, "true, a Ready"},
		{"negative, of an error", func(q *badQueue) { q.Add("a"); q.say(q.lease().Retry(informer.RetryAfter(-s, errSource))); q.state() }, "true, a Ready"},
		{"priorities beyond, in turn", func(q *badQueue) {
			q.AddWith("a", low)
			q.AddWith("b", high)
			q.say(q.lease().Priority, q.lease().Priority)
		}, "-2 2"},

		{"no worker", func(q *badQueue) { q.run(0, nothing) }, "informer: queue jobs: run: workers is 0: must be above zero"},
		{"fewer workers", func(q *badQueue) { q.run(-3, nothing) }, "informer: queue jobs: run: workers is -3: must be above zero"},
		{"no function", func(q *badQueue) { q.run(1, nil) }, "informer: queue jobs: run: the function is nil"},
		{"after shutdown", func(q *badQueue) { q.drain(); q.run(1, nothing) }, "drained [] false, informer: queue jobs: informer: stopped"},

		{"ended twice", func(q *badQueue) {
			q.Add("a")
			l := q.lease()
			q.say(l.Done(), l.Done(), l.Retry(nil), l.Park(nil), l.RetryAfter(s))
			q.state()
		}, "true false false false false, empty"},
		{"retried, then ended", func(q *badQueue) {
			q.Add("a")
			l := q.lease()
			q.say(l.Retry(nil), l.Done(), l.Retry(nil), l.Park(nil), l.RetryAfter(s))
			q.state()
		}, "true false false false false, a Ready"},
		{"parked, then ended", func(q *badQueue) {
			q.Add("a")
			l := q.lease()
			q.say(l.Park(nil), l.Done(), l.Retry(nil), l.Park(nil), l.RetryAfter(s))
			q.state()
		}, "true false false false false, a Parked"},
		{"ended when another one has the key", func(q *badQueue) {
			q.Add("a")
			l := q.lease()
			l.Retry(nil)
			q.lease()
			q.say(l.Done(), l.Retry(nil), l.Park(nil), l.RetryAfter(s))
			q.state()
		}, "false false false false, a Leased"},
		{"the zero lease", func(q *badQueue) {
			var l informer.Lease[any]
			q.say(l.Done(), l.Retry(nil), l.Park(nil), l.RetryAfter(s), l.Age(), l.Waited())
		}, "false false false false 0s 0s"},
		{"done after shutdown", func(q *badQueue) { q.Add("a"); l := q.lease(); q.drain(); q.say(l.Done()); q.state() }, "drained [] true, true, empty"},
		{"retried after shutdown", func(q *badQueue) { q.Add("a"); l := q.lease(); q.drain(); q.say(l.Retry(nil)); q.state() }, "drained [] true, false, empty"},
		{"parked after shutdown", func(q *badQueue) { q.Add("a"); l := q.lease(); q.drain(); q.say(l.Park(nil)); q.state() }, "drained [] true, false, empty"},
		{"looked at again after shutdown", func(q *badQueue) { q.Add("a"); l := q.lease(); q.drain(); q.say(l.RetryAfter(s)); q.state() }, "drained [] true, false, empty"},

		{"added after shutdown", func(q *badQueue) {
			q.drain()
			q.say(q.Add("a"), q.AddAfter("a", s), q.AddLimited("a"), q.Reschedule("a", s), q.AddWith("a", high), q.Unpark("a"), q.Cancel("a"))
			q.state()
		}, "drained [] false, false false false false false false false, empty"},
		{"unparked while draining", func(q *badQueue) {
			q.Add("a")
			q.Add("b")
			q.lease().Park(nil)
			l := q.lease()
			go q.drainSlowly()
			synctest.Wait()
			q.say(q.Unpark("a"))
			done := l.Done()
			synctest.Wait()
			q.say(done)
			q.state()
		}, "false, rest [a] <nil>, true, empty"},
		{"parked, then drained", func(q *badQueue) { q.Add("a"); q.lease().Park(nil); q.drain(); q.state() }, "drained [a] false, empty"},
		{"drained twice", func(q *badQueue) { q.AddAfter("a", s); q.drain(); q.drain() }, "drained [a] false, drained [] false"},
		{"unparked, not parked", func(q *badQueue) { q.Add("a"); q.say(q.Unpark("a"), q.Unpark("b")); q.state() }, "false false, a Ready"},

		{"the group function panics", func(q *badQueue) {
			q.panicking(func() { q.Add("a") })
			q.panicking(func() { q.AddAfter("a", s) })
			q.panicking(func() { q.AddLimited("a") })
			q.panicking(func() { q.Reschedule("a", s) })
			q.state()
			q.say(q.Add("a"))
			q.state()
		}, "panic, panic, panic, panic, empty, true, a Ready"},
		{"the group function panics, the key is there", func(q *badQueue) {
			q.AddAfter("a", s)
			q.panicking(func() { q.Add("a") })
			q.state()
			q.say(q.Add("a"))
			q.state()
		}, "panic, a Delayed, true, a Ready"},
		{"the limiter panics, by a retry", func(q *badQueue) {
			q.Add("a")
			l := q.lease()
			q.panicking(func() { l.Retry(errSource) })
			q.state()
			q.say(l.Done())
		}, "panic, a Ready, false"},
		{"the limiter panics when it forgets", func(q *badQueue) {
			q.AddLimited("a")
			l := q.lease()
			q.panicking(func() { l.Done() })
			q.state()
			q.AddLimited("b")
			q.panicking(func() { q.lease().Park(nil) })
			q.state()
		}, "panic, empty, panic, b Parked"},

		{"NaN", func(q *badQueue) {
			nan := math.NaN()
			q.say(q.Add(nan), q.AddAfter(nan, s), q.AddLimited(nan), q.Reschedule(nan, s), q.Cancel(nan), q.Unpark(nan))
			q.state()
		}, "false false false false false false, empty"},
		{"a key that cannot be compared", func(q *badQueue) {
			q.panicking(func() { q.panics = false; q.Add([]int{1}) })
			q.panicking(func() { q.panics = false; q.Cancel([]int{1}) })
			q.panicking(func() { q.panics = false; q.Unpark([]int{1}) })
			q.say(q.Add("a"))
		}, "panic, panic, panic, true"},
		{"nil is a key", func(q *badQueue) { q.say(q.Add(nil)); q.say(q.lease().Done()); q.state() }, "true, true, empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &badQueue{t: t}
				q.WorkQueue = newQueue(t, informer.QueueOptions[any]{
					Name: "jobs", Limiter: q,
					Group: func(k any) string { q.misbehave(); return fmt.Sprint(k) },
				})
				test.do(q)
				if got := strings.Join(q.text, ", "); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
				if err := informer.ValidateQueue(q.WorkQueue); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// drainSlowly waits for the leases that are open.
func (q *badQueue) drainSlowly() {
	rest, err := q.Drain(q.t.Context())
	q.say("rest ", rest, " ", err)
}
