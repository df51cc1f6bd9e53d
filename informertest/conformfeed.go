package informertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/seed-99a027e8/informer"
)

// prompt is how soon a sequence is to end after its context has.
const prompt = time.Second

var (
	errSilent = errors.New("nothing came")
	errNoMore = errors.New("the sequence ended")
)

// feed runs a sequence on a goroutine of its own, so that a source that hangs
// does not hang the check.
type feed[T informer.Object] struct {
	trial  *trial[T]
	cancel context.CancelFunc
	items  chan item[T] // closed when the sequence has ended

	bookmarks bool   // they were asked for
	reached   string // the highest version of an event so far
}

// item is one step of a sequence.
type item[T informer.Object] struct {
	ev  informer.Event[T]
	err error
}

// feed starts a request; stop ends it.
func (t *trial[T]) feed(
	source func(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[T], error], opts metav1.ListOptions,
) *feed[T] {
	ctx, cancel := context.WithCancel(t.ctx)
	f := &feed[T]{trial: t, cancel: cancel, items: make(chan item[T]), bookmarks: opts.AllowWatchBookmarks}
	go func() { // ends when the source does, or stop lets it leave the loop
		defer close(f.items)
		for ev, err := range source(ctx, opts) {
			select {
			case f.items <- item[T]{ev, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return f
}

// openWatch starts a watch.
func (t *trial[T]) openWatch(opts metav1.ListOptions) *feed[T] {
	return t.feed(t.rig.Source.Watch, opts)
}

// stop ends the request. That it does end is what another check is for.
func (f *feed[T]) stop() {
	f.cancel()
	_ = f.rest(prompt)
}

// rest waits for the end of the sequence, whatever comes before it.
func (f *feed[T]) rest(most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		select {
		case _, more := <-f.items:
			if !more {
				return nil
			}
		case <-timer.C:
			return fmt.Errorf("the sequence has not ended after %v", most)
		}
	}
}

// receive returns the next step. More is false if the sequence has ended.
func (f *feed[T]) receive(most time.Duration) (got item[T], more bool, err error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case got, more = <-f.items:
		return got, more, nil
	case <-timer.C:
		return got, false, fmt.Errorf("%w for %v", errSilent, most)
	}
}

// next returns the next event about an object of this trial, or the next
// bookmark or end. An error of the sequence, and its end, are errors; that of
// one bad object is not.
func (f *feed[T]) next() (informer.Event[T], error) {
	for {
		got, more, err := f.receive(f.trial.patience)
		switch {
		case err != nil:
			return got.ev, err
		case !more:
			return got.ev, errNoMore
		}
		if err := f.order(got); err != nil {
			return got.ev, err
		}
		if got.ev.Type == informer.EventEnd || got.ev.Type == informer.EventBookmark || f.trial.owns(got.ev.Key) {
			return got.ev, nil
		}
	}
}

// order checks what is true of each event, and of the versions of a watch.
func (f *feed[T]) order(got item[T]) error {
	if err := f.trial.valid(got); err != nil {
		return err
	}
	switch got.ev.Type {
	case informer.EventEnd:
		// The items of a list come in any order.
		f.reached = got.ev.Version
		return nil
	case informer.EventBookmark:
		if !f.bookmarks {
			return fmt.Errorf("%s, which was not asked for", describe(got.ev))
		}
	}
	if less(got.ev.Version, f.reached) {
		return fmt.Errorf("%s came after version %s", describe(got.ev), f.reached)
	}
	if f.reached != "" {
		f.reached = got.ev.Version
	}
	return nil
}

// valid checks what is true of each event of any sequence. The error of a
// sequence is returned as it is.
func (t *trial[T]) valid(got item[T]) error {
	ev := got.ev
	if got.err != nil {
		return validBad(ev, got.err)
	}
	switch ev.Type {
	case informer.EventAdded, informer.EventModified, informer.EventDeleted:
		return validObject(ev)
	case informer.EventBad:
		return fmt.Errorf("%s came without an error", describe(ev))
	case informer.EventBookmark, informer.EventEnd:
		if ev.Version == "" {
			return fmt.Errorf("%v has no version", ev.Type)
		}
		return nil
	}
	return fmt.Errorf("an event of type %v", ev.Type)
}

// validBad checks what comes with an error: it is returned, unless it concerns
// one object.
func validBad[T informer.Object](ev informer.Event[T], err error) error {
	var bad *informer.ObjectError
	switch {
	case !errors.As(err, &bad):
		return err
	case ev.Type != informer.EventBad || ev.Key != bad.Key || bad.Err == nil:
		return fmt.Errorf("%s came with an error about %q: %w", describe(ev), bad.Key, err)
	}
	return nil
}

// validObject checks that an event says of its object what the object says.
func validObject[T informer.Object](ev informer.Event[T]) error {
	if ev.Key.Name == "" || ev.UID == "" || ev.Version == "" {
		return fmt.Errorf("%s of UID %q lacks a name, a UID or a version", describe(ev), ev.UID)
	}
	if ev.Type == informer.EventDeleted && !ev.Exact {
		return nil // there is no object
	}
	obj := informer.EventOf(ev.Type, ev.Object)
	if obj.Key != ev.Key || obj.UID != ev.UID || obj.Version != ev.Version {
		return fmt.Errorf("%s of UID %q has an object %v of UID %q and version %q",
			describe(ev), ev.UID, obj.Key, obj.UID, obj.Version)
	}
	return nil
}

// listed is what one page showed.
type listed[T informer.Object] struct {
	mine    []informer.Event[T] // about the trial's own objects, in order
	objects int                 // of all
	end     informer.Event[T]
}

// page reads one page. An error of the sequence is returned as it is.
func (t *trial[T]) page(opts metav1.ListOptions) (listed[T], error) {
	var l listed[T]
	f := t.feed(t.rig.Source.List, opts)
	defer f.stop()
	for {
		got, more, err := f.receive(t.patience)
		switch {
		case err != nil:
			return l, err
		case !more:
			return l, errors.New("the sequence ended without End, and without an error")
		}
		if err := t.valid(got); err != nil {
			return l, errors.Join(err, f.afterError(got.err))
		}
		switch got.ev.Type {
		case informer.EventEnd:
			l.end = got.ev
			return l, f.nothingMore()
		case informer.EventAdded, informer.EventBad:
			l.objects++
		default:
			return l, fmt.Errorf("%s in a list", describe(got.ev))
		}
		if t.owns(got.ev.Key) {
			l.mine = append(l.mine, got.ev)
		}
	}
}

// afterError checks that nothing follows an error of the sequence.
func (f *feed[T]) afterError(failure error) error {
	var bad *informer.ObjectError
	if failure == nil || errors.As(failure, &bad) {
		return nil
	}
	return f.nothingMore()
}

// nothingMore checks that a sequence ends here.
func (f *feed[T]) nothingMore() error {
	got, more, err := f.receive(f.trial.rig.Timeout)
	switch {
	case err != nil:
		return fmt.Errorf("after its last event, the sequence does not end: %w", err)
	case more && got.err != nil:
		return fmt.Errorf("after its last event, the sequence goes on with an error: %w", got.err)
	case more:
		return fmt.Errorf("after its last event, the sequence goes on with %s", describe(got.ev))
	}
	return nil
}

// less reports that version a is known to be lower than b.
func less(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// describe returns an event in words.
func describe[T informer.Object](ev informer.Event[T]) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v", ev.Type)
	if ev.Key.Name != "" {
		fmt.Fprintf(&text, " of %v", ev.Key)
	}
	fmt.Fprintf(&text, " at version %q", ev.Version)
	return text.String()
}
