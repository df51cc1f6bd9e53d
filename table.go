package informer

import (
	"math/bits"
	"slices"
)

const (
	// pageFill is how many cells a page holds on average before the table
	// grows by a page. It shrinks at half of it.
	pageFill = 8
	// pageSlack is how many cells a page is given room for beyond its need.
	pageSlack = 5
)

// A table is a persistent hash map. The zero table is empty. The caller brings
// the hash of each key, always the same one.
//
// It hashes linearly: it grows and shrinks by one page at a time, so no
// operation rehashes all. A key's cell is in page home(hash, number of pages).
type table[K comparable, V any] struct {
	n     int
	pages vec[page[K, V]]
}

// A page holds the cells of one residue of the hash, in no order. Its branch is
// of its epoch, or of a later one.
type page[K comparable, V any] struct {
	owner epoch // of the array behind cells, too
	cells []cell[K, V]
}

// The order of the fields packs the cells of all tables of the store tightly.
type cell[K comparable, V any] struct {
	value V
	hash  uint32
	key   K
}

// home returns the page of hash h in a table of n pages: h modulo the smallest
// power of two that is not below n or, where there is no such page yet, modulo
// half of that.
func home(h uint32, n int) int {
	p := 1 << bits.Len(uint(n-1))
	if i := int(h) & (p - 1); i < n {
		return i
	}
	return int(h) & (p/2 - 1)
}

// buddy returns the page that shared its keys with page n before there was a
// page n. n is not 0.
func buddy(n int) int { return n &^ (1 << (bits.Len(uint(n)) - 1)) }

// find returns the value of k, to be read only, or nil.
func (t *table[K, V]) find(h uint32, k K) *V {
	if t.n == 0 {
		return nil
	}
	p := t.pages.at(home(h, t.pages.n))
	if i := p.index(h, k); i >= 0 {
		return &p.cells[i].value
	}
	return nil
}

// put returns the value of k, for a writer of epoch e to write before its next
// call, and whether it was there before. A new value is zero.
func (t *table[K, V]) put(e epoch, h uint32, k K) (v *V, had bool) {
	if t.pages.n == 0 {
		t.pages.push(e, page[K, V]{owner: e})
	}
	p := t.edit(e, home(h, t.pages.n))
	if i := p.index(h, k); i >= 0 {
		return &p.cells[i].value, true
	}
	if t.n++; t.n > pageFill*t.pages.n {
		t.split(e)
		p = t.edit(e, home(h, t.pages.n))
	}
	p.add(cell[K, V]{hash: h, key: k})
	return &p.cells[len(p.cells)-1].value, false
}

// remove takes k out, if it is there.
func (t *table[K, V]) remove(e epoch, h uint32, k K) {
	if t.find(h, k) == nil {
		return
	}
	p := t.edit(e, home(h, t.pages.n))
	p.drop(p.index(h, k))
	t.n--
	if t.n == 0 {
		*t = table[K, V]{}
	} else if t.n < pageFill/2*t.pages.n && t.pages.n > 1 {
		last := t.pages.pop(e)
		p := t.edit(e, buddy(t.pages.n))
		for i := range last.cells {
			p.add(last.cells[i])
		}
	}
}

// split adds a page, and moves there what belongs to it.
func (t *table[K, V]) split(e epoch) {
	n := t.pages.n
	from := t.edit(e, buddy(n))
	t.pages.push(e, page[K, V]{owner: e, cells: make([]cell[K, V], 0, len(from.cells)/2+pageSlack)})
	to := t.pages.at(n)
	for i := len(from.cells) - 1; i >= 0; i-- {
		if home(from.cells[i].hash, n+1) == n {
			to.add(from.cells[i])
			from.drop(i)
		}
	}
	from.fit(2)
	to.fit(2)
}

// renew returns a table of epoch e with the same keys, in as many pages as these
// need now, and with the value that is returned for each cell.
func (t *table[K, V]) renew(e epoch, value func(*cell[K, V]) V) table[K, V] {
	to := table[K, V]{n: t.n}
	sizes := make([]int, (t.n+pageFill-1)/pageFill)
	t.each(func(c *cell[K, V]) bool {
		sizes[home(c.hash, len(sizes))]++
		return true
	})
	for _, size := range sizes {
		to.pages.push(e, page[K, V]{owner: e, cells: make([]cell[K, V], 0, size)})
	}
	t.each(func(c *cell[K, V]) bool {
		p := to.pages.at(home(c.hash, len(sizes)))
		p.cells = append(p.cells, cell[K, V]{hash: c.hash, key: c.key, value: value(c)})
		return true
	})
	return to
}

// edit returns page i, to be written in epoch e.
func (t *table[K, V]) edit(e epoch, i int) *page[K, V] {
	p := t.pages.at(i)
	if p.owner < e {
		p = t.pages.place(e, i)
		p.owner, p.cells = e, slices.Clone(p.cells)
	}
	return p
}

// each calls yield for every cell, to be read only, until it says false, and
// reports whether it never did.
func (t *table[K, V]) each(yield func(*cell[K, V]) bool) bool {
	for i := range t.pages.n {
		cells := t.pages.at(i).cells
		for j := range cells {
			if !yield(&cells[j]) {
				return false
			}
		}
	}
	return true
}

// index returns the place of k in cells, or -1.
func (p *page[K, V]) index(h uint32, k K) int {
	for i := range p.cells {
		if c := &p.cells[i]; c.hash == h && c.key == k {
			return i
		}
	}
	return -1
}

// add, drop and fit keep the array sized to what is in it: pages are what the
// store holds most of.
func (p *page[K, V]) add(c cell[K, V]) {
	if len(p.cells) == cap(p.cells) {
		p.resize()
	}
	p.cells = append(p.cells, c)
}

func (p *page[K, V]) drop(i int) {
	last := len(p.cells) - 1
	p.cells[i] = p.cells[last]
	p.cells[last] = cell[K, V]{}
	p.cells = p.cells[:last]
	p.fit(4)
}

// fit allows for times of what is needed. Who removes a cell allows for more: the
// store gives back memory when half of it is gone, at once.
func (p *page[K, V]) fit(times int) {
	if cap(p.cells) > times*(len(p.cells)+pageSlack) {
		p.resize()
	}
}

func (p *page[K, V]) resize() {
	p.cells = append(make([]cell[K, V], 0, len(p.cells)+pageSlack), p.cells...)
}
