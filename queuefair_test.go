package informer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
// priority of those; with more tenants, for one turn of each. So it is begun, with
// n tenants and w workers who take s for a key, within s * (n + 1) / w, rounded up
// to whole s.
func TestWorkQueue_NoisyTenant(t *testing.T) {
	for _, test := range []struct{ workers, noisy int }{{1, 1}, {1, 4}, {3, 1}, {8, 5}, {3, 7}} {
		synctest.Test(t, func(t *testing.T) { noisyTenants(t, test.workers, test.noisy) })
	}
}

func noisyTenants(t *testing.T, workers, noisy int) {
	const noise, service = 1000, 10 * time.Millisecond
	var mu sync.Mutex
	var order []tenantKey // as they were begun
	began := map[tenantKey]time.Time{}
	q := newQueue(t, informer.QueueOptions[tenantKey]{Group: func(k tenantKey) string { return k.tenant }})
	high := informer.AddOptions{Priority: informer.PriorityHigh}
	for tenant := range noisy {
		for n := range noise {
			q.AddWith(tenantKey{fmt.Sprint("noisy ", tenant), n}, high)
		}
	}
	stop := startQueue(t, q, workers, func(_ context.Context, k tenantKey) error {
		mu.Lock()
		order = append(order, k)
		began[k] = time.Now()
		mu.Unlock()
		<-time.After(service)
		return nil
	})
	limit := time.Duration((noisy+workers)/workers) * service
	most, longest := 0, time.Duration(0)
	for n := range 20 {
		<-time.After(37*time.Millisecond + time.Duration(n)*137*time.Microsecond)
		mu.Lock()
		before := len(order)
		mu.Unlock()
		added := time.Now()
		quiet := tenantKey{"quiet", n}
		q.AddWith(quiet, informer.AddOptions{Priority: informer.PriorityLow})
		<-time.After(limit + service)
		mu.Lock()
		at, waited := slices.Index(order, quiet), began[quiet].Sub(added)
		passed := slices.Clone(order[before:max(at, before)])
		mu.Unlock()
		if at < 0 || waited > limit {
			t.Fatalf("the quiet tenant was served after %v (%d), want at most %v", waited, at, limit)
		}
		longest = max(longest, waited)
		if workers > 1 {
			continue // they may begin in another order than they leased
		}
		most = max(most, len(passed))
		slices.SortFunc(passed, func(a, b tenantKey) int { return strings.Compare(a.tenant, b.tenant) })
		for i := 1; i < len(passed); i++ {
			if passed[i].tenant == passed[i-1].tenant {
				t.Errorf("%s had two turns while the quiet tenant waited", passed[i].tenant)
			}
		}
	}
	t.Logf("%d noisy tenants of %d keys, %d workers: the quiet one waits for %d turns, and %v of %v, at most",
		noisy, noise, workers, most, longest, limit)
	if err := stop(); err != nil {
		t.Error(err)
	}
}
