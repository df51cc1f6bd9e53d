package informer_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// simPhase is where a reflector stands when a fault strikes.
type simPhase uint8

const (
	simListing simPhase = iota
	simStreaming
	simWatching
	simBackingOff // after a broken connection
	simPhases
)

// simClass is what a fault does to requests.
type simClass uint8

const (
	// simBreaks ends what is running, and is the answer to every request.
	simBreaks simClass = iota
	// simOutage breaks connections and refuses new ones, and something happens
	// to the state of the server.
	simOutage
	// simLists changes what lists say, simStreams what watches say, or both.
	simLists
	simStreams
)

// simKind is a kind of fault.
type simKind struct {
	word  string // of a script, if there is one
	class simClass
}

// simKinds returns all faults of a model.
func simKinds() []simKind {
	return []simKind{
		{"eof", simBreaks}, {"refused", simBreaks}, {"error", simBreaks}, {"hang", simBreaks},
		{"expired", simBreaks}, {"toolarge", simBreaks}, {"toomany", simBreaks}, {"toomany=7s", simBreaks},
		{"internal", simBreaks}, {"unavailable", simBreaks}, {"timeout", simBreaks},
		{"unauthorized", simBreaks}, {"forbidden", simBreaks}, {"notfound", simBreaks}, {"invalid", simBreaks},
		{"restored", simOutage}, {"compacted", simOutage}, {"reborn", simOutage},
		{"drop", simBreaks}, {"garbage", simBreaks}, {"delay", simStreams},
		{"stale", simLists}, {"ignored", simLists}, {"twice", simLists}, {"versionless", simLists}, {"unversioned", simLists},
		{"close", simStreams}, {"gateway", simStreams}, {"nobookmarks", simStreams}, {"slow", simStreams},
		{"nameless", simStreams}, {"malformed", simStreams}, {"duplicate", simStreams}, {"reorder", simStreams},
	}
}

// simFault is a fault of the plan.
type simFault struct {
	simKind
	row   int           // of the table
	phase simPhase      // in which it strikes
	after time.Duration // the earliest, since the end of the one before
	skip  int           // how many events of that phase come first
	lasts time.Duration
	key   int // that it is about, if it is about one
}

func (f *simFault) is(word string) bool { return f != nil && f.word == word }

// simTable counts which fault struck in which phase.
type simTable struct {
	kinds []simKind
	cells [][simPhases]atomic.Int64
}

func newSimTable(kinds []simKind) *simTable {
	return &simTable{kinds: kinds, cells: make([][simPhases]atomic.Int64, len(kinds))}
}

func (t *simTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %9s %9s %9s %11s\n", "fault", "listing", "streaming", "watching", "backing off")
	for i, kind := range t.kinds {
		row := &t.cells[i]
		fmt.Fprintf(&b, "%-12s %9d %9d %9d %11d\n", kind.word,
			row[simListing].Load(), row[simStreaming].Load(), row[simWatching].Load(), row[simBackingOff].Load())
	}
	return b.String()
}

// simTraits are what a server is like all the time.
type simTraits struct {
	noStreams bool          // it does not know streaming lists
	paging    int           // items in a page, if the client wants pages
	pace      time.Duration // between two items of a list
	bookmarks time.Duration // between two of them; 0: none
}

// simServer is a server with faults. They come one after the other, each in the
// phase that the plan says: to get there, what the client does is ended, if
// need be.
type simServer struct {
	*simWorld
	traits simTraits
	table  *simTable

	// These are guarded by the world's mu.

	faults []simFault // that are left
	active *simFault
	until  time.Duration // the end of active, or of the one before
	ended  bool          // a watch was ended so that a streaming list comes
	struck int
	log    []simExchange
}

// reachLocked does everything that is due up to a time.
func (s *simServer) reachLocked(to time.Duration) {
	if s.active != nil && s.until <= to {
		s.advanceLocked(s.until)
		switch f := s.active; {
		case f.is("reborn"):
			s.writeLocked(simRecreate, f.key, s.until)
			fallthrough
		case f.is("compacted"):
			s.nowLocked().compacted = s.nowLocked().last().version
		}
		s.active = nil
	}
	s.advanceLocked(to)
}

// strikeLocked begins the next fault.
func (s *simServer) strikeLocked(phase simPhase, at time.Duration) {
	s.reachLocked(at)
	f := &s.faults[0]
	s.faults, s.active, s.until = s.faults[1:], f, at+f.lasts
	s.ended = false
	s.struck++
	s.table.cells[f.row][phase].Add(1)
	switch {
	case f.is("restored"):
		s.restoreLocked(at, simFirst>>len(s.epochs))
	case f.is("malformed"):
		s.writeLocked(simBreak, f.key, at)
		s.repair.key, s.repair.at = f.key, s.until
	}
}

// finished reports that all faults are over, and that all writes are done.
func (s *simServer) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reachLocked(time.Since(s.start))
	return s.active == nil && len(s.faults) == 0 && len(s.steps) == 0
}

// dueLocked returns when the next fault may strike; ok is false if there is
// none, or one is at work.
func (s *simServer) dueLocked() (at time.Duration, ok bool) {
	if s.active != nil || len(s.faults) == 0 {
		return 0, false
	}
	return s.until + s.faults[0].after, true
}

// faultsStruck returns how many faults there were so far.
func (s *simServer) faultsStruck() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.struck
}

// requests returns when they came, but for pages after the first.
func (s *simServer) requests() (times []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.log {
		if x.call.Options.Continue == "" {
			times = append(times, x.at)
		}
	}
	return times
}

// transcript returns the script that was played.
func (s *simServer) transcript() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, x := range s.log {
		fmt.Fprintln(&b, x)
	}
	return b.String()
}
