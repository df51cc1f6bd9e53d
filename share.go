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
	// manySets times two is how many strings a source remembers that shares them,
	// and fewSets times two is how many names of members of unstructured objects
	// one remembers that does not.
	manySets = 4 << 10
	fewSets  = 1 << 8
	// marksPerSet is how many strings that came once leave a mark.
	marksPerSet = 4
	// longestShared is how long a string may be that is remembered: longer than
	// the names of images with their digests, and than most messages.
	longestShared = 256
)

// errNoString says that a value which is to be a string is none.
var errNoString = errors.New("no string")

// sharedStrings remembers strings that have come more than once, so that equal
// ones share their memory. It is a cache: a new string takes the place of one
// that was there before, and that is remembered no more. What came once only,
// as most names and UIDs do, leaves a mark, and takes no place:
//
//	hash ─┬─ sets   2 strings a set, that which came last in front
//	      └─ marks  bits of the hashes of strings that came once
//
// So it holds at most 8192 strings of up to 256 bytes, 2 MiB in all, whatever a
// server sends, beside 128 KiB of its own. It may be used by many goroutines at
// a time, without locks: at worst a string is not remembered. A nil
// *sharedStrings remembers none.
type sharedStrings struct {
	seed  maphash.Seed
	sets  [][2]atomic.Pointer[string]
	marks []atomic.Uint32
}

func newSharedStrings(sets int) *sharedStrings {
	return &sharedStrings{
		seed:  maphash.MakeSeed(),
		sets:  make([][2]atomic.Pointer[string], sets),
		marks: make([]atomic.Uint32, marksPerSet*sets),
	}
}

// of returns the string of b. It allocates nothing if that is remembered.
func (s *sharedStrings) of(b []byte) string {
	if s == nil || len(b) < 2 || len(b) > longestShared {
		return string(b)
	}
	hash := maphash.Bytes(s.seed, b)
	if known, ok := remembered(s, hash, b); ok {
		return known
	}
	return s.met(hash, string(b))
}

// ofText returns text, or the string that is remembered and equals it.
func (s *sharedStrings) ofText(text string) string {
	if s == nil || len(text) < 2 || len(text) > longestShared {
		return text
	}
	hash := maphash.String(s.seed, text)
	if known, ok := remembered(s, hash, text); ok {
		return known
	}
	return s.met(hash, text)
}

// remembered returns the string that equals b, which has that hash.
func remembered[S string | []byte](s *sharedStrings, hash uint64, b S) (string, bool) {
	set := &s.sets[hash%uint64(len(s.sets))]
	for i := range set {
		if known := set[i].Load(); known != nil && *known == string(b) {
			return *known, true
		}
	}
	return "", false
}

// met takes note of a text that is not remembered, and remembers it if that was
// done before. It returns the text.
func (s *sharedStrings) met(hash uint64, text string) string {
	bits := uint32(hash >> 32)
	if mark := &s.marks[bits%uint32(len(s.marks))]; mark.Swap(bits) == bits {
		set := &s.sets[hash%uint64(len(s.sets))]
		set[1].Store(set[0].Load())
		set[0].Store(&text)
	}
	return text
}

// unmarshal decodes a JSON string as the decoder itself does, but for sharing it.
func (s *sharedStrings) unmarshal(raw []byte, out *string) error {
	switch raw[0] {
	case '"':
		*out = s.of(unquoted(raw))
	case 'n': // null changes nothing
	default:
		return errNoString
	}
	return nil
}

// unquoted returns what is in a JSON string. It may be in the memory of that.
func unquoted(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return raw[1 : len(raw)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // the error is about invalid UTF-8, which is replaced
	return text
}
