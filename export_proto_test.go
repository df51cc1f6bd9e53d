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
