package informer

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// NewDeltas returns what a DeltaFIFO would hand over about key.
func NewDeltas[T Object](key Key, listed bool, deltas ...Delta[T]) Deltas[T] {
	d := Deltas[T]{Key: key, Listed: listed}
	for _, delta := range deltas {
		d.add(delta)
	}
	return d
}

// SetInPlace sets how many keys a batch that is written in place may have; -1
// makes every batch go to a copy.
func SetInPlace[T Object](x *Indexer[T], n int) { x.inPlace = n }

// InPlaceDefault is the limit of a new Indexer, Stride how much of a batch is
// worked at a time.
const InPlaceDefault, Stride = maxInPlace, stride

// ApplyThen is the apply of the Informer.
func ApplyThen[T Object](x *Indexer[T], b Batch[T], emit func(Change[T]), then func(Reader[T])) {
	x.apply(b, nil, emit, func(s *state[T]) {
		if then != nil {
			then(Reader[T]{x, s})
		}
	})
}

// Between is the between of the Informer.
func Between[T Object](x *Indexer[T], f func(Reader[T])) {
	x.between(func(s *state[T]) { f(Reader[T]{x, s}) })
}

// SlotsOf returns for how many objects the present state has room.
func SlotsOf[T Object](x *Indexer[T]) int { return x.newest.Load().slots.n * chunkSize }

// HoldWriters stops all writers until the function it returns is called.
func HoldWriters[T Object](x *Indexer[T]) (release func()) {
	x.writing.Lock()
	return x.writing.Unlock
}

// Validate checks every invariant that a comment of the store states, for the
// newest state and what the writer keeps beside it.
func Validate[T Object](x *Indexer[T]) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	s := x.newest.Load()
	if s.epoch > x.epochs {
		return fmt.Errorf("epoch %d is above the last one, %d", s.epoch, x.epochs)
	}
	if len(x.changes) > 0 || x.single[0].Len() > 0 {
		return errors.New("the writer's buffers are in use between batches")
	}
	if s.sparse() {
		return fmt.Errorf("%d chunks and %d cells for %d objects", s.slots.n, len(s.keys.cells), s.n)
	}
	free, vacant := slices.Sorted(slices.Values(x.free)), s.vacant()
	slices.Sort(vacant)
	if !slices.Equal(free, vacant) {
		return fmt.Errorf("free slots = %v, want %v", free, vacant)
	}
	for i := range s.keys.cells {
		c := &s.keys.cells[i]
		if mark := c.mark.Load(); mark != 0 && uint32(mark>>32) != hashKey(x.seed, c.full()) {
			return fmt.Errorf("cell %d has mark %x, and key %q", i, mark, c.full())
		}
	}
	return validateState(s)
}

// ValidateReader checks the invariants of the state that r reads.
func ValidateReader[T Object](r Reader[T]) error {
	if s := r.state(); s != nil {
		return validateState(s)
	}
	return nil
}

func validateState[T Object](s *state[T]) error {
	if err := validateKeys(s); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if err := validateVec(&s.slots, s.epoch, func(c **chunk[T]) bool { return *c != nil }); err != nil {
		return fmt.Errorf("slots: %w", err)
	}
	live := 0
	var zero T
	for i := range s.slots.n {
		c := s.chunk(i)
		live += bits.OnesCount32(c.live)
		if c.owner > s.epoch {
			return fmt.Errorf("chunk %d is of epoch %d, the state of %d", i, c.owner, s.epoch)
		}
		for j, v := range c.values {
			if c.live>>j&1 == 0 && any(v) != any(zero) {
				return fmt.Errorf("slot %d is not live, and holds %v", i*chunkSize+j, v)
			}
		}
	}
	if live != s.n {
		return fmt.Errorf("%d slots are live, for %d keys", live, s.n)
	}
	var err error
	names := map[string]bool{}
	for _, r := range s.indexes {
		if err == nil {
			err = r.(interface{ validate(*state[T]) error }).validate(s)
		}
		if err != nil {
			return fmt.Errorf("index %q: %w", r.indexName(), err)
		}
		if names[r.indexName()] {
			return fmt.Errorf("two indexes %q", r.indexName())
		}
		names[r.indexName()] = true
	}
	return err
}

// validate checks that every slot is where the function says, and nowhere else.
func (r *root[K, T]) validate(s *state[T]) (err error) {
	if err := validateTable(&r.files, s.epoch); err != nil {
		return err
	}
	if len(r.of.moves) > 0 || len(r.of.found.keys) > 0 {
		return errors.New("the writer's buffers are in use between batches")
	}
	want, filed := r.wanted(s), 0
	r.files.each(func(c *cell[K, posting]) bool {
		filed += c.value.len()
		if err = validatePosting(&c.value, s.epoch); err != nil {
			return false
		}
		for _, slot := range c.value.list() {
			if !want[slot][c.key] {
				err = fmt.Errorf("slot %d is filed under %v, not under %v", slot, c.key, want[slot])
			}
		}
		return err == nil
	})
	for _, keys := range want {
		filed -= len(keys)
	}
	if err == nil && filed != 0 {
		err = fmt.Errorf("%d entries too many", filed)
	}
	return err
}

// wanted returns the keys of the object in each slot.
func (r *root[K, T]) wanted(s *state[T]) map[uint32]map[K]bool {
	want := map[uint32]map[K]bool{}
	for slot := range uint32(s.slots.n * chunkSize) {
		obj, ok := objectIn(s, slot)
		if !ok {
			continue
		}
		var found collector[K, T]
		found.file = found.add
		keys := map[K]bool{}
		if found.collect(r.of.keys, obj) == nil {
			for _, k := range found.keys {
				keys[k] = true
			}
		}
		want[slot] = keys
	}
	return want
}

func validateVec[B any](v *vec[B], e epoch, there func(*B) bool) error {
	if want := (v.n + fanout - 1) / fanout; len(v.root) != want {
		return fmt.Errorf("%d branches for %d blocks", len(v.root), v.n)
	}
	for i, b := range v.root {
		if b.owner > e || v.owner > e {
			return fmt.Errorf("branch %d is of epoch %d, the root of %d, the state of %d", i, b.owner, v.owner, e)
		}
		for j, kid := range b.kids {
			if inside := i*fanout+j < v.n; inside != there(&kid) {
				return fmt.Errorf("block %d of %d: there = %v", i*fanout+j, v.n, !inside)
			}
		}
	}
	return nil
}

func validateTable[K comparable, V any](t *table[K, V], e epoch) error {
	if err := validateVec(&t.pages, e, func(p *page[K, V]) bool { return p.owner != 0 || p.cells != nil }); err != nil {
		return err
	}
	if pages := t.pages.n; t.n > pageFill*pages || pages > 1 && t.n < pageFill/2*pages || (t.n == 0) != (pages == 0) {
		return fmt.Errorf("%d pages for %d cells", pages, t.n)
	}
	n := 0
	for i := range t.pages.n {
		p := t.pages.at(i)
		n += len(p.cells)
		if p.owner > e {
			return fmt.Errorf("page %d is of epoch %d, the state of %d", i, p.owner, e)
		}
		if cap(p.cells) > 4*(len(p.cells)+pageSlack)+1 { // Clone rounds up
			return fmt.Errorf("page %d has room for %d, and holds %d", i, cap(p.cells), len(p.cells))
		}
		for j := range p.cells {
			c := &p.cells[j]
			if home(c.hash, t.pages.n) != i {
				return fmt.Errorf("key %v of hash %x is in page %d of %d", c.key, c.hash, i, t.pages.n)
			}
			if p.index(c.hash, c.key) != j {
				return fmt.Errorf("key %v is there twice", c.key)
			}
		}
	}
	if n != t.n {
		return fmt.Errorf("n = %d, want %d", t.n, n)
	}
	return nil
}

func validatePosting(p *posting, e epoch) error {
	s := p.many
	if s == nil {
		return nil
	}
	n := len(s.few)
	for i, g := range s.groups {
		if g == nil {
			continue
		}
		if err := validateGroup(g, e); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
		n += g.n
	}
	switch {
	case n != s.n, n < 2, s.owner > e, !slices.IsSorted(s.few):
		return fmt.Errorf("n = %d, want %d, epoch %d of %d, %v", s.n, n, s.owner, e, s.few)
	case s.few != nil && (s.n > fewSlots || s.groups != nil), s.few == nil && s.n <= fewSlots/2:
		return fmt.Errorf("%d slots, %d of them in a list, %d groups", s.n, len(s.few), len(s.groups))
	case cap(s.few) > 2*len(s.few)+16:
		return fmt.Errorf("%d slots in room for %d", len(s.few), cap(s.few))
	}
	return nil
}

func validateGroup(g *group, e epoch) error {
	n := len(g.few)
	if g.words != nil {
		for _, word := range g.words {
			n += bits.OnesCount32(word)
		}
	}
	switch {
	case n != g.n, n == 0, g.owner > e, !slices.IsSorted(g.few):
		return fmt.Errorf("n = %d, want %d, epoch %d of %d, %v", g.n, n, g.owner, e, g.few)
	case g.words == nil && n > fewOffsets, g.words != nil && (n <= fewOffsets/2 || g.few != nil):
		return fmt.Errorf("%d slots, %d of them in a list", n, len(g.few))
	}
	return nil
}

// objectIn returns what is in slot.
func objectIn[T Object](s *state[T], slot uint32) (obj T, ok bool) {
	s.chunk(int(slot/chunkSize)).each(1<<(slot%chunkSize), func(o T) bool {
		obj, ok = o, true
		return true
	})
	return obj, ok
}

// validateKeys checks that each live slot can be found.
func validateKeys[T Object](s *state[T]) error {
	used := 0
	for i := range s.keys.cells {
		if s.keys.cells[i].mark.Load() != 0 {
			used++
		}
	}
	if used != s.keys.used || !s.keys.takes(0) {
		return fmt.Errorf("%d cells, want %d, of %d", used, s.keys.used, len(s.keys.cells))
	}
	for slot := range uint32(s.slots.n * chunkSize) {
		obj, live := objectIn(s, slot)
		cell := s.cellOf(slot)
		if !live && cell != 0 {
			return fmt.Errorf("slot %d is not live, and has cell %d", slot, cell)
		}
		if !live {
			continue
		}
		c := &s.keys.cells[cell-1]
		if k := c.full(); k != KeyOf(obj) {
			return fmt.Errorf("slot %d has key %q, and holds %v", slot, k, obj)
		}
		if _, at, found := s.get(uint32(c.mark.Load()>>32), c.full()); !found || at != slot {
			return fmt.Errorf("key %q in slot %d is found: %v, in slot %d", c.full(), slot, found, at)
		}
	}
	return nil
}

// A TestVec is a vec of ints, one a block, that a rapid model can drive.
type TestVec struct {
	v vec[*int]
	e epoch
}

// Fork returns v as it is now; both can be written from then on.
func (v *TestVec) Fork(epochs *int) *TestVec {
	*epochs += 2
	v.e = epoch(*epochs - 1)
	return &TestVec{v.v, epoch(*epochs)}
}
func (v *TestVec) Push(x int)   { v.v.push(v.e, &x) }
func (v *TestVec) Pop() int     { return *v.v.pop(v.e) }
func (v *TestVec) Set(i, x int) { *v.v.place(v.e, i) = &x }
func (v *TestVec) List() (l []int) {
	for i := range v.v.n {
		l = append(l, **v.v.at(i))
	}
	return l
}
func (v *TestVec) Validate() error {
	return validateVec(&v.v, v.e, func(x **int) bool { return *x != nil })
}

// A TestTable is a table of ints. Its hash is poor on purpose.
type TestTable struct {
	t table[int, int]
	e epoch
}

func testHash(k int) uint32 { return uint32(k%50) * 0x9E3779B1 }

// Fork returns t as it is now; both can be written from then on.
func (t *TestTable) Fork(epochs *int) *TestTable {
	*epochs += 2
	t.e = epoch(*epochs - 1)
	return &TestTable{t.t, epoch(*epochs)}
}
func (t *TestTable) Put(k, v int) (had bool) {
	at, had := t.t.put(t.e, testHash(k), k)
	*at = v
	return had
}
func (t *TestTable) Remove(k int) { t.t.remove(t.e, testHash(k), k) }
func (t *TestTable) Get(k int) (int, bool) {
	if v := t.t.find(testHash(k), k); v != nil {
		return *v, true
	}
	return 0, false
}
func (t *TestTable) Map() map[int]int {
	m := map[int]int{}
	t.t.each(func(c *cell[int, int]) bool { m[c.key] = c.value; return true })
	return m
}

// Renew returns what renew makes of t, whose values it doubles.
func (t *TestTable) Renew(epochs *int) *TestTable {
	to := t.Fork(epochs)
	to.t = t.t.renew(to.e, func(c *cell[int, int]) int { return 2 * c.value })
	return to
}
func (t *TestTable) Validate() error { return validateTable(&t.t, t.e) }

// A TestPosting is a set of slots, which begins with slot 0.
type TestPosting struct {
	p posting
	e epoch
}

// Fork returns p as it is now; both can be written from then on.
func (p *TestPosting) Fork(epochs *int) *TestPosting {
	*epochs += 2
	p.e = epoch(*epochs - 1)
	return &TestPosting{p.p, epoch(*epochs)}
}
func (p *TestPosting) Add(slot uint32)       { p.p.add(p.e, slot) }
func (p *TestPosting) Remove(slot uint32)    { p.p.remove(p.e, slot) }
func (p *TestPosting) Only(slot uint32) bool { return p.p.only(slot) }
func (p *TestPosting) Len() int              { return p.p.len() }
func (p *TestPosting) List() (l []uint32)    { return p.p.list() }

// Move moves each slot as moved says.
func (p *TestPosting) Move(moved []uint32) (any bool) {
	p.p, any = p.p.moved(p.e, moved)
	return any
}
func (p *TestPosting) Validate() error { return validatePosting(&p.p, p.e) }

// LookLate is a reader that comes while a writer, started by meanwhile, waits
// for the readers' lock.
func LookLate[T Object](x *Indexer[T], meanwhile func()) Reader[T] {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.newest.Load()
	meanwhile()
	s.use.keep()
	return Reader[T]{x, s}
}

// A TestUsage is a usage.
type TestUsage struct{ u usage }

// MaxGets is how many gets a state that is not kept answers.
const MaxGets = maxGets

func (u *TestUsage) Kept() bool  { return u.u.kept() }
func (u *TestUsage) Keep() bool  { return u.u.keep() }
func (u *TestUsage) Claim() bool { return u.u.claim() }
func (u *TestUsage) Release()    { u.u.release() }
func (u *TestUsage) Leave()      { u.u.leave() }

// Enter reports whether the state may be read, and whether Leave must follow.
func (u *TestUsage) Enter() (in, counted bool) {
	e := u.u.enter()
	return e != entryClaimed, e == entryCounted
}

// KeysOfOneHash files two keys of one hash under one slot, as if they had it one
// after the other, and returns what the table has then.
func KeysOfOneHash(a, b Key) []Key {
	const hash, slot = 7, 3
	t := newKeyTable(2)
	first, second := t.add(hash, slot, a), t.add(hash, slot, b)
	return []Key{t.cells[first].full(), t.cells[second].full()}
}
