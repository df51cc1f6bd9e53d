package bench

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/seed-99a027e8/informer"
)

// The four programs of docs/workqueue.md: one with each of the field's queues, and
// the same with ours.

func beforeWorkqueue(ctx context.Context, keys []string, reconcile func(context.Context, string) error) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "pods"})
	for _, key := range keys {
		queue.Add(key)
	}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				err := reconcile(ctx, key)
				switch {
				case err == nil:
					queue.Forget(key)
				case queue.NumRequeues(key) < 4:
					queue.AddRateLimited(key)
				default:
					queue.Forget(key)
					log.Printf("%s is given up: %v", key, err)
				}
				queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	queue.ShutDownWithDrain()
	workers.Wait()
}

func afterWorkqueue(ctx context.Context, keys []string, reconcile func(context.Context, string) error) error {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{
		Name:        "pods",
		MaxAttempts: 5, // then a key is parked: queue.Items() has it, with its error
		OnError:     func(key string, err error) { log.Printf("%s: %v", key, err) },
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		queue.Add(key)
	}
	ran := make(chan error, 1)
	go func() { ran <- queue.Run(context.WithoutCancel(ctx), 2, reconcile) }()
	<-ctx.Done()
	left, err := queue.Drain(context.WithoutCancel(ctx))
	log.Printf("delayed or parked, and now yours: %v", left)
	return errors.Join(err, <-ran)
}

func beforePriorityQueue(
	ctx context.Context, all, changed []string, reconcile func(context.Context, string) (time.Duration, error),
) {
	queue := priorityqueue.New[string]("pods")
	low := -100
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, all...)
	queue.AddWithOpts(priorityqueue.AddOpts{}, changed...)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for {
				key, priority, shutdown := queue.GetWithPriority()
				if shutdown {
					return
				}
				again, err := reconcile(ctx, key)
				switch {
				case err != nil:
					queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, key)
				case again > 0:
					queue.Forget(key)
					queue.AddWithOpts(priorityqueue.AddOpts{After: again, Priority: &priority}, key)
				default:
					queue.Forget(key)
				}
				queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	workers.Wait()
}

func afterPriorityQueue(
	ctx context.Context, all, changed []string, reconcile func(context.Context, string) (time.Duration, error),
) error {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{Name: "pods"})
	if err != nil {
		return err
	}
	for _, key := range all {
		queue.AddWith(key, informer.AddOptions{Priority: informer.PriorityLow})
	}
	for _, key := range changed {
		queue.Add(key)
	}
	return queue.Run(ctx, 2, func(ctx context.Context, key string) error {
		again, err := reconcile(ctx, key)
		if err == nil && again > 0 {
			return informer.RetryAfter(again, nil)
		}
		return err
	})
}

// A calls counts the calls for each key.
type calls struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (c *calls) count(key string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
	return c.n[key]
}

// Before and after call the same function equally often.
func TestMigrationAgrees(t *testing.T) {
	keys := []string{"good", "bad", "flaky", "later"}
	want := map[string]int{"good": 1, "bad": 5, "flaky": 3, "later": 1}
	flaky := func(key string, n int) error {
		if key == "bad" && n <= 5 || key == "flaky" && n < 3 {
			return fmt.Errorf("attempt %d", n)
		}
		return nil
	}
	run := func(name string, want map[string]int, program func(context.Context, *calls) error) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				var got calls
				if err := program(ctx, &got); err != nil {
					t.Errorf("the program returned %v", err)
				}
				if !maps.Equal(got.n, want) {
					t.Errorf("it made these calls: %v, want %v", got.n, want)
				}
			})
		})
	}
	failing := func(c *calls) func(context.Context, string) error {
		return func(_ context.Context, key string) error { return flaky(key, c.count(key)) }
	}
	run("workqueue", want, func(ctx context.Context, c *calls) error {
		beforeWorkqueue(ctx, keys, failing(c))
		<-time.After(10 * time.Second) // a goroutine of the queue looks then whether it has been shut down
		return nil
	})
	run("WorkQueue", want, func(ctx context.Context, c *calls) error {
		return afterWorkqueue(ctx, keys, failing(c))
	})

	want = map[string]int{"good": 1, "bad": 6, "flaky": 3, "later": 2}
	asking := func(c *calls) func(context.Context, string) (time.Duration, error) {
		return func(_ context.Context, key string) (time.Duration, error) {
			n := c.count(key)
			if key == "later" {
				return time.Minute, nil
			}
			return 0, flaky(key, n)
		}
	}
	run("priorityqueue", want, func(ctx context.Context, c *calls) error {
		beforePriorityQueue(ctx, keys, keys[:2], asking(c))
		return nil
	})
	run("WorkQueue with priorities", want, func(ctx context.Context, c *calls) error {
		return afterPriorityQueue(ctx, keys, keys[:2], asking(c))
	})
}

// The programs that docs/workqueue.md shows are those above, letter by letter.
func TestMigrationPrograms(t *testing.T) {
	page, err := os.ReadFile("../docs/workqueue.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("migrate_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "\n```go\n")[1:]
	if len(blocks) != 4 {
		t.Errorf("the page shows %d programs, want 4", len(blocks))
	}
	for _, block := range blocks {
		program, _, _ := strings.Cut(block, "```\n")
		if !strings.Contains(string(source), "\n"+program) {
			t.Errorf("the page shows a program that is not here:\n%s", program)
		}
	}
}
