package informer

import (
	"errors"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
)

// listDecoder yields the items of one page as they are decoded.
type listDecoder[E any, T interface {
	*E
	Object
}] struct {
	decoder
	listState[T]
}

// run reads the body to its end.
func (l *listDecoder[E, T]) run() error {
	err := l.open('{')
	if err == nil {
		err = l.members(l.member)
	}
	if err == nil {
		// This also reads the end of the response, without which its connection
		// could not be used again.
		if _, err = l.json.ReadToken(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("more than one value in the body")
		}
	}
	if err == nil {
		err = l.check(&l.form)
	}
	if err != nil {
		return l.explain("list", err)
	}
	return l.finish(&l.form)
}

// member reads one member of the list.
func (l *listDecoder[E, T]) member(name string) error {
	var out any
	switch name {
	case "items":
		if l.items { // what the first one said has been told
			return errors.New("a second member \"items\"")
		}
		l.items = true
		return l.each()
	case "kind":
		out = &l.about.Kind
	case "apiVersion":
		out = &l.about.APIVersion
	case "metadata":
		out = &l.meta
	case "status":
		out = &l.status.Status
	case "message":
		out = &l.status.Message
	case "reason":
		out = &l.status.Reason
	case "details":
		out = &l.status.Details
	case "code":
		out = &l.status.Code
	default:
		return l.json.SkipValue()
	}
	if name == "kind" || name == "apiVersion" || name == "metadata" {
		return l.must(out)
	}
	_, err := l.value(out)
	return err
}

// each yields the items, of which there may be none.
func (l *listDecoder[E, T]) each() error {
	if l.json.PeekKind() == 'n' {
		return l.json.SkipValue()
	}
	if err := l.check(&l.form); err != nil {
		return err
	}
	if err := l.open('['); err != nil {
		return err
	}
	for {
		l.body.allowAround()
		if l.json.PeekKind() == ']' {
			break
		}
		ev, bad, err := object[E, T](&l.decoder, EventAdded)
		if err != nil {
			return err
		}
		if bad == nil && l.form.untyped {
			bad = l.inherit(ev.Object)
		}
		if err := l.item(l.ctx, ev, bad); err != nil {
			return err
		}
	}
	_, err := l.json.ReadToken()
	return err
}

// inherit gives an unstructured item the kind that its list has named, as
// servers leave it out of the items of built-in kinds.
func (l *listDecoder[E, T]) inherit(obj any) error {
	about, err := meta.TypeAccessor(obj)
	if err != nil {
		return err
	}
	if about.GetKind() == "" && about.GetAPIVersion() == "" && l.about.Kind != "" {
		about.SetKind(strings.TrimSuffix(l.about.Kind, "List"))
		about.SetAPIVersion(l.about.APIVersion)
	}
	if about.GetKind() == "" {
		return errNoKind
	}
	return nil
}

// errNoKind is the reason of the *[ObjectError] of an unstructured object
// without a kind.
var errNoKind = errors.New("the object has no kind")
