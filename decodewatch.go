package informer

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
)

// watchDecoder yields the frames of a watch as they are decoded.
type watchDecoder[E any, T interface {
	*E
	Object
}] struct {
	decoder
	watchState[T]
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
			kind, err = w.eventType(kind)
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

// eventType reads the type of a frame. It is the one before if it is null.
func (w *watchDecoder[E, T]) eventType(before string) (string, error) {
	if w.json.PeekKind() == '"' {
		raw, err := w.json.ReadValue()
		if err != nil {
			return "", unexpectedEOF(err)
		}
		return w.word(raw), nil
	}
	kind := before
	err := w.must(&kind)
	return kind, err
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
	ev, err = w.other(kind, func(out protoMessage) error {
		d.body.allowAround()
		return d.must(out)
	})
	return ev, nil, err
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
