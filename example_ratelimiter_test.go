package informer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-99a027e8/informer"
)

// Limiters are small, and are put together.
func ExampleMaxOf() {
	limiter := informer.MaxOf(
		informer.MaxWait(informer.ExponentialLimiter[string](time.Second, time.Hour), 3*time.Second),
		informer.BucketLimiter[string](100, 10))

	for range 4 {
		fmt.Println(limiter.When("web"))
	}
	limiter.Forget("web")
	fmt.Println(limiter.When("web"))
	// Output:
	// 1s
	// 2s
	// 3s
	// 3s
	// 1s
}

// A few quick retries, then slow ones.
func ExampleFastSlowLimiter() {
	limiter := informer.FastSlowLimiter[string](10*time.Millisecond, time.Minute, 2)
	fmt.Println(limiter.When("web"), limiter.When("web"), limiter.When("web"))
	fmt.Println(limiter.When("db"))
	// Output:
	// 10ms 10ms 1m0s
	// 10ms
}

// Jitter keeps keys that failed together from being retried together.
func ExampleJitter() {
	limiter := informer.Jitter(informer.ExponentialLimiter[string](time.Second, time.Minute), 0.2)
	delay := limiter.When("web")
	fmt.Println(delay >= time.Second, delay <= 1200*time.Millisecond)
	// Output:
	// true true
}

// The default limiter of a queue is the larger of a delay of the key's own and
// one for all keys together.
func ExampleDefaultLimiter() {
	limiter := informer.DefaultLimiter[string]()
	fmt.Println(limiter.When("web"), limiter.When("web"), limiter.When("web"))
	// Output:
	// 5ms 10ms 20ms
}

// Full jitter spreads what failed together over the whole delay. A bucket stays
// outside: what it says is the least.
func ExampleFullJitter() {
	limiter := informer.MaxOf(
		informer.FullJitter(informer.ExponentialLimiter[string](time.Second, time.Minute)),
		informer.BucketLimiter[string](10, 100))
	delay := limiter.When("web")
	fmt.Println(delay >= 0, delay <= time.Second)
	// Output:
	// true true
}

// Each tenant of a queue has tokens of its own: a noisy one waits for its own,
// and holds nobody back.
func ExampleGroupBucketLimiter() {
	tenant := func(key informer.Key) string { return key.Namespace }
	queue, err := informer.NewWorkQueue(informer.QueueOptions[informer.Key]{
		Limiter: informer.MaxOf(
			informer.ExponentialLimiter[informer.Key](time.Millisecond, time.Minute),
			informer.GroupBucketLimiter(tenant, 1, 2)), // one a second, two at once
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		queue.AddLimited(informer.Key{Namespace: "noisy", Name: fmt.Sprint(i)})
	}
	queue.AddLimited(informer.Key{Namespace: "quiet", Name: "0"})

	for range 4 {
		lease, err := queue.Get(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.Key)
		lease.Done()
	}
	// Output:
	// noisy/0
	// noisy/1
	// quiet/0
	// noisy/2
}
