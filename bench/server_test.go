package bench

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-99a027e8/informer/bench/fixture"
)

const (
	jsonType  = "application/json"
	protoType = "application/vnd.kubernetes.protobuf"
)

// An encodedList is what the server of the wire rows holds: each object in each
// encoding. Its answers are put together while they are sent.
type encodedList struct {
	kind, apiVersion string
	json             [][]byte
	proto            [][]byte // nil if the kind has none
	version          string
}

func encode[T fixture.Object](t *testing.T, kind fixture.Kind[T], seed int64, n int) *encodedList {
	list := &encodedList{
		kind: kind.Kind, apiVersion: kind.Resource.GroupVersion().String(), version: "99999999",
	}
	for i := range n {
		obj := kind.New(seed, i)
		raw, err := json.Marshal(obj)
		must(t, err)
		list.json = append(list.json, raw)
		if kind.Proto != nil {
			raw, err := kind.Proto(obj)
			must(t, err)
			list.proto = append(list.proto, raw)
		}
	}
	return list
}

// serve answers until its standard input ends, which it does with the process
// that started this one. Under /list/ streaming lists are refused.
func serve[T fixture.Object](t *testing.T, kind fixture.Kind[T], spec childSpec) {
	list := encode(t, kind, spec.Seed, spec.N)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("/list/", func(w http.ResponseWriter, r *http.Request) { list.answer(w, r, false) })
	mux.HandleFunc("/stream/", func(w http.ResponseWriter, r *http.Request) { list.answer(w, r, true) })
	go func() { _ = http.Serve(listener, mux) }()
	fmt.Fprintf(os.Stdout, "%shttp://%s\n", childMark, listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// answer is what an API server does, with its content negotiation: the first
// type of Accept that it has.
func (l *encodedList) answer(w http.ResponseWriter, r *http.Request, streams bool) {
	query := r.URL.Query()
	proto := l.proto != nil && strings.HasPrefix(r.Header.Get("Accept"), protoType)
	out := bufio.NewWriterSize(w, 256<<10)
	watch, initial := query.Get("watch") != "", query.Get("sendInitialEvents") == "true"
	switch {
	case initial && !streams:
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"no streaming lists"}`)
	case watch:
		w.Header().Set("Content-Type", watchType(proto))
		w.WriteHeader(http.StatusOK)
		if initial {
			l.stream(out, proto)
		}
		_ = out.Flush()
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case proto:
		w.Header().Set("Content-Type", protoType)
		l.protoList(out)
		_ = out.Flush()
	default:
		w.Header().Set("Content-Type", jsonType)
		l.jsonList(out)
		_ = out.Flush()
	}
}

func watchType(proto bool) string {
	if proto {
		return protoType + ";stream=watch"
	}
	return jsonType
}

// stream writes the list as the events of a watch.
func (l *encodedList) stream(out *bufio.Writer, proto bool) {
	end := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: l.version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	if proto {
		for _, raw := range l.proto {
			l.frame(out, "ADDED", raw)
		}
		raw, _ := (&metav1.PartialObjectMetadata{ObjectMeta: end.ObjectMeta}).Marshal() // field 1, as of every kind
		l.frame(out, "BOOKMARK", raw)
		return
	}
	for _, raw := range l.json {
		l.line(out, "ADDED", raw)
	}
	raw, _ := json.Marshal(end)
	l.line(out, "BOOKMARK", raw)
}

// line writes an event as JSON. An object has its kind in a watch.
func (l *encodedList) line(out *bufio.Writer, event string, object []byte) {
	if strings.HasPrefix(string(object[:min(len(object), 20)]), `{"apiVersion"`) {
		fmt.Fprintf(out, `{"type":"%s","object":`, event)
	} else {
		fmt.Fprintf(out, `{"type":"%s","object":{"kind":"%s","apiVersion":"%s",`, event, l.kind, l.apiVersion)
		object = object[1:]
	}
	_, _ = out.Write(object)
	_, _ = out.WriteString("}\n")
}

// frame writes an event as protobuf, behind its length.
func (l *encodedList) frame(out *bufio.Writer, event string, object []byte) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: l.apiVersion, Kind: l.kind}, Raw: object}
	inner, _ := unknown.Marshal()
	raw := append([]byte("k8s\x00"), inner...)
	framed, _ := (&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: raw}}).Marshal()
	_, _ = out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(framed))))
	_, _ = out.Write(framed)
}

func (l *encodedList) jsonList(out *bufio.Writer) {
	fmt.Fprintf(out, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%s"},"items":[`, l.kind, l.apiVersion, l.version)
	for i, raw := range l.json {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(raw)
	}
	_, _ = out.WriteString("]}\n")
}

// protoList writes k8s\x00 and a runtime.Unknown{typeMeta, raw: List{metadata,
// items...}}, whose lengths come before what they are the lengths of.
func (l *encodedList) protoList(out *bufio.Writer) {
	field := func(to []byte, tag byte, raw []byte) []byte {
		return append(binary.AppendUvarint(append(to, tag), uint64(len(raw))), raw...)
	}
	const first, second, third, fourth = 1<<3 | 2, 2<<3 | 2, 3<<3 | 2, 4<<3 | 2
	meta, _ := (&metav1.ListMeta{ResourceVersion: l.version}).Marshal()
	head := field(nil, first, meta)
	size := len(head)
	for _, raw := range l.proto {
		size += 1 + len(binary.AppendUvarint(nil, uint64(len(raw)))) + len(raw)
	}
	kind, _ := (&runtime.TypeMeta{APIVersion: l.apiVersion, Kind: l.kind + "List"}).Marshal()
	outer := field([]byte("k8s\x00"), first, kind)
	outer = binary.AppendUvarint(append(outer, second), uint64(size))
	_, _ = out.Write(append(outer, head...))
	for _, raw := range l.proto {
		_, _ = out.Write(binary.AppendUvarint([]byte{second}, uint64(len(raw))))
		_, _ = out.Write(raw)
	}
	_, _ = out.Write([]byte{third, 0, fourth, 0})
}
