package informertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-99a027e8/informer"
)

// Object is a small object for tests, and what a [Script] knows of one.
type Object struct {
	// Namespace and Name are the key.
	Namespace, Name string
	// UID is the UID.
	UID types.UID
	// Version is the resource version.
	Version string
	// Value is what may change about the object.
	Value string
}

// NewObject returns a new *Object that equals o. It makes the objects of a
// script whose T is *Object.
func NewObject(o Object) *Object { return &o }

// GetNamespace returns o.Namespace.
func (o *Object) GetNamespace() string { return o.Namespace }

// GetName returns o.Name.
func (o *Object) GetName() string { return o.Name }

// GetUID returns o.UID.
func (o *Object) GetUID() types.UID { return o.UID }

// GetResourceVersion returns o.Version.
func (o *Object) GetResourceVersion() string { return o.Version }

// String returns o as a script would write it, such as "ns/a=red@7".
func (o *Object) String() string {
	text := o.Name
	if o.Namespace != "" {
		text = o.Namespace + "/" + text
	}
	if o.Value != "" {
		text += "=" + o.Value
	}
	return text + "@" + o.Version
}

// A Call is a request that a [Script] was asked.
type Call struct {
	// Time is when.
	Time time.Time
	// Kind is "list", "watch", or "stream" for a watch that asks for initial
	// events.
	Kind string
	// Options are those of the request.
	Options metav1.ListOptions
}

// String returns the call as a script would require it, such as
// "list?limit=500".
func (c Call) String() string {
	if query := queryOf(c.Options).Encode(); query != "" {
		return c.Kind + "?" + query
	}
	return c.Kind
}

// Script is a source, an [informer.ListerWatcher], that does what its lines
// say: each request uses up the next line. One that the next line is not for,
// or for which there is none, fails the test and gets an error that names it;
// all later ones hang until their contexts end.
//
// A line begins with the kind of request, followed by what happens, in order:
//
//	list 10 a b              a page with a and b, of a list at version 10
//	list 10 a continue=t1    there is another page
//	watch a@11 -b@12         two changes, then the server closes the stream
//	stream a@5 end 10 c@11   a streaming list at version 10, then a change
//
// The kind may say what the request must ask for, as in a URL; an empty value
// means that it must not: "list?continue=t1 10 b", "list?resourceVersion= 10".
// A line that begins with "always" is never used up; where several such lines
// follow each other, a request gets the first that is for it.
//
// An object is written NAMESPACE/NAME#UID=VALUE@VERSION, where all but the name
// may be left out: UID, value and version are then those that the script showed
// last. A version "-" is none. Of a new object, the version is that of the list
// or 0, and the UID depends on the key and on how often it was deleted, which
// is also what happens to an object that a list does not hold. In front stands
// what happens:
//
//	a@11     it is an item of the list; behind one, it is added if it is not
//	         there, else modified
//	+a ~a    it is added, it is modified
//	-a@12    it is deleted, in its last state, at version 12
//	--a@12   it is deleted, and the last state is not known
//	!a       it is bad: an *[informer.ObjectError]
//	!        so is an object that has no name
//
// The other words are
//
//	end 10, bookmark 12      the end of the initial events, a bookmark
//	sleep=5s                 time passes
//	hang                     nothing more happens until the context ends
//	close                    the stream ends here (as at the end of a line)
//	gateway=3s               it does so after some time
//	error                    an error of no particular kind
//
// and those of a [Fault]: errors, and what a source makes of what cannot be
// decoded.
//
//	eof, drop, refused       the connection breaks, it cannot be made
//	delay=5s                 time passes
//	expired, toolarge        410, 504 for a version too large
//	toomany, toomany=7s      429, with a Retry-After
//	unavailable              503
//	unauthorized, forbidden, notfound, notallowed, invalid, internal, timeout
//	                         401, 403, 404, 405, 422, 500, 504
//	garbage                  an answer that is no JSON
//	table, wrongkind         an *[informer.WrongTypeError]
//
// A name that is one of these words needs a sign. A script has no bytes: cut,
// truncated, slow and halfopen are mistakes in it. Faults of content and of
// state it has no words for, as it can say what they say: "!a" is malformed,
// "a a" twice, "!" nameless, "a@-" versionless, "a@11 a@11" duplicate, "b@12
// a@11" reorder, "list a" unversioned, a stream without "end" ignored, a list of
// a lower version stale or restored, "a#other" reborn.
//
// All methods may be called concurrently.
type Script[T informer.Object] struct {
	t    TB
	make func(Object) T
	next func(Call) string // the next line; nil: it is the first of lines

	mu      sync.Mutex // guards everything below
	lines   []*line    // not used up yet
	calls   []Call
	objects map[informer.Key]Object // that are there, as shown last
	deleted map[informer.Key]int    // how often
	listed  map[informer.Key]bool   // what the list in progress holds
	paging  bool                    // the list goes on with the next page
	failed  bool                    // a request did not fit
}

// NewScript returns a script for T, whose objects are made by a function that
// must keep key, UID and version. A line that makes no sense ends the test.
func NewScript[T informer.Object](t TB, make func(Object) T, lines ...string) *Script[T] {
	t.Helper()
	s := newScript(t, make)
	for i, text := range lines {
		parsed, err := parseLine(text)
		if err != nil {
			t.Fatalf("informertest: script line %d %q: %v", i+1, text, err)
		}
		s.lines = append(s.lines, parsed)
	}
	return s
}

// NewScriptFunc returns a script whose next line is what next returns, which is
// called as each request comes, on the goroutine of the request. So a model of a
// server can write the script: it knows what is asked and when, and a line may
// hold what is yet to happen, as in "watch sleep=5s a@11". A line that makes no
// sense, or an empty one, fails the test as a request without a line does.
func NewScriptFunc[T informer.Object](t TB, make func(Object) T, next func(Call) string) *Script[T] {
	t.Helper()
	s := newScript(t, make)
	s.next = next
	return s
}

func newScript[T informer.Object](t TB, make func(Object) T) *Script[T] {
	return &Script[T]{
		t: t, make: make,
		objects: map[informer.Key]Object{}, deleted: map[informer.Key]int{}, listed: map[informer.Key]bool{},
	}
}

// Calls returns the requests so far.
func (s *Script[T]) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Left returns the lines that are not used up, but for those that never are.
func (s *Script[T]) Left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	for _, l := range s.lines {
		if !l.always {
			left = append(left, l.text)
		}
	}
	return left
}

// List plays the next line, which is to be for a list.
func (s *Script[T]) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return s.answer(ctx, "list", opts)
}

// Watch plays the next line, which is to be for a watch, or if opts ask for
// initial events, for a streaming list.
func (s *Script[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	kind := "watch"
	if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		kind = "stream"
	}
	return s.answer(ctx, kind, opts)
}

func (s *Script[T]) answer(ctx context.Context, kind string, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		l, err := s.take(ctx, Call{Time: time.Now(), Kind: kind, Options: opts})
		if err != nil {
			yield(informer.Event[T]{}, err)
			return
		}
		s.play(ctx, l, yield)
	}
}

// take returns the line for a call.
func (s *Script[T]) take(ctx context.Context, c Call) (*line, error) {
	var l *line
	var err error
	if s.next != nil {
		l, err = written(s.next(c), c)
	}
	s.mu.Lock()
	s.calls = append(s.calls, c)
	if s.next == nil || s.failed {
		l, err = s.nextLocked(c)
	}
	first := err != nil && !s.failed
	s.failed = s.failed || err != nil
	s.mu.Unlock()
	switch {
	case first:
		s.t.Errorf("%v", err)
	case err != nil:
		<-ctx.Done() // else a caller that tries again would do so for ever
	}
	return l, err
}

// written returns the line that a function has written for a call.
func written(text string, c Call) (*line, error) {
	l, err := parseLine(text)
	if err == nil && !l.fits(c) {
		err = errors.New("it is for another")
	}
	if err != nil {
		return nil, fmt.Errorf("informertest: script: the line %q for the request %v: %w", text, c, err)
	}
	return l, nil
}

// nextLocked takes the next line, if it is for the call. The caller holds mu.
func (s *Script[T]) nextLocked(c Call) (*line, error) {
	if s.failed || len(s.lines) == 0 {
		return nil, fmt.Errorf("informertest: script: no line is left for the request %v", c)
	}
	next := s.lines[0]
	if !next.always && next.fits(c) {
		s.lines = s.lines[1:]
		return next, nil
	}
	for _, l := range s.lines {
		if !l.always {
			break
		}
		if l.fits(c) {
			return l, nil
		}
	}
	return nil, fmt.Errorf("informertest: script: the request %v does not fit the next line %q", c, next.text)
}

// play does what a line says.
func (s *Script[T]) play(ctx context.Context, l *line, yield func(informer.Event[T], error) bool) {
	var none informer.Event[T]
	s.begin(l)
	for _, st := range l.steps {
		if ctx.Err() == nil {
			st.pass(ctx)
		}
		switch {
		case ctx.Err() != nil:
			yield(none, ctx.Err())
			return
		case st.err != nil:
			yield(none, st.err)
			return
		case st.event == 0:
			continue // only time has passed
		}
		if !yield(s.event(l, st)) {
			return
		}
	}
	if l.kind == "list" {
		s.end(l)
		yield(informer.Event[T]{Type: informer.EventEnd, Version: l.version, Continue: l.next}, nil)
	}
}

// begin notes that a list begins, unless the line is only its next page.
func (s *Script[T]) begin(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.kind != "watch" && !(l.kind == "list" && s.paging) {
		s.listed = map[informer.Key]bool{}
	}
	s.paging = false
}

// end notes the end of a page, or of a streaming list. What a whole list did
// not hold is gone.
func (s *Script[T]) end(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paging = l.next != ""
	if s.paging {
		return
	}
	for key := range s.objects {
		if !s.listed[key] {
			s.forgetLocked(key)
		}
	}
}

// forgetLocked notes that an object is gone. The caller holds mu.
func (s *Script[T]) forgetLocked(key informer.Key) {
	delete(s.objects, key)
	s.deleted[key]++
}

// event returns what a step shows, and remembers it.
func (s *Script[T]) event(l *line, st step) (informer.Event[T], error) {
	if st.event == informer.EventEnd {
		s.end(l)
	}
	if st.event == informer.EventEnd || st.event == informer.EventBookmark {
		return informer.Event[T]{Type: st.event, Version: st.object.Version}, nil
	}
	s.mu.Lock()
	obj, known := s.completeLocked(l, st)
	switch st.event {
	case informer.EventDeleted:
		s.forgetLocked(obj.key())
	case informer.EventBad:
		s.listed[obj.key()] = true
	default:
		s.listed[obj.key()] = true
		s.objects[obj.key()] = obj
	}
	s.mu.Unlock()
	if st.event == informer.EventBad || st.event == informer.EventDeleted && st.inexact {
		event := informer.Event[T]{Type: st.event, Key: obj.key(), UID: obj.UID, Version: obj.Version}
		if st.event == informer.EventBad {
			return event, &informer.ObjectError{Key: obj.key(), Err: errBad}
		}
		return event, nil
	}
	event := informer.EventOf(st.event, s.make(obj))
	if st.unsigned && known {
		event.Type = informer.EventModified
	}
	return event, nil
}

// completeLocked fills in what a line left out about an object, and says
// whether the object has been shown. The caller holds mu.
func (s *Script[T]) completeLocked(l *line, st step) (Object, bool) {
	obj := st.object
	shown, known := s.objects[obj.key()]
	if !known {
		shown = Object{UID: types.UID("uid-" + obj.key().String()), Version: l.version}
		if n := s.deleted[obj.key()]; n > 0 {
			shown.UID += types.UID("-" + strconv.Itoa(n))
		}
		if shown.Version == "" {
			shown.Version = "0"
		}
	}
	if obj.UID == "" {
		obj.UID = shown.UID
	}
	switch obj.Version {
	case "":
		obj.Version = shown.Version
	case "-":
		obj.Version = ""
	}
	if obj.Value == "" {
		obj.Value = shown.Value
	}
	return obj, known
}

func (o *Object) key() informer.Key { return informer.KeyOf(o) }
