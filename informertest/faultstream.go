package informertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// errEnded tells the server's own code that a fault has ended its answer.
var errEnded = errors.New("informertest: a fault has ended the stream")

// alterStream answers a watch as the server would, but for the fault.
func (x exchange) alterStream() {
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	f := &frameWriter{ResponseWriter: x.w, exchange: x, leave: cancel, frames: -1}
	x.server.serve(f, x.r.WithContext(ctx))
	switch {
	case f.abort:
		panic(http.ErrAbortHandler)
	case f.silent:
		x.hang()
	case f.held != nil:
		x.sendAndFlush(f.held)
	}
}

// frameWriter passes on the frames of a watch, of which it gets one at a time,
// until the fault strikes. It belongs to the goroutine of the request.
type frameWriter struct {
	http.ResponseWriter
	exchange
	leave  context.CancelFunc // makes the server leave the watch
	frames int                // that have come; negative if this is no watch
	held   []byte             // to be sent after the next one

	ended  bool // no more is sent
	abort  bool // the connection is to be closed
	silent bool // the connection is to stay open
}

// WriteHeader passes on the status. Where that is no success, so is the rest.
func (f *frameWriter) WriteHeader(status int) {
	if status == http.StatusOK {
		f.frames = 0
	}
	f.ResponseWriter.WriteHeader(status)
}

// Write passes on a frame, or what the fault makes of it.
func (f *frameWriter) Write(frame []byte) (int, error) {
	if f.frames < 0 {
		return f.ResponseWriter.Write(frame)
	}
	if !f.ended && bytes.HasPrefix(frame, []byte(`{"type":"ERROR"`)) {
		f.ended = true // by the server itself
		return f.ResponseWriter.Write(frame)
	}
	due := f.frames >= f.After
	f.frames++
	err := f.endIfDue(due, frame)
	switch {
	case f.silent:
		err = nil
	case err != nil:
	case due:
		err = f.alter(frame)
	default:
		_, err = f.ResponseWriter.Write(frame)
	}
	if err != nil {
		return 0, err
	}
	return len(frame), nil
}

// FlushError flushes. A fault that ends the answer strikes as soon as what
// comes before it has been sent.
func (f *frameWriter) FlushError() error {
	err := http.NewResponseController(f.ResponseWriter).Flush()
	if err == nil && f.frames >= 0 && !f.ended {
		err = f.endIfDue(f.frames >= f.After, nil)
	}
	if f.silent {
		return nil
	}
	return err
}

// endIfDue ends the answer if that is what the fault does. Some faults need a
// frame for it.
func (f *frameWriter) endIfDue(due bool, frame []byte) error {
	if f.ended {
		return errEnded
	}
	if !due {
		return nil
	}
	f.note()
	status := f.status()
	switch {
	case status != nil:
		return f.sendStatus(status)
	case f.word.fault == FaultClose:
		return f.end(nil)
	case f.word.fault == FaultEOF:
		f.abort = true
		return f.end(nil)
	case f.word.fault == FaultGarbage:
		return f.end([]byte(garbage))
	case f.word.fault == FaultHalfOpen:
		f.silent = true
		f.ended = true
		return errEnded
	case frame == nil:
		return nil
	case f.word.fault == FaultCut, f.word.fault == FaultTruncated:
		f.abort = f.word.fault == FaultCut
		return f.end(frame[:len(frame)/2])
	}
	return nil
}

// end sends the last bytes of the answer.
func (f *frameWriter) end(last []byte) error {
	f.ended = true
	f.sendAndFlush(last)
	f.leave()
	return errEnded
}

func (f *frameWriter) sendStatus(err error) error {
	body, encodeErr := json.Marshal(statusOf(err))
	if encodeErr != nil {
		return encodeErr
	}
	return f.end(encodeFrame(watch.Error, body))
}

// alter passes on what the fault makes of a frame.
func (f *frameWriter) alter(frame []byte) error {
	var event frameBody
	if err := json.Unmarshal(frame, &event); err != nil {
		return fmt.Errorf("informertest: %s: %w", f.Fault, err)
	}
	mark := event.Type == string(watch.Bookmark)
	switch f.word.fault {
	case FaultSlow:
		f.sendSlowly(frame)
		return nil
	case FaultDuplicate, FaultTwice:
		if !mark && (f.word.fault == FaultDuplicate || f.isMeant(event)) {
			frame = append(bytes.Clone(frame), frame...)
		}
	case FaultReorder:
		if !mark && f.held == nil {
			f.held = bytes.Clone(frame)
			return nil
		}
		frame = append(bytes.Clone(frame), f.held...)
		f.held = nil
	case FaultIgnored, FaultNoBookmarks:
		if mark && event.endsList() == (f.word.fault == FaultIgnored) {
			return nil
		}
	default:
		var err error
		if frame, err = f.edited(event, frame); err != nil {
			return fmt.Errorf("informertest: %s: %w", f.Fault, err)
		}
	}
	_, err := f.ResponseWriter.Write(frame)
	return err
}

// isMeant reports whether the fault is about the object of an event.
func (f *frameWriter) isMeant(event frameBody) bool {
	if f.Key.Name != "" {
		return keyOfJSON(event.Object) == f.Key
	}
	return f.frames == f.After+1
}

// edited returns a frame with what the fault makes of its object.
func (f *frameWriter) edited(event frameBody, frame []byte) ([]byte, error) {
	edit := f.editor()
	switch {
	case f.word.fault == FaultUnversioned && event.endsList():
		edit = inMetadata(func(meta jsonObject) { delete(meta, "resourceVersion") })
	case event.Type == string(watch.Bookmark):
		return frame, nil
	case f.word.fault == FaultTable:
		edit = toTable
	case f.word.fault == FaultWrongKind:
		edit = toOtherKind
	case edit == nil || !f.isMeant(event):
		return frame, nil
	}
	object := []json.RawMessage{event.Object}
	if err := eachItem(object, edit); err != nil {
		return nil, err
	}
	return encodeFrame(watch.EventType(event.Type), object[0]), nil
}

// frameBody is the JSON of a frame.
type frameBody struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// endsList reports whether the frame is the bookmark that ends the initial
// events.
func (f frameBody) endsList() bool {
	var about struct {
		Metadata struct{ Annotations map[string]string }
	}
	err := json.Unmarshal(f.Object, &about)
	return f.Type == string(watch.Bookmark) && err == nil &&
		about.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// encodeFrame returns the bytes of a frame.
func encodeFrame(event watch.EventType, body []byte) []byte {
	var buf bytes.Buffer
	buf.Grow(len(body) + 40)
	fmt.Fprintf(&buf, `{"type":%q,"object":`, string(event))
	buf.Write(body)
	buf.WriteString("}\n")
	return buf.Bytes()
}
