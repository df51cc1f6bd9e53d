package informer

import (
	"reflect"
)

// DecodesProto reports whether objects of that type are asked for as protobuf,
// as far as the type tells without an object.
func DecodesProto(t reflect.Type) bool { return looksLikeProto(t) }

// WeighProto returns what is wrong with the weight of a message that is decoded
// into a t.
func WeighProto(t reflect.Type, raw []byte) error {
	return protoShapeOf(t, map[reflect.Type]protoShape{}).weigh(raw)
}

// CutProto returns raw without what is at the paths, in its memory.
func CutProto(t reflect.Type, raw []byte, paths ...string) ([]byte, error) {
	out, err := newLeftOut(paths, t)
	if err != nil {
		return nil, err
	}
	return newProtoOut(out, t).cut(raw), nil
}

// A ProtoPart is a field of a message that has a length, or only its number.
type ProtoPart struct {
	Field   int
	Content []byte
}

// ProtoParts returns the fields of a message, up to the first broken one.
func ProtoParts(raw []byte) (parts []ProtoPart) {
	p := inMemory(raw)
	_ = p.fields(int64(len(raw)), func(field int32, wire int) error {
		part := ProtoPart{Field: int(field)}
		if wire != wireBytes {
			parts = append(parts, part)
			return p.pass(wire, int64(len(raw)))
		}
		n, err := p.length(wire, int64(len(raw)))
		if err == nil {
			part.Content, err = p.next(int(n))
		}
		parts = append(parts, part)
		return err
	})
	return parts
}
