package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a request was for, in failures.
const (
	opList   = "list"
	opStream = "streaming list"
	opWatch  = "watch"
	opDecode = "decode"
)

var (
	errNoReason   = errors.New("object cannot be used")
	errSameToken  = errors.New("the list continues where it began")
	errIncomplete = errors.New("the answer ended before it was complete")
	errOutdated   = errors.New("the list is older than what has been seen")
)

// phase is where a Reflector stands: a pointer to one of four structs, each of
// which belongs to one request. Only step goes from one to the next:
//
//	at         what happens                          next
//	streaming  the list ends                         watching (same request)
//	           it is refused or ignored              listing, at once
//	           it fails                              listing
//	           it is older than what is known        streaming, at once
//	listing    a page ends                           listing
//	           the list ends                         watching
//	           it fails                              streaming, or listing
//	           it is older than what is known        listing, at once
//	watching   the version is not there any more     streaming, or listing
//	           silence, twice in a row               probing
//	           it ends or fails in any other way     watching
//	probing    the version has been reached          watching
//	           it has not                            streaming, or listing
//	           no answer                             probing
//
// "Streaming, or listing" depends on whether the server is known to refuse the
// former.
type phase interface{ isPhase() }

// streaming asks for a watch that begins with a list. At the end of the list it
// becomes watching, within the same request.
type streaming struct{ list }

// listing asks for one page of a plain list.
type listing struct {
	list
	token string // of the page; empty for the first
}

// watching asks for what happened after version.
type watching struct {
	version version
	heard   bool // something came in this watch
	silent  int  // watches before this, in a row, in which nothing came
}

// probing asks whether the server has reached version at all.
type probing struct{ version version }

func (*streaming) isPhase() {}
func (*listing) isPhase()   {}
func (*watching) isPhase()  {}
func (*probing) isPhase()   {}

// list is what both kinds of lists have to live up to.
type list struct {
	reached version // the version that the stream has reached; empty at first
	recent  bool    // read the most recent version, and believe it
	begun   bool    // EventBegin has been passed on
}

// outdated reports that version is too old to be believed.
func (l *list) outdated(version string) bool {
	return !l.recent && versionOf(version).isOlder(l.reached)
}

// result is how a request went.
type result struct {
	next   phase         // nil if Run is to end with err
	op     string        // what failed
	err    error         // why, nil if nothing did
	atOnce bool          // next follows a failure without a pause
	pause  time.Duration // before next if nothing failed
}

// step runs one request to its end.
func (r *Reflector[T]) step(ctx context.Context, at phase) result {
	var done result
	switch at := at.(type) {
	case *streaming:
		done = r.watch(ctx, at)
	case *listing:
		done = r.list(ctx, at)
	case *watching:
		done = r.watch(ctx, at)
	case *probing:
		done = r.probe(ctx, at)
	default:
		panic(fmt.Sprintf("informer: bug: no step from phase %T", at))
	}
	_, end := errors.AsType[*endError](done.err)
	_, wrong := errors.AsType[*WrongTypeError](done.err)
	if end || wrong {
		done.next = nil
	}
	return done
}

// listAgain returns the phase that lists anew.
func (r *Reflector[T]) listAgain(l list) phase {
	// With a page size of the user's no list may come from the server's cache.
	l.recent = l.recent || r.opts.PageSize > 0
	if r.refused {
		return &listing{list: l}
	}
	return &streaming{l}
}

// options returns the options that all requests have.
func (r *Reflector[T]) options() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: r.opts.LabelSelector, FieldSelector: r.opts.FieldSelector}
}

// item passes on an event within a list.
func (r *Reflector[T]) item(l *list, ev *received[T]) error {
	if err := r.begin(l); err != nil {
		return err
	}
	taken, err := r.deliver(ev)
	if taken {
		r.health.repair(ev.Type, ev.Key)
	}
	return err
}

// begin passes on EventBegin, unless that has been done.
func (r *Reflector[T]) begin(l *list) error {
	if l.begun {
		return nil
	}
	l.begun = true
	r.health.beginList()
	_, err := r.deliver(&received[T]{Event: Event[T]{Type: EventBegin}})
	return err
}

// end passes on EventEnd.
func (r *Reflector[T]) end(ctx context.Context, l *list, version string) error {
	if err := r.begin(l); err != nil {
		return err
	}
	if _, err := r.deliver(&received[T]{Event: Event[T]{Type: EventEnd, Version: version}}); err != nil {
		return err
	}
	r.health.endList(version)
	r.succeeded(ctx, StateWatching)
	return nil
}

// unexpected returns the error for an event that may not come here.
func unexpected(t EventType) error { return fmt.Errorf("unexpected event %v", t) }

// refuses reports that err is the answer of a server that does not understand
// what it was asked for, and would not if asked again.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}
