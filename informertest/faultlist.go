package informertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// garbage is what a proxy says that has lost its server.
const garbage = "<html><head><title>Welcome</title></head><body>It works!</body></html>\n"

// alterList answers a list as the server would, but for the fault.
func (x exchange) alterList() {
	answer := &answerBuffer{ResponseWriter: x.w, status: http.StatusOK}
	x.server.serve(answer, x.r)
	if answer.status != http.StatusOK {
		writeBody(x.w, answer.status, answer.body.Bytes())
		return
	}
	var l listBody
	err := json.Unmarshal(answer.body.Bytes(), &l)
	if err == nil {
		err = x.editList(&l)
	}
	var parts [][]byte
	if err == nil {
		parts, err = l.parts()
	}
	if err != nil {
		writeError(x.w, fmt.Errorf("informertest: %s: %w", x.Fault, err))
		return
	}
	x.sendList(parts)
}

// answerBuffer keeps an answer, but for its header, from being sent.
type answerBuffer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader keeps the status.
func (a *answerBuffer) WriteHeader(status int) { a.status = status }

// Write keeps p.
func (a *answerBuffer) Write(p []byte) (int, error) { return a.body.Write(p) }

// listBody is the JSON of a list, or of a table.
type listBody struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Metadata   metav1.ListMeta   `json:"metadata"`
	Items      []json.RawMessage `json:"items"`

	table bool
}

// parts returns the list in pieces: a beginning, one for each item, and an end.
func (l *listBody) parts() ([][]byte, error) {
	meta, err := json.Marshal(l.Metadata)
	if err != nil {
		return nil, err
	}
	items := "items"
	if l.table {
		items = `columnDefinitions":[],"rows`
	}
	parts := [][]byte{fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"%s":[`, l.Kind, l.APIVersion, meta, items)}
	for i, item := range l.Items {
		if i < len(l.Items)-1 {
			item = append(slices.Clip(item), ',')
		}
		parts = append(parts, item)
	}
	return append(parts, []byte("]}")), nil
}

// sendList sends a list in parts, as far as the fault lets it come.
func (x exchange) sendList(parts [][]byte) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusOK)
	at := min(1+x.After, len(parts)-1) // the end, if there are no more items
	before, next := bytes.Join(parts[:at], nil), parts[at]
	half := next[:len(next)/2]
	switch x.word.fault {
	case FaultSlow:
		_, _ = x.w.Write(before)
		for _, part := range parts[at:] {
			if !x.sendSlowly(part) {
				return
			}
		}
	case FaultTruncated:
		_, _ = x.w.Write(append(before, half...))
	case FaultGarbage:
		if x.After == 0 {
			before = nil
		}
		_, _ = x.w.Write(append(before, garbage...))
	case FaultCut:
		x.sendAndFlush(append(before, half...))
		panic(http.ErrAbortHandler)
	case FaultEOF:
		x.sendAndFlush(before)
		panic(http.ErrAbortHandler)
	case FaultHalfOpen:
		x.sendAndFlush(before)
		x.hang()
	default:
		_, _ = x.w.Write(bytes.Join(parts, nil))
	}
}

// sendSlowly sends a part of an answer in two halves, and reports whether the
// client is still there.
func (x exchange) sendSlowly(part []byte) bool {
	x.sendAndFlush(part[:len(part)/2])
	if !sleep(x.r.Context(), x.wait) {
		return false
	}
	x.sendAndFlush(part[len(part)/2:])
	return true
}

// sendAndFlush sends a part of an answer. That the client may have gone away is
// no concern of the server.
func (x exchange) sendAndFlush(part []byte) {
	_, _ = x.w.Write(part)
	_ = http.NewResponseController(x.w).Flush()
}
