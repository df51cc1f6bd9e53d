package informer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeLikeREST decodes one value as a source of FromREST[E] does.
func DecodeLikeREST[E any](raw []byte, out any) error {
	return json.Unmarshal(raw, out, formOf[E](nil, false).options)
}

// DecodePlain decodes one value as FromREST does that had a fault.
func DecodePlain(raw []byte, out any) error { return json.Unmarshal(raw, out, decodeOptions()) }

// DecodeStreaming decodes one value as FromREST does at first, with shared
// strings or without. What comes behind the value is an error.
func DecodeStreaming[E any](raw []byte, out any, share bool) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), formOf[E](nil, share).streaming)
	if err := json.UnmarshalDecode(dec, out); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more behind the value: %w", err)
	}
	return nil
}

// Sift returns what is let through of a body that comes in pieces of that size,
// of a list, a watch, or one object.
func Sift(body []byte, inside string, size int, paths ...string) ([]byte, error) {
	root, err := newLeftOut(paths, reflect.TypeFor[map[string]any]())
	if err != nil {
		return nil, err
	}
	if inside != "" {
		root = root.inside(inside)
	}
	s := newSieve(root, inside == "object")
	var out []byte
	for len(body) > 0 {
		n := min(size, len(body))
		out = s.append(out, body[:n])
		body = body[n:]
	}
	return out, nil
}

// A Shared is what remembers strings.
type Shared struct{ strings *sharedStrings }

// NewShared returns one with so many sets.
func NewShared(sets int) Shared { return Shared{newSharedStrings(sets)} }

// Of returns the string of b, and Held how many are remembered.
func (s Shared) Of(b []byte) string { return s.strings.of(b) }
func (s Shared) Held() (n int) {
	for i := range s.strings.sets {
		for k := range s.strings.sets[i] {
			if s.strings.sets[i][k].Load() != nil {
				n++
			}
		}
	}
	return n
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
