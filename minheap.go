package informer

// A minHeap gives its least element first. Each node has four children, which
// makes it flat: fewer steps, and those within a cache line or two. It tells
// where each element is, so that any of them can be removed.
type minHeap[E any] struct {
	elems []E
	less  func(a, b E) bool   // the order
	moved func(elem E, i int) // is told of each element that comes to be at i
}

// heapArity is the number of children of a node.
const heapArity = 4

// len returns the number of elements.
func (h *minHeap[E]) len() int { return len(h.elems) }

// push adds elem.
func (h *minHeap[E]) push(elem E) {
	if n := len(h.elems); n == cap(h.elems) {
		h.elems = append(make([]E, 0, moreRoom(n)), h.elems...)
	}
	h.elems = append(h.elems, elem)
	h.up(len(h.elems)-1, elem)
}

// remove takes the element at i out, and returns it.
func (h *minHeap[E]) remove(i int) E {
	last := len(h.elems) - 1
	gone, elem := h.elems[i], h.elems[last]
	clear(h.elems[last:])
	h.elems = h.elems[:last]
	if i != last && !h.up(i, elem) {
		h.down(i, elem)
	}
	return gone
}

// shrink gives memory back if that is worth it.
func (h *minHeap[E]) shrink() {
	if room := lessRoom(len(h.elems), cap(h.elems)); room != cap(h.elems) {
		h.elems = append(make([]E, 0, room), h.elems...)
	}
}

// up puts elem at i, or at the ancestor of i where it belongs, and reports
// whether that was an ancestor.
func (h *minHeap[E]) up(i int, elem E) bool {
	from := i
	for i > 0 {
		parent := (i - 1) / heapArity
		if !h.less(elem, h.elems[parent]) {
			break
		}
		h.set(i, h.elems[parent])
		i = parent
	}
	h.set(i, elem)
	return i != from
}

// down puts elem at i, or at the descendant of i where it belongs.
func (h *minHeap[E]) down(i int, elem E) {
	for {
		first := heapArity*i + 1
		if first >= len(h.elems) {
			break
		}
		least := first
		for child := first + 1; child < min(first+heapArity, len(h.elems)); child++ {
			if h.less(h.elems[child], h.elems[least]) {
				least = child
			}
		}
		if !h.less(h.elems[least], elem) {
			break
		}
		h.set(i, h.elems[least])
		i = least
	}
	h.set(i, elem)
}

// set puts elem at i.
func (h *minHeap[E]) set(i int, elem E) {
	h.elems[i] = elem
	h.moved(elem, i)
}
