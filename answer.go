package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What lists and watches say of themselves, whatever their encoding.

// A listState is what a list is at, and what it has beside its items.
type listState[T Object] struct {
	yield  func(Event[T], error) bool
	about  metav1.TypeMeta
	meta   metav1.ListMeta
	status metav1.Status // what the body has of one, if it is one
	items  bool          // there were items, be it none
}

// check returns an error if the body is known to be something else than a list
// of E.
func (l *listState[T]) check(form *form) error {
	if l.about.Kind == "Status" {
		return statusError(l.status)
	}
	if want := form.kind; want != "" && l.about.Kind != "" && l.about.Kind != want+"List" {
		return &WrongTypeError{Want: form.name, Got: kindText(l.about.APIVersion, l.about.Kind)}
	}
	return nil
}

// item yields an item, the object of which is bad if there is an error.
func (l *listState[T]) item(ctx context.Context, ev Event[T], bad error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !l.yield(judged(EventAdded, ev, bad)) {
		return errLeft
	}
	return nil
}

// finish yields the end of the list. It returns an error if what was read is no
// list that can be used.
func (l *listState[T]) finish(form *form) error {
	if !l.items && !strings.HasSuffix(l.about.Kind, "List") {
		return fmt.Errorf("informer: list of %s: the server sent no list, but kind %.64q", form.name, l.about.Kind)
	}
	if l.meta.ResourceVersion == "" {
		return errNoVersion
	}
	l.yield(Event[T]{Type: EventEnd, Version: l.meta.ResourceVersion, Continue: l.meta.Continue}, nil)
	return nil
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

// other returns what a frame of that type says which is about no object of the
// collection. What it has instead is for decode to read, into a message that is
// needed as a whole.
func (w *watchState[T]) other(kind string, decode func(protoMessage) error) (ev Event[T], err error) {
	switch kind {
	case "BOOKMARK":
		var about metav1.PartialObjectMetadata
		if err := decode(&about); err != nil {
			return ev, err
		}
		return bookmark[T](about.ResourceVersion, about.Annotations, w.initial)
	case "ERROR":
		var status metav1.Status
		if err := decode(&status); err != nil {
			return ev, err
		}
		return ev, statusError(status)
	}
	return ev, fmt.Errorf("unknown event type %s", eventWord(kind))
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

// explain says that a list or watch, which is op, of type was being decoded when
// err came about, unless err is not about decoding at all.
func explain(op, typ string, err error) error {
	var api apierrors.APIStatus
	var wrong *WrongTypeError
	if errors.Is(err, errLeft) || errors.As(err, &api) || errors.As(err, &wrong) {
		return err
	}
	if errors.Is(err, errTooLarge) {
		err = errAround
	}
	// It may be one of the transport's, met while the body was read.
	err = withoutSecrets(unexpectedEOF(err))
	return fmt.Errorf("informer: decode %s of %s: %w", op, typ, err)
}

// statusError returns the error that a server means by status.
func statusError(status metav1.Status) error {
	if status.Message == "" {
		status.Message = fmt.Sprintf("the server sent the status %q, reason %q, code %d", status.Status, status.Reason, status.Code)
	}
	return withoutSecrets(apierrors.FromObject(&status))
}
