package informer_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Promises 17, 20, 21: without OnFailure, what user code does wrong is counted
// and logged, a few lines an hour, and leaves room for changes of state.
func TestFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		source := newLiveSource()
		inf := run(t, source, informer.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		synctest.Wait()
		out.Reset()
		if _, err := informer.AddIndex(inf.Informer, "odd", func(*fifoObject) (string, bool) { panic("odd one") }); err != nil {
			t.Fatal(err)
		}
		inf.handler(t, func(informer.Change[*fifoObject]) { panic("boom") },
			informer.HandlerOptions{Name: "mine", OnPanic: informer.PanicReport})
		for range 100 {
			source.write("a")
			<-time.After(time.Second)
		}
		source.fail(forbidden)
		synctest.Wait()
		inf.stop()
		synctest.Wait()
		logged := out.String()
		for _, want := range []string{`op=index err="index \"odd\": object \"ns/a\": the index function panicked: odd one"`, "op=mine", "mine panicked: boom", "state=Failing"} {
			if !strings.Contains(logged, want) {
				t.Errorf("the log does not say %s", want)
			}
		}
		if n := strings.Count(logged, "\n"); n > 9 || strings.Contains(logged, "goroutine") {
			t.Errorf("%d lines were logged, want a few, without stacks:\n%s", n, logged)
		}
		// The handler panicked 100 times, and 100 states could not be filed.
		if s := inf.Status(); s.Faults != 200 {
			t.Errorf("Faults = %d, want 200", s.Faults)
		}
	})
}

// quitter is a source that ends its goroutine, as a failed test does.
type quitter struct{ *liveSource }

func (quitter) Watch(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[*fifoObject], error] {
	return func(func(informer.Event[*fifoObject], error) bool) { runtime.Goexit() }
}

// User code that ends a goroutine of the informer ends Run with an error, or
// removes the handler, and is never silent (promises 17, 20).
func TestUserCodeEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.write("a")
		inf := run(t, quitter{source}, informer.Options{Name: "things"})
		mustContain(t, "Run", <-inf.done, "things", "the source or OnFailure has ended its goroutine")

		inf = run(t, source, informer.Options{OnFailure: func(informer.Failure) error { runtime.Goexit(); return nil }})
		synctest.Wait()
		source.fail(forbidden)
		mustContain(t, "Run", <-inf.done, "the source or OnFailure has ended its goroutine")
		source.fail(nil)

		unrun, err := informer.New(source, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := informer.AddIndex(unrun, "x", func(*fifoObject) (string, bool) { runtime.Goexit(); return "", false }); err != nil {
			t.Fatal(err)
		}
		inf = start(t, unrun)
		mustContain(t, "Run", <-inf.done, "an index function or OnFailure has ended its goroutine")

		var failures []informer.Failure
		inf = run(t, source, informer.Options{OnFailure: func(f informer.Failure) error {
			failures = append(failures, f)
			return nil
		}})
		reg := inf.handler(t, func(informer.Change[*fifoObject]) { runtime.Goexit() }, informer.HandlerOptions{Name: "mine"})
		<-reg.Done()
		if err := reg.WaitSynced(context.Background()); !errors.Is(err, informer.ErrRemoved) {
			t.Errorf("WaitSynced = %v, want ErrRemoved", err)
		}
		if len(failures) != 1 || failures[0].Op != "mine" {
			t.Fatalf("%d failures, want one of the handler: %v", len(failures), failures)
		}
		mustContain(t, "the failure", failures[0].Err, "ns/a", "mine has ended its goroutine")
	})
}
