package informer

import (
	"bytes"
	"errors"
	"hash/maphash"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// sharedSets times two is how many strings a sharedStrings remembers.
	sharedSets = 4 << 10
	// maxShared is how long a string may be that is remembered: longer than names
	// of images with their digests, and than messages of conditions.
	maxShared = 256
)

// sharedStrings remembers strings that have come more than once, so that equal
// ones share their memory. It is a cache: a new string takes the place of one
// that was there before, and then that is remembered no more. What came once
// only, as most names and UIDs do, leaves a mark, and takes no place:
//
//	hash ─┬─ sets   2 strings a set, that which was remembered last in front
//	      └─ marks  bits of the hashes of strings that came once
//
// So it holds at most 8192 strings of up to 256 bytes, 2 MiB in all, whatever a
// server sends, beside some 220 KiB of its own. It may be used by many
// goroutines at a time, without locks: at worst a string is not remembered.
// A nil *sharedStrings remembers none.
type sharedStrings struct {
	seed  maphash.Seed
	sets  [sharedSets][2]atomic.Pointer[string]
	marks [4 * sharedSets]atomic.Uint32
}

// errNoString says that a value which is to be a string is none.
var errNoString = errors.New("no string")

func newSharedStrings() *sharedStrings { return &sharedStrings{seed: maphash.MakeSeed()} }

// of returns the string of b. It allocates nothing if that is remembered.
func (s *sharedStrings) of(b []byte) string {
	if s == nil || len(b) < 2 || len(b) > maxShared {
		return string(b)
	}
	hash := maphash.Bytes(s.seed, b)
	set := &s.sets[hash%sharedSets]
	for i := range set {
		if known := set[i].Load(); known != nil && *known == string(b) {
			return *known
		}
	}
	text := string(b)
	if mark := &s.marks[hash>>16%uint64(len(s.marks))]; mark.Load() == uint32(hash>>32) {
		set[1].Store(set[0].Load())
		set[0].Store(&text)
	} else {
		mark.Store(uint32(hash >> 32))
	}
	return text
}

// unmarshal decodes a JSON string as the decoder itself does, but for sharing it.
func (s *sharedStrings) unmarshal(raw []byte, out *string) error {
	text, err := unquoted(raw)
	if err == nil && text != nil {
		*out = s.of(text)
	}
	return err
}

// unquoted returns what is in a JSON string, or nil for null.
func unquoted(raw []byte) ([]byte, error) {
	switch {
	case string(raw) == "null":
		return nil, nil
	case raw[0] != '"':
		return nil, errNoString
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return raw[1 : len(raw)-1], nil
	}
	text, _ := jsontext.AppendUnquote([]byte{}, raw) // the error is about invalid UTF-8, which is replaced
	return text, nil
}
