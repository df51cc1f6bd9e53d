package informer

const (
	// longName is how long a member's name may be for a sieve to look at it.
	longName = 4 << 10
	// deepSieve is how many objects and arrays a sieve looks into at a time.
	deepSieve = 64
)

// A sieve leaves members out of a body before it is decoded: those that a tree
// of paths leads to. It looks at the names of members only where a path goes
// through; of all else it looks for the end. It holds the names of the objects
// that are open, and no more. What is not JSON it lets pass, so that the decoder
// finds that; but it does not look into what it leaves out.
//
// The commas between the members of an object that is looked into are its own:
// one before each member but the first that is let through.
type sieve struct {
	root   *leftOut
	frames bool // the body is a watch: frames of a type and an object
	change bool // the frame is about an object of the collection

	open  []opened // that a path goes through, from outside
	state sieveState
	node  *leftOut // of the value that is next
	typed bool     // that value is the type of a frame
	comma bool     // there was one, which has not been let through
	cut   bool     // what was before is left out
	name  []byte   // as it is in the body
	scan  scanner
}

// opened is an object or array that is looked into.
type opened struct {
	node  *leftOut
	array bool
	some  bool // a member of it was let through
}

// A sieveState is what a sieve has to expect.
type sieveState uint8

const (
	beforeValue sieveState = iota
	beforeName
	beforeColon
	beforeElement // or the end of the array
	behindValue
	inName
	inLongName
	inType
	inKept
	inLeftOut
	noJSON // the rest is let through
)

// newSieve returns a sieve for a body that is a value, or one value after the
// other, like root.
func newSieve(root *leftOut, frames bool) *sieve {
	return &sieve{root: root, node: root, frames: frames}
}

// append appends what it lets through of b, the next piece of the body.
func (s *sieve) append(to, b []byte) []byte {
	for len(b) > 0 {
		var n int
		to, n = s.step(to, b)
		b = b[n:]
	}
	return to
}

// step goes on to the next state, and returns how many bytes of b it has passed.
func (s *sieve) step(to, b []byte) ([]byte, int) {
	n, ok := len(b), false
	switch s.state {
	case noJSON:
		return append(to, b...), n
	case inKept, inLeftOut:
		n, ok = s.scan.end(b)
		if s.state == inKept {
			to = append(to, b[:n]...)
		}
		if ok {
			s.state = behindValue
		}
	case inLongName:
		n = s.scan.string(b)
		to = append(to, b[:n]...)
		if !s.scan.text {
			s.within(inKept)
		}
	case inName, inType:
		n = s.scan.string(b)
		to = s.text(to, b[:n])
	default:
		switch b[0] {
		case ' ', '\t', '\r', '\n':
			return append(to, b[0]), 1
		}
		return s.token(to, b[0])
	}
	return to, n
}

// within makes the next value one that is not looked into.
func (s *sieve) within(state sieveState) { s.state, s.scan = state, scanner{} }

// token goes on with c, which is no white space. It returns 0 if the next state is
// to begin with c.
func (s *sieve) token(to []byte, c byte) ([]byte, int) {
	switch {
	case s.state == beforeValue:
		return s.value(to, c)
	case s.state == behindValue:
		return s.behind(to, c)
	case s.state == beforeElement && c != ']':
		s.state = beforeValue
		return to, 0
	case s.state == beforeColon && c == ':':
		s.state = beforeValue
		return append(to, c), 1
	case s.state == beforeName && c == '"':
		s.state, s.scan, s.name = inName, scanner{text: true}, append(s.name[:0], c)
		return to, 1
	}
	return s.close(to, c), 1
}

// behind goes on behind a value.
func (s *sieve) behind(to []byte, c byte) ([]byte, int) {
	top := len(s.open) - 1
	switch {
	case top < 0 && c != '}' && c != ']':
		s.state, s.node = beforeValue, s.root
		return to, 0
	case top < 0 || c != ',':
		return s.close(to, c), 1
	case s.open[top].array:
		s.state, s.node = beforeValue, s.open[top].node
		return append(to, c), 1
	}
	s.state, s.comma = beforeName, true
	return to, 1
}

// close ends the innermost object or array, if c is its end. A comma in front of
// it is let through: it has no member behind it.
func (s *sieve) close(to []byte, c byte) []byte {
	if s.comma {
		to = append(to, ',')
	}
	switch {
	case len(s.open) > 0 && s.closes(c):
		s.open, s.state, s.comma, s.cut = s.open[:len(s.open)-1], behindValue, false, false
	case s.cut: // or else what is left could be taken for JSON
		to = append(to, '!')
		fallthrough
	default:
		s.state = noJSON
	}
	return append(to, c)
}

// closes reports whether c is the end of the innermost object or array, here.
func (s *sieve) closes(c byte) bool {
	if s.open[len(s.open)-1].array {
		return c == ']' && (s.state == beforeElement || s.state == behindValue)
	}
	return c == '}' && (s.state == beforeName || s.state == behindValue)
}

// value begins a value that a path may go through.
func (s *sieve) value(to []byte, c byte) ([]byte, int) {
	if s.typed && c == '"' {
		s.state, s.scan, s.name, s.typed = inType, scanner{text: true}, append(s.name[:0], c), false
		return append(to, c), 1
	}
	s.typed = false
	if c != '{' && c != '[' || len(s.open) == deepSieve {
		s.within(inKept)
		return to, 0
	}
	s.state = beforeName
	if c == '[' {
		s.state = beforeElement
	}
	if len(s.open) == 0 {
		s.change = !s.frames
	}
	s.open = append(s.open, opened{node: s.node, array: c == '['})
	return append(to, c), 1
}

// text goes on with b, more of a name, or of the type of a frame.
func (s *sieve) text(to, b []byte) []byte {
	s.name = append(s.name, b...)
	if s.state == inType {
		to = append(to, b...)
	}
	switch {
	case !s.scan.text && s.state == inType:
		s.change, s.state = changeOf(string(unquoted(s.name))) != 0, behindValue
	case !s.scan.text:
		to = s.member(to)
	case len(s.name) > longName && s.state == inName:
		s.state = inLongName
		to = s.through(to)
	case len(s.name) > longName:
		s.name = s.name[:longName] // no type is so long
	}
	return to
}

// through lets the name through.
func (s *sieve) through(to []byte) []byte {
	top := &s.open[len(s.open)-1]
	if top.some {
		to = append(to, ',')
	}
	top.some, s.comma, s.cut = true, false, false
	return append(to, s.name...)
}

// member decides on the member whose name has been read.
func (s *sieve) member(to []byte) []byte {
	name := unquoted(s.name)
	s.node = s.open[len(s.open)-1].node.members[string(name)]
	frame := s.frames && len(s.open) == 1
	switch {
	case s.node != nil && s.node.out && (!frame || s.change):
		s.comma, s.cut = false, true
		s.within(inLeftOut)
		return to
	case frame && string(name) == "type":
		s.typed, s.state = true, beforeColon
	case s.node == nil, frame && !s.change:
		s.within(inKept)
	default:
		s.state = beforeColon
	}
	return s.through(to)
}
