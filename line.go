package informer

import "weak"

// line holds one entry a key, in the order in which the keys came: what is
// pending in a [DeltaFIFO], and what a slow handler missed. An entry may change
// while it waits, and keeps its place. The caller brings the hash of each key,
// always the same one. The zero value is an empty line.
//
//	index  [ · | b4 | a3 | · | · | e6 | · | c2 | … ]    hash and place, by hash
//	pages  [ hole | hole | b | hole | e ] [ … ]
//	                       ▲ head         ▲ end
//
// A key that leaves from the middle leaves a hole; a line of which more than a
// third is holes is closed up.
//
// Invariants: each place before end, hole or not, has one cell in index, so that
// a search need not stop at a key that has left. At most two thirds of the cells
// are in use. No place before head is taken. All pages before
// that with end are full, and those behind it are empty.
type line[E any] struct {
	index []uint64     // open addressing: the hash, then the place plus 1; 0 if empty
	pages [][]place[E] // of pageSize places; only the first has less room at first
	end   int          // the number of places
	head  int
	held  int // of those, how many are taken

	spare *spare[E] // where pages come from, and go; nil: there is none
}

type place[E any] struct {
	key   Key
	hash  uint32
	taken bool // else a hole
	entry E
}

const (
	// pageSize is the number of places that are allocated at a time.
	pageSize = 256
	// roomyLine is the number of places up to which holes do not matter.
	roomyLine = pageSize
	// leastIndex is the number of cells of the smallest index.
	leastIndex = 16
	// indexKept is the number of cells that an emptied line may keep.
	indexKept = 2048
)

// spare holds the pages of emptied lines for those that grow, until the garbage
// collector comes: a line is full again soon, or not at all. Lines that share it
// are guarded by one lock.
type spare[E any] struct{ pages weak.Pointer[[][]place[E]] }

// take returns an empty page.
func (s *spare[E]) take() []place[E] {
	if s != nil {
		if pages := s.pages.Value(); pages != nil && len(*pages) > 0 {
			last := len(*pages) - 1
			page := (*pages)[last]
			(*pages)[last], *pages = nil, (*pages)[:last]
			return page
		}
	}
	return make([]place[E], 0, pageSize)
}

// put takes over empty pages.
func (s *spare[E]) put(empty [][]place[E]) {
	if s == nil {
		return
	}
	pages := s.pages.Value()
	if pages == nil {
		pages = new([][]place[E])
		s.pages = weak.Make(pages)
	}
	*pages = append(*pages, empty...)
}

func (l *line[E]) len() int { return l.held }

func (l *line[E]) place(i int) *place[E] { return &l.pages[i/pageSize][i%pageSize] }

// find returns the entry of k, nil if there is none. It is valid until the
// next call of enter, leave or reset.
func (l *line[E]) find(h uint32, k Key) *E {
	if l.held == 0 {
		return nil
	}
	for i := int(h) & (len(l.index) - 1); l.index[i] != 0; i = (i + 1) & (len(l.index) - 1) {
		if uint32(l.index[i]>>32) != h {
			continue
		}
		if p := l.place(int(uint32(l.index[i])) - 1); p.taken && p.key == k {
			return &p.entry
		}
	}
	return nil
}

func (l *line[E]) has(h uint32, k Key) bool { return l.find(h, k) != nil }

// enter returns the entry of k, a new one at the end if there was none. It is
// valid as long as one of find.
func (l *line[E]) enter(h uint32, k Key) *E {
	e, _ := l.enterNew(h, k)
	return e
}

// enterNew is enter, and also says whether the entry is new.
func (l *line[E]) enterNew(h uint32, k Key) (e *E, isNew bool) {
	if e := l.find(h, k); e != nil {
		return e, false
	}
	if 3*(l.end+1) > 2*len(l.index) {
		l.reindex()
	}
	n := l.end / pageSize
	switch {
	case len(l.pages) == 0:
		l.pages = [][]place[E]{nil}
	case n == len(l.pages):
		l.pages = append(l.pages, l.spare.take())
	}
	l.end++
	l.held++
	l.file(h, l.end)
	l.pages[n] = append(l.pages[n], place[E]{key: k, hash: h, taken: true})
	return &l.pages[n][len(l.pages[n])-1].entry, true
}

// file enters a place, counted from 1, into index, where there is room.
func (l *line[E]) file(h uint32, place int) {
	i := int(h) & (len(l.index) - 1)
	for l.index[i] != 0 {
		i = (i + 1) & (len(l.index) - 1)
	}
	l.index[i] = uint64(h)<<32 | uint64(place)
}

// reindex makes a larger index.
func (l *line[E]) reindex() {
	l.index = make([]uint64, max(leastIndex, 2*len(l.index)))
	for i := range l.end {
		l.file(l.place(i).hash, i+1)
	}
}

// leave removes the entry of k, which is in the line.
func (l *line[E]) leave(h uint32, k Key) {
	i := int(h) & (len(l.index) - 1)
	for {
		p := int(uint32(l.index[i])) - 1
		if at := l.place(p); at.taken && at.key == k {
			*at = place[E]{hash: h}
			break
		}
		i = (i + 1) & (len(l.index) - 1)
	}
	l.held--
	switch {
	case l.held == 0:
		l.reset()
	case l.end > roomyLine && tooLong(l.end, l.held):
		l.closeUp()
	}
}

// tooLong reports that a line has too many places for what it holds.
func tooLong(places, held int) bool { return 2*places > 3*held }

// closeUp makes a line without holes, in memory of its own size.
func (l *line[E]) closeUp() {
	closed := line[E]{spare: l.spare}
	for p := range l.all {
		*closed.enter(p.hash, p.key) = p.entry
	}
	*l = closed
}

// first returns the entry that has waited longest, and nil if there is none.
func (l *line[E]) first() *place[E] {
	for ; l.head < l.end; l.head++ {
		if p := l.place(l.head); p.taken {
			return p
		}
	}
	return nil
}

// all yields the places that are taken, oldest first. The line must not change
// meanwhile, but for the entries.
func (l *line[E]) all(yield func(*place[E]) bool) {
	for i := l.head; i < l.end; i++ {
		if p := l.place(i); p.taken && !yield(p) {
			return
		}
	}
}

// reset empties the line, which keeps memory for a page.
func (l *line[E]) reset() {
	if len(l.index) > indexKept {
		l.index = nil
	}
	clear(l.index)
	for i := range l.pages {
		clear(l.pages[i])
		l.pages[i] = l.pages[i][:0]
	}
	if len(l.pages) > 1 {
		l.spare.put(l.pages[1:])
		l.pages = [][]place[E]{l.pages[0]}
	}
	l.end, l.head, l.held = 0, 0, 0
}
