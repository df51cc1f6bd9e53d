package informer

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeLikeREST decodes one value as a source of FromREST[E] does.
func DecodeLikeREST[E any](raw []byte, out any) error {
	return json.Unmarshal(raw, out, formOf[E](nil, false).options)
}

// DecodePlain decodes one value as FromREST does that had a fault.
func DecodePlain(raw []byte, out any) error { return json.Unmarshal(raw, out, decodeOptions()) }

// DecodeStreaming decodes one value as FromREST does if it is a long one.
func DecodeStreaming[E any](raw []byte, out any) error {
	return json.UnmarshalDecode(jsontext.NewDecoder(bytes.NewReader(raw)), out, formOf[E](nil, false).streaming)
}

// PassValue returns how many bytes of raw a scanner passes as one value, as it
// is given them in pieces of that size, and whether that is its end.
func PassValue(raw []byte, size int) (n int, ok bool) {
	var s scanner
	for n < len(raw) && !ok {
		var passed int
		passed, ok = s.end(raw[n:min(n+size, len(raw))])
		n += passed
	}
	return n, ok
}

// Limits are what a value may have, in bytes, and in Elements of one Weight.
type Limits struct{ Size, Window, Weight, Elements int64 }

// ReadMetered reads one value as its limits allow. It returns how many bytes
// were read, and whether the window was too small for the value and nothing else
// was.
func ReadMetered(body io.Reader, l Limits) (read int, full bool, err error) {
	m := &meter{body: body}
	m.json = jsontext.NewDecoder(m)
	m.allow(l.Size, l.Window, weight{open: l.Weight, more: l.Weight})
	m.elements = l.Elements
	_, err = m.json.ReadValue()
	return int(m.given), m.narrow, err
}

// Older reports whether version a comes before version b.
func Older(a, b string) bool { return older(a, b) }
