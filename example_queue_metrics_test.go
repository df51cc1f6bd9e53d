package informer_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-99a027e8/informer"
)

// queueMetrics are the seven metrics that controllers have of their queues, by the
// names that dashboards know.
type queueMetrics struct {
	waited, worked histogram
}

// options returns options whose hooks feed the histograms.
func (m *queueMetrics) options() informer.QueueOptions[string] {
	return informer.QueueOptions[string]{
		OnLease: func(lease informer.Lease[string]) { m.waited.observe(lease.Waited()) },
		OnEnd:   func(_ informer.Lease[string], end informer.Ending) { m.worked.observe(end.Held) },
	}
}

// read returns the metrics of queue. Most of them come from Stats, when someone
// asks.
func (m *queueMetrics) read(queue *informer.WorkQueue[string]) map[string]any {
	stats := queue.Stats()
	depth := 0
	for _, n := range stats.Ready { // by priority
		depth += n
	}
	return map[string]any{
		"workqueue_depth":                             float64(depth),
		"workqueue_adds_total":                        float64(stats.Adds + stats.Retries), // theirs counts both
		"workqueue_retries_total":                     float64(stats.Retries),
		"workqueue_queue_duration_seconds":            &m.waited,
		"workqueue_work_duration_seconds":             &m.worked,
		"workqueue_unfinished_work_seconds":           stats.Unfinished.Seconds(),
		"workqueue_longest_running_processor_seconds": stats.LongestLease.Seconds(),
	}
}

// A histogram counts durations by the buckets into which they fall.
type histogram struct{ expvar.Map }

// observe counts d.
func (h *histogram) observe(d time.Duration) {
	for _, bucket := range []float64{0.005, 0.05, 0.5, 5, 50} {
		if d.Seconds() <= bucket {
			h.Add(fmt.Sprint("le_", bucket), 1)
		}
	}
	h.Add("count", 1)
	h.AddFloat("sum", d.Seconds())
}

// MarshalJSON makes a histogram a part of what expvar shows.
func (h *histogram) MarshalJSON() ([]byte, error) { return []byte(h.String()), nil }

// Stats and two hooks feed the metrics that client-go and controller-runtime have
// of their queues; here with expvar, of the standard library.
func ExampleWorkQueue_Stats() {
	var metrics queueMetrics
	queue, err := informer.NewWorkQueue(metrics.options())
	if err != nil {
		fmt.Println(err)
		return
	}
	// A program publishes it: expvar.Publish("pods", variable).
	variable := expvar.Func(func() any { return metrics.read(queue) })

	for _, key := range []string{"web", "db", "cache"} {
		queue.Add(key)
	}
	first, _ := queue.Get(context.Background())
	first.Retry(informer.RetryAfter(time.Hour, errors.New("busy")))
	second, _ := queue.Get(context.Background())
	second.Done()
	third, _ := queue.Get(context.Background()) // and is still at it
	queue.Add("mail")

	values := variable.Value().(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if h, ok := values[name].(*histogram); ok {
			fmt.Println(name, h.Get("count"), "times")
		} else {
			fmt.Printf("%s %.0f\n", name, values[name])
		}
	}
	third.Done()
	// Output:
	// workqueue_adds_total 5
	// workqueue_depth 1
	// workqueue_longest_running_processor_seconds 0
	// workqueue_queue_duration_seconds 3 times
	// workqueue_retries_total 1
	// workqueue_unfinished_work_seconds 0
	// workqueue_work_duration_seconds 2 times
}
