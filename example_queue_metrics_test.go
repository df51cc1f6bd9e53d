package informer_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"time"

	"github.com/seed-99a027e8/informer"
)

// queueMetrics are the seven metrics that controllers have of their queues, by the
// names that dashboards know.
type queueMetrics struct {
	waited, worked histogram // fed by hooks
	vars           *expvar.Map
}

// options returns options with hooks that feed the histograms.
func (m *queueMetrics) options() informer.QueueOptions[string] {
	return informer.QueueOptions[string]{
		OnLease: func(lease informer.Lease[string]) { m.waited.observe(lease.Waited()) },
		OnEnd:   func(_ informer.Lease[string], _ informer.End, held time.Duration) { m.worked.observe(held) },
	}
}

// publish makes the metrics of queue readable. Those that Stats has are computed
// when someone reads them. For a program: m.vars = expvar.NewMap("pods").
func (m *queueMetrics) publish(queue *informer.WorkQueue[string]) {
	gauge := func(name string, value func(informer.QueueStats) float64) {
		m.vars.Set(name, expvar.Func(func() any { return value(queue.Stats()) }))
	}
	gauge("workqueue_depth", func(s informer.QueueStats) float64 {
		depth := 0
		for _, n := range s.Ready { // by priority
			depth += n
		}
		return float64(depth)
	})
	gauge("workqueue_adds_total", func(s informer.QueueStats) float64 {
		return float64(s.Adds + s.Retries) // theirs counts both
	})
	gauge("workqueue_retries_total", func(s informer.QueueStats) float64 { return float64(s.Retries) })
	gauge("workqueue_unfinished_work_seconds", func(s informer.QueueStats) float64 {
		return s.Unfinished.Seconds()
	})
	gauge("workqueue_longest_running_processor_seconds", func(s informer.QueueStats) float64 {
		return s.LongestLease.Seconds()
	})
	m.vars.Set("workqueue_queue_duration_seconds", &m.waited)
	m.vars.Set("workqueue_work_duration_seconds", &m.worked)
}

// A histogram counts durations by the buckets into which they fall.
type histogram struct{ expvar.Map }

// observe counts d.
func (h *histogram) observe(d time.Duration) {
	for _, bucket := range []float64{0.001, 0.01, 0.1, 1, 10} {
		if d.Seconds() <= bucket {
			h.Add(fmt.Sprint("le_", bucket), 1)
		}
	}
	h.Add("count", 1)
	h.AddFloat("sum", d.Seconds())
}

// Stats and two hooks feed the metrics that client-go and controller-runtime have
// of their queues; here with expvar, of the standard library.
func ExampleWorkQueue_Stats() {
	metrics := queueMetrics{vars: new(expvar.Map)}
	queue, err := informer.NewWorkQueue(metrics.options())
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics.publish(queue)

	for _, key := range []string{"web", "db", "cache"} {
		queue.Add(key)
	}
	first, _ := queue.Get(context.Background())
	first.Retry(informer.RetryAfter(time.Hour, errors.New("busy")))
	second, _ := queue.Get(context.Background())
	second.Done()
	third, _ := queue.Get(context.Background()) // and is still at it
	queue.Add("mail")

	metrics.vars.Do(func(metric expvar.KeyValue) {
		switch value := metric.Value.(type) {
		case *histogram:
			fmt.Println(metric.Key, value.Get("count"), "times")
		case expvar.Func:
			fmt.Printf("%s %.0f\n", metric.Key, value())
		}
	})
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
