// Package prototest lets tests speak protobuf with servers that speak JSON only.
package prototest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// ContentType is the media type of protobuf.
const ContentType = "application/vnd.kubernetes.protobuf"

// Magic is what every protobuf of Kubernetes begins with.
const Magic = "k8s\x00"

// Envelope returns a message in its envelope.
func Envelope(apiVersion, kind string, message []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}
	return append([]byte(Magic), must(unknown.Marshal())...)
}

// Field returns a field of a message that holds text, bytes or a message.
func Field(number int, content []byte) []byte {
	tag := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(tag, uint64(len(content))), content...)
}

// List returns a list of encoded items.
func List(apiVersion, kind string, meta metav1.ListMeta, items ...[]byte) []byte {
	message := Field(1, must(meta.Marshal()))
	for _, item := range items {
		message = append(message, Field(2, item)...)
	}
	return Envelope(apiVersion, kind, message)
}

// Frame returns a frame of a watch. The object is in its envelope.
func Frame(event string, object []byte) []byte {
	message := must((&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: object}}).Marshal())
	return Prefixed(message)
}

// Prefixed returns a frame with its length before it.
func Prefixed(frame []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// A Transport translates the answers of a server from JSON where a request
// prefers protobuf. What is no JSON it leaves as it is, and what breaks off
// breaks off.
type Transport struct {
	// Next asks the server.
	Next http.RoundTripper
	// Encode returns an object in protobuf, and what it is to be called. An error
	// makes it one that cannot be decoded. It is not asked about a Status.
	//
	// Default: what the scheme of client-go knows.
	Encode func(apiVersion, kind string, object []byte) (newVersion, newKind string, message []byte, err error)
}

// RoundTrip makes a request.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.Next.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.Header.Get("Accept"), ContentType) ||
		!strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		return answer, err
	}
	if t.Encode == nil {
		t.Encode = encode
	}
	answer.Header.Set("Content-Type", ContentType)
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	b := &body{Closer: answer.Body}
	whole := json.NewDecoder(io.TeeReader(answer.Body, &b.seen))
	switch {
	case answer.StatusCode != 200:
		b.next = func() ([]byte, error) { return t.status(whole) }
	case r.URL.Query().Get("watch") != "":
		answer.Header.Set("Content-Type", ContentType+";stream=watch")
		b.next = func() ([]byte, error) { return t.frame(whole) }
	default:
		b.next = func() ([]byte, error) { return t.list(whole) }
	}
	answer.Body = b
	return answer, nil
}

// body yields what next returns, one piece after the other.
type body struct {
	io.Closer
	next func() ([]byte, error)
	seen bytes.Buffer // of the JSON
	rest []byte
	err  error
}

// Read reads from the current piece.
func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.seen.Reset()
		b.rest, b.err = b.next()
		if syntax := new(json.SyntaxError); errors.As(b.err, &syntax) {
			b.rest, b.err = bytes.Clone(b.seen.Bytes()), io.EOF // garbage stays garbage
		}
		if errors.Is(b.err, io.ErrUnexpectedEOF) {
			b.rest, b.err = []byte("k8s"), io.EOF
		} else if b.err != nil && !errors.Is(b.err, io.EOF) {
			b.rest = []byte("k8s")
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// status returns the answer of an error.
func (t Transport) status(from *json.Decoder) ([]byte, error) {
	var status metav1.Status
	if err := from.Decode(&status); err != nil {
		return nil, err
	}
	return Envelope("v1", "Status", must(status.Marshal())), nil
}

// list returns a list.
func (t Transport) list(from *json.Decoder) ([]byte, error) {
	var list struct {
		metav1.TypeMeta
		Metadata json.RawMessage
		Items    []json.RawMessage
	}
	if err := from.Decode(&list); err != nil {
		return nil, err
	}
	if list.Kind == "Status" {
		return nil, fmt.Errorf("a status in place of a list")
	}
	var meta metav1.ListMeta
	if err := json.Unmarshal(list.Metadata, &meta); err != nil {
		return nil, err
	}
	kind := strings.TrimSuffix(list.Kind, "List")
	version, renamed, _, _ := t.Encode(list.APIVersion, kind, []byte("{}"))
	var items [][]byte
	for _, raw := range list.Items {
		items = append(items, t.object(list.APIVersion, kind, raw))
	}
	if kind != list.Kind {
		renamed += "List"
	}
	return List(version, renamed, meta, items...), nil
}

// frame returns the next frame of a watch.
func (t Transport) frame(from *json.Decoder) ([]byte, error) {
	var frame struct {
		Type   string
		Object json.RawMessage
	}
	if err := from.Decode(&frame); err != nil {
		return nil, err
	}
	var about metav1.TypeMeta
	if err := json.Unmarshal(frame.Object, &about); err != nil {
		return nil, err
	}
	if about.Kind == "Status" {
		t.Encode = encode
	}
	version, kind, _, _ := t.Encode(about.APIVersion, about.Kind, []byte("{}"))
	return Frame(frame.Type, Envelope(version, kind, t.object(about.APIVersion, about.Kind, frame.Object))), nil
}

// object returns an object in protobuf. Of one that is broken, the metadata is
// there.
func (t Transport) object(apiVersion, kind string, raw []byte) []byte {
	_, _, message, err := t.Encode(apiVersion, kind, raw)
	if err == nil {
		return message
	}
	var partial metav1.PartialObjectMetadata
	_ = json.Unmarshal(raw, &partial)
	return append(must(partial.Marshal()), 0x12, 0x7f) // a field that is not there
}

// encode is the default of Transport.Encode.
func encode(apiVersion, kind string, object []byte) (newVersion, newKind string, message []byte, err error) {
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apiVersion, kind, nil, err
	}
	var obj runtime.Object = &metav1.PartialObjectMetadata{}
	if scheme.Scheme.Recognizes(group.WithKind(kind)) {
		if obj, err = scheme.Scheme.New(group.WithKind(kind)); err != nil {
			return apiVersion, kind, nil, err
		}
	}
	if err := json.Unmarshal(object, obj); err != nil {
		return apiVersion, kind, nil, err
	}
	marshaler, ok := obj.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return apiVersion, kind, nil, fmt.Errorf("%T has no protobuf", obj)
	}
	message, err = marshaler.Marshal()
	return apiVersion, kind, message, err
}
