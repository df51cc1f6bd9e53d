package informer_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

func TestNewReflectorErrors(t *testing.T) {
	_, err := informer.NewReflector[reflObj](nil, nil, informer.Options{PageSize: -1, Name: "pods"})
	for _, want := range []string{"is nil", "apply is nil", "PageSize is -1", "pods"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewReflector(nil, nil, wrong) = %v, want a word of %q", err, want)
		}
	}
}

// Promise 19: Run works once, returns nil after a cancel, and leaves nothing.
// Promise 20: the status tells what it does meanwhile.
func TestReflectorRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := newReflScript(t, []string{"stream +a@5 ]10 30s *10 hang"})
		r, err := informer.NewReflector(script, func(informer.Event[reflObj]) error { return nil }, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Status(); s.State != informer.StateIdle {
			t.Errorf("Status() before Run is %v, want Idle", s.State)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }() // the receive below waits for it
		synctest.Wait()
		if s := r.Status(); s.State != informer.StateWatching || s.Version != "10" || s.LastEvent != time.Now() || s.Watches != 1 {
			t.Errorf("Status() = %+v, want watching at 10, heard now, one watch", s)
		}
		<-time.After(30 * time.Second)
		synctest.Wait()
		if s := r.Status(); s.LastEvent != time.Now() {
			t.Errorf("LastEvent is %v, want %v, the time of the bookmark", s.LastEvent, time.Now())
		}
		soon, stop := contextFor(t, time.Minute)
		defer stop()
		if err := r.Run(soon); !errors.Is(err, informer.ErrRunning) {
			t.Errorf("a concurrent Run() = %v, want %v", err, informer.ErrRunning)
		}
		start := time.Now()
		cancel()
		if err := <-done; err != nil || time.Since(start) > 0 {
			t.Errorf("Run() = %v, %v after the cancel; want nil at once", err, time.Since(start))
		}
		if err := r.Run(t.Context()); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("Run() after Run = %v, want %v", err, informer.ErrStopped)
		}
	})
}

// Promise 19: a cancel is heard in a pause as well.
func TestReflectorCancelInPause(t *testing.T) {
	run := runReflector(t, []string{"stream 429/3600", "list hang"}, informer.Options{}, time.Minute)
	if run.err != nil || len(run.requests) != 1 {
		t.Errorf("Run() = %v after %v, want nil after one request", run.err, run.requests)
	}
}

// Promises 19 and 20: an error of apply, or of the hook for failures, ends Run,
// wherever it comes; the context's own is none.
func TestReflectorApplyError(t *testing.T) {
	full := errors.New("disk full")
	tests := []struct {
		script string
		at     []string
		sent   int
	}{
		{"stream +a@5 ]10 +b@11 *12 !c@13 hang", []string{"[", "~a@5", "]10", "+b@11", "*12", "!c@13"}, 1},
		{"list +a@5 ]10", []string{"[", "+a@5", "]10"}, 2},
	}
	for _, tt := range tests {
		for _, at := range tt.at {
			synctest.Test(t, func(t *testing.T) {
				script := newReflScript(t, []string{tt.script})
				r, err := informer.NewReflector(script, func(ev informer.Event[reflObj]) error {
					if reflText(ev) == at {
						return full
					}
					return nil
				}, informer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := contextFor(t, time.Minute)
				defer cancel()
				if err := r.Run(ctx); !errors.Is(err, full) {
					t.Errorf("%s: Run() = %v when apply failed at %s, want %v", tt.script, err, at, full)
				}
				if s := r.Status(); !errors.Is(s.Err, full) || len(script.requests) != tt.sent {
					t.Errorf("%s: Status().Err = %v after %v, want %v", tt.script, s.Err, script.requests, full)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := informer.NewReflector(newReflScript(t, []string{"stream +a@5 ]10 hang"}), func(informer.Event[reflObj]) error {
			cancel()
			return ctx.Err()
		}, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
	})
}

// Promise 8: the time that apply takes is no silence of the server's.
func TestReflectorSlowApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := newReflScript(t, []string{"stream +a@5 +b@6 ]10 hang"})
		ctx, cancel := contextFor(t, 4*time.Minute)
		defer cancel()
		r, err := informer.NewReflector(script, func(informer.Event[reflObj]) error {
			<-time.After(40 * time.Second)
			return nil
		}, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(ctx); err != nil || len(script.requests) != 1 {
			t.Errorf("Run() = %v after %v, want nil after one request", err, script.requests)
		}
	})
}

// Promise 20: a plain list that says nothing for ever is given up, too.
func TestReflectorSilentList(t *testing.T) {
	run := runReflector(t, []string{"stream invalid", "list +a@5 4m +b@6 hang", "list 4m ]10"}, informer.Options{}, 15*time.Minute)
	wantEqual(t, "applied", run.applied, "[ +a@5 +b@6 [ ]10", " ")
	wantEqual(t, "failures", run.failures, "list 1", ",")
}

// Promise 9: the pause after failures grows to its limit, is random, and starts
// over only when a watch has been open for 30 s.
func TestReflectorBackoff(t *testing.T) {
	run := runReflector(t, []string{"list ]10", "watch 500"}, informer.Options{}, time.Hour)
	if n := len(run.failures); n < 150 || n > 350 {
		t.Errorf("there were %d failures in an hour, want about 230", n)
	}
	limit, distinct := 800*time.Millisecond, map[time.Duration]bool{}
	for i, f := range run.failed {
		limit = min(2*limit, 30*time.Second)
		if f.Next < 800*time.Millisecond || f.Next > limit || f.Attempt != i+1 {
			t.Errorf("failure %d is attempt %d with a pause of %v, want at most %v", i+1, f.Attempt, f.Next, limit)
		}
		if i+3 < len(run.requests) && run.requests[i+3].at-run.requests[i+2].at != f.Next {
			t.Errorf("request %v did not come after a pause of %v", run.requests[i+3], f.Next)
		}
		distinct[f.Next] = true
	}
	if len(distinct) != len(run.failed) {
		t.Errorf("%d pauses have %d values, want them random", len(run.failed), len(distinct))
	}

	run = runReflector(t, []string{"list ]10", "watch 500", "watch 29s 500", "watch *11 30s 500", "watch 30s 500", "watch 1m 500", "watch 500", "watch hang"},
		informer.Options{}, 5*time.Minute)
	wantEqual(t, "failures", run.failures, "watch 1,watch 2,watch 1,watch 2,watch 1,watch 2", ",")
	if since := run.status.FailingSince; !since.IsZero() {
		t.Errorf("it is failing since %v, want not", since)
	}

	run = runReflector(t, []string{"list ]10", "watch 3s 500"}, informer.Options{WatchTimeout: time.Second}, time.Minute)
	wantEqual(t, "failures", run.failures, "", ",") // each is abandoned before it fails
}

// Promise 20: the status tells since when it has been failing.
func TestReflectorFailingSince(t *testing.T) {
	run := runReflector(t, []string{"list ]10", "watch 500"}, informer.Options{}, 4*time.Minute)
	if since := run.status.FailingSince.Sub(run.start); len(run.failed) < 5 || since != 0 {
		t.Errorf("after %d failures it is failing since %v after the start, want the first", len(run.failed), since)
	}
}

// Promise 9: a delay that the server asks for is spread, as it asks all clients
// for the same, and does not make a pause shorter than the least one.
func TestReflectorRetryAfterIsSpread(t *testing.T) {
	run := runReflector(t, []string{"list ]10", "watch 429/20"}, informer.Options{}, 10*time.Minute)
	distinct := map[time.Duration]bool{}
	for _, f := range run.failed {
		distinct[f.Next] = true
	}
	if len(distinct) < 10 || len(distinct) != len(run.failed) {
		t.Errorf("%d pauses have %d values, want them random", len(run.failed), len(distinct))
	}
	run = runReflector(t, []string{"list ]10", "watch 429/1"}, informer.Options{MinBackoff: 5 * time.Second}, 10*time.Minute)
	for _, f := range run.failed {
		if f.Next < 5*time.Second {
			t.Errorf("the pause is %v, want at least 5s", f.Next)
		}
	}
}

// Promise 9: watches that began together do not all end together.
func TestReflectorWatchTimesDiffer(t *testing.T) {
	run := runReflector(t, []string{"list ]10", "watch *11 hang"}, informer.Options{}, 5*time.Hour)
	distinct := map[int64]bool{}
	for _, q := range run.requests {
		if strings.HasPrefix(q.text, "watch") {
			distinct[int64(q.timeout()/time.Second)] = true
		}
	}
	if len(distinct) < 10 {
		t.Errorf("%d requests asked for %d different times", len(run.requests), len(distinct))
	}
}

// Promise 9: the delay that the server asks for is kept.
func TestReflectorRetryAfter(t *testing.T) {
	run := runReflector(t, []string{"stream 429/20", "list 429/100", "stream ]10 429/1", "watch hang"}, informer.Options{}, 4*time.Minute)
	wantEqual(t, "requests", run.texts(), "stream,list 0,stream,watch 10", ",")
	for i, bounds := range [][2]time.Duration{{20 * time.Second, 22 * time.Second}, {100 * time.Second, 102 * time.Second}, {time.Second, 7 * time.Second}} {
		if next := run.failed[i].Next; next < bounds[0] || next > bounds[1] {
			t.Errorf("the pause is %v, want it in %v", next, bounds)
		}
	}
}

// Promise 10: selectors and page sizes are in every request that they belong
// in.
func TestReflectorOptions(t *testing.T) {
	opts := informer.Options{LabelSelector: "app=web", FieldSelector: "spec.nodeName=a"}
	run := runReflector(t, []string{"list ]10/x", "list ]10", "watch 5m", "probe ]10"}, opts, time.Hour)
	for _, q := range run.requests {
		if q.opts.LabelSelector != "app=web" || q.opts.FieldSelector != "spec.nodeName=a" {
			t.Errorf("%v has selectors %q and %q", q, q.opts.LabelSelector, q.opts.FieldSelector)
		}
		watch := q.text == "stream" || strings.HasPrefix(q.text, "watch")
		if q.opts.AllowWatchBookmarks != watch || (q.opts.TimeoutSeconds != nil) != watch {
			t.Errorf("%v has bookmarks %v and timeout %v", q, q.opts.AllowWatchBookmarks, q.opts.TimeoutSeconds)
		}
		if strings.HasPrefix(q.text, "list") && q.opts.Limit != 500 {
			t.Errorf("%v has limit %d, want 500", q, q.opts.Limit)
		}
	}
	if stream := run.requests[0].opts; stream.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		t.Errorf("the stream has match %q", stream.ResourceVersionMatch)
	}
}

// Promise 21: one line a change of state, ten an hour, and no secrets.
func TestReflectorLogs(t *testing.T) {
	var out bytes.Buffer
	opts := informer.Options{Name: "pods", Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))}
	runReflector(t, []string{"list refused", "list +a@5 ]10", "watch refused", "watch refused", "watch *11 hang"}, opts, 4*time.Minute)
	want := `level=INFO msg="informer state" name=pods state=Listing version=""
level=WARN msg="informer state" name=pods state=Failing version="" err="connection refused"
level=INFO msg="informer state" name=pods state=Watching version=10
level=WARN msg="informer state" name=pods state=Failing version=10 err="connection refused"
level=INFO msg="informer state" name=pods state=Watching version=11
level=INFO msg="informer state" name=pods state=Stopped version=11
`
	if out.String() != want {
		t.Errorf("logged was\n%swant\n%s", out.String(), want)
	}

	out.Reset()
	runReflector(t, []string{"stream long", "list hang"}, opts, time.Minute)
	if n := out.Len(); n > 600 {
		t.Errorf("%d bytes were logged of a long error", n)
	}

	out.Reset()
	run := runReflector(t, []string{"list ]10", "watch *11 500"}, opts, 3*time.Hour+time.Minute)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 24 || len(lines) > 34 {
		t.Errorf("%d lines in three hours, want 8 an hour or a few more:\n%s", len(lines), out.String())
	}
	if n := strings.Count(out.String(), "suppressed="); n < 3 {
		t.Errorf("%d lines tell of others, want one at least an hour:\n%s", n, out.String())
	}
	changes := len(lines)
	for _, line := range lines {
		_, count, _ := strings.Cut(line, "suppressed=")
		n, _ := strconv.Atoi(count)
		changes += n
	}
	if changes > 2*len(run.requests) || changes < len(run.requests) {
		t.Errorf("the log tells of %d changes of state in %d requests", changes, len(run.requests))
	}
}

// loopSource lists nothing, and then says the same for ever.
type loopSource struct{ reflScript }

func (loopSource) Watch(ctx context.Context, _ metav1.ListOptions) iter.Seq2[informer.Event[reflObj], error] {
	return func(yield func(informer.Event[reflObj], error) bool) {
		more := yield(informer.Event[reflObj]{Type: informer.EventEnd, Version: "10"}, nil)
		ev := informer.EventOf(informer.EventModified, reflObj{"a", "11"})
		for more && ctx.Err() == nil {
			more = yield(ev, nil)
		}
	}
}

// BenchmarkReflector_Watch measures what one watch event costs on its way from
// the source to apply.
func BenchmarkReflector_Watch(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	left := b.N
	r, err := informer.NewReflector(&loopSource{}, func(informer.Event[reflObj]) error {
		if left--; left == 0 {
			cancel()
		}
		return nil
	}, informer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	if err := r.Run(ctx); err != nil {
		b.Fatal(err)
	}
}
