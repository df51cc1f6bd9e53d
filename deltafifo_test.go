package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/seed-99a027e8/informer"
)

// fifoText returns deltas as text.
func fifoText(d informer.Deltas[*fifoObject]) string {
	var parts []string
	for delta := range d.All() {
		exact := ""
		if delta.Exact {
			exact = "!"
		}
		parts = append(parts, fmt.Sprint(delta.Type, " ", delta.Object, exact))
	}
	return strings.Join(parts, ", ")
}

// fifoTake returns all that is pending.
func fifoTake(t *testing.T, queue *informer.DeltaFIFO[*fifoObject]) (text string) {
	t.Helper()
	if !informer.FIFOHasWork(queue) {
		return ""
	}
	err := queue.PopAll(context.Background(), func(b informer.Batch[*fifoObject]) error {
		for _, d := range b.Deltas {
			text += fifoText(d) + "\n"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text, "\n")
}

// Without a store each deletion is told, also one that a list overtakes, and
// one that only a new UID in the list shows.
func TestDeltaFIFOWithoutStoreListAfterDeletion(t *testing.T) {
	a1 := &fifoObject{name: "a", uid: "u1", version: "1"}
	a1x := &fifoObject{name: "a", uid: "u1", version: "2"}
	a2 := &fifoObject{name: "a", uid: "u2", version: "3"}
	a2x := &fifoObject{name: "a", uid: "u2", version: "5"}
	b := &fifoObject{name: "b", uid: "u3", version: "4"}
	for _, test := range []struct {
		what string
		tell func(*informer.DeltaFIFO[*fifoObject]) error
		want string
	}{
		{"deleted, listed anew", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Delete(a1x), q.Replace([]*fifoObject{a2, b}, "4"))
		}, "Replaced b/u3@4\nDeleted a/u1@2!, Replaced a/u2@3"},
		{"updated, listed with another UID", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Update(a1x), q.Replace([]*fifoObject{a2}, "4"))
		}, "Deleted a/u1@2, Replaced a/u2@3"},
		{"added, listed with another UID", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Add(a1), q.Replace([]*fifoObject{a2}, "4"))
		}, "Replaced a/u2@3"},
		{"deleted, listed, deleted", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Delete(a1x), q.Replace([]*fifoObject{a2}, "4"), q.Delete(a2x))
		}, "Deleted a/u1@2!"},
		{"deleted, listed, updated", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Delete(a1x), q.Replace([]*fifoObject{a2}, "4"), q.Update(a2x))
		}, "Deleted a/u1@2!, Added a/u2@5"},
		{"deleted, listed bad", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Delete(a1x),
				q.Apply(informer.Event[*fifoObject]{Type: informer.EventBegin}),
				q.Apply(informer.Event[*fifoObject]{Type: informer.EventBad, Key: fifoKey("a"), UID: "u2"}),
				q.Apply(informer.Event[*fifoObject]{Type: informer.EventEnd, Version: "4"}))
		}, "Deleted a/u1@2!"},
		{"pending and not listed", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Add(a1), q.Replace([]*fifoObject{b}, "4"))
		}, "Replaced b/u3@4\nDeleted a/u1@1"},
		{"deleted, listed twice", func(q *informer.DeltaFIFO[*fifoObject]) error {
			return errors.Join(q.Delete(a1x), q.Replace([]*fifoObject{a2}, "4"), q.Replace([]*fifoObject{a2, b}, "5"))
		}, "Replaced b/u3@4\nDeleted a/u1@2!, Replaced a/u2@3"},
	} {
		t.Run(test.what, func(t *testing.T) {
			queue := informer.NewDeltaFIFO(informer.Reader[*fifoObject]{})
			if err := test.tell(queue); err != nil {
				t.Fatal(err)
			}
			informer.ValidateFIFO(t, queue)
			if got := fifoTake(t, queue); got != test.want {
				t.Errorf("the consumer was told\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// An event whose version says nothing does not hide that the server goes
// backwards after it (promise 4).
func TestDeltaFIFOKeepsItsVersion(t *testing.T) {
	for _, version := range []string{"", "0", "new"} {
		store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
		queue := informer.NewDeltaFIFO(store.Reader)
		err := errors.Join(queue.Replace(nil, "10"),
			queue.Apply(informer.Event[*fifoObject]{Type: informer.EventBad, Key: fifoKey("a"), Version: version}),
			queue.Replace(nil, "5"))
		if err != nil {
			t.Fatal(err)
		}
		err = queue.PopAll(t.Context(), func(b informer.Batch[*fifoObject]) error {
			if !b.Rewound || b.Version != "5" {
				t.Errorf("after %q: Rewound %v, Version %q; want true, 5", version, b.Rewound, b.Version)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// After Close the consumer gets what was pending, and nothing new.
func TestDeltaFIFOClosed(t *testing.T) {
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	queue := informer.NewDeltaFIFO(store.Reader)
	obj := &fifoObject{name: "a", uid: "u1", version: "1"}
	if err := errors.Join(store.Add(obj), queue.Update(&fifoObject{name: "a", uid: "u1", version: "2"})); err != nil {
		t.Fatal(err)
	}
	queue.Close()
	queue.Close()
	if err := queue.Add(obj); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("Add = %v, want ErrStopped", err)
	}
	if got, want := fifoTake(t, queue), "Updated a/u1@2"; got != want {
		t.Errorf("the consumer was told %q, want %q", got, want)
	}
	queue.Resync()
	for what, err := range map[string]error{
		"PopAll": queue.PopAll(context.Background(), func(informer.Batch[*fifoObject]) error { return nil }),
		"Pop":    queue.Pop(context.Background(), func(informer.Deltas[*fifoObject]) error { return nil }),
	} {
		if !errors.Is(err, informer.ErrStopped) {
			t.Errorf("%s = %v, want ErrStopped", what, err)
		}
	}
}

// A looks counts how often who waits for it has looked whether it ended.
type looks struct {
	context.Context
	n atomic.Int32
}

func (l *looks) Err() error {
	l.n.Add(1)
	return l.Context.Err()
}

// While a list is coming, a consumer that waits is left alone: there is nothing
// to take before the end.
func TestDeltaFIFOSleepsDuringLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := informer.NewDeltaFIFO(informer.NewIndexer[*fifoObject](informer.IndexerOptions{}).Reader)
		ctx := &looks{Context: context.Background()}
		done := make(chan error, 1)
		go func() {
			done <- queue.PopAll(ctx, func(informer.Batch[*fifoObject]) error { return nil })
		}()
		synctest.Wait()
		before := ctx.n.Load()
		tell := func(ev informer.Event[*fifoObject]) {
			if err := queue.Apply(ev); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		tell(informer.Event[*fifoObject]{Type: informer.EventBegin})
		for _, name := range []string{"a", "b", "c"} {
			tell(informer.EventOf(informer.EventAdded, &fifoObject{name: name, uid: "u", version: "1"}))
		}
		if n := ctx.n.Load() - before; n != 0 {
			t.Errorf("woken %d times during a list", n)
		}
		tell(informer.Event[*fifoObject]{Type: informer.EventEnd, Version: "9"})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Promise 3: each item of a list is compared with what the store has, also the
// last ones, and those of a list that is short.
func TestDeltaFIFOReplaceComparesAll(t *testing.T) {
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	queue := informer.NewDeltaFIFO(store.Reader)
	old := &fifoObject{"same", "u", "1"}
	for _, obj := range []*fifoObject{old, {"changed", "u", "1"}, {"gone", "u", "1"}} {
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue.Replace([]*fifoObject{old.copy(), {"changed", "u", "2"}, {"new", "u", "2"}}, "3"); err != nil {
		t.Fatal(err)
	}
	err := queue.PopAll(t.Context(), func(b informer.Batch[*fifoObject]) error {
		if len(b.Deltas) != 3 {
			t.Errorf("%d objects are told, want those that changed, came and went: %v", len(b.Deltas), b.Deltas)
		}
		store.Apply(b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := store.Get(informer.KeyOf(old)); got != old {
		t.Error("what is unchanged is another object")
	}
	if _, found := store.Get(informer.Key{Namespace: "ns", Name: "gone"}); found || store.Len() != 3 {
		t.Errorf("the store has %v", store.List())
	}
}

// Promise 3: a consumer that waits is woken by whatever there is to take, and by
// the end of the queue.
func TestDeltaFIFOWakes(t *testing.T) {
	old := &fifoObject{name: "old", uid: "u1", version: "1"}
	x := &fifoObject{name: "x", uid: "u2", version: "2"}
	for what, tell := range map[string]func(*informer.DeltaFIFO[*fifoObject]) error{
		"an addition":    func(q *informer.DeltaFIFO[*fifoObject]) error { return q.Add(x) },
		"an update":      func(q *informer.DeltaFIFO[*fifoObject]) error { return q.Update(x) },
		"a deletion":     func(q *informer.DeltaFIFO[*fifoObject]) error { return q.Delete(old) },
		"a list":         func(q *informer.DeltaFIFO[*fifoObject]) error { return q.Replace(nil, "9") },
		"a resync":       func(q *informer.DeltaFIFO[*fifoObject]) error { q.Resync(); return nil },
		"the end of all": func(q *informer.DeltaFIFO[*fifoObject]) error { q.Close(); return nil },
		"a bookmark": func(q *informer.DeltaFIFO[*fifoObject]) error {
			return q.Apply(informer.Event[*fifoObject]{Type: informer.EventBookmark, Version: "9"})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
			if err := store.Add(old); err != nil {
				t.Fatal(err)
			}
			queue := informer.NewDeltaFIFO(store.Reader)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() {
				done <- queue.PopAll(ctx, func(informer.Batch[*fifoObject]) error { return nil })
			}()
			synctest.Wait()
			if err := tell(queue); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			cancel()
			if err := <-done; errors.Is(err, context.Canceled) {
				t.Errorf("%s does not wake the consumer", what)
			}
		})
	}
}
