package informer

import (
	"reflect"
	"strings"
)

// protoOut is a node of the tree of what is left out of messages, by numbers of
// fields. A nil node is about what is kept as a whole.
type protoOut struct {
	out    bool                 // this is left out
	fields map[int32]*protoOut  // of a message, of which something is left out
	keys   map[string]*protoOut // of a map, the nodes of its entries by key
}

// newProtoOut returns the tree for what l leaves out of a t.
func newProtoOut(l *leftOut, t reflect.Type) *protoOut {
	if l == nil {
		return nil
	}
	o := &protoOut{out: l.out}
	switch {
	case l.out:
	case t.Kind() == reflect.Pointer:
		return newProtoOut(l, t.Elem())
	case t.Kind() == reflect.Slice: // a type of its own, which is a message around its elements
		o.fields = map[int32]*protoOut{1: newProtoOut(l, t.Elem())}
	case t.Kind() == reflect.Map:
		o.keys = map[string]*protoOut{}
		for key, inside := range l.members {
			o.keys[key] = &protoOut{out: inside.out, fields: map[int32]*protoOut{entryValue: newProtoOut(inside, t.Elem())}}
		}
	case t.Kind() == reflect.Struct:
		o.fields = map[int32]*protoOut{}
		o.addFields(l, t)
	}
	return o
}

// addFields adds what l leaves out of a struct.
func (o *protoOut) addFields(l *leftOut, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		number := protoNumber(field)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inside, found := l.members[name]
		kind := field.Type
		switch {
		case number == 0:
		case name == "" && field.Anonymous: // JSON has its members here
			o.fields[number] = newProtoOut(l, kind)
		case found && kind.Kind() == reflect.Slice && protoRepeated(field):
			o.fields[number] = newProtoOut(inside, kind.Elem())
		case found:
			o.fields[number] = newProtoOut(inside, kind)
		}
	}
}

// cut returns raw, a message, without what is left out, in the memory of raw. A
// message inside of it that is now shorter has a length with bytes to spare, as
// numbers may have. Of what is no message all is kept, for Unmarshal to say what
// is wrong.
func (o *protoOut) cut(raw []byte) []byte {
	if o == nil {
		return raw
	}
	p := inMemory(raw)
	kept := raw[:0] // never reaches what is not read yet
	for p.at < len(raw) {
		begin := p.at
		field, wire, err := p.tag()
		inside := o.fields[field]
		if err == nil && inside != nil && !inside.out && wire == wireBytes {
			kept, err = inside.cutInside(&p, begin, kept)
		} else if err == nil {
			err = p.pass(wire, int64(len(raw)))
			if err == nil && (inside == nil || !inside.out) {
				kept = append(kept, raw[begin:p.at]...)
			}
		}
		if err != nil {
			return append(kept, raw[begin:]...)
		}
	}
	return kept
}

// cutInside appends a field to kept, which began there and holds a message that o
// is about.
func (o *protoOut) cutInside(p *protoReader, begin int, kept []byte) ([]byte, error) {
	size := p.at
	n, err := p.length(wireBytes, int64(len(p.buf)))
	if err != nil {
		return kept, err
	}
	width := p.at - size
	content, err := p.next(int(n))
	if err != nil {
		return kept, err
	}
	if o.keys != nil {
		o = o.keys[string(keyOf(content))]
	}
	if o != nil && o.out {
		return kept, nil
	}
	content = o.cut(content)
	kept = append(kept, p.buf[begin:size]...)
	kept = appendWide(kept, len(content), width)
	return append(kept, content...), nil
}

// keyOf returns the key of a map's entry.
func keyOf(entry []byte) (key []byte) {
	_ = eachPart(entry, func(_ int32, part []byte) error { // what is wrong is said by Unmarshal
		key = part
		return nil
	}, entryKey)
	return key
}

// appendWide appends a number in as many bytes as it is to have.
func appendWide(b []byte, n, width int) []byte {
	for range width - 1 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n))
}
