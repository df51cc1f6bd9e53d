package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-99a027e8/informer"
	"k8s.io/apimachinery/pkg/types"
)

// fifoScript runs a script on a queue, and returns what the consumer was given:
// the deltas of a take, separated by "," and those takes by "; ". A step is
//
//	+a/u1@5 ~a/u1@5  added, modified
//	-a/u1@5 -a       deleted, exactly or without a final state
//	!a/u1@5          bad
//	[ ]9 *9          begin and end of a list, bookmark
//	sync             Resync
//	take pop         take everything; take one key
//	hold             take everything, and go on to the next take before it is stored
//
// A delta is written as its type, its object, and "exact" or "listed".
func fifoScript(t *testing.T, known bool, script string) string {
	t.Helper()
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	s := &fifoScripted{t: t, store: store, queue: informer.NewDeltaFIFO(informer.Reader[*fifoObject]{})}
	if known {
		s.queue = informer.NewDeltaFIFO(store.Reader)
	}
	s.run(strings.Fields(script))
	return strings.Join(s.taken, "; ")
}

type fifoScripted struct {
	t     *testing.T
	queue *informer.DeltaFIFO[*fifoObject]
	store *informer.Indexer[*fifoObject]
	taken []string
}

func (s *fifoScripted) run(steps []string) {
	s.t.Helper()
	for i, step := range steps {
		switch step {
		case "sync":
			s.queue.Resync()
		case "take":
			s.take(nil)
		case "pop":
			s.pop()
		case "hold":
			s.take(steps[i+1:])
			return
		default:
			if err := s.queue.Apply(fifoEvent(step)); err != nil {
				s.t.Fatalf("Apply(%s) = %v", step, err)
			}
		}
	}
}

func (s *fifoScripted) take(meanwhile []string) {
	s.t.Helper()
	err := s.queue.PopAll(&impatient{Context: context.Background()}, func(b informer.Batch[*fifoObject]) error {
		var all []string
		for _, d := range b.Deltas {
			all = append(all, fifoDeltas(d)...)
		}
		text := strings.Join(all, ",")
		if b.Rewound {
			text += " rewound"
		}
		s.taken = append(s.taken, text)
		for len(meanwhile) > 0 && meanwhile[0] != "take" {
			s.run(meanwhile[:1])
			meanwhile = meanwhile[1:]
		}
		s.store.Apply(b)
		return nil
	})
	s.note(err)
	s.run(meanwhile)
}

func (s *fifoScripted) pop() {
	s.t.Helper()
	s.note(s.queue.Pop(&impatient{Context: context.Background()}, func(d informer.Deltas[*fifoObject]) error {
		s.taken = append(s.taken, strings.Join(fifoDeltas(d), ","))
		s.store.Apply(informer.Batch[*fifoObject]{Deltas: []informer.Deltas[*fifoObject]{d}})
		return nil
	}))
}

func (s *fifoScripted) note(err error) {
	s.t.Helper()
	switch {
	case errors.Is(err, context.Canceled):
		s.taken = append(s.taken, "waits")
	case err != nil:
		s.t.Fatal(err)
	}
}

func fifoDeltas(d informer.Deltas[*fifoObject]) (all []string) {
	for delta := range d.All() {
		text := fmt.Sprint(delta.Type, " ", delta.Object)
		if delta.Exact {
			text += " exact"
		}
		if d.Listed {
			text += " listed"
		}
		all = append(all, text)
	}
	return all
}

// fifoEvent returns the event that a step describes.
func fifoEvent(step string) informer.Event[*fifoObject] {
	id, version, _ := strings.Cut(step[1:], "@")
	name, uid, _ := strings.Cut(id, "/")
	obj := &fifoObject{name: name, uid: uid, version: version}
	switch step[0] {
	case '[':
		return informer.Event[*fifoObject]{Type: informer.EventBegin}
	case ']':
		return informer.Event[*fifoObject]{Type: informer.EventEnd, Version: step[1:]}
	case '*':
		return informer.Event[*fifoObject]{Type: informer.EventBookmark, Version: step[1:]}
	case '+':
		return informer.EventOf(informer.EventAdded, obj)
	case '~':
		return informer.EventOf(informer.EventModified, obj)
	case '!':
		return informer.Event[*fifoObject]{Type: informer.EventBad, Key: fifoKey(name), UID: types.UID(uid), Version: version}
	}
	ev := informer.EventOf(informer.EventDeleted, obj)
	if version == "" {
		ev.Exact, ev.Object = false, nil
	}
	return ev
}

// The table of DeltaFIFO, for a consumer whose store is known: promises 2, 3,
// 4, 5, 7, 12 and 14.
func TestDeltaFIFOTable(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"nothing, add", "+a/u1@5 take", "Added a/u1@5"},
		{"nothing, delete of what is unknown", "-a/u1@5 take", ""},
		{"known, update", "+a/u1@5 take ~a/u1@6 take", "Added a/u1@5; Updated a/u1@6"},
		{"known, same version", "+a/u1@5 take ~a/u1@5 take", "Added a/u1@5; "},
		{"known, sync", "+a/u1@5 take sync take", "Added a/u1@5; Sync a/u1@5"},
		{"known and pending, sync", "+a/u1@5 take ~a/u1@6 sync take", "Added a/u1@5; Updated a/u1@6"},
		{"known, other UID", "+a/u1@5 take ~a/u2@7 take", "Added a/u1@5; Deleted a/u1@5,Added a/u2@7"},
		{"known, deleted, other UID", "+a/u1@5 take -a/u1@6 +a/u2@7 take", "Added a/u1@5; Deleted a/u1@6 exact,Added a/u2@7"},
		{"known, deleted, same UID", "+a/u1@5 take -a/u1@6 +a/u1@7 take", "Added a/u1@5; Updated a/u1@7"},
		{"known, deleted without a final state", "+a/u1@5 take -a take", "Added a/u1@5; Deleted a/u1@5"},
		{"known, updated, deleted", "+a/u1@5 take ~a/u1@6 -a/u1@7 take", "Added a/u1@5; Deleted a/u1@7 exact"},
		{"known, deleted, other UID, deleted", "+a/u1@5 take -a/u1@6 +a/u2@7 -a/u2@8 take", "Added a/u1@5; Deleted a/u1@6 exact"},
		{"known, other UID, deleted", "+a/u1@5 take +a/u2@7 -a/u2@8 take", "Added a/u1@5; Deleted a/u1@5"},
		{"a final state older than the known one", "+a/u1@7 take -a/u1@6 take", "Added a/u1@7; Deleted a/u1@7"},
		{"added, deleted", "+a/u1@5 -a/u1@6 take", ""},
		{"added, updated", "+a/u1@5 ~a/u1@6 take", "Added a/u1@6"},
		{"in flight, deleted", "+a/u1@5 hold -a/u1@6 take", "Added a/u1@5; Deleted a/u1@6 exact"},
		{"list in flight, deleted", "[ +a/u1@5 ]9 hold -a/u1@10 take", "Replaced a/u1@5 listed; Deleted a/u1@10 exact"},
		{"list pending, deleted", "[ +a/u1@5 ]9 -a/u1@10 take", ""},
		{"list pending, deleted, other UID", "+a/u1@5 take [ +a/u1@6 ]9 -a/u1@10 +a/u2@11 take", "Added a/u1@5; Deleted a/u1@10 exact,Added a/u2@11"},
		{"list pending, updated", "[ +a/u1@5 ]9 ~a/u1@10 take", "Added a/u1@10"},
		{"in a list once more", "[ +a/u1@5 ]9 take [ +a/u1@5 ]12 take", "Replaced a/u1@5 listed; "},
		{"not in the list any more", "[ +a/u1@5 +b/u2@6 ]9 take [ +b/u2@6 ]12 take", "Replaced a/u1@5 listed,Replaced b/u2@6 listed; Deleted a/u1@5 listed"},
		{"other UID in the list", "+a/u1@5 take [ +a/u2@7 ]9 take", "Added a/u1@5; Deleted a/u1@5 listed,Replaced a/u2@7 listed"},
		{"deleted, other UID in the list", "+a/u1@5 take -a/u1@6 [ +a/u2@7 ]9 take", "Added a/u1@5; Deleted a/u1@6 exact listed,Replaced a/u2@7 listed"},
		{"deleted inside the list, other UID", "+a/u1@5 take [ -a/u1@6 +a/u2@7 ]9 take", "Added a/u1@5; Deleted a/u1@6 exact listed,Replaced a/u2@7 listed"},
		{"deleted, and so in the list", "+a/u1@5 take -a/u1@6 [ ]9 take", "Added a/u1@5; Deleted a/u1@6 exact listed"},
		{"left, and so in the list", "+a/u1@5 take -a [ ]9 take", "Added a/u1@5; Deleted a/u1@5 listed"},
		{"deleted inside a list that a list replaces", "+a/u1@5 take [ -a/u1@6 ]9 [ ]12 take", "Added a/u1@5; Deleted a/u1@6 exact listed"},
		{"deleted before a list that a list replaces", "+a/u1@5 take -a/u1@6 [ ]9 [ ]12 take", "Added a/u1@5; Deleted a/u1@6 exact listed"},
		{"item left inside the list", "[ +a/u1@5 -a ]9 take", ""},
		{"item changed inside the list", "[ +a/u1@5 ~a/u1@6 ]9 take", "Replaced a/u1@6 listed"},
		{"a list that broke off", "[ +a/u1@5 [ +b/u2@6 ]9 take", "Replaced b/u2@6 listed"},
		{"bad item of an object that is known", "+a/u1@5 take [ !a/u1@6 ]9 take", "Added a/u1@5; "},
		{"bad item of another UID", "+a/u1@5 take [ !a/u2@6 ]9 take", "Added a/u1@5; Deleted a/u1@5 listed"},
		{"bad item after a good one", "[ +a/u1@5 !a/u1@6 ]9 take", "Replaced a/u1@5 listed"},
		{"bad item, good in a list before", "[ +a/u1@5 ]9 [ !a/u1@6 ]12 take", "Replaced a/u1@5 listed"},
		{"bad item, good before the list", "+a/u1@5 [ !a/u1@6 ]9 take", "Replaced a/u1@5 listed"},
		{"bad item after a good one, older before the list", "+a/u1@5 [ ~a/u1@6 !a/u1@7 ]9 take", "Replaced a/u1@6 listed"},
		{"bad item after a good one, older in a list before", "[ +a/u1@5 ]8 [ ~a/u1@6 !a/u1@7 ]9 take", "Replaced a/u1@6 listed"},
		{"bad item, another object before the list", "+a/u1@5 [ !a/u2@6 ]9 take", ""},
		{"bad by watch", "+a/u1@5 take !a/u1@6 take", "Added a/u1@5; "},
		{"bad by watch, of an unknown UID", "+a/u1@5 take !a/@6 take", "Added a/u1@5; "},
		{"bad by watch, never good", "!a/u1@6 take", ""},
		{"bad by watch, another UID", "+a/u1@5 take !a/u2@6 take", "Added a/u1@5; Deleted a/u1@5"},
		{"bad by watch, another UID, repaired", "+a/u1@5 take !a/u2@6 ~a/u2@7 take", "Added a/u1@5; Deleted a/u1@5,Added a/u2@7"},
		{"bad by watch, another UID, deleted", "+a/u1@5 take !a/u2@6 -a/u2@7 take", "Added a/u1@5; Deleted a/u1@5"},
		{"updated, bad", "+a/u1@5 take ~a/u1@6 !a/u1@7 take", "Added a/u1@5; Updated a/u1@6"},
		{"updated, bad with another UID", "+a/u1@5 take ~a/u1@6 !a/u2@7 take", "Added a/u1@5; Deleted a/u1@5"},
		{"added, bad with another UID", "+a/u1@5 !a/u2@7 take", ""},
		{"deleted, bad", "+a/u1@5 take -a/u1@6 !a/u2@7 take", "Added a/u1@5; Deleted a/u1@6 exact"},
		{"other UID, bad", "+a/u1@5 take ~a/u2@6 !a/u2@7 take", "Added a/u1@5; Deleted a/u1@5,Added a/u2@6"},
		{"in flight, bad with another UID", "+a/u1@5 hold !a/u2@6 take", "Added a/u1@5; Deleted a/u1@5"},
		{"list in flight, bad with another UID", "[ +a/u1@5 ]9 hold !a/u2@10 take", "Replaced a/u1@5 listed; Deleted a/u1@5"},
		{"list pending, bad with another UID", "[ +a/u1@5 ]9 !a/u2@10 take", ""},
		{"known, list pending, bad with another UID", "+a/u1@5 take [ +a/u1@6 ]9 !a/u2@10 take", "Added a/u1@5; Deleted a/u1@5"},
		{"known and listed the same, bad with another UID", "+a/u1@5 take [ +a/u1@5 ]9 !a/u2@10 take", "Added a/u1@5; Deleted a/u1@5"},
		{"known and listed the same, bad", "+a/u1@5 take [ +a/u1@5 ]9 !a/u1@10 take", "Added a/u1@5; "},
		{"bad with another UID, then a list", "+a/u1@5 take !a/u2@6 [ +a/u2@7 ]9 take", "Added a/u1@5; Deleted a/u1@5 listed,Replaced a/u2@7 listed"},
		{"bad with another UID, sync", "+a/u1@5 take !a/u2@6 sync take", "Added a/u1@5; Deleted a/u1@5"},
		{"known, list pending, bad", "+a/u1@5 take [ +a/u1@6 ]9 !a/u1@10 take", "Added a/u1@5; Replaced a/u1@6 listed"},
		{"known, not in a pending list, bad", "+a/u1@5 take [ ]9 !a/u1@10 take", "Added a/u1@5; Deleted a/u1@5 listed"},
		{"bad with another UID, bad without one", "+a/u1@5 take !a/u2@6 !a/@7 take", "Added a/u1@5; Deleted a/u1@5"},
		{"bad, sync", "+a/u1@5 take !a/u1@6 sync take", "Added a/u1@5; Sync a/u1@5"},
		{"bad, one at a time", "+a/u1@5 pop !a/u1@6 !a/u2@7 pop pop", "Added a/u1@5; Deleted a/u1@5; waits"},
		{"an older list", "[ ]9 take [ ]5 take", "; " + " rewound"},
		{"an older list before a newer one", "[ ]9 take [ ]5 [ ]6 take", "; " + " rewound"},
		{"bookmark", "*9 take take", "; waits"},
		{"one key at a time", "+a/u1@5 +b/u2@6 ~a/u1@7 pop pop pop", "Added a/u1@7; Added b/u2@6; waits"},
		{"one key of a list at a time", "[ +a/u1@5 +b/u2@6 ]9 ~a/u1@10 pop pop pop", "Added a/u1@10; Replaced b/u2@6 listed; waits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fifoScript(t, true, tt.script); got != tt.want {
				t.Errorf("%s:\n got %q\nwant %q", tt.script, got, tt.want)
			}
		})
	}
}

// Promises 3 and 5 for a consumer of whom nothing is known: each deletion is
// told, and a list deletes what was pending.
func TestDeltaFIFOWithoutStore(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"add", "+a/u1@5 take", "Added a/u1@5"},
		{"update of what may be known", "~a/u1@5 take", "Updated a/u1@5"},
		{"delete", "-a/u1@5 take", "Deleted a/u1@5 exact"},
		{"add, delete", "+a/u1@5 -a/u1@6 take", "Deleted a/u1@6 exact"},
		{"add, left", "+a/u1@5 -a take", "Deleted a/u1@5"},
		{"add, other UID", "+a/u1@5 ~a/u2@7 take", "Added a/u2@7"},
		{"update, other UID", "~a/u1@5 ~a/u2@7 take", "Deleted a/u1@5,Added a/u2@7"},
		{"update, other UID, other UID", "~a/u1@5 ~a/u2@7 ~a/u3@8 take", "Deleted a/u1@5,Added a/u3@8"},
		{"delete, same UID", "-a/u1@5 +a/u1@6 take", "Deleted a/u1@5 exact,Added a/u1@6"},
		{"delete, other UID, delete", "-a/u1@5 +a/u2@6 -a/u2@7 take", "Deleted a/u1@5 exact"},
		{"pending, not in the list", "+a/u1@5 [ +b/u2@6 ]9 take", "Replaced b/u2@6 listed,Deleted a/u1@5 listed"},
		{"pending, in the list", "+a/u1@5 [ +a/u1@6 ]9 take", "Replaced a/u1@6 listed"},
		{"bad", "!a/u1@5 take", ""},
		{"update, bad with another UID", "~a/u1@5 !a/u2@6 take", "Deleted a/u1@5"},
		{"delete, bad with another UID", "-a/u1@5 !a/u2@6 take", "Deleted a/u1@5 exact"},
		{"an empty UID equals any", "~a/u1@5 ~a/@7 take", "Updated a/@7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fifoScript(t, false, tt.script); got != tt.want {
				t.Errorf("%s:\n got %q\nwant %q", tt.script, got, tt.want)
			}
		})
	}
}

// Promise 12: an event without a name is refused, and changes nothing.
func TestDeltaFIFORefusesNameless(t *testing.T) {
	queue := informer.NewDeltaFIFO(informer.Reader[*fifoObject]{})
	for _, step := range []string{"+/u1@5", "~/u1@5", "-/u1@5", "!/u1@5"} {
		var bad *informer.ObjectError
		if err := queue.Apply(fifoEvent(step)); !errors.As(err, &bad) {
			t.Errorf("Apply(%s) = %v, want an ObjectError", step, err)
		}
	}
	if n := queue.Len(); n != 0 {
		t.Errorf("Len() = %d, want 0", n)
	}
}

// Promise 7: an item of a list that is the same version as the known object is
// not held twice.
func TestDeltaFIFOKeepsKnown(t *testing.T) {
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	queue := informer.NewDeltaFIFO(store.Reader)
	known := &fifoObject{name: "a", uid: "u1", version: "5"}
	if err := store.Add(known); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"[", "+a/u1@5", "+b/u2@6"} {
		if err := queue.Apply(fifoEvent(step)); err != nil {
			t.Fatal(err)
		}
	}
	if got := informer.FIFOStaged(queue, fifoKey("a")); got != known {
		t.Errorf("the list holds %p, want the known object %p", got, known)
	}
}

// Promise 30: the memory of a burst is given back when it is taken.
func TestDeltaFIFOMemoryComesBack(t *testing.T) {
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	queue := informer.NewDeltaFIFO(store.Reader)
	for range 3 {
		for i := range 10_000 {
			if err := queue.Add(&fifoObject{name: fmt.Sprint(i), uid: fmt.Sprint(i), version: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := queue.PopAll(t.Context(), func(informer.Batch[*fifoObject]) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := informer.FIFORoom(queue); n > 5000 {
		t.Errorf("the empty queue has room for %d", n)
	}
}

// Promise 29: producers, a consumer and those who ask may meet.
func TestDeltaFIFORace(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	queue := informer.NewDeltaFIFO(store.Reader)
	var producers, all sync.WaitGroup
	for p := range 3 {
		producers.Go(func() {
			for i := range 200 {
				obj := &fifoObject{name: fmt.Sprint(p, i%10), uid: "u", version: fmt.Sprint(i)}
				if err := queue.Update(obj); err != nil || queue.Len() > 30 {
					t.Errorf("Update() = %v, Len() = %d", err, queue.Len())
				}
			}
		})
	}
	all.Go(func() {
		for queue.PopAll(ctx, func(b informer.Batch[*fifoObject]) error {
			store.Apply(b)
			return nil
		}) == nil {
			if store.Len() < 31 {
				queue.Resync()
			} else {
				queue.Close()
			}
		}
	})
	producers.Wait()
	if err := queue.Add(&fifoObject{name: "last", uid: "u", version: "1"}); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if store.Len() != 31 {
		t.Errorf("the consumer has %d objects, want 31", store.Len())
	}
}
