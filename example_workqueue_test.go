package informer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-99a027e8/informer"
)

// Run calls a function for each key that is added, and again if it fails.
func ExampleWorkQueue_Run() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{
		OnError: func(key string, err error) { fmt.Println(key, "failed:", err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.Add("web")
	queue.Add("web") // is the same work

	ctx, stop := context.WithCancel(context.Background())
	attempts := 0
	err = queue.Run(ctx, 1, func(ctx context.Context, key string) error {
		attempts++
		if attempts == 1 {
			return errors.New("conflict")
		}
		fmt.Println(key, "is done after", attempts, "attempts")
		stop()
		return nil
	})
	fmt.Println("run:", err)
	// Output:
	// web failed: conflict
	// web is done after 2 attempts
	// run: <nil>
}

// A loop of one's own leases keys and finishes the leases.
func ExampleWorkQueue_Get() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[int]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.Add(7)

	lease, err := queue.Get(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.Add(7) // while 7 is leased: it waits for the lease to end
	fmt.Println("attempt", lease.Attempt, "at", lease.Key)
	fmt.Println(lease.Retry(errors.New("not yet")), lease.Done())

	lease, _ = queue.Get(context.Background())
	fmt.Println("attempt", lease.Attempt, "at", lease.Key)
	fmt.Println(lease.Done(), queue.Len())
	// Output:
	// attempt 1 at 7
	// true false
	// attempt 2 at 7
	// true 0
}

// A key is pending at most once: a delay can be made shorter, set or ended.
func ExampleWorkQueue_Reschedule() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.AddAfter("web", time.Hour)
	queue.AddAfter("web", time.Minute)   // earlier: counts
	queue.AddAfter("web", 5*time.Minute) // later: does not
	queue.Reschedule("web", time.Hour)   // counts, whatever was before
	fmt.Println(queue.Len(), queue.Cancel("web"), queue.Len())
	// Output:
	// 1 true 0
}

// Keys of a higher priority go first; the others rise as they wait.
func ExampleWorkQueue_AddWith() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"nightly check of web", "nightly check of db"} {
		queue.AddWith(key, informer.AddOptions{Priority: informer.PriorityLow})
	}
	queue.Add("new version of web")
	queue.AddWith("deletion of db", informer.AddOptions{Priority: informer.PriorityHigh})
	queue.Add("nightly check of db") // somebody waits for it

	for queue.Len() > 0 {
		lease, err := queue.Get(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.Key)
		lease.Done()
	}
	// Output:
	// deletion of db
	// new version of web
	// nightly check of db
	// nightly check of web
}

// Drain works off what is ready, and returns the rest.
func ExampleWorkQueue_Drain() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan error)
	go func() {
		ran <- queue.Run(context.Background(), 1, func(ctx context.Context, key string) error {
			fmt.Println("worked off:", key)
			return nil
		})
	}()
	queue.Add("ready")
	queue.AddAfter("delayed", time.Hour)

	rest, err := queue.Drain(context.Background())
	fmt.Println("rest:", rest, err)
	fmt.Println("add:", queue.Add("late"))
	fmt.Println("run:", <-ran)
	// Output:
	// worked off: ready
	// rest: [delayed] <nil>
	// add: false
	// run: <nil>
}

// An error can ask for a retry at a certain time.
func ExampleRetryAfter() {
	busy := errors.New("server is busy")
	err := informer.RetryAfter(30*time.Second, busy)
	fmt.Println(err)
	fmt.Println(errors.Is(err, busy))
	// Output:
	// server is busy (retry after 30s)
	// true
}

// An error can say that no retry would help: the key is parked.
func ExampleTerminal() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{
		OnError: func(key string, err error) { fmt.Println(key, "failed:", err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.Add("web")
	lease, _ := queue.Get(context.Background())
	lease.Retry(informer.Terminal(errors.New("no such image")))
	fmt.Println("pending:", queue.Len(), "parked:", queue.Stats().Parked)
	// Output:
	// web failed: no such image (not retried)
	// pending: 0 parked: 1
}

// Groups take turns: the key of one tenant does not wait for all of another's.
func ExampleQueueOptions_group() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[informer.Key]{
		Group: func(key informer.Key) string { return key.Namespace },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		queue.Add(informer.Key{Namespace: "noisy", Name: name})
	}
	queue.Add(informer.Key{Namespace: "quiet", Name: "x"})
	queue.Add(informer.Key{Namespace: "quiet", Name: "y"})

	for queue.Len() > 0 {
		lease, err := queue.Get(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.Key)
		lease.Done()
	}
	// Output:
	// noisy/a
	// quiet/x
	// noisy/b
	// quiet/y
	// noisy/c
	// noisy/d
}

// A key whose attempts all fail is parked. Items tells of it; Unpark, or a new
// add, releases it.
func ExampleWorkQueue_Unpark() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{
		MaxAttempts: 2,
		Limiter:     informer.ExponentialLimiter[string](time.Millisecond, time.Second),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.Add("web")
	for range 2 {
		lease, err := queue.Get(context.Background()) // waits for the retry
		if err != nil {
			fmt.Println(err)
			return
		}
		lease.Retry(errors.New("no such image"))
	}
	for _, item := range queue.Items() {
		fmt.Println(item.Key, item.State, item.Attempts, item.Err)
	}
	fmt.Println("released:", queue.Unpark("web"))
	for _, item := range queue.Items() {
		fmt.Println(item.Key, item.State, item.Attempts, item.Err)
	}
	// Output:
	// web Parked 2 no such image
	// released: true
	// web Ready 0 <nil>
}

// A key that changes often is worked on once it is quiet.
func ExampleQueueOptions_debounce() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{
		Debounce:       20 * time.Millisecond,
		DebounceAtMost: time.Minute, // if it is never quiet
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	for range 100 {
		queue.Add("web")
	}
	lease, err := queue.Get(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.Key, time.Since(start) >= 20*time.Millisecond)
	lease.Done()
	fmt.Println("left:", queue.Len())
	// Output:
	// web true
	// left: 0
}

// The function of Run finds out how often its key has failed, and can finish the
// lease as it likes.
func ExampleWorkQueue_LeaseOf() {
	queue, err := informer.NewWorkQueue(informer.QueueOptions[string]{
		Limiter: informer.ExponentialLimiter[string](time.Millisecond, time.Second),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.Add("web")

	ctx, stop := context.WithCancel(context.Background())
	err = queue.Run(ctx, 1, func(ctx context.Context, key string) error {
		err := errors.New("no such image")
		if lease, ok := queue.LeaseOf(ctx); ok && lease.Attempt == 3 {
			fmt.Println("given up at attempt", lease.Attempt)
			lease.Park(err)
			stop()
		}
		return err // counts only if the lease is not finished
	})
	fmt.Println("run:", err, "parked:", queue.Stats().Parked)
	// Output:
	// given up at attempt 3
	// run: <nil> parked: 1
}
