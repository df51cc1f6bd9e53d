package informer

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// protoWatch yields the frames of a watch as they are decoded. A frame is four
// bytes of length, and a message with the type of event and the object in its
// envelope.
type protoWatch[E any, T interface {
	*E
	Object
}] struct {
	protoReader
	watchState[T]
	form *protoForm[T]
}

// run reads the body until it ends between two frames.
func (w *protoWatch[E, T]) run() error {
	if err := w.frames(w.ctx, w.frame); err != nil {
		return explain("watch", w.form.name, err)
	}
	return nil
}

// frame reads a frame. The first error concerns one object, the second the
// watch, which has ended if it is io.EOF.
func (w *protoWatch[E, T]) frame() (ev Event[T], bad, err error) {
	if err := w.fill(4); err != nil {
		return ev, nil, err
	}
	prefix, err := w.next(4)
	if err != nil {
		return ev, nil, err
	}
	n := int64(binary.BigEndian.Uint32(prefix))
	if n > maxText {
		ev, bad, err = w.large(n)
		return ev, bad, unexpectedEOF(err)
	}
	raw, err := w.next(int(n))
	if err != nil {
		return ev, nil, err
	}
	f, err := openFrame(raw)
	if err != nil {
		return ev, nil, unexpectedEOF(err)
	}
	ev, bad, err = w.event(f)
	if len(w.buf) > maxAround || ev.Type == EventEnd && len(w.buf) > protoBuffer {
		w.resize(protoBuffer) // it would be held as long as the watch goes on
	}
	return ev, bad, unexpectedEOF(err)
}

// large passes a frame that is longer than an object may be.
func (w *protoWatch[E, T]) large(n int64) (ev Event[T], bad, err error) {
	if err := w.fill(fewBytes); err != nil {
		return ev, nil, err
	}
	f, _ := openFrame(w.unread()) // what it has will do
	kind := string(f.event)
	t := changeOf(kind)
	if t == 0 && kind != "" {
		return ev, nil, errAround
	}
	e, _ := openEnvelope(f.object) // the same
	ev, bad = w.change(t, partialEvent[T](t, aboutObject(e.message)), errLargeProto)
	return ev, bad, w.skip(n)
}

// event returns what a frame says.
func (w *protoWatch[E, T]) event(f frame) (ev Event[T], bad, err error) {
	kind := string(f.event)
	t := changeOf(kind)
	e, wrong := openEnvelope(f.object)
	switch {
	case !f.found:
		return ev, nil, fmt.Errorf("%s event without an object", eventWord(kind))
	case t != 0 && wrong != nil:
		ev, bad = w.change(t, partialEvent[T](t, aboutObject(e.message)), wrong)
		return ev, bad, nil
	case t != 0:
		return w.changed(t, e)
	case len(f.object) > maxAround:
		return ev, nil, errAround
	}
	ev, err = w.other(kind, func(out protoMessage) error { return errors.Join(wrong, out.Unmarshal(e.message)) })
	return ev, nil, err
}

// changed returns the event about an object of the collection.
func (w *protoWatch[E, T]) changed(t EventType, e envelope) (ev Event[T], bad, err error) {
	if string(e.kind) != w.form.kind { // else no string is made of it
		bad, err = w.wrongKind(&w.form.form, string(e.version), string(e.kind))
	}
	if err != nil {
		return ev, nil, err
	}
	if bad != nil {
		ev = partialEvent[T](t, aboutObject(e.message))
	} else {
		ev, bad = protoObject[E, T](w.form, t, e.message)
	}
	ev, bad = w.change(t, ev, bad)
	return ev, bad, nil
}
