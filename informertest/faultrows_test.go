package informertest_test

import (
	"testing"
	"time"

	"github.com/seed-99a027e8/informer/informertest"
)

// end is how many frames a streaming list of a and b has.
const end = 3

// longestWatch is when, after the writes, a watch that began at the start has
// been abandoned for sure, and the one after it has not ended.
const longestWatch = 9*time.Minute + 11*time.Second

// faultRows returns the rows of FAULTS.md.
func faultRows() []faultRow {
	stream := func(r rule) []rule { r.Verb, r.Times = "stream", 1; return []rule{r} }
	list := func(r rule) []rule { r.Verb, r.Times = "list", 1; return []rule{r} }
	watch := func(r rule) []rule { r.Verb, r.Times = "watch", 1; return []rule{r} }
	first3 := []rule{{Times: 3}}
	always := []rule{{}}
	fails := "asked again after a pause"
	return []faultRow{
		{fault: "refused", strikes: "the first three requests", does: fails, rules: first3},
		{fault: "drop", strikes: "the first three requests", does: fails, rules: first3},
		{fault: "drop", strikes: "a watch", does: "resumed", plain: true, rules: watch(rule{})},
		{fault: "delay=5s", strikes: "all", does: "nothing", rules: always},
		{fault: "hang", strikes: "the streaming list", does: "after 30 s a plain list", rules: stream(rule{})},
		{fault: "hang", strikes: "the list", does: "given up after 5 min", plain: true, rules: list(rule{}), after: 6 * time.Minute},
		{fault: "hang", strikes: "a watch", does: "abandoned and resumed", plain: true, rules: watch(rule{}), lasts: longestWatch},
		{fault: "halfopen", strikes: "the streaming list", does: "after 30 s a plain list", rules: stream(rule{After: 1})},
		{fault: "halfopen", strikes: "after the streaming list", does: "abandoned and resumed", rules: stream(rule{After: end}), lasts: longestWatch},
		{fault: "halfopen", strikes: "the list", does: "given up after 5 min", plain: true, rules: list(rule{After: 1}), after: 6 * time.Minute},
		{fault: "cut", strikes: "the streaming list", does: "a plain list", rules: stream(rule{After: 1})},
		{fault: "cut", strikes: "the list", does: "listed again", plain: true, rules: list(rule{After: 1})},
		{fault: "cut", strikes: "an event", does: "resumed", rules: stream(rule{After: end + 1})},
		{fault: "eof", strikes: "the streaming list", does: "a plain list", rules: stream(rule{After: 1})},
		{fault: "eof", strikes: "the list", does: "listed again", plain: true, rules: list(rule{After: 1})},
		{fault: "eof", strikes: "between two events", does: "resumed", rules: stream(rule{After: end + 1})},
		{fault: "truncated", strikes: "the streaming list", does: "a plain list", rules: stream(rule{After: 1})},
		{fault: "truncated", strikes: "the list", does: "listed again", plain: true, rules: list(rule{After: 1})},
		{fault: "truncated", strikes: "an event", does: "resumed", rules: stream(rule{After: end + 1})},
		{fault: "slow=2s", strikes: "all", does: "nothing", rules: always},
		{fault: "close", strikes: "the streaming list", does: "a plain list", rules: stream(rule{After: 1})},
		{fault: "close", strikes: "each watch, after an event", does: "resumed, no faster than once a second", rules: []rule{{Verb: "stream", After: end + 1}, {Verb: "watch", After: 1}}},
		{fault: "close", strikes: "each watch, at once", does: "resumed, no faster than once a second", rules: []rule{{Verb: "stream", After: end}, {Verb: "watch"}}, shown: 7},
		{fault: "gateway=3s", strikes: "all watches", does: "resumed, no faster than once a second", rules: always, shown: 7},

		{fault: "expired", strikes: "the streaming list", does: "a plain list", rules: stream(rule{})},
		{fault: "expired", strikes: "the list", does: "listed at the most recent version", plain: true, rules: list(rule{})},
		{fault: "expired", strikes: "page 2", does: "listed again", page: 1, plain: true, rules: list(rule{Page: 2})},
		{fault: "expired", strikes: "a watch", does: "listed", plain: true, rules: watch(rule{})},
		{fault: "expired", strikes: "a watch, as an event", does: "listed", rules: stream(rule{After: end})},
		{fault: "expired", strikes: "all", does: "listed again and again, with pauses", rules: always, shown: 5},
		{fault: "toolarge", strikes: "the streaming list", does: "a plain list", rules: stream(rule{})},
		{fault: "toolarge", strikes: "the list", does: "listed at the most recent version", plain: true, rules: list(rule{})},
		{fault: "toolarge", strikes: "a watch", does: "listed at the most recent version", plain: true, rules: watch(rule{})},
		{fault: "toolarge", strikes: "a watch, as an event", does: "listed at the most recent version", rules: stream(rule{After: end})},
		{fault: "toomany", strikes: "the streaming list", does: "a plain list after a pause", rules: stream(rule{})},
		{fault: "toomany=7s", strikes: "the streaming list", does: "the pause is at least as long", rules: stream(rule{})},
		{fault: "toomany=7s", strikes: "the list", does: "the pause is at least as long", plain: true, rules: list(rule{})},
		{fault: "toomany=7s", strikes: "a watch", does: "the pause is at least as long", plain: true, rules: watch(rule{})},
		{fault: "internal", strikes: "the first three requests", does: fails, rules: first3},
		{fault: "internal", strikes: "a watch, as an event", does: "resumed", rules: stream(rule{After: end})},
		{fault: "internal", strikes: "the streaming list, as an event", does: "a plain list", rules: stream(rule{After: 1})},
		{fault: "unavailable", strikes: "the first three requests", does: fails, rules: first3},
		{fault: "timeout", strikes: "the first three requests", does: fails, rules: first3},
		{fault: "unauthorized", strikes: "the first three requests", does: fails, rules: first3},
		{fault: "unauthorized", strikes: "a watch, as an event", does: "resumed", rules: stream(rule{After: end})},
		{fault: "forbidden", strikes: "the first three requests", does: fails, rules: first3},
		{fault: "forbidden", strikes: "three watches", does: "resumed", plain: true, rules: []rule{{Verb: "watch", Times: 3}}},
		{fault: "notfound", strikes: "the first three requests", does: "asked again after 15 to 30 s", rules: first3, after: 3 * time.Minute},
		{fault: "notfound", strikes: "three watches", does: "the cache is kept; asked again after 15 to 30 s", plain: true, rules: []rule{{Verb: "watch", Times: 3}}, after: 3 * time.Minute},
		{fault: "notallowed", strikes: "the streaming list", does: "a plain list, and no streaming list any more", rules: stream(rule{}), writes: relisted},
		{fault: "notallowed", strikes: "watches but the first", does: "Run ends", plain: true, rules: []rule{{Verb: "watch", Skip: 1}, {Fault: "gateway=30s", Verb: "watch"}}},
		{fault: "invalid", strikes: "the streaming list", does: "a plain list, and no streaming list any more", rules: stream(rule{}), writes: relisted},
		{fault: "invalid", strikes: "a watch", does: "listed at the most recent version", plain: true, rules: watch(rule{})},

		{fault: "ignored", strikes: "all streaming lists", does: "after 30 s a plain list, and no streaming list any more", rules: always, writes: relisted},
		{fault: "nobookmarks", strikes: "all", does: "after two watches without a word, the server is asked for its version", rules: always, writes: nothing, lasts: 45 * time.Minute, shown: 4},
		{fault: "table", strikes: "the streaming list", does: "Run ends; of a client, a plain list", rules: stream(rule{})},
		{fault: "table", strikes: "the list", does: "Run ends; of a client, listed again", plain: true, rules: list(rule{})},
		{fault: "table", strikes: "events", does: "bad objects; of a client, resumed", rules: stream(rule{After: end})},
		{fault: "wrongkind", strikes: "the streaming list", does: "Run ends", rules: stream(rule{})},
		{fault: "wrongkind", strikes: "the list", does: "Run ends; of a client, listed again", plain: true, rules: list(rule{})},
		{fault: "wrongkind", strikes: "events", does: "bad objects", rules: stream(rule{After: end})},
		{fault: "garbage", strikes: "the streaming list", does: "a plain list", rules: stream(rule{})},
		{fault: "garbage", strikes: "the list", does: "listed again", plain: true, rules: list(rule{})},
		{fault: "garbage", strikes: "a watch", does: "resumed", plain: true, rules: watch(rule{})},
		{fault: "malformed", strikes: "a of the streaming list", does: "one bad object; of a client, a plain list", rules: stream(rule{})},
		{fault: "malformed", strikes: "a of the list", does: "one bad object; of a client, listed again", plain: true, rules: list(rule{})},
		{fault: "malformed", strikes: "the event of c", does: "one bad object; of a client, resumed", rules: stream(rule{Key: key("c")})},
		{fault: "twice", strikes: "a of the streaming list", does: "the later one counts", rules: stream(rule{})},
		{fault: "twice", strikes: "a of the list", does: "the second one is a bad object", plain: true, rules: list(rule{})},
		{fault: "nameless", strikes: "a of the list", does: "one bad object", plain: true, rules: list(rule{})},
		{fault: "nameless", strikes: "the event of a", does: "one bad object", rules: stream(rule{After: end})},
		{fault: "versionless", strikes: "a of the list", does: "nothing", plain: true, rules: list(rule{})},
		{fault: "versionless", strikes: "the event of a", does: "nothing", rules: stream(rule{After: end})},
		{fault: "unversioned", strikes: "the streaming list", does: "a plain list", rules: stream(rule{})},
		{fault: "unversioned", strikes: "the list", does: "listed again", plain: true, rules: list(rule{})},
		{fault: "duplicate", strikes: "all events", does: "an event of the version that is known changes nothing", rules: always},
		{fault: "reorder", strikes: "all events", does: "events of lower versions are dropped", rules: stream(rule{After: end})},

		{fault: "restored", strikes: "after the writes", does: "found out, and listed in a new epoch", rules: nil, writes: restored, lasts: 40 * time.Minute, shown: 5},
		{fault: "stale", strikes: "the first list", does: "followed from there", plain: true, rules: list(rule{Version: "105"})},
		{fault: "stale=always", strikes: "the list after an expiry", does: "listed at the most recent version", writes: staleAlways},
		{fault: "reborn", strikes: "between two lists", does: "deleted and added", writes: reborn},
		{fault: "reborn", strikes: "a later watch", does: "deleted and added", plain: true, rules: []rule{{Fault: "gateway=30s", Verb: "watch", Times: 1}, {Verb: "watch", Times: 1, Key: key("a")}}},
		{fault: "compacted", strikes: "a watch that is behind", does: "listed", writes: compacted},
	}
}

func nothing(*testing.T, *informertest.Server) {}

// cutOff ends all watches, and does something before the next one succeeds.
func cutOff(t *testing.T, srv *informertest.Server, meanwhile func()) {
	t.Helper()
	inject(t, srv, rule{Fault: "unavailable", Times: 1})
	srv.EndWatches()
	pass(500 * time.Millisecond) // less than the pause after a failure
	meanwhile()
}

// relisted makes a new list necessary.
func relisted(t *testing.T, srv *informertest.Server) {
	cutOff(t, srv, func() {
		writeAll(t, srv)
		inject(t, srv, rule{Fault: "expired", Verb: "watch", Times: 1})
	})
}

func restored(t *testing.T, srv *informertest.Server) {
	before := srv.Version()
	writeAll(t, srv)
	pass(time.Minute)
	if err := srv.Restore(before); err != nil {
		t.Fatal(err)
	}
	update(t, srv, configMap("b", "v=3"))
}

func staleAlways(t *testing.T, srv *informertest.Server) {
	before := srv.Version()
	writeAll(t, srv)
	pass(time.Minute)
	cutOff(t, srv, func() {
		inject(t, srv,
			rule{Fault: "expired", Verb: "watch", Times: 1},
			rule{Fault: "stale=always", Verb: "stream", Times: 1, Version: before})
	})
}

func reborn(t *testing.T, srv *informertest.Server) {
	cutOff(t, srv, func() {
		inject(t, srv,
			rule{Fault: "expired", Verb: "watch", Times: 1},
			rule{Fault: "reborn", Verb: "stream", Times: 1, Key: key("a")})
	})
}

func compacted(t *testing.T, srv *informertest.Server) {
	cutOff(t, srv, func() {
		writeAll(t, srv)
		inject(t, srv, rule{Fault: "compacted", Verb: "watch", Times: 1})
	})
}
