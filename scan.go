package informer

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
