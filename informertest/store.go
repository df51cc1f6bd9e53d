package informertest

import (
	"slices"
	"sort"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// firstVersion is the version of an empty server. Real ones start above 1 too.
const firstVersion = 100

// change is one write: a creation has no old, a deletion no new record.
type change struct {
	version  int64
	old, new *record
}

// resource returns what the change is about.
func (c change) resource() schema.GroupResource {
	if c.new != nil {
		return c.new.resource.groupResource()
	}
	return c.old.resource.groupResource()
}

// store holds the objects of all resources on one line of versions, and the
// changes that led to them, as far back as its history goes.
//
// One mutex guards it all. It is held while a write is worked out, so writes
// are serialised; it is never held while waiting or while talking to a client.
// Records are immutable and leave the store freely.
type store struct {
	limit int // of history

	mu      sync.Mutex // guards everything below
	version int64      // of the last write
	// floor is the lowest version whose state can still be told, and the
	// lowest that a watch may start from.
	floor       int64
	history     []change // above floor, in order
	collections map[schema.GroupResource]*collection
	changed     chan struct{} // closed by the next write; nil if nobody waits
	epoch       int           // a watch ends when this grows
}

// collection holds the objects of a resource.
type collection struct {
	records map[string]*record
	keys    []string // of records, sorted; nil if they have to be sorted again
}

func newStore(limit int) *store {
	return &store{
		limit: limit, version: firstVersion, floor: firstVersion,
		collections: map[schema.GroupResource]*collection{},
	}
}

// collectionLocked returns the objects of a resource. The caller holds mu.
func (s *store) collectionLocked(res *Resource) *collection {
	c := s.collections[res.groupResource()]
	if c == nil {
		c = &collection{records: map[string]*record{}}
		s.collections[res.groupResource()] = c
	}
	return c
}

// getLocked returns nil if there is no such object. The caller holds mu.
func (s *store) getLocked(res *Resource, key string) *record {
	return s.collectionLocked(res).records[key]
}

// commitLocked stores next, or removes old if next is nil, as the next version,
// and wakes all who wait. The caller holds mu, and made next of s.version+1.
func (s *store) commitLocked(old, next *record) {
	s.version++
	s.history = append(s.history, change{version: s.version, old: old, new: next})
	if over := len(s.history) - s.limit; over > 0 {
		s.forgetLocked(over)
	}
	s.replaceLocked(old, next)
	s.wakeLocked()
}

// replaceLocked puts next in the place of old; either may be nil. The caller
// holds mu.
func (s *store) replaceLocked(old, next *record) {
	if next == nil {
		c := s.collectionLocked(old.resource)
		delete(c.records, old.key)
		c.keys = nil
		return
	}
	c := s.collectionLocked(next.resource)
	c.records[next.key] = next
	if old == nil {
		c.keys = nil
	}
}

// wakeLocked tells all who wait that something has changed. The caller holds mu.
func (s *store) wakeLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// forgetLocked drops the n oldest changes. The caller holds mu.
func (s *store) forgetLocked(n int) {
	if n > 0 {
		s.floor = s.history[n-1].version
		clear(s.history[:n])
		s.history = s.history[n:]
	}
}

// compact drops all history.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(len(s.history))
	s.history = nil
}

func (s *store) current() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *store) epochNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// changedLocked returns a channel that the next write closes. The caller holds
// mu.
func (s *store) changedLocked() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// sinceLocked returns the history after a version. It is to be read before mu
// is released. The caller holds mu.
func (s *store) sinceLocked(version int64) []change {
	i := sort.Search(len(s.history), func(i int) bool { return s.history[i].version > version })
	return s.history[i:]
}

// keysLocked returns the keys with a prefix, in order, from start on. The
// caller holds mu and does not change the result.
func (s *store) keysLocked(res *Resource, prefix, start string) []string {
	c := s.collectionLocked(res)
	if c.keys == nil {
		c.keys = make([]string, 0, len(c.records))
		for key := range c.records {
			c.keys = append(c.keys, key)
		}
		sort.Strings(c.keys)
	}
	return cut(c.keys, prefix, start)
}

// cut returns the part of sorted keys that has a prefix and is not before
// start.
func cut(keys []string, prefix, start string) []string {
	from := sort.SearchStrings(keys, max(prefix, start))
	keys = keys[from:]
	to := sort.Search(len(keys), func(i int) bool { return !strings.HasPrefix(keys[i], prefix) })
	return keys[:to]
}

// past is the objects of a resource as they were at a version, in order of key.
// It is to be read while the store is locked.
type past struct {
	keys    []string
	undo    map[string]*record // what has changed since
	current map[string]*record
}

func (p past) at(i int) *record {
	if r, ok := p.undo[p.keys[i]]; ok {
		return r
	}
	return p.current[p.keys[i]]
}

// pastLocked returns the objects with a prefix from start on, as they were at a
// version, which is not below floor. The caller holds mu.
func (s *store) pastLocked(res *Resource, prefix, start string, version int64) past {
	undo := map[string]*record{} // nil: was not there
	later := s.sinceLocked(version)
	for i := len(later) - 1; i >= 0; i-- {
		c := later[i]
		if c.resource() != res.groupResource() {
			continue
		}
		if c.old == nil {
			undo[c.new.key] = nil
		} else {
			undo[c.old.key] = c.old
		}
	}
	p := past{
		keys: s.keysLocked(res, prefix, start), undo: undo,
		current: s.collectionLocked(res).records,
	}
	if len(undo) > 0 {
		p.keys = p.pastKeys(prefix, start)
	}
	return p
}

// pastKeys returns p.keys without those that were not there yet, and with those
// that are not there any more.
func (p past) pastKeys(prefix, start string) []string {
	keys := make([]string, 0, len(p.keys)+len(p.undo))
	for _, key := range p.keys {
		if r, ok := p.undo[key]; !ok || r != nil {
			keys = append(keys, key)
		}
	}
	for key, r := range p.undo {
		if r != nil && p.current[key] == nil && key >= start && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

// withPrefix returns the records whose keys have a prefix, in order. The store
// is locked.
func (c *collection) withPrefix(prefix string) []*record {
	var records []*record
	for key, r := range c.records {
		if strings.HasPrefix(key, prefix) {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b *record) int { return strings.Compare(a.key, b.key) })
	return records
}
