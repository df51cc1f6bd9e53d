package informertest

// Copies returns how many copies a guard keeps, without those of objects that
// are gone.
func (g *Guard[E, T]) Copies() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweepLocked()
	return len(g.copies)
}

// Recent is how many objects a guard keeps that were replaced or deleted.
const Recent = recent
