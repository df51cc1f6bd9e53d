package informer_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// priorityOf reads a priority: "low" to "high", or a number.
func priorityOf(t *testing.T, text string) informer.Priority {
	switch text {
	case "low":
		return informer.PriorityLow
	case "":
		return informer.PriorityNormal
	case "high":
		return informer.PriorityHigh
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return informer.Priority(n)
}

// TestWorkQueue_Priorities runs scripts (promise 26). A step is "key=priority",
// an add; "key+priority", an add after 10 seconds; "key?priority", an add by the
// limiter, which says 20 seconds; a duration that passes; "get", a lease that is
// held, "done" and "retry", its end; or "drain". What is left is leased at the end,
// each key with its priority.
func TestWorkQueue_Priorities(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"highest first", "a=low b= c=high d=1 e=-1", "c/2 d/1 b/0 e/-1 a/-2"},
		{"in order within one", "a=low b=high c=low d=high e=", "b/2 d/2 e/0 a/-2 c/-2"},
		{"beyond is clamped", "a=-128 b=low c=127 d=high", "c/2 d/2 a/-2 b/-2"},
		{"the higher one counts", "a=low b= a=high", "a/2 b/0"},
		{"a lower one does not", "a=high b=high a=low", "a/2 b/2"},
		{"the same one keeps its place", "a= b= a=", "a/0 b/0"},
		{"a raised key stands at the end", "a=1 b= a= c=1 b=1", "a/1 c/1 b/1"},
		{"raised first, middle, last", "a= b= c= d= e= a=1 c=1 e=1", "a/1 c/1 e/1 b/0 d/0"},
		{"delayed: the higher one counts", "a+low b= a+high a= 10s", "a/2 b/0"},
		{"delayed and due", "a+high b= 10s", "a/2 b/0"},
		{"by the limiter", "a?high b= c?low c?1 20s", "a/2 c/1 b/0"},
		{"while leased", "a=low get a= a=1 b= done", "a/1 b/0"},
		{"a lease ends: forgotten", "a=high get done a= b=1", "b/1 a/0"},
		{"retried with its own", "a=high get b=1 retry 20s", "a/2 b/1"},
		{"retried with what was added", "a=low get a=1 b= retry 20s", "a/1 b/0"},
		{"retried with its own, as it is higher", "a=1 get a=low b= retry 20s", "a/1 b/0"},
		{"draining", "a=low b=high c= drain", "b/2 c/0 a/-2"},

		{"nothing ages at once", "a=low 59s b=-1", "b/-1 a/-2"},
		{"one step", "a=low 60.01s b=-1", "a/-2 b/-1"},
		{"not two", "a=low 60s b=", "b/0 a/-2"},
		{"two steps", "a=low 120.01s b= c=1", "c/1 a/-2 b/0"},
		{"one step, to the nanosecond", "a=low 60000567296ns b=-1", "a/-2 b/-1"}, // 57,221 pieces of the clock
		{"to the top", "a=low b=-1 240.01s c=high", "b/-1 a/-2 c/2"},
		{"behind those that were there before", "a=low 30s b=-1 40s c=-1", "b/-1 a/-2 c/-1"},
		{"far beyond the top", "a= 3h b=low 10m c=high", "a/0 b/-2 c/2"},
		{"raised, but it had aged that far", "a=low 240.01s b=1 a=1 b=high", "a/1 b/2"},
		{"raised, and it had not", "a=low 1m b= c=1 a=1", "c/1 a/1 b/0"},
		{"raised twice, aged in between", "a=low b=low 120.01s a=1 c=1 60.01s a=high d=high", "a/2 c/1 d/2 b/-2"},
		{"a raised key ages from there", "a=low b=low 60.01s a= c=1 60.01s d=1", "c/1 a/0 d/1 b/-2"},
		{"a delayed key does not age", "a+low 10s b=-1", "b/-1 a/-2"},
		{"a leased key does not age", "a=low get a=low 5m b= done", "b/0 a/-2"},
		{"a retried key begins anew", "a=low 5m get retry 20s b=-1", "b/-1 a/-2"},
		{"the clock stops and goes on", "a=low get done 1h b=low 59s c=-1", "c/-1 b/-2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, informer.QueueOptions[string]{Limiter: fixedLimiter[string](20 * time.Second)})
				script := priorityScript{queue: q}
				for step := range strings.FieldsSeq(test.script) {
					script.do(t, step)
					if err := informer.ValidateQueue(q); err != nil {
						t.Fatalf("%s: %v", step, err)
					}
				}
				var got []string
				for q.Len() > 0 {
					lease := leaseNow(t, q)
					got = append(got, fmt.Sprintf("%s/%d", lease.Key, lease.Priority))
					lease.Done()
				}
				if got := strings.Join(got, " "); got != test.want {
					t.Errorf("%s: leased %s, want %s", test.script, got, test.want)
				}
			})
		})
	}
}

// priorityScript is a queue, and the last lease.
type priorityScript struct {
	queue *informer.WorkQueue[string]
	lease informer.Lease[string]
}

// do makes one step.
func (s *priorityScript) do(t *testing.T, step string) {
	if d, err := time.ParseDuration(step); err == nil {
		<-time.After(d)
		synctest.Wait()
		return
	}
	switch step {
	case "drain":
		go func() { _, _ = s.queue.Drain(t.Context()) }()
		synctest.Wait()
		return
	case "get":
		s.lease = leaseNow(t, s.queue)
		return
	case "done":
		s.lease.Done()
		return
	case "retry":
		s.lease.Retry(errSource)
		return
	}
	i := strings.IndexAny(step, "=+?")
	options := informer.AddOptions{Priority: priorityOf(t, step[i+1:]), Limited: step[i] == '?'}
	if step[i] == '+' {
		options.After = 10 * time.Second
	}
	if !s.queue.AddWith(step[:i], options) {
		t.Errorf("AddWith(%s) = false", step)
	}
}

// TestWorkQueue_Case27Starvation (promise 26; cr#3496, k8s#25744, ark#2698): a
// worker gets keys of the highest priority at twice its
// speed, without end, and each of three low ones is served all the same: within
// four ageings and the time that those keys take which were ahead by then.
func TestWorkQueue_Case27Starvation(t *testing.T) {
	const service, ageing = 100 * time.Millisecond, 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[int]{Ageing: ageing})
		began, served, ahead := time.Now(), map[int]time.Duration{}, 0
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() {
			ran <- q.Run(ctx, 1, func(ctx context.Context, key int) error {
				if key < 0 {
					served[key] = time.Since(began)
				}
				<-time.After(service)
				return nil
			})
		}()
		low := informer.AddOptions{Priority: informer.PriorityLow}
		for key := range 3000 {
			if key == 100 {
				q.AddWith(-1, low)
				q.AddWith(-2, low)
				q.AddWith(-3, low)
				began = time.Now()
			}
			if time.Since(began) == 4*ageing {
				ahead = q.Len()
			}
			q.AddWith(key, informer.AddOptions{Priority: informer.PriorityHigh})
			<-time.After(service / 2)
		}
		stop()
		if err := <-ran; err != nil {
			t.Fatal(err)
		}
		for key := -3; key < 0; key++ {
			at, ok := served[key]
			if limit := 4*ageing + time.Duration(ahead+2)*service; !ok || at > limit {
				t.Errorf("%d was served after %v (%v), want at most %v", key, at, ok, limit)
			}
			if at < 3*ageing {
				t.Errorf("%d was served after %v, before keys of a higher priority", key, at)
			}
		}
		t.Logf("served after %v, with %d keys ahead at the top", served, ahead)
	})
}

// timedKey is what happened to a key.
type timedKey struct {
	priority    informer.Priority
	added, from time.Time // and when a worker began
}

// top returns when the key has the highest priority.
func (k *timedKey) top(ageing time.Duration) time.Time {
	return k.added.Add(time.Duration(informer.PriorityHigh-k.priority) * ageing)
}

// TestWorkQueue_AgeingBound (promise 26): whatever is added, when and how, with
// w workers who take s for a key, each key is begun within
//
//	(the priorities above its own) * ageing + n * s / w
//
// where n keys were ahead of it, or being worked on, when it had the highest
// priority, or came within 2 ms after that, as the queue's clock may be so late. That is less than what the documentation says. With -v it tells how
// near keys came.
func TestWorkQueue_AgeingBound(t *testing.T) {
	nearest, aged, keys := 0.0, 0, 0
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			ageing := time.Duration(rapid.SampledFrom([]int{8, 40, 200, 1000}).Draw(rt, "ageing")) * time.Millisecond
			service := time.Duration(rapid.IntRange(1, 60).Draw(rt, "service")) * time.Millisecond
			workers := rapid.IntRange(1, 4).Draw(rt, "workers")
			all := timeKeys(t, rt, ageing, service, workers)
			const step, late = 1 << 20, 1<<20 + time.Millisecond // of the clock: its steps, and how late it may be
			ageing = (ageing + step - 1) / step * step
			for i, k := range all {
				top, n := k.top(ageing), 0
				for j, o := range all {
					before := !o.added.After(top.Add(late)) && o.top(ageing).Before(top.Add(late))
					if i != j && (before || !o.from.After(top)) && o.from.Add(service).After(top) {
						n++
					}
				}
				limit := top.Sub(k.added) + time.Duration(n)*service/time.Duration(workers)
				took := k.from.Sub(k.added)
				if took > limit {
					rt.Fatalf("key %d of priority %d was begun after %v, want at most %v (n = %d)", i, k.priority, took, limit, n)
				}
				keys++
				if k.from.After(top) {
					aged++
					nearest = max(nearest, float64(took)/float64(limit))
				}
			}
		})
	})
	if aged == 0 {
		t.Error("no key got to the highest priority")
	}
	t.Logf("%d keys, %d of them begun when they had the highest priority; the slowest took %.3f of the bound", keys, aged, nearest)
}

// timeKeys adds keys at random, and returns when each of them was begun.
func timeKeys(t *testing.T, rt *rapid.T, ageing, service time.Duration, workers int) []*timedKey {
	var mu sync.Mutex
	var all []*timedKey
	q := newQueue(t, informer.QueueOptions[int]{Ageing: ageing})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ran := make(chan error, 1)
	go func() {
		ran <- q.Run(ctx, workers, func(ctx context.Context, key int) error {
			mu.Lock()
			all[key].from = time.Now()
			mu.Unlock()
			<-time.After(service)
			return nil
		})
	}()
	for range rapid.IntRange(1, 60).Draw(rt, "bursts") {
		p := informer.Priority(rapid.IntRange(-2, 2).Draw(rt, "priority"))
		for range rapid.IntRange(1, 5).Draw(rt, "keys") {
			mu.Lock()
			key := len(all)
			all = append(all, &timedKey{priority: p, added: time.Now()})
			mu.Unlock()
			q.AddWith(key, informer.AddOptions{Priority: p})
		}
		// At a time when the clock of the queue does not tick, most of the time.
		<-time.After(time.Duration(rapid.IntRange(0, 2*int(service)/workers*3).Draw(rt, "pause")))
	}
	if rest, err := q.Drain(ctx); len(rest) > 0 || err != nil {
		rt.Fatalf("Drain = %v, %v", rest, err)
	}
	if err := <-ran; err != nil {
		rt.Fatal(err)
	}
	return all
}

// TestWorkQueue_ClockStops (promises 25 and 26): in an idle queue no timer runs,
// also if keys wait for a worker who does not come, and keys age all the same.
func TestWorkQueue_ClockStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, informer.QueueOptions[string]{Ageing: 8 * time.Second})
		check := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := informer.QueueClockRuns(q); got != want {
				t.Errorf("%s: the clock runs = %v, want %v", when, got, want)
			}
			if err := informer.ValidateQueue(q); err != nil { // asks the clock
				t.Errorf("%s: %v", when, err)
			}
			<-time.After(2 * time.Millisecond)
		}
		check("new", false)
		q.AddAfter("later", time.Hour)
		check("a key is delayed", true)
		check("a key is delayed, for long", false)
		q.Add("a")
		check("a key is ready", true)
		check("a key waits", false)
		leaseNow(t, q).Done()
		check("a lease ends", true)
		check("empty", false)
		q.Add("b")
		<-time.After(33 * time.Second)
		q.AddWith("c", informer.AddOptions{Priority: informer.PriorityHigh})
		if lease := leaseNow(t, q); lease.Key != "b" {
			t.Errorf("leased %s, want b, which has waited for long", lease.Key)
		}
	})
}

// TestLease_PriorityIsClamped: who changes the priority of a lease cannot break
// the queue.
func TestLease_PriorityIsClamped(t *testing.T) {
	for _, test := range []struct{ give, want informer.Priority }{{-100, -2}, {100, 2}, {1, 1}} {
		q := newQueue(t, informer.QueueOptions[string]{Limiter: fixedLimiter[string](0)})
		q.Add("a")
		lease := leaseNow(t, q)
		lease.Priority = test.give
		lease.Retry(errSource)
		if got := leaseNow(t, q).Priority; got != test.want {
			t.Errorf("retried with priority %d: got %d, want %d", test.give, got, test.want)
		}
	}
}
