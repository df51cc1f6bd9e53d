package informer

import "maps"

// A burstMap is a map that gives memory back when a burst is over, which Go's
// maps do not. The zero value is empty and ready to use.
type burstMap[K comparable, V any] struct {
	entries map[K]V // to be read only
	peak    int     // the most entries since entries was made
}

// put sets the value of k.
func (m *burstMap[K, V]) put(k K, v V) {
	if m.entries == nil {
		m.entries = make(map[K]V)
	}
	m.entries[k] = v
	m.peak = max(m.peak, len(m.entries))
}

// remove takes k out, if it is there. It may be called while entries is ranged
// over: that loop goes on over those that it began with.
func (m *burstMap[K, V]) remove(k K) {
	delete(m.entries, k)
	if m.peak <= minRoom || 3*len(m.entries) > 2*m.peak {
		return
	}
	smaller := make(map[K]V, len(m.entries))
	maps.Copy(smaller, m.entries)
	m.entries, m.peak = smaller, len(smaller)
}
