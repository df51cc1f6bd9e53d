package informer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// simObj is what the simulated informers hold.
type simObj = *informertest.Object

// simPlan is how a handler behaves.
type simPlan struct {
	join    time.Duration // when it is added; 0: before Run
	leave   time.Duration // when it is removed, after that; 0: never
	slow    time.Duration // what a call takes
	stuckAt int           // the call in which it is stuck; 0: none
	stuck   time.Duration // for how long
	quitAt  int           // the call in which it removes itself; 0: none
	panicAt int           // every so many calls it panics; 0: never
	opts    informer.HandlerOptions
}

// isSlow reports that the handler is behind at times.
func (p simPlan) isSlow() bool { return p.slow > 0 || p.stuckAt > 0 }

// simHandler is a handler that folds what it is told, and checks each change
// against what it holds.
type simHandler struct {
	simPlan
	sim  *simulation
	name string

	mu      sync.Mutex // guards the fields below
	reg     *informer.Registration
	inCall  bool
	calls   int
	over    bool // it is to be called no more
	overAt  time.Time
	late    int // calls at that very moment
	holds   [simKeys]simObj
	changes []informer.Change[simObj] // the last ones
}

// errSimPanic is what handlers panic with.
var errSimPanic = errors.New("the plan says so")

// live adds the handler when it is time, and removes it.
func (h *simHandler) live(ctx context.Context) {
	if h.join > 0 {
		if !simWait(ctx, h.join) {
			return
		}
		h.add()
	}
	if h.leave == 0 || !simWait(ctx, h.leave) {
		return
	}
	h.remove()
}

func (h *simHandler) add() {
	h.mu.Lock()
	defer h.mu.Unlock()
	reg, err := h.sim.inf.AddHandler(h.handle, h.opts)
	if err != nil && !errors.Is(err, informer.ErrStopped) {
		h.sim.fail("%s: AddHandler: %v", h.name, err)
	}
	h.reg = reg
}

func (h *simHandler) remove() {
	h.mu.Lock()
	reg := h.reg
	h.mu.Unlock()
	if reg == nil {
		return
	}
	reg.Remove()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leftLocked()
}

func (h *simHandler) leftLocked() {
	if !h.over {
		h.over, h.overAt = true, time.Now()
	}
}

// handle is the handler.
func (h *simHandler) handle(c informer.Change[simObj]) {
	calls := h.begin(c)
	defer h.end()
	switch {
	case calls == h.quitAt:
		h.mu.Lock()
		reg := h.reg
		h.mu.Unlock()
		reg.Remove()
		h.mu.Lock()
		h.leftLocked()
		h.late = 1 // this is the one
		h.mu.Unlock()
	case h.panicAt > 0 && calls%h.panicAt == 0:
		if h.opts.OnPanic == informer.PanicDetach {
			h.mu.Lock()
			h.leftLocked()
			h.late = 1
			h.mu.Unlock()
		}
		panic(errSimPanic)
	case calls == h.stuckAt:
		h.sim.wait(h.stuck)
	case h.slow > 0:
		h.sim.wait(h.slow)
	}
}

func (h *simHandler) begin(c informer.Change[simObj]) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inCall {
		h.failLocked(c, "two calls at a time")
	}
	h.inCall = true
	h.calls++
	if h.over {
		// One may have begun just before.
		if h.late++; h.late > 1 || time.Now().After(h.overAt) {
			h.failLocked(c, "a call after its end")
		}
	}
	if len(h.changes) == 20 {
		h.changes = append(h.changes[:0], h.changes[10:]...)
	}
	h.changes = append(h.changes, c)
	h.checkLocked(c)
	return h.calls
}

func (h *simHandler) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inCall = false
}

// checkLocked checks a change and folds it.
func (h *simHandler) checkLocked(c informer.Change[simObj]) {
	key := simKeyOf(&informertest.Object{Name: c.Key.Name})
	was := h.holds[key]
	switch {
	case c.New == nil, c.Type != informer.Added && c.Old == nil, c.Cause == 0:
		h.failLocked(c, "no object, or no cause")
		return
	case informer.KeyOf(c.New) != c.Key:
		h.failLocked(c, "another key")
	case c.Type == informer.Added && was != nil:
		h.failLocked(c, "added, and it has %v", was)
	case c.Type != informer.Added && (was == nil || *was != *c.Old):
		h.failLocked(c, "it has %v", was)
	case c.Type != informer.Added && c.New.UID != c.Old.UID:
		h.failLocked(c, "another object")
	case c.Type == informer.Updated && (c.Cause == informer.CauseResync) != (*c.Old == *c.New) && c.New.Version != "":
		h.failLocked(c, "no change")
	case c.Type != informer.Added && h.sim.world.before(c.New, c.Old):
		h.failLocked(c, "it goes back")
	}
	if c.Type == informer.Deleted {
		h.holds[key] = nil
	} else {
		h.holds[key] = c.New
	}
	h.cacheShowsLocked(c)
}

// cacheShowsLocked checks that the cache shows the change, or a later state.
func (h *simHandler) cacheShowsLocked(c informer.Change[simObj]) {
	now, ok := h.sim.inf.Get(c.Key)
	switch {
	case !ok:
	case c.Type == informer.Deleted && *now == *c.Old && !h.sim.world.wasRestored():
		h.failLocked(c, "the cache has it")
	case c.Type != informer.Deleted && h.sim.world.before(now, c.New):
		h.failLocked(c, "the cache has %v", now)
	}
}

func (h *simHandler) failLocked(c informer.Change[simObj], format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, c := range h.changes {
		text += fmt.Sprintf("\n\t%v %v %v %v", c.Type, c.Cause, c.Old, c.New)
	}
	h.sim.fail("%s: %v %v → %v: %s", h.name, c.Type, c.Old, c.New, text)
}

// checkBacklog checks what waits for the handler. It is bounded by its limit or
// by what there is: what it was given, what is in the log, and what is
// coalesced, beside one batch, which comes before it counts.
func (h *simHandler) checkBacklog() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reg == nil {
		return
	}
	limit := h.opts.Backlog
	if limit == 0 {
		limit = 1024
	}
	limit = max(limit, 2*simKeys)
	if n, _ := h.reg.Backlog(); n > 2*limit+4*simKeys {
		h.sim.fail("%s: %d changes wait, its limit is %d", h.name, n, limit)
	}
}

// checkEnd checks a handler at rest.
func (h *simHandler) checkEnd() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reg == nil {
		return
	}
	select {
	case <-h.reg.Done():
		if !h.over {
			h.sim.fail("%s has ended by itself", h.name)
		}
		return
	default:
	}
	if h.over {
		h.sim.fail("%s was removed, and is not done", h.name)
		return
	}
	select {
	case <-h.reg.Synced():
	default:
		h.sim.fail("%s is not synced", h.name)
	}
	if n, busy := h.reg.Backlog(); n != 0 || busy != 0 {
		h.sim.fail("%s is at rest with a backlog of %d for %v", h.name, n, busy)
	}
	for key, obj := range h.sim.cache() {
		if held := h.holds[key]; (held == nil) != (obj == nil) || held != nil && *held != *obj {
			h.sim.fail("%s holds %v, the cache %v", h.name, held, obj)
		}
	}
}

// simWait waits for d, and reports whether ctx has not ended before.
func simWait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
