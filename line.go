package informer

// line holds one entry a key, in the order in which the keys came: what is
// pending in a [DeltaFIFO], and what a slow handler missed. An entry may change
// while it waits, and keeps its place. The zero value is an empty line.
//
//	places  [ hole | hole | b | hole | d | e ]
//	                        ▲ head          at = {b: 2, d: 4, e: 5}
//
// A key that leaves from the middle leaves a hole; a line of which more than a
// third is holes is closed up.
type line[E any] struct {
	at     map[Key]int // the place of each key
	places []place[E]
	head   int // no place before it is taken
}

type place[E any] struct {
	key   Key
	taken bool // else a hole
	entry E
}

// roomyLine is the capacity up to which an emptied line keeps its memory, and
// the number of places below which holes do not matter.
const roomyLine = 64

func (l *line[E]) len() int { return len(l.at) }

func (l *line[E]) has(k Key) bool {
	_, ok := l.at[k]
	return ok
}

// find returns the entry of k, nil if there is none. It is valid until the
// next call of enter, leave or reset.
func (l *line[E]) find(k Key) *E {
	if i, ok := l.at[k]; ok {
		return &l.places[i].entry
	}
	return nil
}

// enter returns the entry of k, a new one at the end if there was none. It is
// valid as long as one of find.
func (l *line[E]) enter(k Key) *E {
	if e := l.find(k); e != nil {
		return e
	}
	if l.at == nil {
		l.at = make(map[Key]int)
	}
	l.at[k] = len(l.places)
	l.places = append(l.places, place[E]{key: k, taken: true})
	return &l.places[len(l.places)-1].entry
}

// leave removes the entry of k, which is in the line.
func (l *line[E]) leave(k Key) {
	l.places[l.at[k]] = place[E]{}
	delete(l.at, k)
	switch {
	case len(l.at) == 0:
		l.reset()
	case len(l.places) > roomyLine && tooLong(len(l.places), len(l.at)):
		l.closeUp()
	}
}

// tooLong reports that a line has too many places for what it holds.
func tooLong(places, held int) bool { return 2*places > 3*held }

// closeUp makes a line without holes, in memory of its own size.
func (l *line[E]) closeUp() {
	old := l.places
	l.at, l.places, l.head = make(map[Key]int, len(l.at)), make([]place[E], 0, len(l.at)), 0
	for i := range old {
		if old[i].taken {
			l.at[old[i].key] = len(l.places)
			l.places = append(l.places, old[i])
		}
	}
}

// first returns the entry that has waited longest, and false if there is none.
func (l *line[E]) first() (Key, *E, bool) {
	for ; l.head < len(l.places); l.head++ {
		if p := &l.places[l.head]; p.taken {
			return p.key, &p.entry, true
		}
	}
	return Key{}, nil, false
}

// all yields keys and entries, oldest first. The line must not change
// meanwhile.
func (l *line[E]) all(yield func(Key, *E) bool) {
	for i := l.head; i < len(l.places); i++ {
		if p := &l.places[i]; p.taken && !yield(p.key, &p.entry) {
			return
		}
	}
}

// reset empties the line. What a burst made large is given back.
func (l *line[E]) reset() {
	if cap(l.places) > roomyLine {
		*l = line[E]{}
		return
	}
	clear(l.at)
	clear(l.places)
	l.places, l.head = l.places[:0], 0
}
