package informer_test

import (
	"testing"
	"testing/synctest"

	"github.com/seed-99a027e8/informer"
)

// Promise 14: handlers do not delay each other, nor the cache: while one has
// not done with its first object, another is told of what happens meanwhile.
func TestHandlersDoNotDelayEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.write("a")
		inf := run(t, source, informer.Options{})
		release := make(chan struct{})
		defer close(release)
		inf.handler(t, func(informer.Change[*fifoObject]) { <-release }, informer.HandlerOptions{Name: "slow"})
		var told []string
		inf.handler(t, func(c informer.Change[*fifoObject]) { told = append(told, c.Key.Name) }, informer.HandlerOptions{Name: "quick"})
		synctest.Wait()
		for _, name := range []string{"b", "c", "d"} {
			source.write(name)
			synctest.Wait()
		}
		if _, ok := inf.Get(fifoKey("d")); !ok || len(told) != 4 {
			t.Errorf("the cache has d: %v; the quick handler was told of %v, want a, b, c and d", ok, told)
		}
	})
}

// Promise 16: Remove does not wait for a call that runs; it is done when that has
// returned.
func TestHandlerRemoveDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newLiveSource()
		source.write("a")
		inf := run(t, source, informer.Options{})
		release := make(chan struct{})
		reg := inf.handler(t, func(informer.Change[*fifoObject]) { <-release }, informer.HandlerOptions{})
		synctest.Wait()
		removed := make(chan struct{})
		go func() {
			reg.Remove()
			close(removed)
		}()
		synctest.Wait()
		select {
		case <-removed:
		default:
			t.Error("Remove waits for the call that runs")
		}
		select {
		case <-reg.Done():
			t.Error("Done is closed while a call runs")
		default:
		}
		close(release)
		<-reg.Done()
		<-removed
	})
}
