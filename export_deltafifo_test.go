package informer

// FIFOHasWork reports that a consumer would not have to wait.
func FIFOHasWork[T Object](f *DeltaFIFO[T]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queue.len() > 0 || f.list != nil || f.news || f.resync
}

// FIFOStaged returns the object that the list which is coming holds under k.
func FIFOStaged[T Object](f *DeltaFIFO[T], k Key) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listing.items.find(hashKey(f.seed, k), k).object
}

// FIFORoom returns how many places the queue has memory for.
func FIFORoom[T Object](f *DeltaFIFO[T]) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return room(&f.queue.line) + room(&f.flight.line) + cap(f.batch)
}

// FIFOPlaces returns how many places the queue keeps, holes included.
func FIFOPlaces[T Object](f *DeltaFIFO[T]) int { return f.queue.end }

func room[E any](l *line[E]) (n int) {
	for _, page := range l.pages {
		n += cap(page)
	}
	return n
}

// ValidateFIFO checks the invariants that comments state.
func ValidateFIFO[T Object](t interface{ Fatalf(string, ...any) }, f *DeltaFIFO[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := []*line[pending[T]]{&f.queue.line, &f.flight.line}
	for _, l := range lines {
		validateLine(t, l)
		for p := range l.all {
			if e := &p.entry; e.isNothing() || e.bad != "" && (e.typ != 0 || e.hasGone) {
				t.Fatalf("%v is pending without anything to say", p.key)
			}
		}
	}
	for _, s := range []*staging[T]{f.list, f.listing, f.flightList} {
		if s != nil {
			validateLine(t, &s.items)
		}
	}
}

func validateLine[E any](t interface{ Fatalf(string, ...any) }, l *line[E]) {
	taken, cells := 0, 0
	for i := range l.end {
		p := l.place(i)
		if !p.taken {
			continue
		}
		taken++
		if l.find(p.hash, p.key) != &p.entry {
			t.Fatalf("%v is in place %d, and not found there", p.key, i)
		}
		if i < l.head {
			t.Fatalf("%v is in place %d, before the head %d", p.key, i, l.head)
		}
	}
	for _, cell := range l.index {
		if cell != 0 {
			cells++
		}
	}
	places := 0
	for i, page := range l.pages {
		if places += len(page); i < l.end/pageSize && len(page) < pageSize {
			t.Fatalf("page %d has %d places of %d", i, len(page), l.end)
		}
	}
	switch {
	case taken != l.held:
		t.Fatalf("%d places are taken, and %d counted", taken, l.held)
	case cells != l.end || places != l.end || 3*cells > 2*len(l.index):
		t.Fatalf("%d cells of %d, for %d places, want %d", cells, len(l.index), places, l.end)
	case l.end > roomyLine && tooLong(l.end, taken+1):
		t.Fatalf("%d places for %d entries", l.end, taken)
	}
}
