package informer

import (
	"errors"
	"io"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errLargeProto is [errTooLarge] of objects that are needed as a whole.
var errLargeProto = errors.New("larger than 24 MiB, or too much of it is small elements")

// protoForm is what [FromREST] has to know of a Go type that decodes itself from
// protobuf. It is found out once a source.
type protoForm[T Object] struct {
	form
	unmarshal func(T, []byte) error // the method of generated code
	shape     protoShape
	out       *protoOut      // of objects
	shared    *sharedStrings // nil if strings are not shared
}

// protoFormOf returns what is to be known of E, or nil if it does not decode
// itself.
func protoFormOf[E any, T interface {
	*E
	Object
}](f form, share bool) *protoForm[T] {
	unmarshal, ok := protoMethod[E, T]()
	if !ok {
		return nil
	}
	t := reflect.TypeFor[E]()
	shape := protoShapeOf(t, map[reflect.Type]protoShape{})
	p := &protoForm[T]{form: f, unmarshal: unmarshal, shape: shape, out: newProtoOut(f.out, t)}
	if share {
		p.shared = newSharedStrings(manySets)
	}
	return p
}

// protoMessage is what generated code makes of a type. Unmarshal adds what it is
// given to what is there, and keeps none of it: strings and bytes are copied.
type protoMessage interface {
	Reset()
	Size() int
	Unmarshal([]byte) error
}

// protoMethod returns the method of *E that decodes protobuf as the types of
// Kubernetes do: a name is found where objects have it. It says false if there
// is none.
func protoMethod[E any, T interface {
	*E
	Object
}]() (unmarshal func(T, []byte) error, ok bool) {
	if !looksLikeProto(reflect.TypeFor[E]()) {
		return nil, false
	}
	method, _ := reflect.TypeFor[T]().MethodByName("Unmarshal")
	if unmarshal, ok = method.Func.Interface().(func(T, []byte) error); !ok {
		return nil, false
	}
	obj := T(new(E))
	err := unmarshal(obj, []byte("\x0a\x03\x0a\x01x"))
	return unmarshal, err == nil && obj.GetName() == "x"
}

// looksLikeProto reports whether a *t has the methods of generated code, and each
// field of t says where it is in protobuf. A user's type may have the methods
// from a part of it, such as an embedded Pod or ObjectMeta.
func looksLikeProto(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(reflect.TypeFor[protoMessage]()) {
		return false
	}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.IsExported() && protoNumber(field) == 0 &&
			field.Tag.Get("json") != "-" && field.Type != reflect.TypeFor[metav1.TypeMeta]() {
			return false
		}
	}
	return true
}

// protoObject decodes raw, which it may change, into a fresh object. If that is
// bad, the event says what is known of it.
func protoObject[E any, T interface {
	*E
	Object
}](f *protoForm[T], t EventType, raw []byte) (Event[T], error) {
	raw = f.out.cut(raw)
	if len(raw) > fewBytes {
		if bad := f.shape.weigh(raw); bad != nil {
			return partialEvent[T](t, aboutObject(raw)), bad
		}
	}
	obj := T(new(E))
	if err := f.unmarshal(obj, raw); err != nil {
		return partialEvent[T](t, aboutObject(raw)), withoutValues(err)
	}
	if f.shared != nil {
		if about, ok := any(obj).(metav1.Object); ok {
			f.shared.ofMetadata(about)
		}
	}
	return EventOf(t, obj), nil
}

// aboutObject returns what the beginning of an object says of it.
func aboutObject(raw []byte) (about partialObject) {
	var m metav1.ObjectMeta
	raw = raw[:min(len(raw), fewBytes)]
	_ = eachPart(raw, func(_ int32, part []byte) error { // what can be told will do
		_ = m.Unmarshal(part)
		return nil
	}, objectMetadata)
	about.Metadata.Namespace, about.Metadata.Name = m.Namespace, m.Name
	about.Metadata.UID, about.Metadata.ResourceVersion = m.UID, m.ResourceVersion
	return about
}

// withoutValues returns err, which says why a message cannot be decoded, without
// what the message says. Generated code speaks of names and numbers of fields
// only.
func withoutValues(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || strings.HasPrefix(err.Error(), "proto: ") {
		return err
	}
	return withoutContent(err, nil)
}
