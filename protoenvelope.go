package informer

import (
	"bytes"
	"errors"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protoMagic is what each protobuf of Kubernetes begins with. Behind it is an
// envelope, a runtime.Unknown:
//
//	1: { 1: apiVersion, 2: kind }
//	2: the message of that kind
//	3: how it is encoded further, which nobody does
const protoMagic = "k8s\x00"

// The fields of envelopes, lists, frames of a watch, and objects.
const (
	envelopeType     = 1
	envelopeMessage  = 2
	envelopeEncoding = 3

	typeVersion = 1
	typeKind    = 2

	listMetadata = 1
	listItems    = 2

	frameType    = 1
	frameObject  = 2 // a RawExtension
	frameContent = 1 // of which, an envelope

	objectMetadata = 1

	entryKey   = 1 // of a map
	entryValue = 2
)

var (
	errNoMagic  = errors.New("no protobuf of Kubernetes")
	errEncoding = errors.New("a protobuf that is encoded further")
)

// An envelope is one in memory. What it has is in the memory that it was read
// from.
type envelope struct {
	version, kind []byte
	message       []byte
}

// typeMeta returns what the envelope says of its message.
func (e *envelope) typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: string(e.version), Kind: string(e.kind)}
}

// part takes a field of an envelope.
func (e *envelope) part(field int32, part []byte) error {
	switch field {
	case envelopeType:
		return eachPart(part, e.typePart, typeVersion, typeKind)
	case envelopeMessage:
		e.message = part
	case envelopeEncoding:
		if len(part) > 0 {
			return errEncoding
		}
	}
	return nil
}

// typePart takes a field of the type in an envelope.
func (e *envelope) typePart(field int32, part []byte) error {
	if field == typeVersion {
		e.version = part
	} else {
		e.kind = part
	}
	return nil
}

// openEnvelope returns what is in an envelope. If b is only the beginning of
// one, it returns that with an error.
func openEnvelope(b []byte) (e envelope, err error) {
	b, ok := bytes.CutPrefix(b, []byte(protoMagic))
	if !ok {
		return e, errNoMagic
	}
	return e, eachPart(b, e.part, envelopeType, envelopeMessage, envelopeEncoding)
}

// eachPart calls fn with the wanted fields of a message in memory, all of which
// have a length. The last one may not be there as a whole; then fn is called
// with what is there of it, and eachPart returns an error.
func eachPart(b []byte, fn func(field int32, part []byte) error, wanted ...int32) error {
	p := inMemory(b)
	whole := int64(len(b))
	return p.fields(whole, func(field int32, wire int) error {
		if !slices.Contains(wanted, field) {
			return p.pass(wire, whole)
		}
		n, err := p.length(wire, unbounded)
		if err != nil {
			return err
		}
		if n > whole-p.offset() {
			return errors.Join(fn(field, p.unread()), io.ErrUnexpectedEOF)
		}
		part, err := p.next(int(n))
		return errors.Join(err, fn(field, part))
	})
}

// A frame is one frame of a watch in memory.
type frame struct {
	event  []byte // its type
	found  bool   // it has an object
	object []byte // an envelope
}

// part takes a field of a frame.
func (f *frame) part(field int32, part []byte) error {
	if field == frameType {
		f.event = part
		return nil
	}
	f.found = true
	return eachPart(part, f.objectPart, frameContent)
}

// objectPart takes the content of the object of a frame.
func (f *frame) objectPart(_ int32, part []byte) error {
	f.object = part
	return nil
}

// openFrame returns what is in a frame. If b is only the beginning of one, it
// returns that with an error.
func openFrame(b []byte) (f frame, err error) {
	return f, eachPart(b, f.part, frameType, frameObject)
}
