package informer

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// firstBuffer is how much of a body is read at a time, to begin with.
	firstBuffer = 4 << 10
	// mostBuffer is how much of a body is read at a time at last.
	mostBuffer = 32 << 10
	// siftBuffer is how much of a body is sifted at a time.
	siftBuffer = 8 << 10
)

// A meter is a response body as its decoder reads it. It ends with errTooLarge
// when more is asked for than was allowed, and it has what it has given since the
// value began, unless that is long: a value can be read again.
//
//	buf   passed | given of the value | not given yet
//	             start                next            len(buf)
//
// What was given last is in front of next, if nothing was dropped. Of a value
// that is not kept, start goes along with next, and what is in front of it may
// be dropped.
//
// Counting elements means to tell what is inside a string and what is not, byte
// by byte, so this is done for large objects only.
type meter struct {
	body  io.Reader
	end   error             // with which the body has ended
	sieve *sieve            // through which the body comes, or nil
	raw   []byte            // to read into what it is to sift
	json  *jsontext.Decoder // which reads from the meter

	first string // to be given before what is in buf
	buf   []byte
	start int
	next  int
	kept  bool  // the value is in buf, as far as it was given
	full  bool  // the last read filled buf: more may come at a time
	read  int64 // bytes of the body, all in all

	given    int64 // bytes that json has been given
	started  int64 // what json had passed of them when the value began
	bytes    int64 // that the value may still have
	window   int64 // bytes that json may have been given, but not passed
	weight   weight
	elements int64 // estimated bytes that they may still take
	scan     scanner
	scanning bool

	over   bool // more was asked for than was allowed
	narrow bool // only the window was too small
}

// allow lets the next value, with the white space before it, have up to size
// bytes, no more than window of them at a time, and elements of that weight.
func (m *meter) allow(size, window int64, w weight) {
	unread := m.json.UnreadBuffer()
	m.back(unread)
	m.start, m.kept = m.next, true
	m.next += len(unread)
	m.started = m.json.InputOffset()
	m.bytes, m.window = size-m.pending(), window
	m.weight, m.elements = w, maxElements
	m.scanning, m.over, m.narrow = false, false, false
}

// allowAround lets the next value be one that is no object.
func (m *meter) allowAround() { m.allow(maxAround, maxAround, weight{}) }

// pending returns how many bytes the decoder has been given, but not passed.
func (m *meter) pending() int64 { return m.given - m.json.InputOffset() }

// back makes the bytes that were given last be given again.
func (m *meter) back(last []byte) {
	if m.next < len(last) { // it has been dropped
		m.buf, m.next = slices.Concat(last, m.buf[m.next:]), len(last)
	}
	m.next -= len(last)
}

// rewind makes the value be given again that is kept. Without what separates it
// from the one before, it is like a first one.
func (m *meter) rewind() {
	value := bytes.TrimLeft(m.buf[m.start:], ", \n\r\t")
	m.next = len(m.buf) - len(value)
}

// Read gives what is next, little at a time: what was given is weighed before
// more is.
func (m *meter) Read(p []byte) (int, error) {
	if m.first != "" {
		n := copy(p, m.first)
		m.first = m.first[n:]
		m.given += int64(n)
		return n, nil
	}
	room := min(int64(len(p)), m.bytes, m.window-m.pending(), fewBytes)
	if room <= 0 || m.elements < 0 {
		m.over = true
		m.narrow = m.bytes > 0 && m.elements >= 0
		return 0, errTooLarge
	}
	if m.next == len(m.buf) {
		if err := m.fill(); err != nil {
			return 0, err
		}
	}
	if !m.scanning && m.given-m.started > fewBytes {
		m.scanning, m.scan = true, scanner{}
		m.weigh(m.json.UnreadBuffer())
	}
	n := copy(p[:room], m.buf[m.next:])
	if m.scanning {
		m.weigh(m.buf[m.next : m.next+n])
	}
	m.next += n
	m.given += int64(n)
	m.bytes -= int64(n)
	return n, nil
}

// weigh counts the elements in b.
func (m *meter) weigh(b []byte) {
	opened, more := m.scan.elements(b)
	m.elements -= m.weight.open*opened + m.weight.more*more
}

// fill reads more of the body, behind what must be kept.
func (m *meter) fill() error {
	if m.next-m.start >= maxWhole {
		m.kept = false
	}
	if !m.kept {
		m.start = m.next
	}
	if m.start > 0 && cap(m.buf)-len(m.buf) < cap(m.buf)/2 { // make room
		m.buf = m.buf[:copy(m.buf, m.buf[m.start:])]
		m.next, m.start = m.next-m.start, 0
	}
	if size := cap(m.buf); size-len(m.buf) <= size/4 || m.full && size < mostBuffer {
		m.buf = slices.Grow(m.buf, max(size, firstBuffer))
	}
	for before := len(m.buf); m.end == nil; {
		m.more()
		if len(m.buf) > before {
			return nil
		}
	}
	return m.end
}

// more reads a piece of the body behind what is in buf.
func (m *meter) more() {
	room := m.buf[len(m.buf):cap(m.buf)]
	if m.sieve != nil {
		m.raw = slices.Grow(m.raw[:0], siftBuffer)
		room = m.raw[:siftBuffer]
	}
	n, err := m.body.Read(room)
	before := len(m.buf)
	if m.sieve != nil {
		m.buf = m.sieve.append(m.buf, room[:n])
	} else {
		m.buf = m.buf[:before+n]
	}
	m.read += int64(len(m.buf) - before)
	m.full, m.end = n == len(room), err
}

// pass passes the rest of a value, holding none of it.
func (m *meter) pass(ctx context.Context, s *scanner) error {
	m.kept = false
	for {
		n, ok := s.end(m.buf[m.next:])
		if m.next += n; ok {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.fill(); err != nil {
			return unexpectedEOF(err)
		}
	}
}

// ahead returns how many bytes of the body were read before those that are to be
// given next.
func (m *meter) ahead() int64 { return m.read - int64(len(m.buf)-m.next) }

// forget drops what is not to be given any more, with the room for it.
func (m *meter) forget() {
	m.buf, m.start, m.next, m.full = bytes.Clone(m.buf[m.next:]), 0, 0, false
}
