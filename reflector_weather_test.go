package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// reflWeathers names what a reflServer may do to requests; see answer.
var reflWeathers = []string{
	"good", "refused", "500", "429/3", "401", "404", "decode", "410", "large", "[",
	"hang", "close", "one", "cut", "invalid", "noversion", "stale", "replay", "bad",
	"pages", "pages410", "sametoken", "compact", "restore",
}

// reflWeather is one kind of weather, for a time.
type reflWeather struct {
	kind    string
	minutes int
}

// reflState is the state of one object on a reflServer.
type reflState struct {
	version int
	bad     bool
}

// reflWrite is one write, as a watch tells it.
type reflWrite struct {
	reflState
	name string
	how  informer.EventType
}

// reflSnapshot is the state of a reflServer at a version. It is not changed.
type reflSnapshot struct {
	version int
	objects map[string]reflState
}

// reflServer behaves as an API server with a write every 7 s, as far as the
// weather lets it. It belongs to the goroutine of Run.
type reflServer struct {
	ctx      context.Context // of Run
	start    time.Time
	forecast []reflWeather
	changes  int // of the weather, so far

	now       reflSnapshot
	past      []reflSnapshot // of this epoch
	history   []reflWrite
	compacted int // history begins after this version
	epoch     int
	writes    int

	requests []time.Time // but for pages after the first
	at       string      // the version that the last list was read at
	failures int         // that are to be reported
}

func newReflServer(ctx context.Context, forecast []reflWeather) *reflServer {
	const first = 9_000_000
	return &reflServer{
		ctx: ctx, start: time.Now(), forecast: forecast, compacted: first,
		now: reflSnapshot{version: first, objects: map[string]reflState{"z": {version: first}}},
	}
}

// weather returns the weather of this moment, and catches up with all writes
// that have been due, and with what weathers do as they begin.
func (s *reflServer) weather() string {
	since := time.Since(s.start)
	kind, begin := "good", time.Duration(0)
	for i, w := range s.forecast {
		if begin > since {
			break
		}
		kind = w.kind
		s.writeUntil(begin, kind)
		if i >= s.changes {
			s.changes++
			s.change(kind)
		}
		begin += time.Duration(w.minutes) * time.Minute
	}
	if begin <= since {
		kind = "good"
	}
	s.writeUntil(since, kind)
	return kind
}

// change does what a weather does when it begins.
func (s *reflServer) change(kind string) {
	switch kind {
	case "compact":
		s.history, s.past, s.compacted = nil, nil, s.now.version
	case "restore":
		s.now.version -= 1_000_000
		s.now.objects = map[string]reflState{"r": {version: s.now.version}}
		s.history, s.past, s.compacted = nil, nil, s.now.version
		s.epoch++
	}
}

// writeUntil does all writes that have been due since the start.
func (s *reflServer) writeUntil(since time.Duration, kind string) {
	for ; time.Duration(s.writes+1)*7*time.Second <= since; s.writes++ {
		s.past = append(s.past, s.now)
		next := reflSnapshot{s.now.version + 1, maps.Clone(s.now.objects)}
		w := reflWrite{reflState{next.version, kind == "bad"}, string(rune('a' + s.writes%6)), informer.EventModified}
		_, exists := next.objects[w.name]
		switch {
		case exists && s.writes%4 == 0:
			w.how = informer.EventDeleted
			w.bad = false
			delete(next.objects, w.name)
		case !exists:
			w.how = informer.EventAdded
			fallthrough
		default:
			next.objects[w.name] = w.reflState
		}
		s.now, s.history = next, append(s.history, w)
	}
}

// event returns what is told of w.
func (w reflWrite) event() (informer.Event[reflObj], error) {
	ev := informer.EventOf(w.how, reflObj{w.name, strconv.Itoa(w.version)})
	if !w.bad {
		return ev, nil
	}
	ev.Type, ev.Object = informer.EventBad, reflObj{}
	return ev, &informer.ObjectError{Key: ev.Key, Err: errors.New("bad bytes")}
}

type reflYield = func(informer.Event[reflObj], error) bool

// fails ends a request with an error that is to be reported.
func (s *reflServer) fails(yield reflYield, err error) {
	if s.ctx.Err() == nil {
		s.failures++
	}
	yield(informer.Event[reflObj]{}, err)
}

// hang waits until the reflector gives up.
func (s *reflServer) hang(ctx context.Context, yield reflYield, watching bool) {
	<-ctx.Done()
	if watching {
		yield(informer.Event[reflObj]{}, ctx.Err())
		return
	}
	s.fails(yield, ctx.Err())
}

// answer does to a request what the weather does to any, and reports whether
// that was all. The watching is a watch, or a streaming list after its end.
func (s *reflServer) answer(ctx context.Context, kind string, watching bool, yield reflYield) bool {
	switch kind {
	case "refused", "500", "429/3", "401", "404", "decode":
		s.fails(yield, reflError(kind))
	case "410", "large":
		yield(informer.Event[reflObj]{}, reflError(kind))
	case "[":
		s.failures++
		yield(informer.Event[reflObj]{Type: informer.EventBegin}, nil)
	case "hang":
		s.hang(ctx, yield, watching)
	case "close":
		if !watching && s.ctx.Err() == nil {
			s.failures++
		}
	default:
		return false
	}
	return true
}

func (s *reflServer) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[reflObj], error] {
	return func(yield reflYield) {
		kind := s.weather()
		if opts.Continue == "" {
			s.requests = append(s.requests, time.Now())
			s.at = opts.ResourceVersion
		}
		if s.answer(ctx, kind, false, yield) {
			return
		}
		read, ok := s.read(opts, kind, yield)
		if !ok {
			return
		}
		names := slices.Sorted(maps.Keys(read.objects))
		end := informer.Event[reflObj]{Type: informer.EventEnd, Version: strconv.Itoa(read.version)}
		from, _ := strconv.Atoi(opts.Continue)
		switch {
		case kind == "pages410" && opts.Continue != "":
			yield(informer.Event[reflObj]{}, reflError("410"))
			return
		case kind == "sametoken":
			end.Continue = "same"
			if opts.Continue == "same" {
				s.failures++
			}
		case from > len(names):
			from = len(names)
		}
		names = names[from:]
		if (kind == "pages" || kind == "pages410") && len(names) > 2 {
			names, end.Continue = names[:2], strconv.Itoa(from+2)
		}
		if !s.items(names, read, informer.EventAdded, kind, yield) {
			return
		}
		if kind == "noversion" && opts.Limit > 1 { // not the probe, which needs none
			s.failures++
			end.Version = ""
		}
		yield(end, nil)
	}
}

// read returns the state that a list is of.
func (s *reflServer) read(opts metav1.ListOptions, kind string, yield reflYield) (reflSnapshot, bool) {
	version, _ := strconv.Atoi(opts.ResourceVersion)
	stale := kind == "stale" && opts.ResourceVersion != "" && len(s.past) > 0
	switch {
	case stale:
		return s.past[max(0, len(s.past)-5)], true
	case version > s.now.version && opts.SendInitialEvents == nil:
		yield(informer.Event[reflObj]{}, reflError("large"))
		return reflSnapshot{}, false
	}
	return s.now, true
}

// items yields the objects of a list, and reports whether it goes on.
func (s *reflServer) items(names []string, read reflSnapshot, how informer.EventType, kind string, yield reflYield) bool {
	for i, name := range names {
		if kind == "cut" && i == len(names)/2 {
			s.fails(yield, errors.New("connection reset"))
			return false
		}
		if !yield(reflWrite{read.objects[name], name, how}.event()) {
			return false
		}
	}
	return true
}

func (s *reflServer) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[reflObj], error] {
	return func(yield reflYield) {
		kind := s.weather()
		s.requests = append(s.requests, time.Now())
		streaming := opts.SendInitialEvents != nil
		from, _ := strconv.Atoi(opts.ResourceVersion)
		if streaming {
			s.at = opts.ResourceVersion
		}
		if s.answer(ctx, kind, !streaming, yield) {
			return
		}
		if streaming {
			if kind == "invalid" {
				yield(informer.Event[reflObj]{}, reflError("invalid"))
				return
			}
			read, _ := s.read(opts, kind, yield)
			if !s.items(slices.Sorted(maps.Keys(read.objects)), read, informer.EventAdded, kind, yield) {
				return
			}
			if from > read.version && kind != "stale" {
				s.hang(ctx, yield, false)
				return
			}
			from = read.version
			if !yield(informer.Event[reflObj]{Type: informer.EventEnd, Version: strconv.Itoa(from)}, nil) {
				return
			}
		}
		s.follow(ctx, from, kind, time.Duration(*opts.TimeoutSeconds)*time.Second, yield)
	}
}

// follow yields what happens after version from, until the time is over.
func (s *reflServer) follow(ctx context.Context, from int, kind string, timeout time.Duration, yield reflYield) {
	if from < s.compacted {
		yield(informer.Event[reflObj]{}, reflError("410"))
		return
	}
	start, epoch, reached := time.Now(), s.epoch, from <= s.now.version
	if kind == "replay" {
		from = max(s.compacted, from-3)
	}
	for time.Since(start) < timeout {
		s.weather()
		if epoch != s.epoch {
			s.fails(yield, errors.New("server restarted"))
			return
		}
		for _, w := range s.history {
			if !reached || w.version <= from {
				continue
			}
			from = w.version
			if !yield(w.event()) || kind == "one" {
				return
			}
			if kind == "cut" {
				s.fails(yield, errors.New("connection reset"))
				return
			}
		}
		if reached && !yield(informer.Event[reflObj]{Type: informer.EventBookmark, Version: strconv.Itoa(from)}, nil) {
			return
		}
		select {
		case <-time.After(7*time.Second - time.Since(s.start)%(7*time.Second)):
		case <-ctx.Done():
			yield(informer.Event[reflObj]{}, ctx.Err())
			return
		}
	}
}

// reflFold folds a stream to the cache that it describes, and notes what breaks
// the rules.
type reflFold struct {
	server  *reflServer
	cache   map[string]string // versions
	staged  map[string]string // nil outside a list
	synced  bool
	reached int
	broken  []string
}

// apply takes one event.
func (f *reflFold) apply(ev informer.Event[reflObj]) error {
	listing := f.staged != nil
	version, _ := strconv.Atoi(ev.Version)
	to := f.cache
	if listing {
		to = f.staged
	}
	switch {
	case ev.Type == informer.EventBegin:
		f.staged = map[string]string{}
		return nil
	case !listing && !f.synced, listing && ev.Type == informer.EventBookmark:
		f.broken = append(f.broken, fmt.Sprintf("%v may not come here", ev.Type))
	case !listing && ev.Type != informer.EventEnd:
		if version < f.reached {
			f.broken = append(f.broken, fmt.Sprintf("%v of %d after %d", ev.Type, version, f.reached))
		}
		f.reached = version
	}
	switch ev.Type {
	case informer.EventAdded, informer.EventModified:
		to[ev.Key.Name] = ev.Version
	case informer.EventDeleted:
		delete(to, ev.Key.Name)
	case informer.EventBad:
		if old, ok := f.cache[ev.Key.Name]; ok {
			to[ev.Key.Name] = old
		}
	case informer.EventEnd:
		if !listing || ev.Continue != "" || version < f.reached && f.server.at != "" {
			f.broken = append(f.broken, fmt.Sprintf("End at %d after %d, read at %q", version, f.reached, f.server.at))
		}
		f.cache, f.staged, f.synced, f.reached = f.staged, nil, true, version
	}
	return nil
}

// diff returns how the cache differs from the server, but for bad objects.
func (f *reflFold) diff() (diffs []string) {
	for name, state := range f.server.now.objects {
		if !state.bad && f.cache[name] != strconv.Itoa(state.version) {
			diffs = append(diffs, fmt.Sprintf("%s is %q, want %d", name, f.cache[name], state.version))
		}
	}
	for name := range f.cache {
		if _, ok := f.server.now.objects[name]; !ok {
			diffs = append(diffs, name+" is a ghost")
		}
	}
	return diffs
}

// fastest returns the most requests in any window of d.
func (s *reflServer) fastest(d time.Duration) int {
	most, first := 0, 0
	for i, at := range s.requests {
		for at.Sub(s.requests[first]) >= d {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestReflectorAnyWeather: whatever a server does for hours, the stream keeps
// its grammar and never goes backwards (promises 2 and 4), requests stay rare
// (promise 9), every failure is reported once (promise 20), and when the server
// behaves again, the stream describes it (promise 3).
func TestReflectorAnyWeather(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var forecast []reflWeather
		for range rapid.IntRange(1, 12).Draw(rt, "periods") {
			forecast = append(forecast, reflWeather{
				rapid.SampledFrom(reflWeathers).Draw(rt, "weather"),
				rapid.IntRange(1, 40).Draw(rt, "minutes"),
			})
		}
		size := rapid.SampledFrom([]int{0, 0, 2}).Draw(rt, "page size")
		var wrong []string
		synctest.Test(t, func(t *testing.T) { wrong = reflSimulate(t, forecast, size) })
		for _, text := range wrong {
			rt.Error(text)
		}
	})
}

// reflSimulate runs a reflector through the forecast and an hour of good
// weather, and returns what went wrong.
func reflSimulate(t *testing.T, forecast []reflWeather, size int) (wrong []string) {
	total := time.Hour + time.Second
	for _, w := range forecast {
		total += time.Duration(w.minutes) * time.Minute
	}
	ctx, cancel := contextFor(t, total)
	defer cancel()
	server := newReflServer(ctx, forecast)
	fold := &reflFold{server: server, cache: map[string]string{}}
	reports := 0
	r, err := informer.NewReflector(server, fold.apply, informer.Options{PageSize: size, OnFailure: func(f informer.Failure) error {
		if f.Attempt > 0 {
			reports++
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		wrong = append(wrong, fmt.Sprintf("Run() = %v", err))
	}
	wrong = append(wrong, fold.broken...)
	wrong = append(wrong, fold.diff()...)
	if reports != server.failures {
		wrong = append(wrong, fmt.Sprintf("%d failures were reported, want %d", reports, server.failures))
	}
	if n := server.fastest(800 * time.Millisecond); n > 5 {
		wrong = append(wrong, fmt.Sprintf("%d requests came in 800 ms", n))
	}
	if n := server.fastest(time.Minute); n > 100 {
		wrong = append(wrong, fmt.Sprintf("%d requests came in a minute", n))
	}
	return wrong
}
