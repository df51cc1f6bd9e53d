package informertest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Rule says which requests a fault strikes, and where. The zero value of each
// field but Fault means that it does not matter.
//
//	{Fault: "expired", Verb: "watch", Times: 1}  the next watch is answered 410
//	{Fault: "cut", Verb: "list", Page: 2, After: 3}
//	                        page 2 of each list breaks off in its fourth object
//	{Fault: "forbidden", Resource: "secrets"}    no list or watch of secrets succeeds
//
// Only requests for resources are struck, discovery is not.
type Rule struct {
	// Fault is what happens. Without it, a rule is an error.
	Fault Fault

	// Verb is the kind of request: "list", "watch", "stream" for a streaming
	// list, or "get", "create", "update", "patch", "delete" and
	// "deletecollection".
	//
	// Default: all of the first three that the fault makes sense for.
	Verb string

	// Resource is the name of the resource, such as "pods".
	//
	// Default: any.
	Resource string

	// Page is the page of a list, from 1.
	//
	// Default: any.
	Page int

	// Match is asked last whether a request is meant. It may be called for
	// several requests at a time.
	//
	// Default: yes.
	Match func(*http.Request) bool

	// Skip is how many requests that fit are spared at first.
	Skip int

	// Times is how many requests are struck. A stream that ends before After
	// counts too.
	//
	// Default: all.
	Times int

	// After is how many objects or events of the answer, bookmarks included,
	// come as they should before the fault strikes.
	After int

	// InStream makes an error strike as an ERROR event even when After is 0:
	// the watch itself is answered 200.
	InStream bool

	// Key is the object that is meant by FaultMalformed, FaultTwice,
	// FaultNameless, FaultVersionless and FaultReborn.
	//
	// Default: the one after After; FaultReborn needs one.
	Key types.NamespacedName

	// Version is the state that FaultRestored and FaultStale go back to, one
	// that [Server.Version] has returned.
	Version string
}

// Inject makes faults happen from the next request on, until remove is called.
// A request is struck by the first rule that fits it and is not used up, in
// the order in which they were injected. It returns an error that names the
// fields if a rule makes no sense; then none is injected.
//
// [Request].Fault tells which fault has struck.
func (s *Server) Inject(rules ...Rule) (remove func(), err error) {
	var errs []error
	added := make([]*activeRule, len(rules))
	for i, rule := range rules {
		added[i], err = s.newRule(rule)
		if err != nil {
			errs = append(errs, fmt.Errorf("informertest: rule %d: %w", i+1, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return func() {}, err
	}
	s.faults.change(func(rules []*activeRule) []*activeRule { return append(rules, added...) })
	remove = func() {
		s.faults.change(func(rules []*activeRule) []*activeRule {
			return slices.DeleteFunc(rules, func(r *activeRule) bool { return slices.Contains(added, r) })
		})
	}
	return remove, nil
}

// Calm ends all faults, those of chaos too: from the next request on the server
// is well. Answers that have begun go on as they are.
func (s *Server) Calm() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.rules, s.faults.chaos.Rate = nil, 0
}

// faults are the rules of a server.
type faults struct {
	mu    sync.Mutex    // guards the fields below, and the counts of rules
	rules []*activeRule // this slice is never changed, only replaced
	chaos Chaos
	drawn uint64 // requests that chaos has seen
}

// activeRule is a rule with what has become of it.
type activeRule struct {
	strike
	skip, left int // left is negative if it has no end
}

// strike is a fault that happens to a request.
type strike struct {
	Rule
	word word
	wait time.Duration // behind the word
}

// newRule returns a rule ready for use, or every mistake in it.
func (s *Server) newRule(rule Rule) (*activeRule, error) {
	word, wait, err := rule.Fault.parse()
	if err != nil {
		return nil, err
	}
	var errs []error
	bad := func(when bool, format string, arguments ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, arguments...))
		}
	}
	known := []string{"", "list", "watch", "stream", "get", "create", "update", "patch", "delete", "deletecollection"}
	on := word.on & onRead
	if rule.Verb != "" {
		on = verbsOf(rule.Verb)
	}
	refusal := statusOfFault(word.fault, 0, asked{}) != nil
	bad(!slices.Contains(known, rule.Verb), "Verb is %q: not a kind of request", rule.Verb)
	bad(word.on&on == 0, "Verb is %q: %q makes no sense for it", rule.Verb, word.fault)
	bad(rule.Resource != "" && !s.known.names(rule.Resource), "Resource is %q: not known", rule.Resource)
	bad(rule.Page < 0, "Page is %d: must not be negative", rule.Page)
	bad(rule.Page > 0 && on&onList == 0, "Page is %d: only lists have pages, and not a %s", rule.Page, rule.Verb)
	bad(rule.Skip < 0, "Skip is %d: must not be negative", rule.Skip)
	bad(rule.Times < 0, "Times is %d: must not be negative", rule.Times)
	bad(rule.After < 0, "After is %d: must not be negative", rule.After)
	bad((rule.After > 0 || rule.InStream) && refusal && on&onStreams == 0,
		"After is %d, InStream %t: %q strikes a %s as a whole", rule.After, rule.InStream, word.fault, rule.Verb)
	bad(rule.InStream && !refusal, "InStream is set: %q is not an error", word.fault)
	bad(word.value == needsKey && rule.Key.Name == "", "Key is empty: %q needs one", word.fault)
	if word.value == needsPoint || word.fault == FaultStale {
		_, err := s.parsePoint(rule.Version)
		bad(err != nil, "Version is %q: %w", rule.Version, err)
	}
	left := rule.Times
	if left == 0 {
		left = -1
	}
	return &activeRule{strike: strike{rule, word, wait}, skip: rule.Skip, left: left}, errors.Join(errs...)
}

// parsePoint returns the version that names a state of before.
func (s *Server) parsePoint(version string) (int64, error) {
	point, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, errors.New("not a version of the server")
	}
	if current := s.store.current(); point < s.initial || point > current {
		return 0, fmt.Errorf("must be between %d and %d", s.initial, current)
	}
	return point, nil
}

// change replaces the rules by what edit makes of a copy.
func (f *faults) change(edit func([]*activeRule) []*activeRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = edit(slices.Clone(f.rules))
}

// take returns what strikes a request, if anything does. Before it is sent that
// is a refusal, after it any other fault.
func (f *faults) take(q asked, before bool) (strike, bool) {
	f.mu.Lock()
	rules := f.rules
	f.mu.Unlock()
	var fitting []*activeRule
	for _, rule := range rules { // not under the lock: Match is the user's
		if (rule.word.fault == FaultRefused) == before && rule.fits(q) {
			fitting = append(fitting, rule)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range fitting {
		if rule.countLocked() {
			return rule.strike, true
		}
	}
	if before {
		return strike{}, false
	}
	return f.drawLocked(q)
}

// countLocked counts a request that fits, and reports whether the rule strikes
// it. The caller holds mu.
func (r *activeRule) countLocked() bool {
	switch {
	case r.left == 0:
		return false
	case r.skip > 0:
		r.skip--
		return false
	case r.left > 0:
		r.left--
	}
	return true
}

// fits reports whether the rule is about a request.
func (r *activeRule) fits(q asked) bool {
	switch {
	case r.Verb != "" && r.Verb != q.verb,
		r.Verb == "" && verbsOf(q.verb)&onRead == 0,
		r.word.on&verbsOf(q.verb) == 0,
		r.Resource != "" && r.Resource != q.resource.Name,
		r.Page > 0 && (q.verb != "list" || r.Page != q.page),
		!r.strike.allowedBy(q):
		return false
	}
	return r.Match == nil || r.Match(q.request)
}

// allowedBy reports whether what a list asks for leaves room for an old state.
func (s *strike) allowedBy(q asked) bool {
	if s.word.fault != FaultStale {
		return true
	}
	if q.query.Get("continue") != "" {
		return false
	}
	if s.Fault != FaultStale { // always
		return true
	}
	limit, _ := strconv.Atoi(q.query.Get("limit")) // what it cannot read, the server refuses
	match := metav1.ResourceVersionMatch(q.query.Get("resourceVersionMatch"))
	exact := match == metav1.ResourceVersionMatchExact || match == "" && limit > 0
	asked, err := strconv.ParseInt(q.query.Get("resourceVersion"), 10, 64)
	point, _ := strconv.ParseInt(s.Version, 10, 64) // was checked
	return err == nil && (asked == 0 || !exact && asked <= point)
}

// asked is what a request for a resource asks.
type asked struct {
	target
	verb    string
	page    int // of a list
	query   url.Values
	request *http.Request
}

// asked returns what a request asks, if it is about a resource that is known.
func (s *Server) asked(r *http.Request) (asked, bool) {
	t, ok := s.known.parsePath(r.URL.Path)
	if !ok {
		return asked{}, false
	}
	q := asked{target: t, verb: t.verb(r.Method), query: r.URL.Query(), request: r}
	if q.verb == "list" {
		q.page = pageOf(q.query.Get("continue"))
		switch {
		case !isTrue(q.query.Get("watch")):
		case isTrue(q.query.Get("sendInitialEvents")):
			q.verb = "stream"
		default:
			q.verb = "watch"
		}
	}
	return q, true
}

// isTrue reports whether a parameter of a request is set.
func isTrue(parameter string) bool { return parameter == "true" || parameter == "1" }
