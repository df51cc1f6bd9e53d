package informer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
	"pgregory.net/rapid"
)

// folder is a handler that folds its changes, and checks each against what it
// holds. It may be slow, and may remove itself.
type folder struct {
	name  string
	cache informer.Reader[*fifoObject]
	leave int // the call in which it removes itself; 0: never

	reg    atomic.Pointer[informer.Registration]
	gate   chan struct{} // a value for each call that may go on; closed: all may
	joined chan struct{} // closed when reg is set
	calls  atomic.Int32  // in progress
	over   atomic.Bool   // Remove has returned
	after  atomic.Int32  // calls that came in after that

	mu    sync.Mutex // guards the fields below
	open  bool       // gate is closed
	holds map[string]*fifoObject
	total int
	errs  []string
	seen  []string
}

func newFolder(name string, cache informer.Reader[*fifoObject]) *folder {
	return &folder{name: name, cache: cache, gate: make(chan struct{}, 1000), joined: make(chan struct{}), holds: map[string]*fifoObject{}}
}

// release lets all calls go on.
func (f *folder) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		f.open = true
		close(f.gate)
	}
}

func (f *folder) handle(c informer.Change[*fifoObject]) {
	if f.calls.Add(1) != 1 {
		f.fail("two calls at a time")
	}
	defer f.calls.Add(-1)
	// One may have started before, and come here only now.
	if f.over.Load() && f.after.Add(1) > 1 {
		f.fail("a call started after Remove had returned")
	}
	f.check(c)
	<-f.gate
	if f.total == f.leave {
		f.reg.Load().Remove()
		f.after.Store(1)
		f.over.Store(true)
	}
}

func (f *folder) check(c informer.Change[*fifoObject]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	f.seen = append(f.seen, fmt.Sprint(c.Type, c.Cause, c.Old, c.New))
	name := c.Key.Name
	was, had := f.holds[name]
	switch {
	case c.Type == informer.Added && had:
		f.failLocked("added %v, which it has as %v", c.New, was)
	case c.Type == informer.Updated && (!had || was.version != c.Old.version || was.uid != c.New.uid):
		f.failLocked("updated %v to %v, while it has %v", c.Old, c.New, was)
	case c.Type == informer.Updated && c.Cause != informer.CauseResync && c.Old.version == c.New.version:
		f.failLocked("updated %v to itself", c.Old)
	case c.Type == informer.Deleted && (!had || c.Old.version != was.version || c.New == nil || c.New.uid != was.uid):
		f.failLocked("deleted %v, last %v, while it has %v", c.Old, c.New, was)
	case c.Type == informer.Deleted && (len(c.New.version) < len(was.version) || len(c.New.version) == len(was.version) && c.New.version < was.version):
		f.failLocked("deleted %v, while it has the later %v", c.New, was)
	case c.Key != fifoKey(name), c.Type != informer.Added && c.Old == nil, c.Cause == 0:
		f.failLocked("a change without key, object or cause: %+v", c)
	}
	// The cache shows the change, or something later.
	if now, ok := f.cache.Get(c.Key); c.Type != informer.Deleted {
		f.holds[name] = c.New
		if ok && len(now.version) <= len(c.New.version) && now.version < c.New.version {
			f.failLocked("told of %v, while the cache is at %v", c.New, now)
		}
		return
	} else if ok && now.uid == c.Old.uid {
		f.failLocked("told of the end of %v, which the cache has", c.Old)
	}
	delete(f.holds, name)
}

func (f *folder) fail(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failLocked(format, args...)
}

func (f *folder) failLocked(format string, args ...any) {
	f.errs = append(f.errs, f.name+": "+fmt.Sprintf(format, args...))
}

// err returns what went wrong so far; with want, also if that is not what f
// holds.
func (f *folder) err(want map[string]*fifoObject) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if want != nil && !maps.EqualFunc(f.holds, want, func(a, b *fifoObject) bool { return *a == *b }) {
		f.failLocked("holds %v, want %v", slices.Collect(maps.Values(f.holds)), slices.Collect(maps.Values(want)))
	}
	if len(f.errs) == 0 {
		return nil
	}
	return errors.New(strings.Join(f.errs, "\n") + "\nit was told:\n" + strings.Join(f.seen, "\n"))
}

// fanoutStep is one thing that happens to an informer and its handlers.
type fanoutStep struct {
	op   string
	name string
	n    int
	slow bool
	opts informer.HandlerOptions
}

var fanoutOps = []string{
	"write", "write", "write", "delete", "recreate", "burst", "burst", "relist",
	"join", "join", "remove", "let", "let", "release", "settle", "time",
}

func drawFanoutStep(t *rapid.T) fanoutStep {
	return fanoutStep{
		op:   rapid.SampledFrom(fanoutOps).Draw(t, "op"),
		name: string(rune('a' + rapid.IntRange(0, 5).Draw(t, "name"))),
		n:    rapid.IntRange(0, 30).Draw(t, "n"),
		slow: rapid.Bool().Draw(t, "slow"),
		opts: informer.HandlerOptions{
			Backlog: rapid.SampledFrom([]int{0, 1, 3, 20}).Draw(t, "backlog"),
			Resync:  rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "resync"),
		},
	}
}

// fanoutRig runs steps on a live informer, inside a bubble.
type fanoutRig struct {
	source  *liveSource
	inf     *informer.Informer[*fifoObject]
	folders []*folder
	errs    []error
}

func (r *fanoutRig) step(s fanoutStep) {
	switch s.op {
	case "write":
		r.source.write(s.name)
	case "delete":
		r.source.delete(s.name)
	case "recreate":
		r.source.delete(s.name)
		r.source.write(s.name)
	case "burst":
		for i := range 10 * s.n {
			if name := string(rune('a' + i%7)); i%11 == 3 {
				r.source.delete(name)
			} else {
				r.source.write(name)
			}
		}
	case "relist":
		r.source.forget(func(srv *fifoServer) {
			srv.delete(s.name)
			for i := range s.n % 7 {
				srv.write(string(rune('a' + i)))
			}
		})
	case "join":
		r.join(s)
	case "settle":
		synctest.Wait()
		r.checkOpen()
	case "time":
		<-time.After(time.Duration(s.n) * time.Second)
	default:
		r.handlerStep(s)
	}
}

// join adds a handler.
func (r *fanoutRig) join(s fanoutStep) {
	f := newFolder(fmt.Sprint("handler ", len(r.folders)), r.inf.Reader)
	if s.n > 20 {
		f.leave = s.n - 20
	}
	if !s.slow {
		f.release()
	}
	reg, err := r.inf.AddHandler(func(c informer.Change[*fifoObject]) {
		<-f.joined
		f.handle(c)
	}, s.opts)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	f.reg.Store(reg)
	close(f.joined)
	r.folders = append(r.folders, f)
}

// handlerStep is a step of one handler.
func (r *fanoutRig) handlerStep(s fanoutStep) {
	if len(r.folders) == 0 {
		return
	}
	f := r.folders[s.n%len(r.folders)]
	switch s.op {
	case "remove":
		f.reg.Load().Remove()
		f.over.Store(true)
	case "release":
		f.release()
	case "let":
		f.mu.Lock()
		defer f.mu.Unlock()
		for range s.n {
			if !f.open && len(f.gate) < cap(f.gate) {
				f.gate <- struct{}{}
			}
		}
	}
}

// checkOpen checks, in a moment of rest, those handlers that are not held up.
func (r *fanoutRig) checkOpen() {
	for _, f := range r.folders {
		want := r.source.state()
		n, age := f.reg.Load().Backlog()
		switch {
		case f.over.Load(), !r.synced():
			want = nil
		case !f.open:
			want = nil
			// What waits is bounded: the log up to the limit, or two a key.
			if n > max(1024, 14)+300 {
				r.errs = append(r.errs, fmt.Errorf("%s has a backlog of %d", f.name, n))
			}
		case n != 0 || age != 0:
			r.errs = append(r.errs, fmt.Errorf("%s is idle with a backlog of %d for %v", f.name, n, age))
		}
		if want != nil && r.inf.Status().State != informer.StateWatching {
			want = nil // a list is on its way
		}
		r.errs = append(r.errs, f.err(want))
	}
}

func (r *fanoutRig) synced() bool {
	select {
	case <-r.inf.Synced():
		return true
	default:
		return false
	}
}

// end lets everything come to rest and checks it.
func (r *fanoutRig) end() {
	<-time.After(5 * time.Minute) // backoffs of relists
	for _, f := range r.folders {
		f.release()
	}
	synctest.Wait()
	want := r.source.state()
	if r.inf.Len() != len(want) {
		r.errs = append(r.errs, fmt.Errorf("the cache has %v, the server %v", r.inf.List(), want))
	}
	for _, f := range r.folders {
		reg := f.reg.Load()
		if f.over.Load() {
			r.errs = append(r.errs, f.err(nil))
			select {
			case <-reg.Done():
			default:
				r.errs = append(r.errs, fmt.Errorf("%s: removed, and not done", f.name))
			}
			continue
		}
		r.errs = append(r.errs, f.err(want))
		select {
		case <-reg.Synced():
		default:
			r.errs = append(r.errs, fmt.Errorf("%s: not synced", f.name))
		}
	}
}

// Handlers that are slow, late and leaving, against a naive fold: promises 3,
// 14, 15, 16, 18 and 29 (client-go#1167, k8s#98657, k8s#142039).
func TestFanOutModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawFanoutStep), 10, 120).Draw(rt, "steps")
		beforeRun := rapid.IntRange(0, 5).Draw(rt, "before Run")
		var errs []error
		synctest.Test(t, func(t *testing.T) { errs = runFanout(t, steps, min(beforeRun, len(steps))) })
		if err := errors.Join(errs...); err != nil {
			rt.Fatal(err)
		}
	})
}

func runFanout(t *testing.T, steps []fanoutStep, beforeRun int) []error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	source := newLiveSource()
	inf, err := informer.New(source, informer.Options{})
	if err != nil {
		return []error{err}
	}
	r := &fanoutRig{source: source, inf: inf}
	for _, s := range steps[:beforeRun] {
		r.step(s)
	}
	done := make(chan error)
	go func() { done <- inf.Run(ctx) }()
	for _, s := range steps[beforeRun:] {
		r.step(s)
	}
	r.end()
	cancel()
	r.errs = append(r.errs, <-done)
	for _, f := range r.folders {
		<-f.reg.Load().Done()
	}
	return r.errs
}

// until waits until f holds the object of that name, or has removed itself.
func (f *folder) until(ctx context.Context, name string) error {
	for {
		f.mu.Lock()
		_, ok := f.holds[name]
		f.mu.Unlock()
		if ok || f.over.Load() {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		runtime.Gosched()
	}
}
