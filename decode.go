package informer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

	body  *meter
	json  *jsontext.Decoder
	base  int64             // bytes of the body before those that json has read
	words map[string]string // by what they are in JSON
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
		name, err := d.json.ReadValue()
		if err != nil {
			return unexpectedEOF(err)
		}
		if err := fn(d.word(name)); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken()
	return err
}

// word returns what is in a JSON string that is mostly one of few: each frame of a
// watch has the same.
func (d *decoder) word(raw []byte) string {
	const most, longest = 16, 32
	if word, ok := d.words[string(raw)]; ok {
		return word
	}
	word := string(unquoted(raw))
	if len(d.words) < most && len(raw) <= longest {
		if d.words == nil {
			d.words = map[string]string{}
		}
		d.words[string(raw)] = word
	}
	return word
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
		if d.body.kept || d.form.opaque { // its beginning has not gone
			ev = partialEvent[T](t, d.saidBy())
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
		return partialEvent[T](t, d.saidBy()), bad, d.skip(before)
	}
	if bad != nil && d.form.opaque { // nobody else knows its key
		return partialEvent[T](t, d.saidBy()), bad, nil
	}
	return EventOf(t, obj), bad, err // what it has will do
}

// saidBy returns what the beginning of a bad object says of it, which is kept, or
// has not been read by token.
func (d *decoder) saidBy() partialObject {
	raw := d.json.UnreadBuffer()
	if d.body.kept {
		raw = d.body.buf[d.body.start:d.body.next]
	}
	raw = bytes.TrimLeft(raw, ",: \n\r\t")
	return partialOf(raw, d.form)
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
			about = d.saidBy()
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
