package informer_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-99a027e8/informer"
)

// clockError is by how much a span of time may be wrong that the queue tells:
// its clock counts pieces of 1.05 ms, and may be 1 ms late.
const clockError = 2100 * time.Microsecond

// near checks a span of time.
func (m *queueModel) near(what string, got, want time.Duration) {
	if (got - want).Abs() > clockError {
		m.Errorf("%s = %v, want %v", what, got, want)
	}
}

// queueTold is what hooks were told.
type queueTold struct {
	adds   []int
	leases []string
	ends   []string
	last   informer.Lease[int]
}

func (m *queueModel) onAdd(k int) { m.told.adds = append(m.told.adds, k) }

func (m *queueModel) onLease(l informer.Lease[int]) {
	m.told.last = l
	m.told.leases = append(m.told.leases, fmt.Sprint(l.Key, l.Attempt))
	if m.onLeasePanics {
		m.onLeasePanics = false
		panic(errHook)
	}
}

func (m *queueModel) onEnd(l informer.Lease[int], end informer.Ending) {
	m.told.ends = append(m.told.ends, fmt.Sprint(l.Key, end.How, end.Err))
	m.stats.Worked.Count++
	m.stats.Worked.Total += end.Held
	m.stats.Worked.Longest = max(m.stats.Worked.Longest, end.Held)
	if s := m.keys[l.Key]; s != nil && s.leased { // else the model knows already
		m.near("held", end.Held, time.Since(s.since))
	}
}

// checkTold compares what hooks were told with what they should have been.
func (m *queueModel) checkTold() {
	m.told.last = informer.Lease[int]{}
	if slices.Equal(m.tellings.adds, m.told.adds) && slices.Equal(m.tellings.leases, m.told.leases) &&
		slices.Equal(m.tellings.ends, m.told.ends) {
		m.told, m.tellings = queueTold{}, queueTold{}
		return
	}
	if diff := gocmp.Diff(m.tellings, m.told, gocmp.AllowUnexported(queueTold{}), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(queueTold{}, "last")); diff != "" {
		m.Fatalf("hooks were told (-want +got):\n%s", diff)
	}
	m.told, m.tellings = queueTold{}, queueTold{}
}

// item returns what Item says of k.
func (m *queueModel) item(k int) informer.Item[int] {
	item, ok := m.queue.Item(k)
	if !ok {
		m.Fatalf("there is no Item of %d", k)
	}
	return item
}

// items returns what Items should return, in the order of keys.
func (m *queueModel) items() []informer.Item[int] {
	var all []informer.Item[int]
	for k, s := range m.keys {
		item := informer.Item[int]{
			Key: k, Again: s.leased && s.pending, Priority: s.priority, Group: m.group(k),
			Attempts: s.attempts, Err: s.err, Age: time.Since(s.added),
		}
		switch {
		case s.leased:
			item.State = informer.ItemLeased
		case s.parked:
			item.State = informer.ItemParked
		case slices.Contains(m.line, k):
			item.State = informer.ItemReady
		case s.due.IsZero() || m.closed:
			item.State = informer.ItemKept
		default:
			item.State = informer.ItemDelayed
		}
		if s.leased || s.parked {
			item.Held = time.Since(s.since)
		}
		if s.pending && s.due != never && !m.closed {
			item.Due = s.due
		}
		all = append(all, item)
	}
	sortItems(all)
	return all
}

func sortItems(items []informer.Item[int]) {
	slices.SortFunc(items, func(a, b informer.Item[int]) int { return cmp.Compare(a.Key, b.Key) })
}

// nearly compares spans of time.
var nearly = gocmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() <= clockError })

// sameItem reports that two items are equal, but for the errors of the clock.
func sameItem(a, b informer.Item[int]) bool {
	near := (a.Age-b.Age).Abs() <= clockError && (a.Held-b.Held).Abs() <= clockError
	b.Age, b.Held = a.Age, a.Held
	return near && a == b
}

// checkItems compares Items with the model, and one Item with them.
func (m *queueModel) checkItems() {
	got := m.queue.Items()
	sortItems(got)
	want := m.items()
	k := m.drawKey()
	item, ok := m.queue.Item(k)
	at := slices.IndexFunc(want, func(item informer.Item[int]) bool { return item.Key == k })
	if ok != (at >= 0) || ok && !sameItem(want[at], item) {
		m.Fatalf("Item(%d) = %+v, %t; the model has %+v", k, item, ok, want)
	}
	if slices.EqualFunc(want, got, sameItem) {
		return // which takes a twentieth of the time that Diff does
	}
	if diff := gocmp.Diff(want, got, nearly, cmpopts.EquateErrors(), cmpopts.EquateEmpty()); diff != "" {
		m.Fatalf("Items (-want +got):\n%s", diff)
	}
}

// checkStats compares Stats with the model.
func (m *queueModel) checkStats() {
	want := m.stats
	want.Ready = map[informer.Priority]int{}
	for _, item := range m.items() {
		switch item.State {
		case informer.ItemReady:
			want.Ready[item.Priority]++
			want.Oldest = max(want.Oldest, item.Age)
		case informer.ItemLeased:
			want.Leased++
			want.LongestLease = max(want.LongestLease, item.Held)
			want.Unfinished += item.Held
		case informer.ItemParked:
			want.Parked++
		}
		if item.State == informer.ItemDelayed || !item.Due.IsZero() {
			want.Delayed++
		}
	}
	got := m.queue.Stats()
	if got.Waited != want.Waited || got.Worked != want.Worked {
		m.Fatalf("Stats = %+v, want %+v", got, want)
	}
	if (got.Unfinished - want.Unfinished).Abs() > time.Duration(want.Leased)*clockError {
		m.Fatalf("Stats: unfinished %v, want %v", got.Unfinished, want.Unfinished)
	}
	got.Unfinished = want.Unfinished
	if want.Adds == got.Adds && want.Retries == got.Retries && want.Parks == got.Parks &&
		want.Delayed == got.Delayed && want.Leased == got.Leased && want.Parked == got.Parked &&
		maps.Equal(want.Ready, got.Ready) && (want.Oldest-got.Oldest).Abs() <= clockError &&
		(want.LongestLease-got.LongestLease).Abs() <= clockError {
		return
	}
	if diff := gocmp.Diff(want, got, nearly); diff != "" {
		m.Fatalf("Stats (-want +got):\n%s", diff)
	}
}
