package informer

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listDecoder yields the items of one page as they are decoded.
type listDecoder[E any, T interface {
	*E
	Object
}] struct {
	decoder
	listHead
	yield func(Event[T], error) bool
}

// A listHead is what a list has beside its items.
type listHead struct {
	about  metav1.TypeMeta
	meta   metav1.ListMeta
	status metav1.Status // what the body has of one, if it is one
	items  bool          // there were items, be it none
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
	if err := l.complete(&l.form); err != nil {
		return err
	}
	l.yield(Event[T]{Type: EventEnd, Version: l.meta.ResourceVersion, Continue: l.meta.Continue}, nil)
	return nil
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

// check returns an error if the body is known to be something else than a list
// of E.
func (l *listHead) check(form *form) error {
	if l.about.Kind == "Status" {
		return statusError(l.status)
	}
	if want := form.kind; want != "" && l.about.Kind != "" && l.about.Kind != want+"List" {
		return &WrongTypeError{Want: form.name, Got: kindText(l.about.APIVersion, l.about.Kind)}
	}
	return nil
}

// complete returns an error if what was read is no list that can be used.
func (l *listHead) complete(form *form) error {
	if !l.items && !strings.HasSuffix(l.about.Kind, "List") {
		return fmt.Errorf("informer: list of %s: the server sent no list, but kind %.64q", form.name, l.about.Kind)
	}
	if l.meta.ResourceVersion == "" {
		return errNoVersion
	}
	return nil
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
		switch {
		case err != nil:
			return err
		case l.ctx.Err() != nil:
			return l.ctx.Err()
		}
		if bad == nil && l.form.untyped {
			bad = l.inherit(ev.Object)
		}
		if !l.yield(judged(EventAdded, ev, bad)) {
			return errLeft
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
