package informer

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/client-go/rest"
)

// What a response may cost, whoever sent it. API servers refuse objects above
// 3 MiB, so that nothing real comes near.
const (
	// maxObject is how long one object may be, in bytes of JSON.
	maxObject = 64 << 20
	// maxElements is how much memory the elements of one object may take, by
	// estimate, beside their text: "{}," is three bytes, and a container is
	// hundreds.
	maxElements = 48 << 20
	// maxText is how long one string may be, or an object that is needed as a
	// whole: the decoder's buffer, which doubles, is then at most 32 MiB.
	maxText = 24 << 20
	// maxWhole is how long an object may be to be read as a whole before it is
	// decoded, which is how the decoder works that agrees with the one of
	// Kubernetes in everything. Longer ones are decoded as they come.
	maxWhole = 4 << 20
	// maxAround is how long what is no object may be: the metadata of a list, a
	// bookmark, a status, white space, a member that nobody knows.
	maxAround = 1 << 20
	// maxDepth is how deep an object may be nested: a little less than what ends
	// the decoder.
	maxDepth = 9_900
	// fewBytes is how much of an object is read before its elements count.
	fewBytes = 64 << 10
	// maxError is how long the body of an answer that is an error may be.
	maxError = 1 << 20
	// skipBuffer is the unit in which bytes are read that nobody wants.
	skipBuffer = 32 << 10
)

var (
	errTooLarge = errors.New("larger than 64 MiB, or too much of it is one string or small elements")
	errTooDeep  = errors.New("nested too deeply")
	errAround   = errors.New("more than 1 MiB that is no object")
)

// A meter is a response body as its decoder reads it. It ends with errTooLarge
// when more is asked for than was allowed.
//
// Counting elements means to tell what is inside a string and what is not, byte
// by byte, so this is done for large objects only. It can begin in the middle of
// one, as the decoder's unread bytes begin with a token.
type meter struct {
	body io.Reader
	json *jsontext.Decoder // which reads from the meter

	given    int64 // bytes, all in all
	started  int64 // what given was when the object began
	bytes    int64 // that the object may still have
	window   int64 // bytes that the decoder may have been given, but not passed
	weight   weight
	elements int64 // estimated bytes that they may still take
	scan     scanner
	scanning bool

	over bool // more was asked for than was allowed
	full bool // only the window was too small
}

// allow lets the next value, with the white space before it, have up to size
// bytes, no more than window of them at a time, and elements of that weight.
func (m *meter) allow(size, window int64, w weight) {
	m.started = m.json.InputOffset()
	m.bytes, m.window = size-m.pending(), window
	m.weight, m.elements = w, maxElements
	m.scanning, m.over, m.full = false, false, false
}

// allowAround lets the next value be one that is no object.
func (m *meter) allowAround() { m.allow(maxAround, maxAround, weight{}) }

// pending returns how many bytes the decoder has been given, but not passed.
func (m *meter) pending() int64 { return m.given - m.json.InputOffset() }

// Read reads from the body, little at a time: what has come is weighed before
// more does.
func (m *meter) Read(p []byte) (int, error) {
	room := min(int64(len(p)), m.bytes, m.window-m.pending(), fewBytes)
	if room <= 0 || m.elements < 0 {
		m.over = true
		m.full = m.bytes > 0 && m.elements >= 0
		return 0, errTooLarge
	}
	if !m.scanning && m.given-m.started > fewBytes {
		m.scanning, m.scan = true, scanner{}
		m.weigh(m.json.UnreadBuffer())
	}
	n, err := m.body.Read(p[:room])
	m.given += int64(n)
	m.bytes -= int64(n)
	if m.scanning {
		m.weigh(p[:n])
	}
	return n, err
}

// weigh counts the elements in b.
func (m *meter) weigh(b []byte) {
	opened, more := m.scan.elements(b)
	m.elements -= m.weight.open*opened + m.weight.more*more
}

// A scanner knows of JSON what it takes to tell values from each other. Its zero
// value is between two tokens.
type scanner struct {
	depth   int  // of objects and arrays that are open
	deepest int  // that depth has been
	text    bool // inside a string
	escaped bool // behind a backslash
	begun   bool // the value has begun
}

// string passes the rest of a string, and returns its length in b, with the
// closing quote.
func (s *scanner) string(b []byte) int {
	for i, c := range b {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.text = false
			return i + 1
		}
	}
	return len(b)
}

// elements returns how many objects and arrays begin in b, each with its first
// element, and how many further elements do, which are behind commas.
func (s *scanner) elements(b []byte) (opened, more int64) {
	for i := 0; i < len(b); {
		if s.text {
			i += s.string(b[i:])
			continue
		}
		switch b[i] {
		case '"':
			s.text = true
		case '{', '[':
			opened++
		case ',':
			more++
		}
		i++
	}
	return opened, more
}

// deepestOf returns how many objects and arrays in b are open at a time.
func (s *scanner) deepestOf(b []byte) int {
	for len(b) > 0 {
		n, _ := s.end(b)
		b = b[max(n, 1):]
	}
	return s.deepest
}

// end passes the rest of a value, and returns its length in b, or false if it
// goes on behind b. What was before the value, white space, comma or colon,
// counts as part of it.
func (s *scanner) end(b []byte) (int, bool) {
	for i := 0; i < len(b); {
		if s.text {
			i += s.string(b[i:])
			if !s.text && s.depth == 0 {
				return i, true
			}
			continue
		}
		switch c := b[i]; c {
		case '"':
			s.text = true
		case '{', '[':
			s.depth++
			s.deepest = max(s.deepest, s.depth)
		case '}', ']':
			if s.depth == 0 { // of a number, and not ours
				return i, true
			}
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		case ',', ':', ' ', '\n', '\r', '\t':
			if s.depth == 0 && s.begun { // the same
				return i, true
			}
			i++
			continue
		}
		s.begun = true
		i++
	}
	return len(b), false
}

// What a decoder has to be shown first that goes on behind an object.
const (
	insideList  = `{"items":[null`
	insideFrame = `{"object":null`
)

// attach makes d read from body.
func (d *decoder) attach(body io.Reader, options json.Options) {
	d.body = &meter{body: body}
	d.json = jsontext.NewDecoder(d.body, options)
	d.body.json = d.json
	d.body.allowAround()
}

// large decodes an object that is too long to be read as a whole, or passes it
// if it is too large for that too, or nested too deeply. Then bad says why, and
// about what the beginning of the object says of it. No token of it has been
// read; the next one is what stands behind it.
func (d *decoder) large(out any) (about partialObject, bad, err error) {
	raw := bytes.TrimLeft(d.json.UnreadBuffer(), ",: \n\r\t")
	about, bad = partialOf(raw, d.form), errTooLarge
	depth := d.json.StackDepth()
	switch {
	case d.body.full:
		trimmed := int64(len(d.json.UnreadBuffer()) - len(raw))
		// The old decoder goes, so that its buffer can be read from.
		if err := d.resume("", trimmed, raw, d.form.streaming); err != nil {
			return about, nil, err
		}
		depth = 0
		d.body.allow(maxObject-trimmed, maxText, d.form.weight)
		bad = json.UnmarshalDecode(d.json, out)
		if _, n := d.json.StackIndex(0); d.json.StackDepth() == 0 && n == 1 {
			return about, bad, d.resume(d.outside, 0, bytes.Clone(d.json.UnreadBuffer()), d.form.options)
		}
		if d.body.over {
			bad = errTooLarge
		} else if d.json.StackDepth() > maxDepth {
			bad = errTooDeep
		}
	case !d.body.over:
		bad = errTooDeep
	}
	return about, bad, d.skip(depth)
}

// skip passes the rest of a value inside of the object or array at that depth,
// holding none of it.
func (d *decoder) skip(depth int) error {
	s := scanner{depth: d.json.StackDepth() - depth}
	s.begun = s.depth > 0
	chunk := d.json.UnreadBuffer()
	var buf []byte
	for passed := int64(0); ; {
		n, ok := s.end(chunk)
		passed += int64(n)
		if ok {
			return d.resume(d.outside, passed, bytes.Clone(chunk[n:]), d.form.options)
		}
		if buf == nil {
			buf = make([]byte, skipBuffer)
		}
		n, err := d.body.body.Read(buf)
		chunk = buf[:n]
		if n > 0 {
			err = nil // it comes again
		}
		if err == nil {
			err = d.ctx.Err()
		}
		if err != nil {
			return unexpectedEOF(err)
		}
	}
}

// resume makes d go on with a fresh decoder that many bytes behind where the old
// one is: inside of what outside opens, first with rest, then with the body.
func (d *decoder) resume(outside string, passed int64, rest []byte, options json.Options) error {
	d.base += d.json.InputOffset() + passed - int64(len(outside))
	d.attach(io.MultiReader(strings.NewReader(outside), bytes.NewReader(rest), d.body.body), options)
	for d.json.InputOffset() < int64(len(outside)) {
		if _, err := d.json.ReadToken(); err != nil {
			return err
		}
	}
	return nil
}

// letGo makes a watch go on with a fresh decoder behind a long object: the
// buffer would be held as long as the watch goes on.
func (d *decoder) letGo() error {
	if d.outside != insideFrame || d.json.InputOffset()-d.body.started <= maxAround {
		return nil
	}
	return d.resume(d.outside, 0, bytes.Clone(d.json.UnreadBuffer()), d.form.options)
}

// withShortErrors returns a client like client that ends the body of an answer
// which is an error at 1 MiB: client-go reads such bodies as a whole. Of a
// client of another type that is not known how to do.
//
// The copy is made by reflection because it takes the unexported fields too, by
// which the request is to be as it would have been.
//
// Its transport also tells [withContentType] what an answer is.
func withShortErrors(client rest.Interface) (twin rest.Interface, ok bool) {
	known, ok := client.(*rest.RESTClient)
	if !ok {
		return client, false
	}
	copied := new(rest.RESTClient)
	reflect.ValueOf(copied).Elem().Set(reflect.ValueOf(known).Elem())
	copied.Client = new(http.Client)
	if known.Client != nil {
		*copied.Client = *known.Client
	}
	copied.Client.Transport = shortErrors{orElse(copied.Client.Transport, http.DefaultTransport)}
	return copied, true
}

// shortErrors is a transport that ends the body of an answer which is an error.
type shortErrors struct{ next http.RoundTripper }

// RoundTrip makes a request.
func (t shortErrors) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	if err == nil {
		noteContentType(request, answer)
	}
	if err == nil && answer.Body != nil && (answer.StatusCode < 200 || answer.StatusCode > 299) {
		answer.Body = shortBody{io.LimitReader(answer.Body, maxError), answer.Body}
		if err := statusAsJSON(answer); err != nil {
			return nil, err
		}
	}
	return answer, err
}

// shortBody is the beginning of a body.
type shortBody struct {
	io.Reader
	io.Closer
}
