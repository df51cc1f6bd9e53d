package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
)

// The wire types of protobuf, which say how long a field is.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2 // a length, then that many bytes: text, messages, lists of numbers
	wireGroup   = 3
	wireEnd     = 4
	wireFixed32 = 5
)

const (
	// protoBuffer is how long the buffer is at first, and protoAhead up to what
	// length it grows where reads fill it.
	protoBuffer = 4 << 10
	protoAhead  = 64 << 10
	// unbounded is the end of a message that ends with the body.
	unbounded = math.MaxInt64
)

var (
	errVarint = errors.New("a number is longer than 64 bits")
	errLength = errors.New("a negative length")
	errGroup  = errors.New("the end of a group that did not begin")
)

// A protoReader reads protobuf as the generated code of Kubernetes does, but
// from a body as it comes, through one buffer that is used again:
//
//	passed | at  not read yet  end | room
//
// What one field of it takes is in memory, and no more. Room for a field grows
// as its bytes come, whatever length it claims. Without a body it reads what is
// in its buffer, which it then leaves as it is.
type protoReader struct {
	ctx     context.Context // of the request, which ends with the reader
	body    io.Reader
	buf     []byte
	at, end int
	passed  int64 // bytes of the body before those in buf
}

// inMemory returns a reader of b.
func inMemory(b []byte) protoReader { return protoReader{buf: b, end: len(b)} }

// offset returns where in the body the next byte is.
func (p *protoReader) offset() int64 { return p.passed + int64(p.at) }

// unread returns what has come, and is not read yet.
func (p *protoReader) unread() []byte { return p.buf[p.at:p.end] }

// fill makes n bytes be in the buffer. If the body ends before, that is io.EOF
// or io.ErrUnexpectedEOF.
func (p *protoReader) fill(n int) error {
	for p.end-p.at < n {
		if p.body == nil {
			return endOf(p.unread(), io.EOF)
		}
		if err := p.ctx.Err(); err != nil {
			return err
		}
		p.makeRoom(n)
		room := p.buf[p.end:]
		more, err := io.ReadAtLeast(p.body, room, 1)
		p.end += more
		if more == len(room) && len(p.buf) < protoAhead {
			p.resize(2 * len(p.buf))
		}
		if more == 0 {
			return endOf(p.unread(), err)
		}
	}
	return nil
}

// endOf returns err, unless the body ends behind the beginning of something.
func endOf(begun []byte, err error) error {
	if len(begun) > 0 {
		return unexpectedEOF(err)
	}
	return err
}

// makeRoom makes room for at least one more of n bytes that are wanted.
func (p *protoReader) makeRoom(n int) {
	if p.at+n > len(p.buf) && p.at > 0 {
		p.passed += int64(p.at)
		p.at, p.end = 0, copy(p.buf, p.unread())
	}
	if p.end == len(p.buf) {
		p.resize(max(protoBuffer, min(n, 2*len(p.buf))))
	}
}

// resize moves what is unread to a buffer of that size, or of its own.
func (p *protoReader) resize(size int) {
	rest := p.unread()
	p.passed += int64(p.at)
	p.buf = make([]byte, max(size, len(rest)))
	p.at, p.end = 0, copy(p.buf, rest)
}

// next returns the next n bytes, which are the reader's, until it is used again.
func (p *protoReader) next(n int) ([]byte, error) {
	if err := p.fill(n); err != nil {
		return nil, unexpectedEOF(err)
	}
	p.at += n
	return p.buf[p.at-n : p.at : p.at], nil
}

// skip passes n bytes, holding none of them.
func (p *protoReader) skip(n int64) error {
	for n > 0 {
		if err := p.fill(1); err != nil {
			return unexpectedEOF(err)
		}
		some := min(n, int64(p.end-p.at))
		p.at += int(some)
		n -= some
	}
	return nil
}

// varint reads a number.
func (p *protoReader) varint() (uint64, error) {
	for {
		v, n, err := uvarint(p.unread())
		if err == nil {
			p.at += n
			return v, nil
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		if err := p.fill(p.end - p.at + 1); err != nil {
			return 0, err
		}
	}
}

// uvarint returns the number that b begins with, and its length. As in
// generated code, bits beyond the 64th do not count.
func uvarint(b []byte) (v uint64, n int, err error) {
	for shift := uint(0); shift < 64; shift += 7 {
		if n >= len(b) {
			return 0, 0, io.ErrUnexpectedEOF
		}
		c := b[n]
		n++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, n, nil
		}
	}
	return 0, 0, errVarint
}

// tag reads the number and the wire type of the next field. It returns io.EOF
// if there is none.
func (p *protoReader) tag() (field int32, wire int, err error) {
	v, err := p.varint()
	if err != nil {
		return 0, 0, err
	}
	field, wire = int32(v>>3), int(v&7)
	if wire == wireEnd {
		return 0, 0, errGroup
	}
	if field <= 0 {
		return 0, 0, fmt.Errorf("a field of number %d", field)
	}
	return field, wire, nil
}

// fields reads the fields of a message that ends at that offset, and calls fn
// before the value of each, which fn must read.
func (p *protoReader) fields(end int64, fn func(field int32, wire int) error) error {
	for p.offset() < end {
		field, wire, err := p.tag()
		if errors.Is(err, io.EOF) && (end == unbounded || p.body == nil) {
			return nil
		}
		if err != nil {
			return unexpectedEOF(err)
		}
		if err := fn(field, wire); err != nil {
			return err
		}
	}
	if p.offset() > end {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// length reads the length of a value of that wire type, which is known to be
// one with a length, and to be inside of a message that ends at that offset.
func (p *protoReader) length(wire int, end int64) (int64, error) {
	if wire != wireBytes {
		return 0, fmt.Errorf("a known field of wire type %d", wire)
	}
	v, err := p.varint()
	n := int64(v)
	switch {
	case err != nil:
		return 0, unexpectedEOF(err)
	case n < 0:
		return 0, errLength
	case n > end-p.offset():
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}

// short reads a value that is no object, of at most 1 MiB.
func (p *protoReader) short(wire int, end int64) ([]byte, error) {
	n, err := p.length(wire, end)
	if err == nil && n > maxAround {
		err = errAround
	}
	if err != nil {
		return nil, err
	}
	return p.next(int(n))
}

// pass reads a value that nobody wants, of at most that many bytes.
func (p *protoReader) pass(wire int, most int64) error {
	begin := p.offset()
	for depth := 0; ; {
		var err error
		switch wire {
		case wireVarint:
			_, err = p.varint()
		case wireFixed64:
			err = p.skip(8)
		case wireFixed32:
			err = p.skip(4)
		case wireBytes:
			var n int64
			if n, err = p.length(wire, unbounded); err == nil {
				err = p.skip(min(n, most+1))
			}
		case wireGroup:
			depth++
		case wireEnd:
			if depth--; depth < 0 {
				err = errGroup
			}
		default:
			err = fmt.Errorf("a field of wire type %d", wire)
		}
		switch {
		case err != nil:
			return unexpectedEOF(err)
		case p.offset()-begin > most:
			return errAround
		case depth == 0:
			return nil
		}
		v, err := p.varint() // in a group, any number goes
		if err != nil {
			return unexpectedEOF(err)
		}
		wire = int(v & 7)
	}
}
