package informer

import (
	"errors"
	"fmt"
	"strings"
)

// protoList yields the items of one page as they are decoded. A list is in an
// envelope, and so are its items, one by one: only the one that is decoded is in
// memory.
type protoList[E any, T interface {
	*E
	Object
}] struct {
	protoReader
	listState[T]
	form *protoForm[T]
}

// run reads the body to its end.
func (l *protoList[E, T]) run() error {
	magic, err := l.next(len(protoMagic))
	if err == nil && string(magic) != protoMagic {
		err = errNoMagic
	}
	if err == nil {
		err = l.fields(unbounded, l.envelopePart)
	}
	if err == nil {
		err = l.check(&l.form.form)
	}
	if err != nil {
		return explain("list", l.form.name, err)
	}
	return l.finish(&l.form.form)
}

// envelopePart reads a field of the envelope.
func (l *protoList[E, T]) envelopePart(field int32, wire int) error {
	switch field {
	case envelopeType, envelopeEncoding:
		raw, err := l.short(wire, unbounded)
		if err != nil {
			return err
		}
		e := envelope{version: []byte(l.about.APIVersion), kind: []byte(l.about.Kind)}
		err = e.part(field, raw)
		l.about = e.typeMeta()
		return err
	case envelopeMessage:
		if l.items { // what the first one said has been told
			return errors.New("a second list")
		}
		l.items = true
		return l.message(wire)
	}
	return l.pass(wire, maxAround)
}

// message reads what is in the envelope.
func (l *protoList[E, T]) message(wire int) error {
	if l.about.Kind == "Status" {
		raw, err := l.short(wire, unbounded)
		if err == nil {
			err = l.status.Unmarshal(raw)
		}
		return err
	}
	n, err := l.length(wire, unbounded)
	if err == nil {
		err = l.check(&l.form.form)
	}
	if err != nil {
		return err
	}
	if kind := l.about.Kind; kind != "" && !strings.HasSuffix(kind, "List") {
		return fmt.Errorf("the server sent no list, but kind %.64q", kind)
	}
	end := l.offset() + n
	return l.fields(end, func(field int32, wire int) error {
		switch field {
		case listMetadata:
			raw, err := l.short(wire, end)
			if err == nil {
				err = l.meta.Unmarshal(raw)
			}
			return err
		case listItems:
			return l.object(wire, end)
		}
		return l.pass(wire, maxAround)
	})
}

// object reads an item of a list that ends at that offset.
func (l *protoList[E, T]) object(wire int, end int64) error {
	n, err := l.length(wire, end)
	if err != nil {
		return err
	}
	var ev Event[T]
	var bad error
	if n > maxText {
		if err = l.fill(fewBytes); err == nil {
			ev, bad = partialEvent[T](EventBad, aboutObject(l.unread())), errLargeProto
			err = l.skip(n)
		}
	} else {
		var raw []byte
		if raw, err = l.next(int(n)); err == nil {
			ev, bad = protoObject[E, T](l.form, EventAdded, raw)
		}
	}
	if err != nil {
		return unexpectedEOF(err)
	}
	return l.item(l.ctx, ev, bad)
}
