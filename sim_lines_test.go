package informer_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-99a027e8/informer/informertest"
)

// simExchange is a request and its answer.
type simExchange struct {
	at   time.Duration
	call informertest.Call
	line string
}

// String returns the exchange as a line of a script that fits the request, with
// what was asked and when.
func (x simExchange) String() string {
	return fmt.Sprintf("%-80s // %v: %v", x.line, x.at, x.call)
}

const (
	simDelay   = 3 * time.Second // before an answer with "delay"
	simSlow    = 2 * time.Second // what "slow" adds to each event
	simGateway = 4 * time.Second // after which "gateway" closes a stream
)

// answer writes the line for a request: all that happens until it ends.
func (s *simServer) answer(c informertest.Call) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.Time.Sub(s.start)
	a := &simAnswer{s: s, call: c, at: now, slept: now, text: append(make([]byte, 0, 256), c.Kind...)}
	s.reachLocked(now)
	if a.under("delay") {
		a.pass(simDelay)
	}
	switch c.Kind {
	case "list":
		a.list()
	case "stream":
		a.stream()
	default:
		a.begun = true
		from, _ := strconv.Atoi(c.Options.ResourceVersion)
		a.watch(simWatching, from)
	}
	line := string(a.text)
	s.log = append(s.log, simExchange{now, c, line})
	return line
}

// simAnswer writes a line. It works under the server's lock.
type simAnswer struct {
	s     *simServer
	call  informertest.Call
	text  []byte
	begun bool          // what a list has in front stands there
	at    time.Duration // how far it has come
	slept time.Duration // how far the sleeps in the text lead
}

// say appends a word, at its time.
func (a *simAnswer) say(word string) {
	a.space()
	a.text = append(a.text, word...)
}

// space makes room for a word, at its time.
func (a *simAnswer) space() {
	if a.at > a.slept {
		a.text = append(append(a.text, " sleep="...), (a.at - a.slept).String()...)
		a.slept = a.at
	}
	a.text = append(a.text, ' ')
}

// number appends a word and a number.
func (a *simAnswer) number(word string, n int) {
	a.say(word)
	a.text = strconv.AppendInt(append(a.text, ' '), int64(n), 10)
}

// pass lets time pass.
func (a *simAnswer) pass(d time.Duration) {
	a.at += d
	a.s.reachLocked(a.at)
}

// under reports that a fault is at work.
func (a *simAnswer) under(word string) bool { return a.s.active.is(word) }

// ends lets the faults of this moment strike, and reports that they have ended
// the line.
func (a *simAnswer) ends(phase simPhase) bool {
	s := a.s
	s.reachLocked(a.at)
	if s.active != nil {
		return a.suffers(phase, "refused")
	}
	due, ok := s.dueLocked()
	if !ok || due > a.at {
		return false
	}
	switch f := &s.faults[0]; {
	case f.phase == simBackingOff:
		a.say("eof")
		s.strikeLocked(simBackingOff, a.at+time.Millisecond)
		return true
	case f.phase == phase && f.skip > 0:
		f.skip--
		return false
	case f.phase == phase, f.phase == simStreaming && phase == simListing && s.ended:
		s.strikeLocked(phase, a.at)
		return a.suffers(phase, "eof")
	case f.phase == simWatching, phase == simListing:
		return false
	case phase == simWatching:
		s.ended = true
		a.say("expired")
		return true
	}
	a.say("eof") // from a streaming list to a plain one
	return true
}

// suffers does what the active fault does to all requests, and reports that it
// has ended the line. The broken is what an outage looks like.
func (a *simAnswer) suffers(phase simPhase, broken string) bool {
	switch kind := a.s.active; {
	case kind.class == simBreaks:
		a.say(kind.word)
	case kind.class == simOutage:
		a.say(broken)
	case kind.class == simLists && phase == simWatching && broken == "eof":
		a.say("expired") // or there would be no list
	default:
		return false
	}
	return true
}

// snapshot returns the state that a list is of; false if it cannot be had.
func (a *simAnswer) snapshot() (*simState, bool) {
	e := a.s.nowLocked()
	read := e.on(a.at)
	asked, _ := strconv.Atoi(a.call.Options.ResourceVersion)
	switch i := read.version - e.base; {
	case a.under("stale") && a.call.Options.ResourceVersion != "":
		return &e.states[max(0, i-5)], true
	case asked > read.version:
		a.pass(3 * time.Second)
		a.say("toolarge")
		return nil, false
	}
	return read, true
}

// list writes the answer to a list.
func (a *simAnswer) list() {
	if a.ends(simListing) {
		return
	}
	opts, from := a.call.Options, 0
	read, ok := a.page(&from)
	if !ok {
		return
	}
	limit := simKeys
	if opts.ResourceVersion == "" || opts.Limit == 1 {
		limit = min(limit, int(opts.Limit))
	}
	if !a.under("unversioned") {
		a.text = strconv.AppendInt(append(a.text, ' '), int64(read.version), 10)
	}
	for key := from; key < simKeys; key++ {
		if !read.objects[key].seen() {
			continue
		}
		if limit == 0 {
			a.say("continue=" + strconv.Itoa(read.version) + "." + strconv.Itoa(key))
			return
		}
		limit--
		if a.ends(simListing) || !a.item(key, read) {
			return
		}
	}
	if !a.ends(simListing) && a.at > a.slept {
		a.space()
	}
}

// page returns the state that the page is of, and where in it the page begins.
func (a *simAnswer) page(from *int) (*simState, bool) {
	token := a.call.Options.Continue
	if token == "" {
		return a.snapshot()
	}
	version, key, _ := strings.Cut(token, ".")
	*from, _ = strconv.Atoi(key)
	v, _ := strconv.Atoi(version)
	e := a.s.nowLocked()
	if v < e.compacted || v >= e.base+len(e.states) {
		a.say("expired")
		return nil, false
	}
	return &e.states[v-e.base], true
}

// item writes an item of a list.
func (a *simAnswer) item(key int, read *simState) bool {
	if a.under("slow") {
		a.pass(simSlow)
	}
	times := 1
	if a.under("twice") {
		times = 2
	}
	for range times {
		a.space()
		a.text = simObjectText(a.text, key, read.objects[key])
		if a.under("versionless") {
			a.text = append(a.text[:bytes.LastIndexByte(a.text, '@')], "@-"...)
		}
	}
	if a.under("nameless") {
		a.say("!")
	}
	a.pass(a.s.traits.pace)
	return true
}

// stream writes the answer to a streaming list.
func (a *simAnswer) stream() {
	if a.ends(simStreaming) {
		return
	}
	if a.s.traits.noStreams {
		a.say("invalid")
		return
	}
	read, ok := a.snapshot()
	if !ok {
		return
	}
	for key, obj := range read.objects {
		if obj.seen() && (a.ends(simStreaming) || !a.item(key, read)) {
			return
		}
	}
	from := read.version
	if a.under("ignored") {
		a.watch(simStreaming, from)
		return
	}
	// What has happened meanwhile comes before the end.
	e := a.s.nowLocked()
	for i := from - e.base + 1; i < len(e.states) && e.states[i].at <= a.at && !a.under("stale"); i++ {
		if a.ends(simStreaming) {
			return
		}
		a.event(simStreaming, e, i)
		from = e.states[i].version
	}
	if a.ends(simStreaming) {
		return
	}
	a.number("end", from)
	a.watch(simWatching, from)
}

// event writes an event of a watch. Within a list the order counts, not the
// version, so nothing is out of order there.
func (a *simAnswer) event(phase simPhase, e *simEpoch, i int) {
	if e.states[i].how == 0 {
		return
	}
	if a.under("slow") {
		a.pass(simSlow)
	}
	a.space()
	a.text = e.states[i].event(a.text)
	switch {
	case a.under("nameless"):
		a.say("!@0")
	case a.under("duplicate"):
		a.again(e, i)
	case a.under("reorder") && phase == simWatching:
		a.again(e, i-1)
		a.again(e, i-2)
	}
}

// again writes an event once more, if it is one.
func (a *simAnswer) again(e *simEpoch, i int) {
	if i > e.compacted-e.base && e.states[i].how != 0 {
		a.space()
		a.text = e.states[i].event(a.text)
	}
}

// watch writes what is told of the writes after a version, until the time for
// the watch is over.
func (a *simAnswer) watch(phase simPhase, from int) {
	e, began := a.s.nowLocked(), a.at
	if a.ends(phase) {
		return
	}
	if from < e.compacted {
		a.say("expired")
		return
	}
	end := a.at + time.Duration(*a.call.Options.TimeoutSeconds)*time.Second
	every := a.s.traits.bookmarks
	mark := began + every
	deaf := from > e.on(a.at).version
	for next := from - e.base + 1; ; {
		if a.ends(phase) {
			return
		}
		until := end
		if a.under("gateway") {
			until = min(until, began+simGateway)
		}
		if every > 0 {
			until = min(until, mark)
		}
		at := a.horizon(until)
		switch {
		case a.under("close") && a.at > began, a.at >= end, a.under("gateway") && a.at >= began+simGateway:
			a.say("close")
			return
		case !deaf && next < len(e.states) && e.states[next].at <= a.at:
			a.event(phase, e, next)
			next++
			if a.under("close") {
				a.say("close")
				return
			}
		case every > 0 && mark <= a.at:
			mark += every
			if !deaf && phase == simWatching && !a.under("nobookmarks") {
				a.number("bookmark", e.on(a.at).version)
			}
		default:
			a.pass(at - a.at)
		}
	}
}

// horizon returns the next time, up to a limit, at which something happens.
func (a *simAnswer) horizon(limit time.Duration) time.Duration {
	s := a.s
	at := func(t time.Duration) {
		if t > a.at {
			limit = min(limit, t)
		}
	}
	if len(s.steps) > 0 {
		at(s.done + s.steps[0].gap)
	}
	at(s.repair.at)
	if s.active != nil {
		at(s.until)
	} else if due, ok := s.dueLocked(); ok {
		at(due)
	}
	return limit
}
