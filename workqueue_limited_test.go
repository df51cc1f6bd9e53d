package informer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// slowLimiter takes a second for its first answer, which is 10s; then or
// instead it does what it is told. Later answers are 7s, at once.
type slowLimiter struct {
	asked, forgot atomic.Int64
	then          func()
}

func (l *slowLimiter) When(string) time.Duration {
	if l.asked.Add(1) > 1 {
		return 7 * time.Second
	}
	<-time.After(time.Second)
	if l.then != nil {
		l.then()
	}
	return 10 * time.Second
}

func (l *slowLimiter) Forget(string) { l.forgot.Add(1) }

// TestWorkQueue_AddLimitedWhileAsking (promises 24 and 27): while the limiter is
// asked for a key, the key is pending. Another AddLimited asks for no other
// token; what else happens to the key meanwhile counts; and a limiter that never
// answers loses nothing.
func TestWorkQueue_AddLimitedWhileAsking(t *testing.T) {
	type queue = informer.WorkQueue[string]
	const s = time.Second
	again := func(q *queue) bool { return q.AddLimited("k") }
	tests := []struct {
		name  string
		then  func()              // how the limiter ends, instead of an answer
		first func(q *queue) bool // before
		while func(q *queue) bool // what returns true while the limiter is asked
		want  []time.Duration     // when k is leased
		asked int64               // 0: once
	}{
		{name: "nothing", want: []time.Duration{11 * s}},
		{name: "limited again", while: again, want: []time.Duration{11 * s}},
		{name: "limited again, panic", while: again, then: func() { panic("limiter") }, want: []time.Duration{s}},
		{name: "limited again, Goexit", while: again, then: runtime.Goexit, want: []time.Duration{s}},
		{name: "delayed before", first: func(q *queue) bool { return q.AddAfter("k", 20*s) }, while: again,
			want: []time.Duration{11 * s}},
		{name: "delayed before, earlier", first: func(q *queue) bool { return q.AddAfter("k", 5*s) }, while: again,
			want: []time.Duration{5 * s}},
		{name: "due meanwhile", first: func(q *queue) bool { return q.AddAfter("k", s/2) }, want: []time.Duration{s / 2}},
		{name: "added", while: func(q *queue) bool { return q.Add("k") }, want: []time.Duration{0}},
		{name: "delayed, earlier", while: func(q *queue) bool { return q.AddAfter("k", 3*s) }, want: []time.Duration{3 * s}},
		{name: "delayed, later", while: func(q *queue) bool { return q.AddAfter("k", 30*s) }, want: []time.Duration{11 * s}},
		{name: "rescheduled", while: func(q *queue) bool { return q.Reschedule("k", 30*s) }, want: []time.Duration{30 * s}},
		{name: "cancelled", while: func(q *queue) bool { return q.Cancel("k") }},
		{name: "cancelled, then limited again", while: func(q *queue) bool { return q.Cancel("k") && again(q) },
			want: []time.Duration{7 * s}, asked: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := &slowLimiter{then: test.then}
				q, start := newQueue(t, informer.QueueOptions[string]{Limiter: limiter}), time.Now()
				if test.first != nil {
					test.first(q)
				}
				go func() {
					defer func() { _ = recover() }()
					q.AddLimited("k")
				}()
				synctest.Wait()
				if test.while != nil && !test.while(q) {
					t.Error("while the limiter is asked, the call says false")
				}
				got := leaseTimes(t, q, start, time.Minute)
				if !slices.Equal(got, test.want) {
					t.Errorf("leased at %v, want %v", got, test.want)
				}
				if n := limiter.asked.Load(); n != max(test.asked, 1) {
					t.Errorf("the limiter was asked %d times, want %d", n, max(test.asked, 1))
				}
				if limiter.forgot.Load() == 0 {
					t.Error("the limiter was not told to forget the key")
				}
				if err := informer.ValidateQueue(q); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestWorkQueue_DrainWhileAsking (promise 24): an AddLimited that returned true
// because another one is asking the limiter is returned by Drain, and only once,
// however the limiter ends.
func TestWorkQueue_DrainWhileAsking(t *testing.T) {
	for name, then := range map[string]func(){
		"answer": nil, "panic": func() { panic("limiter") }, "Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{Limiter: &slowLimiter{then: then}})
				q.Add("busy")
				busy := leaseNow(t, q)
				time.AfterFunc(time.Hour, func() { busy.Done() })
				for _, key := range []string{"k", "k"} {
					go func() {
						defer func() { _ = recover() }()
						if !q.AddLimited(key) {
							t.Error("AddLimited says false")
						}
					}()
					synctest.Wait()
				}
				rest, err := q.Drain(t.Context()) // for an hour
				if err != nil || !slices.Equal(rest, []string{"k"}) {
					t.Errorf("Drain() = %q, %v, want k", rest, err)
				}
				if err := informer.ValidateQueue(q); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestWorkQueue_RetryAndAddLimited (promise 27): a failure and an AddLimited of
// the key that failed take one token together, whichever comes first, and the
// key waits for what the limiter said.
func TestWorkQueue_RetryAndAddLimited(t *testing.T) {
	tests := map[string]func(q *informer.WorkQueue[string], l informer.Lease[string]){
		"retry first": func(q *informer.WorkQueue[string], l informer.Lease[string]) {
			go l.Retry(errors.New("boom"))
			synctest.Wait()
			q.AddLimited("k")
		},
		"add first": func(q *informer.WorkQueue[string], l informer.Lease[string]) {
			go q.AddLimited("k")
			synctest.Wait()
			l.Retry(errors.New("boom"))
		},
		"add and answer first": func(q *informer.WorkQueue[string], l informer.Lease[string]) {
			q.AddLimited("k")
			l.Retry(errors.New("boom"))
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := &slowLimiter{}
				q, start := newQueue(t, informer.QueueOptions[string]{Limiter: limiter}), time.Now()
				q.Add("k")
				do(q, leaseNow(t, q))
				if got := leaseTimes(t, q, start, time.Minute); !slices.Equal(got, []time.Duration{11 * time.Second}) {
					t.Errorf("leased again at %v, want 11s", got)
				}
				if n := limiter.asked.Load(); n != 1 {
					t.Errorf("the limiter was asked %d times, want once", n)
				}
			})
		})
	}
}

// TestWorkQueue_RetryAndCancel (promise 27): a key fails that is pending, so the
// limiter is not asked; it is cancelled before its lease has ended. Then the
// limiter is asked after all, unless the key is pending again, or the queue drains.
func TestWorkQueue_RetryAndCancel(t *testing.T) {
	type queue = informer.WorkQueue[string]
	limited := func(q *queue) { q.AddLimited("k") }
	cancel := func(q *queue) { q.Cancel("k") }
	for _, test := range []struct {
		name         string
		add, others  func(q *queue)
		limiterPanic bool
		asked        int64
		want         []time.Duration
	}{
		{"waits for the limiter", limited, cancel, false, 2, []time.Duration{7 * time.Second}},
		{"added", func(q *queue) { q.Add("k") }, cancel, false, 1, []time.Duration{11 * time.Second}},
		{"the limiter panics", func(q *queue) { q.Add("k") }, cancel, true, 1, []time.Duration{time.Second}},
		{"added anew", limited, func(q *queue) { q.Cancel("k"); q.Add("k") }, false, 1, []time.Duration{0}},
		{"delayed anew", limited, func(q *queue) { q.Reschedule("k", 3*time.Second) }, false, 1, []time.Duration{3 * time.Second}},
		{"drained", limited, func(q *queue) {
			q.Cancel("k")
			go q.Drain(context.Background())
			synctest.Wait()
		}, false, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := &slowLimiter{}
				if test.limiterPanic {
					limiter.then = func() { panic("limiter") }
				}
				q := newQueue(t, informer.QueueOptions[string]{Limiter: limiter})
				q.Add("k")
				lease := leaseNow(t, q)
				test.add(q)
				var retried time.Time
				func() {
					defer func() {
						if r := recover(); (r != nil) != test.limiterPanic {
							t.Errorf("Retry panics with %v", r)
						}
					}()
					informer.QueueRetry(lease, errSource, func() { test.others(q); retried = time.Now() })
				}()
				if err := informer.ValidateQueue(q); err != nil {
					t.Error(err)
				}
				got := leaseTimes(t, q, retried, time.Minute)
				if !slices.Equal(got, test.want) || limiter.asked.Load() != test.asked {
					t.Errorf("leased again at %v, limiter asked %d times, want %v, %d", got, limiter.asked.Load(), test.want, test.asked)
				}
			})
		})
	}
}

// leaseTimes leases all keys for so long, and returns when.
func leaseTimes[K comparable](t *testing.T, q *informer.WorkQueue[K], start time.Time, long time.Duration) (got []time.Duration) {
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	for {
		lease, err := q.Get(ctx)
		if err != nil {
			return got
		}
		got = append(got, time.Since(start))
		lease.Done()
	}
}

// TestWorkQueue_AddLimitedStorm (promise 27; k8s#138743): calls that come at the
// same instant from many goroutines take one token together.
func TestWorkQueue_AddLimitedStorm(t *testing.T) {
	for round := range 200 {
		limiter := &slowLimiter{}
		limiter.asked.Add(1) // the first call, which is slow, is over
		q := newQueue(t, informer.QueueOptions[string]{Limiter: limiter})
		var ready, running sync.WaitGroup
		ready.Add(8)
		for range 8 {
			running.Go(func() {
				ready.Done()
				ready.Wait()
				if !q.AddLimited("k") {
					t.Error("AddLimited says false")
				}
			})
		}
		running.Wait()
		if n := limiter.asked.Load() - 1; n != 1 {
			t.Fatalf("round %d: the limiter was asked %d times, want once", round, n)
		}
	}
}

// queueAdd is one way to add a key.
type queueAdd struct {
	mode  string
	delay time.Duration
}

// to adds k to q.
func (a queueAdd) to(q *informer.WorkQueue[string]) {
	switch a.mode {
	case "Add":
		q.Add("k")
	case "AddAfter":
		q.AddAfter("k", a.delay)
	case "Reschedule":
		q.Reschedule("k", a.delay)
	case "AddLimited":
		q.AddLimited("k")
	}
}

// due returns when a key is due that was due at was, or not pending if that is
// negative, and to which a is done at now.
func (a queueAdd) due(was, now time.Duration) time.Duration {
	due := now + max(a.delay, 0)
	switch {
	case was < 0, a.mode == "Reschedule" && a.delay > 0:
		return due
	case was <= now:
		return was // ready
	}
	return min(was, due)
}

// TestWorkQueue_Case23Delays (promise 23; k8s#126027, client-go#131,
// argo-workflows#12636): every pair of ways to add a key, with every pair of
// delays, with a cancel in between or after or none, of a key that is leased or
// not: it is leased once, at the moment that the rules say.
func TestWorkQueue_Case23Delays(t *testing.T) {
	const limited, pause, work = 2 * time.Second, time.Second / 2, 3 * time.Second
	adds := []queueAdd{{"Add", 0}, {"AddLimited", limited}}
	for _, mode := range []string{"AddAfter", "Reschedule"} {
		for _, delay := range []time.Duration{-1, 0, time.Second, 10 * time.Second, 600 * time.Second, 5 * time.Hour} {
			adds = append(adds, queueAdd{mode, delay})
		}
	}
	tried := 0
	synctest.Test(t, func(t *testing.T) {
		for _, leased := range []bool{false, true} {
			for _, cancel := range []string{"none", "between", "after"} {
				for i := range len(adds) * len(adds) {
					first, second := adds[i/len(adds)], adds[i%len(adds)]
					tried++
					q := newQueue(t, informer.QueueOptions[string]{Limiter: fixedLimiter[string](limited)})
					earliest := time.Duration(0)
					if leased {
						earliest = work
						q.Add("k")
						lease := leaseNow(t, q)
						time.AfterFunc(work, func() { lease.Done() })
					}
					start := time.Now()
					first.to(q)
					due := first.due(-1, 0)
					if cancel == "between" {
						q.Cancel("k")
						due = -1
					}
					<-time.After(pause)
					earliest = max(earliest, pause)
					second.to(q)
					due = second.due(due, pause)
					want := []time.Duration{max(due, earliest)}
					if cancel == "after" {
						q.Cancel("k")
						want = nil
					}
					if got := leaseTimes(t, q, start, 10*time.Hour); !slices.Equal(got, want) {
						t.Errorf("%v, then %v; leased: %v; cancel: %s: leased at %v, want %v",
							first, second, leased, cancel, got, want)
					}
				}
			}
		}
	})
	t.Log(tried, "pairs")
}

func (a queueAdd) String() string { return fmt.Sprint(a.mode, " ", a.delay) }

// addInForget is a limiter that counts, and adds a key while it forgets it.
type addInForget struct {
	queue *informer.WorkQueue[string]
	calls int  // since the key was forgotten
	adds  bool // the next time
}

func (l *addInForget) When(string) time.Duration { l.calls++; return time.Second }
func (l *addInForget) Forget(key string) {
	l.calls = 0
	if l.adds {
		l.adds = false
		l.queue.AddLimited(key)
	}
}

// TestWorkQueue_AddLimitedInForget (promise 27): when the limiter is asked for a key
// while it is told to forget it, it is told again when that has been worked on.
func TestWorkQueue_AddLimitedInForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &addInForget{adds: true}
		q := newQueue(t, informer.QueueOptions[string]{Limiter: limiter})
		limiter.queue = q
		q.AddLimited("a")
		leaseNow(t, q).Done()
		leaseNow(t, q).Done()
		if limiter.calls != 0 || limiter.adds {
			t.Errorf("after two Done the limiter remembers %d calls, want none", limiter.calls)
		}
	})
}
