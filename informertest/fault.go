package informertest

import (
	"fmt"
	"strings"
	"time"
)

// A Fault is something that goes wrong on purpose. It is a word, in some cases
// with a value behind it: "drop", "delay=5s". [Server.Inject] and [Chaos] make a
// [Server] do it; lines of a [Script] use the same words. The table in the
// package's documentation says what package informer does about each.
type Fault string

// Faults of requests and of whole answers.
const (
	// FaultRefused refuses the connection. It works for clients made of
	// [Server.Config] only, and not by chaos.
	FaultRefused Fault = "refused"
	// FaultDrop closes the connection in the header of the answer, so that no
	// transport tries again by itself.
	FaultDrop Fault = "drop"
	// FaultDelay lets some time pass before the request is looked at: "delay=5s".
	FaultDelay Fault = "delay"
	// FaultHang never answers.
	FaultHang Fault = "hang"
	// FaultHalfOpen lets an answer begin and then swallows the rest, and the end.
	FaultHalfOpen Fault = "halfopen"
	// FaultCut closes the connection in the middle of an object.
	FaultCut Fault = "cut"
	// FaultEOF closes the connection between two objects.
	FaultEOF Fault = "eof"
	// FaultTruncated ends the body in the middle of an object, as if that were
	// all.
	FaultTruncated Fault = "truncated"
	// FaultSlow sends each object in two halves, some time apart: "slow=2s".
	FaultSlow Fault = "slow"
	// FaultClose ends a stream as a server does that shuts down.
	FaultClose Fault = "close"
	// FaultGateway ends a stream in the same way after some time: "gateway=3s".
	FaultGateway Fault = "gateway"
)

// Faults that are errors: a status for the whole answer, or in a stream an ERROR
// event.
const (
	// FaultExpired is 410: the version, or the token of a page, is too old.
	FaultExpired Fault = "expired"
	// FaultTooLarge is 504: the server has not reached the version.
	FaultTooLarge Fault = "toolarge"
	// FaultTooMany is 429; with a value, "toomany=3s", it says when to come back.
	FaultTooMany Fault = "toomany"
	// FaultInternal is 500.
	FaultInternal Fault = "internal"
	// FaultUnavailable is 503.
	FaultUnavailable Fault = "unavailable"
	// FaultTimeout is 504.
	FaultTimeout Fault = "timeout"
	// FaultUnauthorized is 401.
	FaultUnauthorized Fault = "unauthorized"
	// FaultForbidden is 403.
	FaultForbidden Fault = "forbidden"
	// FaultNotFound is 404: the server does not know the resource.
	FaultNotFound Fault = "notfound"
	// FaultNotAllowed is 405: the resource has no such verb.
	FaultNotAllowed Fault = "notallowed"
	// FaultInvalid is 422, as old servers answer streaming lists.
	FaultInvalid Fault = "invalid"
)

// Faults of what an answer says.
const (
	// FaultIgnored leaves out the bookmark that ends the initial events of a
	// streaming list.
	FaultIgnored Fault = "ignored"
	// FaultNoBookmarks leaves out all other bookmarks.
	FaultNoBookmarks Fault = "nobookmarks"
	// FaultTable sends tables, as made for kubectl.
	FaultTable Fault = "table"
	// FaultWrongKind sends objects of another kind.
	FaultWrongKind Fault = "wrongkind"
	// FaultGarbage sends a page of HTML, with status 200.
	FaultGarbage Fault = "garbage"
	// FaultMalformed sends labels that are no map, in one object.
	FaultMalformed Fault = "malformed"
	// FaultTwice sends one item of a list twice.
	FaultTwice Fault = "twice"
	// FaultNameless sends one object without its name.
	FaultNameless Fault = "nameless"
	// FaultVersionless sends one object without its version.
	FaultVersionless Fault = "versionless"
	// FaultUnversioned sends a list, or the end of a streaming one, without a
	// version.
	FaultUnversioned Fault = "unversioned"
	// FaultDuplicate sends each event twice.
	FaultDuplicate Fault = "duplicate"
	// FaultReorder swaps each two events.
	FaultReorder Fault = "reorder"
)

// Faults of the server's state. All but FaultStale are real: they change the
// server, before it answers the request.
const (
	// FaultRestored is [Server.Restore] to the version of the rule.
	FaultRestored Fault = "restored"
	// FaultStale answers lists that allow it with the state at the version of
	// the rule, as a replica that lags behind does. "stale=always" does so
	// whatever a list asks for, but for continuations.
	FaultStale Fault = "stale"
	// FaultReborn is [Server.Recreate] of the object that the rule names.
	FaultReborn Fault = "reborn"
	// FaultCompacted is [Server.Compact].
	FaultCompacted Fault = "compacted"
)

// For returns the fault with a time, such as "delay=5s".
func (f Fault) For(d time.Duration) Fault { return f + "=" + Fault(d.String()) }

// Word returns the fault without its value.
func (f Fault) Word() Fault {
	word, _, _ := strings.Cut(string(f), "=")
	return Fault(word)
}

// Faults returns all words, in the order of the documentation.
func Faults() []Fault {
	var all []Fault
	for _, w := range vocabulary() {
		all = append(all, w.fault)
	}
	return all
}

// verbs is a set of kinds of requests.
type verbs uint8

const (
	onList   verbs = 1 << iota // a list that is no watch
	onWatch                    // a watch
	onStream                   // a watch that begins with a list
	onOther                    // all else

	onLists   = onList | onStream
	onStreams = onWatch | onStream
	onRead    = onLists | onStreams
	onAll     = onRead | onOther
)

// verbsOf returns the set of one verb.
func verbsOf(verb string) verbs {
	switch verb {
	case "list":
		return onList
	case "watch":
		return onWatch
	case "stream":
		return onStream
	}
	return onOther
}

// value says what may stand behind a word.
type value uint8

const (
	noValue    value = iota
	mayWait          // a time, at least a second
	mustWait         // a time
	mayAlways        // "always"
	needsPoint       // nothing, but the rule must say which version
	needsKey         // nothing, but the rule must say which object
)

// word is what is known of a word.
type word struct {
	fault Fault
	on    verbs          // that it makes sense for
	value value          // behind it
	serve func(exchange) // answers a request with the fault
}

// vocabulary returns all words.
func vocabulary() []word {
	return []word{
		{FaultRefused, onAll, noValue, exchange.drop},
		{FaultDrop, onAll, noValue, exchange.drop},
		{FaultDelay, onAll, mustWait, exchange.delay},
		{FaultHang, onAll, noValue, exchange.hang},
		{FaultHalfOpen, onRead, noValue, exchange.alter},
		{FaultCut, onRead, noValue, exchange.alter},
		{FaultEOF, onRead, noValue, exchange.alter},
		{FaultTruncated, onRead, noValue, exchange.alter},
		{FaultSlow, onRead, mustWait, exchange.alter},
		{FaultClose, onStreams, noValue, exchange.alter},
		{FaultGateway, onStreams, mustWait, exchange.gateway},

		{FaultExpired, onAll, noValue, exchange.refuse},
		{FaultTooLarge, onAll, noValue, exchange.refuse},
		{FaultTooMany, onAll, mayWait, exchange.refuse},
		{FaultInternal, onAll, noValue, exchange.refuse},
		{FaultUnavailable, onAll, noValue, exchange.refuse},
		{FaultTimeout, onAll, noValue, exchange.refuse},
		{FaultUnauthorized, onAll, noValue, exchange.refuse},
		{FaultForbidden, onAll, noValue, exchange.refuse},
		{FaultNotFound, onAll, noValue, exchange.refuse},
		{FaultNotAllowed, onAll, noValue, exchange.refuse},
		{FaultInvalid, onAll, noValue, exchange.refuse},

		{FaultIgnored, onStream, noValue, exchange.alter},
		{FaultNoBookmarks, onStreams, noValue, exchange.alter},
		{FaultTable, onRead, noValue, exchange.alter},
		{FaultWrongKind, onRead, noValue, exchange.alter},
		{FaultGarbage, onRead, noValue, exchange.alter},
		{FaultMalformed, onRead, noValue, exchange.alter},
		{FaultTwice, onLists, noValue, exchange.alter},
		{FaultNameless, onRead, noValue, exchange.alter},
		{FaultVersionless, onRead, noValue, exchange.alter},
		{FaultUnversioned, onLists, noValue, exchange.alter},
		{FaultDuplicate, onStreams, noValue, exchange.alter},
		{FaultReorder, onStreams, noValue, exchange.alter},

		{FaultRestored, onRead, needsPoint, exchange.change},
		{FaultStale, onLists, mayAlways, exchange.stale},
		{FaultReborn, onRead, needsKey, exchange.change},
		{FaultCompacted, onRead, noValue, exchange.change},
	}
}

// parse returns what is known of the fault, and the time in it.
func (f Fault) parse() (word, time.Duration, error) {
	name, text, given := strings.Cut(string(f), "=")
	for _, w := range vocabulary() {
		if string(w.fault) != name {
			continue
		}
		wait, err := w.value.parse(text, given)
		if err != nil {
			return w, 0, fmt.Errorf("Fault is %q: %w", f, err)
		}
		return w, wait, nil
	}
	return word{}, 0, fmt.Errorf("Fault is %q: not a known word", f)
}

// parse returns the time that a value is.
func (v value) parse(text string, given bool) (time.Duration, error) {
	switch {
	case v == mustWait, v == mayWait && given:
		wait, err := time.ParseDuration(text)
		if err == nil && (wait <= 0 || v == mayWait && wait < time.Second) {
			err = fmt.Errorf("%v is too short", wait)
		}
		return wait, err
	case v == mayAlways && text == "always", !given:
		return 0, nil
	}
	return 0, fmt.Errorf("value %q makes no sense", text)
}
