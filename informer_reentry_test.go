package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
)

// Promises 1, 16, 19 and 29: no user code runs under a lock that it could meet. A
// handler may call everything, an index function and OnFailure all but what
// changes indexes, and each of them may end Run.
func TestInformerCalledFromUserCode(t *testing.T) {
	for _, from := range []string{"handler", "index", "OnFailure", "WaitUntil"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { callFromUserCode(t, from) })
		})
	}
}

func callFromUserCode(t *testing.T, from string) {
	source := newLiveSource()
	var inf *running
	var other *informer.Registration
	called := false
	call := func(at string) {
		if at != from || called {
			return
		}
		called = true
		inf.Get(fifoKey("a"))
		inf.Snapshot()
		inf.Status()
		other.Backlog()
		reg, err := inf.AddHandler(func(informer.Change[*fifoObject]) {}, informer.HandlerOptions{})
		if err != nil {
			t.Error(err)
		} else {
			reg.Remove()
		}
		other.Remove()
		if at == "handler" {
			ix, err := informer.AddIndex(inf.Informer, "late", func(o *fifoObject) (string, bool) { return o.uid, true })
			if err != nil {
				t.Error(err)
			} else {
				ix.Remove()
			}
			if err := errors.Join(inf.WaitSynced(context.Background()), inf.WaitForResourceVersion(context.Background(), source.write("c"))); err != nil {
				t.Error(err)
			}
		}
		inf.stop()
	}
	unrun, err := informer.New(source, informer.Options{OnFailure: func(informer.Failure) error {
		call("OnFailure")
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddIndex(unrun, "version", func(o *fifoObject) (string, bool) {
		if o.name == "b" {
			call("index")
			panic("to be told")
		}
		return o.version, true
	}); err != nil {
		t.Fatal(err)
	}
	inf = start(t, unrun)
	other = inf.handler(t, func(c informer.Change[*fifoObject]) {
		call("handler")
		panic("to be told")
	}, informer.HandlerOptions{OnPanic: informer.PanicReport})
	synctest.Wait()
	go func() {
		_ = inf.WaitUntil(context.Background(), func(informer.Reader[*fifoObject]) bool {
			call("WaitUntil")
			return false
		})
	}()
	source.write("b")
	if err := <-inf.done; err != nil || !called {
		t.Errorf("Run = %v, called %v", err, called)
	}
	<-other.Done()
}

// Promise 19: every callback that has not returned is named, and no other, once
// the grace is over for all of them together.
func TestInformerNamesAllThatAreStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate := newLiveSource(), make(chan struct{})
		defer close(gate)
		source.write("a")
		inf := run(t, source, informer.Options{Grace: 7 * time.Second})
		synctest.Wait()
		var regs []*informer.Registration
		for i := range 3 {
			regs = append(regs, inf.handler(t, func(informer.Change[*fifoObject]) { <-gate }, informer.HandlerOptions{Name: fmt.Sprint("stuck ", i)}))
		}
		inf.handler(t, func(informer.Change[*fifoObject]) {}, informer.HandlerOptions{Name: "the quick one"})
		if _, err := informer.AddIndex(inf.Informer, "x", func(o *fifoObject) (string, bool) {
			if o.name == "b" {
				<-gate
			}
			return o.version, true
		}); err != nil {
			t.Fatal(err)
		}
		source.write("b")
		synctest.Wait()
		regs[0].Remove() // it counts nevertheless
		began := time.Now()
		inf.stop()
		err := <-inf.done
		mustContain(t, "Run", err, "stuck 0 has not", "stuck 1 has not", "stuck 2 has not", "an index function or OnFailure has not")
		if strings.Contains(err.Error(), "the quick one") { // which is waited for after the index function
			t.Errorf("Run names a handler that has returned: %v", err)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("Run returned after %v, want 7s", took)
		}
	})
}

// Many who wait for versions: all end, each in its way (promises 4, 18).
func TestInformerManyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		inf := run(t, source, informer.Options{})
		canceled, cancel := context.WithCancel(context.Background())
		errs := make(chan error, 200)
		for i := range 100 {
			go func() { errs <- inf.WaitForResourceVersion(context.Background(), fmt.Sprint(11+i)) }()
			go func() { errs <- inf.WaitForResourceVersion(canceled, "99999") }()
		}
		synctest.Wait()
		for range 50 {
			source.write("a")
		}
		cancel()
		synctest.Wait()
		inf.stop()
		var reached, ended, stopped int
		for range 200 {
			switch err := <-errs; {
			case err == nil:
				reached++
			case errors.Is(err, context.Canceled):
				ended++
			case errors.Is(err, informer.ErrStopped):
				stopped++
			}
		}
		if reached != 50 || ended != 100 || stopped != 50 {
			t.Errorf("%d reached, %d ended, %d stopped; want 50, 100, 50", reached, ended, stopped)
		}
	})
}
