package informer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errLeft means that the loop over a sequence was left: its body is to be
// dropped, and nobody is to be told.
var errLeft = errors.New("informer: loop left")

// A setting is what a decoder that has read nothing has to be shown first, so
// that it can go on in front of an object of the body, or behind it, and the
// member of the body that the object is in.
type setting struct{ before, behind, member string }

// The settings of objects. That of one which is alone is the zero value.
func inList() setting  { return setting{`{"items":[`, `{"items":[null`, "items"} }
func inFrame() setting { return setting{`{"object"`, `{"object":null`, "object"} }

// decoder reads one response body, value by value. No more of the body is in
// memory than a buffer that is used again.
type decoder struct {
	ctx    context.Context // of the request, which ends with the decoder
	form   form
	around setting // of an object

	body *meter
	json *jsontext.Decoder
	base int64 // bytes of the body before those that json has read
}

func newDecoder(ctx context.Context, body io.Reader, form form, around setting) decoder {
	d := decoder{ctx: ctx, form: form, around: around, body: &meter{body: body}}
	if form.out != nil {
		root := form.out
		if around.member != "" {
			root = root.inside(around.member)
		}
		d.body.sieve = newSieve(root, around == inFrame())
	}
	d.fresh()
	d.body.allowAround()
	return d
}

// fresh gives d a decoder that has read nothing, and holds nothing.
func (d *decoder) fresh() {
	d.json = jsontext.NewDecoder(d.body, d.form.options)
	d.body.json = d.json
}

// resume makes d go on where the body is with a decoder that has read nothing,
// and is shown first what it has to be shown there.
func (d *decoder) resume(first string) error {
	d.base = d.body.ahead() - int64(len(first))
	d.body.first, d.body.given = first, 0
	d.json.Reset(d.body, d.form.options)
	for d.json.InputOffset() < int64(len(first)) {
		if _, err := d.json.ReadToken(); err != nil {
			return err
		}
	}
	return nil
}

// renew makes d go on behind a long object without the buffers that it took.
func (d *decoder) renew() error {
	d.body.forget()
	d.fresh()
	return d.resume(d.around.behind)
}

// letGo renews a watch behind a long object: the buffers would be held as long
// as it goes on.
func (d *decoder) letGo() error {
	if d.around != inFrame() || d.json.InputOffset()-d.body.started <= maxAround {
		return nil
	}
	d.body.back(d.json.UnreadBuffer())
	return d.renew()
}

// members reads the rest of a JSON object that was opened, and calls fn with the
// name of each member and the decoder before its value, which fn must consume.
func (d *decoder) members(fn func(name string) error) error {
	for {
		d.body.allowAround()
		if d.json.PeekKind() == '}' {
			break
		}
		name, err := d.json.ReadToken()
		if err != nil {
			return unexpectedEOF(err)
		}
		if err := fn(name.String()); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken()
	return err
}

// open reads the beginning of an object or array. It returns io.EOF if the body
// ends before.
func (d *decoder) open(want jsontext.Kind) error {
	token, err := d.json.ReadToken()
	if err == nil && token.Kind() != want {
		err = fmt.Errorf("%v at byte %d, want %v", token.Kind(), d.base+d.json.InputOffset(), want)
	}
	return err
}

// unexpectedEOF returns err, unless the body ends where it may not.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A point is where a decoder is: so deep, and behind so many values there.
type point struct {
	depth int
	index int64
}

func (d *decoder) point() point {
	depth := d.json.StackDepth()
	_, index := d.json.StackIndex(depth)
	return point{depth, index}
}

// next returns the point behind one more value.
func (p point) next() point { return point{p.depth, p.index + 1} }

// value decodes the next value into out. The first error concerns that value
// alone, which has been consumed, and of which out has what could be decoded;
// the second one concerns the body.
func (d *decoder) value(out any) (bad, err error) {
	before := d.point()
	err = json.UnmarshalDecode(d.json, out)
	if err == nil {
		return nil, nil
	}
	// Errors cannot be told apart by type, as they may come from a method of
	// the type that is decoded; but only a value that is well-formed to its end
	// is behind us now.
	if d.point() == before.next() {
		return err, nil
	}
	if err := d.excess(); err != nil {
		return nil, err
	}
	// What stands in the way is better told by the layer below.
	if _, plain := d.json.ReadValue(); plain != nil {
		err = plain
	}
	return nil, unexpectedEOF(err)
}

// excess returns the error of a value that could not be read because there is too
// much of it.
func (d *decoder) excess() error {
	if d.body.over {
		return errTooLarge
	}
	s := scanner{depth: d.json.StackDepth()}
	if s.deepestOf(d.json.UnreadBuffer()) > maxDepth {
		return errTooDeep
	}
	return nil
}

// must decodes the next value into out, all of which is needed.
func (d *decoder) must(out any) error {
	bad, err := d.value(out)
	return errors.Join(withoutContent(bad, nil), err)
}

// explain says what was being decoded when err came about.
func (d *decoder) explain(op string, err error) error {
	return explain(op, d.form.name, withoutNames(err, d.base))
}

// partialObject is what is still wanted of an object that cannot be decoded.
type partialObject struct {
	Metadata struct {
		Namespace       string    `json:"namespace"`
		Name            string    `json:"name"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
}

// object decodes the next value into a fresh object, as it comes from the body.
// If it is bad, the event says what is known of it. As with value, the second
// error concerns the body.
func object[E any, T interface {
	*E
	Object
}](d *decoder, t EventType) (ev Event[T], bad, err error) {
	before := d.point()
	obj := T(new(E))
	d.body.allow(maxObject, maxText, d.form.weight)
	bad = json.UnmarshalDecode(d.json, obj, d.form.streaming)
	switch {
	case bad == nil:
		ev = EventOf(t, obj)
	case d.body.kept && !d.body.over:
		ev, bad, err = objectAgain[E, T](d, t, bad)
	default:
		if about, ok := d.saidBy(); ok {
			ev = partialEvent[T](t, about)
		} else {
			ev = EventOf(t, obj)
		}
		if excess := d.excess(); excess != nil {
			bad = excess
		}
		err = d.skip(before)
	}
	if err == nil {
		err = d.letGo()
	}
	return ev, withoutContent(bad, d.form.typ), err
}

// objectAgain decodes an object that was refused as it came once more, from what
// is kept of it: the decoder that agrees with the one of Kubernetes in everything
// reads an object as a whole before it decodes it, and goes on where it finds a
// fault. What is too long for that has the first error.
func objectAgain[E any, T interface {
	*E
	Object
}](d *decoder, t EventType, first error) (ev Event[T], bad, err error) {
	d.body.rewind()
	if err := d.resume(d.around.before); err != nil {
		return ev, nil, err
	}
	before := d.point()
	obj := T(new(E))
	d.body.allow(maxObject, maxWhole, d.form.weight)
	bad, err = d.value(obj)
	if errors.Is(err, errTooLarge) || errors.Is(err, errTooDeep) {
		if bad = err; d.body.narrow {
			bad = first
		}
		about, _ := d.saidBy()
		return partialEvent[T](t, about), bad, d.skip(before)
	}
	if bad != nil && d.form.opaque { // nobody else knows its key
		about, _ := d.saidBy()
		return partialEvent[T](t, about), bad, nil
	}
	return EventOf(t, obj), bad, err // what it has will do
}

// saidBy returns what the beginning of a bad object says of it, if that is still
// known.
func (d *decoder) saidBy() (partialObject, bool) {
	raw := d.json.UnreadBuffer()
	if d.body.kept {
		raw = d.body.buf[d.body.start:d.body.next]
	}
	raw = bytes.TrimLeft(raw, ",: \n\r\t")
	return partialOf(raw, d.form), d.body.kept || d.form.opaque
}

// skip passes the rest of the value that is, or was, behind that place, holding
// none of it. The next token is what stands behind it.
func (d *decoder) skip(before point) error {
	last := d.json.UnreadBuffer()
	if d.point() != before.next() {
		s := scanner{depth: d.json.StackDepth() - before.depth}
		s.begun = s.depth > 0
		n, ok := s.end(last)
		last = last[n:]
		if !ok {
			if err := d.body.pass(d.ctx, &s); err != nil {
				return err
			}
		}
	}
	d.body.back(last)
	return d.renew()
}

// raw reads the next value as it is. If that is too large, or nested too deeply,
// it is passed, and about is what its beginning says.
func (d *decoder) raw() (raw jsontext.Value, about partialObject, bad, err error) {
	before := d.point()
	d.body.allow(maxText, maxText, d.form.weight)
	raw, err = d.json.ReadValue()
	if err != nil {
		if bad = d.excess(); bad != nil {
			about, _ = d.saidBy()
			err = d.skip(before)
		}
	}
	if err == nil {
		err = d.letGo() // and leaves raw where it is
	}
	return raw, about, bad, unexpectedEOF(err)
}

// partialOf returns what an object, or the beginning of one, says of itself.
func partialOf(raw []byte, form form) (about partialObject) {
	_ = json.UnmarshalDecode(jsontext.NewDecoder(bytes.NewReader(raw), form.streaming), &about) // what it has will do
	return about
}

// partialEvent returns the event about an object that is not there.
func partialEvent[T Object](t EventType, about partialObject) Event[T] {
	m := &about.Metadata
	return Event[T]{
		Type: t, Key: Key{Namespace: m.Namespace, Name: m.Name}, UID: m.UID, Version: m.ResourceVersion,
	}
}

// listDecoder yields the items of one page as they are decoded.
type listDecoder[E any, T interface {
	*E
	Object
}] struct {
	decoder
	listHead
	yield func(Event[T], error) bool
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
		d := newDecoder(w.ctx, bytes.NewReader(early), w.form, setting{})
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
