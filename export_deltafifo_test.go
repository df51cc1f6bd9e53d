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
	return f.listing.items.find(k).object
}

// FIFORoom returns how many places the queue has memory for.
func FIFORoom[T Object](f *DeltaFIFO[T]) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cap(f.queue.places) + cap(f.flight.places) + cap(f.batch)
}

// FIFOPlaces returns how many places the queue keeps, holes included.
func FIFOPlaces[T Object](f *DeltaFIFO[T]) int { return len(f.queue.places) }

// ValidateFIFO checks the invariants that comments state.
func ValidateFIFO[T Object](t interface{ Fatalf(string, ...any) }, f *DeltaFIFO[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := []*line[pending[T]]{&f.queue, &f.flight}
	for _, l := range lines {
		validateLine(t, l)
		for k, p := range l.all {
			if p.typ == 0 && !p.hasGone && p.bad == "" || p.bad != "" && (p.typ != 0 || p.hasGone) {
				t.Fatalf("%v is pending without anything to say", k)
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
	taken := 0
	for i, p := range l.places {
		if !p.taken {
			continue
		}
		taken++
		if at, ok := l.at[p.key]; !ok || at != i {
			t.Fatalf("%v is in place %d, and filed at %d (%v)", p.key, i, at, ok)
		}
		if i < l.head {
			t.Fatalf("%v is in place %d, before the head %d", p.key, i, l.head)
		}
	}
	if taken != len(l.at) {
		t.Fatalf("%d places are taken, and %d keys filed", taken, len(l.at))
	}
	if len(l.places) > roomyLine && tooLong(len(l.places), taken+1) {
		t.Fatalf("%d places for %d entries", len(l.places), taken)
	}
}
