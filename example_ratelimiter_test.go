package informer_test

import (
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
