package informer_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// logBook keeps what is logged, and when.
type logBook struct {
	slog.Handler

	mu    sync.Mutex // guards lines
	lines []logLine
}

type logLine struct {
	at         time.Time
	text       string // message and state or operation
	suppressed int
}

func newLogBook() *logBook { return &logBook{Handler: slog.DiscardHandler} }

func (b *logBook) Enabled(context.Context, slog.Level) bool { return true }

func (b *logBook) Handle(_ context.Context, r slog.Record) error {
	line := logLine{at: time.Now(), text: strings.TrimPrefix(r.Message, "informer ")}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "state", "op":
			line.text += " " + a.Value.String()
		case "suppressed":
			line.suppressed = int(a.Value.Int64())
		}
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
	return nil
}

// check fails the test if there were more than ten lines in any hour, and
// returns how many lines there were and would have been.
func (b *logBook) check(t *testing.T) (written, meant int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, line := range b.lines {
		meant += 1 + line.suppressed
		if line.text == "log" {
			meant-- // a sum stands for others only
		}
		if i >= 10 && line.at.Sub(b.lines[i-10].at) < time.Hour {
			t.Errorf("more than ten lines within an hour, until %v", line.at)
		}
	}
	return len(b.lines), meant
}

// text returns the lines of a kind, with their times since the first line.
func (b *logBook) text(kind string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, line := range b.lines {
		if strings.HasPrefix(line.text, kind) {
			out = append(out, fmt.Sprintf("%v %s %d", line.at.Sub(b.lines[0].at), line.text, line.suppressed))
		}
	}
	return strings.Join(out, ", ")
}

// Promise 21, case 9 (k8s#142256, octant#534): whatever fails for hours, and
// wherever, at most ten lines an hour are logged, and in the end each change of
// state and each failure was told or counted.
func TestLogsOfOutages(t *testing.T) {
	outages := map[string][]string{
		"refused":            {"list refused"},
		"forbidden":          {"list 403"},
		"gone":               {"list 404"},
		"no kind":            {"list nomatch"},
		"too many":           {"list 429/2"},
		"page breaks":        {"list ]10/x", "list decode"},
		"streams break":      {"stream +a@5 500", "list 503"},
		"unauthorized watch": {"list ]10", "watch 401"},
		"expired watch":      {"list ]10", "watch 410"},
		"watch flaps":        {"list ]10", "watch *11 500"},
		"watch goes":         {"list ]10", "watch *11 404"},
		"closed early":       {"list ]10", "watch *11"},
		"bad objects":        {"list !a@5 ]10", "watch !a@11 !b@12 !a@13 !c@14"},
		"bad and flaps":      {"list ]10", "watch !a@11 500"},
	}
	for name, script := range outages {
		for _, hours := range []int{1, 10} {
			t.Run(fmt.Sprint(name, " ", hours), func(t *testing.T) {
				book := newLogBook()
				run := runReflector(t, script, informer.Options{Logger: slog.New(book)}, time.Duration(hours)*time.Hour)
				written, meant := book.check(t)
				if written > 10*hours || written < 2 {
					t.Errorf("%d lines in %d hours", written, hours)
				}
				// Each failure of an object is a line. So is a request's if it
				// changed the state, which may be at each.
				objects := strings.Count(strings.Join(run.failures, ","), "decode")
				if atMost := objects + 2*len(run.requests) + 2; meant < objects+2 || meant > atMost {
					t.Errorf("the log tells of %d lines, with %d failures of objects and %d requests", meant, objects, len(run.requests))
				}
				if flaps := strings.HasSuffix(name, "flaps"); flaps && meant < len(run.requests) {
					t.Errorf("the log tells of %d changes in %d requests that flap", meant, len(run.requests))
				}
			})
		}
	}
}

// Promise 21: what was left out is told an hour later if nothing follows, by
// the first event, or the end of a watch, or the end of Run at the latest.
func TestLogsWhatWasLeftOut(t *testing.T) {
	tests := []struct {
		name, quiet string
		run         time.Duration
		sum         string // the kind of line that tells
	}{
		{"by an event", "61m *12 hang", 2 * time.Hour, "log"},
		{"by the end of a watch", "*12 61m", 3 * time.Hour, "log"},
		{"by the end of Run", "hang", 20 * time.Minute, "state Stopped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			book := newLogBook()
			script := []string{"list ]10"}
			for range 10 {
				script = append(script, "watch *11 500")
			}
			opts := informer.Options{Logger: slog.New(book), WatchTimeout: 2 * time.Hour}
			runReflector(t, append(script, "watch "+tt.quiet, "watch hang"), opts, tt.run)
			written, meant := book.check(t)
			// Listing; Watching with the list; Failing and Watching ten times, or
			// nine if the last watch says nothing; Stopped.
			if got := meant; got < 22 || got > 23 {
				t.Errorf("%d lines tell of %d changes, want 22 or 23", written, got)
			}
			told := book.text(tt.sum)
			if told == "" || strings.HasSuffix(told, " 0") || strings.Contains(told, ",") {
				t.Errorf("what was left out is told by %q, want one line that is %q: %s", told, tt.sum, book.text(""))
			}
		})
	}
}

// Promise 21: what an informer's user code does wrong is told or counted too,
// also if it happens when the reflector has ended already.
func TestLogsOfUserCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, source := newLogBook(), newLiveSource()
		inf := run(t, source, informer.Options{Logger: slog.New(book), Grace: time.Hour})
		synctest.Wait()
		for range 20 {
			inf.handler(t, func(informer.Change[*fifoObject]) {
				<-time.After(time.Minute)
				panic("boom")
			}, informer.HandlerOptions{OnPanic: informer.PanicReport})
		}
		source.write("a")
		synctest.Wait()
		inf.stop()
		if err := <-inf.done; err != nil {
			t.Fatal(err)
		}
		written, meant := book.check(t)
		// Listing, Watching, Stopped, and 20 panics.
		if meant != 23 || written > 10 {
			t.Errorf("%d lines tell of %d, want at most 10 and 23: %s", written, meant, book.text(""))
		}
		if s := inf.Status(); s.Faults != 20 {
			t.Errorf("Faults = %d, want 20", s.Faults)
		}
	})
}
