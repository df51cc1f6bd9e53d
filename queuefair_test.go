package informer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// A tenantKey is a key of a tenant, which is its group.
type tenantKey struct {
	tenant string
	n      int
}

// fairQueue leases keys of groups, and counts the turns that each of them waits
// for.
type fairQueue struct {
	*rapid.T
	queue *informer.WorkQueue[tenantKey]
	open  []informer.Lease[tenantKey]
	ready map[tenantKey]bool
	work  map[string]int // keys that are ready, by group

	passed  map[string]map[string]int // for each group that has work, how often others had a turn
	longest *int                      // leases that a group with work waited for
	leases  *int
}

func (f *fairQueue) draw() tenantKey {
	// Tenant a has many keys, the others few.
	n := rapid.IntRange(0, 40).Draw(f.T, "key")
	if n < 4 {
		return tenantKey{string(rune('b' + n)), n % 2}
	}
	return tenantKey{"a", n}
}

// comes notes that a key is ready.
func (f *fairQueue) comes(k tenantKey) {
	if f.ready[k] {
		return
	}
	f.ready[k] = true
	if f.work[k.tenant]++; f.work[k.tenant] == 1 {
		f.passed[k.tenant] = map[string]int{}
	}
}

// goes notes that a key is not ready any more.
func (f *fairQueue) goes(k tenantKey) {
	if !f.ready[k] {
		return
	}
	delete(f.ready, k)
	if f.work[k.tenant]--; f.work[k.tenant] == 0 {
		delete(f.passed, k.tenant)
	}
}

func (f *fairQueue) add(*rapid.T) {
	k, p := f.draw(), informer.Priority(rapid.IntRange(-2, 2).Draw(f.T, "priority"))
	f.queue.AddWith(k, informer.AddOptions{Priority: p})
	if !f.leased(k) {
		f.comes(k)
	}
}

func (f *fairQueue) leased(k tenantKey) bool {
	return slices.ContainsFunc(f.open, func(l informer.Lease[tenantKey]) bool { return l.Key == k })
}

func (f *fairQueue) cancel(*rapid.T) {
	k := f.draw()
	f.queue.Cancel(k)
	f.goes(k)
}

// lease leases a key. No group has two turns while another one that has work waits.
func (f *fairQueue) lease(*rapid.T) {
	if len(f.ready) == 0 {
		f.Skip("no key is ready")
	}
	l, err := f.queue.Get(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	*f.leases++
	f.open = append(f.open, l)
	f.goes(l.Key)
	if f.work[l.Key.tenant] > 0 {
		f.passed[l.Key.tenant] = map[string]int{}
	}
	for group, passed := range f.passed {
		if group == l.Key.tenant {
			continue
		}
		if passed[l.Key.tenant]++; passed[l.Key.tenant] > 1 {
			f.Fatalf("%s has its second turn while %s waits", l.Key.tenant, group)
		}
		waits := 0
		for _, n := range passed {
			waits += n
		}
		*f.longest = max(*f.longest, waits)
	}
}

// end ends a lease: then the key is ready, or not in the queue.
func (f *fairQueue) end(*rapid.T) {
	if len(f.open) == 0 {
		f.Skip("no lease")
	}
	l := f.open[0]
	f.open = f.open[1:]
	if rapid.Bool().Draw(f.T, "retry") {
		l.RetryAfter(0)
	} else {
		l.Done()
	}
	for _, item := range f.queue.Items() {
		if item.Key == l.Key && item.State == informer.ItemReady {
			f.comes(l.Key)
		}
	}
}

func (f *fairQueue) pass(*rapid.T) {
	<-time.After(time.Duration(rapid.IntRange(1, 300).Draw(f.T, "ms")) * time.Millisecond)
}

// TestWorkQueue_FairShares (promise 26): whatever is added, with what priority,
// cancelled or retried, and when: while a group has a key that is ready, no other
// group has more than one turn. So of g groups that have work, each is served at
// least once in any g leases. With -v it tells how many leases one waited for at
// most.
func TestWorkQueue_FairShares(t *testing.T) {
	longest, leases := 0, 0
	fair := func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			f := &fairQueue{
				T: rt, ready: map[tenantKey]bool{}, work: map[string]int{}, passed: map[string]map[string]int{},
				longest: &longest, leases: &leases,
			}
			f.queue = newQueue(t, informer.QueueOptions[tenantKey]{
				Group:  func(k tenantKey) string { return k.tenant },
				Ageing: 40 * time.Millisecond,
			})
			rt.Repeat(map[string]func(*rapid.T){
				"add": f.add, "add, too": f.add, "add another": f.add, "cancel": f.cancel,
				"lease": f.lease, "a lease": f.lease, "a second lease": f.lease, "end": f.end, "time passes": f.pass,
				"": func(*rapid.T) {
					if err := informer.ValidateQueue(f.queue); err != nil {
						rt.Fatal(err)
					}
				},
			})
		})
	}
	for range modelRuns {
		synctest.Test(t, fair)
	}
	if longest == 0 || longest > 4 {
		t.Errorf("with five groups, one waited for %d leases, want 1 to 4", longest)
	}
	t.Logf("%d leases; with five groups, one that had work waited for %d at most", leases, longest)
}

// TestWorkQueue_NoisyTenant (promise 26): the single key of a tenant, whenever it
// comes, waits for one turn of a tenant with a thousand keys at most, whatever the
// priority of those; with more tenants, for one turn of each.
func TestWorkQueue_NoisyTenant(t *testing.T) {
	const noise, service = 1000, 10 * time.Millisecond
	for _, test := range []struct{ workers, noisy int }{{1, 1}, {1, 4}, {3, 1}, {8, 5}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []tenantKey // as they were begun
			q := newQueue(t, informer.QueueOptions[tenantKey]{Group: func(k tenantKey) string { return k.tenant }})
			high := informer.AddOptions{Priority: informer.PriorityHigh}
			for tenant := range test.noisy {
				for n := range noise {
					q.AddWith(tenantKey{fmt.Sprint("noisy ", tenant), n}, high)
				}
			}
			stop := startQueue(t, q, test.workers, func(_ context.Context, k tenantKey) error {
				mu.Lock()
				order = append(order, k)
				mu.Unlock()
				<-time.After(service)
				return nil
			})
			most := 0
			for n := range 20 {
				<-time.After(37*time.Millisecond + time.Duration(n)*137*time.Microsecond)
				mu.Lock()
				before := len(order)
				mu.Unlock()
				began := time.Now()
				quiet := tenantKey{"quiet", n}
				q.AddWith(quiet, informer.AddOptions{Priority: informer.PriorityLow})
				<-time.After(4 * time.Duration(test.noisy) * service)
				mu.Lock()
				at := slices.Index(order, quiet)
				passed := slices.Clone(order[before:max(at, before)])
				mu.Unlock()
				if at < 0 {
					t.Fatalf("the quiet tenant was not served within %v", time.Since(began))
				}
				turns := map[string]int{}
				for _, k := range passed {
					turns[k.tenant]++
				}
				for _, tenant := range slices.Sorted(maps.Keys(turns)) {
					if turns[tenant] > 1 {
						t.Errorf("%s had %d turns while the quiet tenant waited", tenant, turns[tenant])
					}
				}
				most = max(most, at-before)
			}
			t.Logf("%d noisy tenants of %d keys, %d workers: the quiet one waits for %d turns at most",
				test.noisy, noise, test.workers, most)
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
