package informer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchDecoder yields the frames of a watch as they are decoded.
type watchDecoder[E any, T interface {
	*E
	Object
}] struct {
	decoder
	watchState[T]
}

// A watchState is what a watch is at.
type watchState[T Object] struct {
	yield   func(Event[T], error) bool
	initial bool // the bookmark that ends the initial state is awaited
	right   bool // there was an object of the right kind
}

// frames yields what next returns of one frame after the other, until that is
// io.EOF. The first error of a frame concerns one object, the second the watch.
func (w *watchState[T]) frames(ctx context.Context, next func() (ev Event[T], bad, err error)) error {
	for {
		ev, bad, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case ev.Type == 0:
			continue
		}
		if !w.yield(ev, bad) {
			return errLeft
		}
		w.initial = w.initial && ev.Type != EventEnd
	}
}

// run reads the body until it ends between two frames.
func (w *watchDecoder[E, T]) run() error {
	err := w.frames(w.ctx, func() (ev Event[T], bad, err error) {
		w.body.allowAround()
		if err = w.open('{'); err == nil {
			ev, bad, err = w.frame()
			err = unexpectedEOF(err)
		}
		return ev, bad, err
	})
	if err != nil {
		return w.explain("watch", err)
	}
	return nil
}

// frame reads the rest of a frame: its type, and its object. The first error
// concerns one object, the second the watch.
func (w *watchDecoder[E, T]) frame() (ev Event[T], bad, err error) {
	var kind string
	var early jsontext.Value // an object that came before its type
	var found bool
	err = w.members(func(name string) error {
		var err error
		switch {
		case name == "type":
			err = w.must(&kind)
		case name == "object" && kind == "":
			found = true
			ev, early, bad, err = w.early()
		case name == "object":
			found, early = true, nil
			ev, bad, err = w.object(&w.decoder, kind)
		default:
			err = w.json.SkipValue()
		}
		return err
	})
	switch {
	case err != nil:
	case !found:
		err = fmt.Errorf("%s event without an object", eventWord(kind))
	case early != nil:
		form := w.form
		if changeOf(kind) == 0 { // of all else, nothing is left out
			form.out = nil
		}
		d := newDecoder(w.ctx, bytes.NewReader(early), form, setting{})
		ev, bad, err = w.object(&d, kind)
	case bad != nil && kind == "DELETED":
		ev, bad = deletedAnyway(ev, bad)
	}
	return ev, bad, err
}

// early reads an object whose type is not known yet.
func (w *watchDecoder[E, T]) early() (ev Event[T], raw jsontext.Value, bad, err error) {
	raw, about, bad, err := w.raw()
	if bad != nil {
		ev, bad = badEvent(partialEvent[T](EventBad, about), bad)
	}
	return ev, raw.Clone(), bad, err
}

// object reads the object of a frame of the given type.
func (w *watchDecoder[E, T]) object(d *decoder, kind string) (ev Event[T], bad, err error) {
	if t := changeOf(kind); t != 0 {
		return w.changed(d, t)
	}
	switch kind {
	case "BOOKMARK":
		d.body.allowAround()
		var about metav1.PartialObjectMetadata
		if err := d.must(&about); err != nil {
			return ev, nil, err
		}
		ev, err = bookmark[T](about.ResourceVersion, about.Annotations, w.initial)
		return ev, nil, err
	case "ERROR":
		d.body.allowAround()
		var status metav1.Status
		if err := d.must(&status); err != nil {
			return ev, nil, err
		}
		return ev, nil, statusError(status)
	}
	return ev, nil, fmt.Errorf("unknown event type %s", eventWord(kind))
}

// changeOf returns the type of an event about an object, by its name.
func changeOf(kind string) EventType {
	switch kind {
	case "ADDED":
		return EventAdded
	case "MODIFIED":
		return EventModified
	case "DELETED":
		return EventDeleted
	}
	return 0
}

// changed reads an object of the collection.
func (w *watchDecoder[E, T]) changed(d *decoder, t EventType) (Event[T], error, error) {
	ev, bad, err := object[E, T](d, t)
	if err != nil {
		return ev, nil, err
	}
	if about, err := meta.TypeAccessor(ev.Object); err == nil && ev.Object != nil {
		kind := about.GetKind()
		wrong, err := w.wrongKind(&w.form, about.GetAPIVersion(), kind)
		if err != nil {
			return ev, nil, err
		}
		if wrong != nil {
			bad = wrong
		} else if w.form.untyped && kind == "" && bad == nil {
			bad = errNoKind
		}
		if !w.form.untyped { // as client-go has it
			about.SetKind("")
			about.SetAPIVersion("")
		}
	}
	ev, bad = w.change(t, ev, bad)
	return ev, bad, nil
}

// wrongKind returns what is wrong with an object that says it is of that kind:
// the object is bad, or the watch is, if no object was right yet.
func (w *watchState[T]) wrongKind(form *form, apiVersion, kind string) (bad, err error) {
	switch want := form.kind; {
	case want == "" || kind == "" || kind == want:
		return nil, nil
	case !w.right:
		return nil, &WrongTypeError{Want: form.name, Got: kindText(apiVersion, kind)}
	default:
		return fmt.Errorf("the object is a %.64s, not a %s", kind, want), nil
	}
}

// change returns what is to be yielded for an event of type t, the object of
// which is bad if there is an error.
func (w *watchState[T]) change(t EventType, ev Event[T], bad error) (Event[T], error) {
	w.right = true
	ev, bad = judged(t, ev, bad)
	if t == EventDeleted && bad != nil {
		ev, bad = deletedAnyway(ev, bad)
	}
	return ev, bad
}

// judged returns the event of type t about the object of ev, which is bad if
// there is an error.
func judged[T Object](t EventType, ev Event[T], bad error) (Event[T], error) {
	if bad != nil {
		return badEvent(ev, bad)
	}
	return eventFrom(t, ev.Object)
}

// deletedAnyway returns the deletion of a bad object if its key is known, which
// is all that it takes.
func deletedAnyway[T Object](ev Event[T], bad error) (Event[T], error) {
	if ev.Key.Name != "" {
		ev.Type, bad = EventDeleted, nil
	}
	return ev, bad
}

// kindText returns a kind as errors have it.
func kindText(apiVersion, kind string) string { return fmt.Sprintf("%.64s %.64s", apiVersion, kind) }

// eventWord returns an event type as errors have it: what is no word in capitals
// is no type of any server, and may be a part of an object.
func eventWord(kind string) string {
	if len(kind) > 16 || strings.Trim(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return `"…"`
	}
	return strconv.Quote(kind)
}
