package informer

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
)

// protoNumber returns the number that a field has in protobuf, or 0.
func protoNumber(field reflect.StructField) int32 {
	parts := strings.SplitN(field.Tag.Get("protobuf"), ",", 3)
	if len(parts) < 3 {
		return 0
	}
	n, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// protoRepeated reports whether a field may be there many times in protobuf.
func protoRepeated(field reflect.StructField) bool {
	return strings.Contains(field.Tag.Get("protobuf"), ",rep,")
}

// A protoShape is what messages of one Go type consist of, by number of field,
// as far as it matters for their weight.
type protoShape map[int32]protoPart

// A protoPart is what one field takes in memory beside its text, by estimate.
type protoPart struct {
	weight weight     // open: of the first one, more: of each one behind it
	number bool       // it may be many numbers, each of a byte or more
	inside protoShape // of a message
}

// protoShapeOf returns the shape of the messages that are decoded into a t. Those
// in seen are known.
func protoShapeOf(t reflect.Type, seen map[reflect.Type]protoShape) protoShape {
	if shape, ok := seen[t]; ok {
		return shape
	}
	shape := protoShape{}
	seen[t] = shape
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if n := protoNumber(field); n > 0 {
				shape[n] = protoPartOf(field.Type, protoRepeated(field), seen)
			}
		}
	case reflect.Slice: // a type of its own, which is a message around its elements
		shape[1] = protoPartOf(t, true, seen)
	}
	return shape
}

// protoPartOf returns what a field of Go type t is.
func protoPartOf(t reflect.Type, repeated bool, seen map[reflect.Type]protoShape) (p protoPart) {
	switch t.Kind() {
	case reflect.Pointer:
		p = protoPartOf(t.Elem(), false, seen)
		p.weight.open += int64(t.Elem().Size())
		p.weight.more = p.weight.open
	case reflect.Map:
		size := int64(t.Key().Size() + t.Elem().Size())
		p.weight = weight{open: mapWeight + mapGroup*size, more: mapRoom * size}
		p.inside = protoShape{entryValue: protoPartOf(t.Elem(), false, seen)}
	case reflect.Slice:
		size := int64(t.Elem().Size())
		switch {
		case t.Elem().Kind() == reflect.Uint8: // text
		case repeated:
			p = protoPartOf(t.Elem(), false, seen)
			p.weight = weight{open: size + p.weight.open, more: size + p.weight.more}
			p.number = t.Elem().Kind() <= reflect.Float64
		default:
			p.inside = protoShapeOf(t, seen)
		}
	case reflect.Struct:
		p.inside = protoShapeOf(t, seen)
	}
	return p
}

// weigh returns an error if what is decoded from raw, a message of that shape,
// would take too much memory, or be too deep.
func (s protoShape) weigh(raw []byte) error {
	left := int64(maxElements)
	err := s.weighInside(raw, &left, 0)
	if errors.Is(err, errLargeProto) || errors.Is(err, errTooDeep) {
		return err
	}
	return nil // if it is no such message, Unmarshal says that better
}

// weighInside takes what a message weighs from what is left.
func (s protoShape) weighInside(raw []byte, left *int64, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	p := inMemory(raw)
	before := int32(0)
	return p.fields(int64(len(raw)), func(field int32, wire int) error {
		part := s[field]
		*left -= part.weight.more
		if field != before {
			*left += part.weight.more - part.weight.open
		}
		before = field
		if wire != wireBytes {
			if *left < 0 {
				return errLargeProto
			}
			return p.pass(wire, int64(len(raw)))
		}
		n, err := p.length(wire, int64(len(raw)))
		if err != nil {
			return err
		}
		if part.number {
			*left -= part.weight.more * n
		}
		if *left < 0 {
			return errLargeProto
		}
		content, err := p.next(int(n))
		if err != nil || part.inside == nil {
			return err
		}
		return part.inside.weighInside(content, left, depth+1)
	})
}
