package informer_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-99a027e8/informer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tapeSource plays the first of its tapes to each list and to each watch, as
// long as there are any; then watches are silent. Streaming lists are refused.
type tapeSource[T informer.Object] struct {
	lists, watches [][]informer.Event[T]
}

func (s *tapeSource[T]) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		tape := s.lists[0]
		if len(s.lists) > 1 {
			s.lists = s.lists[1:]
		}
		for _, ev := range tape {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func (s *tapeSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		if opts.SendInitialEvents != nil {
			yield(informer.Event[T]{}, apierrors.NewBadRequest("plain lists only"))
			return
		}
		if len(s.watches) > 0 {
			tape := s.watches[0]
			s.watches = s.watches[1:]
			for _, ev := range tape {
				if !yield(ev, nil) {
					return
				}
			}
			if len(s.watches) > 0 {
				yield(informer.Event[T]{}, apierrors.NewResourceExpired("next tape"))
				return
			}
		}
		<-ctx.Done()
		yield(informer.Event[T]{}, ctx.Err())
	}
}

// T may be a value type, and cluster-scoped, in every part of an informer.
func TestInformerOfValues(t *testing.T) {
	added, modified, deleted := informer.EventAdded, informer.EventModified, informer.EventDeleted
	of := func(t informer.EventType, name, version string) informer.Event[reflObj] {
		return informer.EventOf(t, reflObj{name, version})
	}
	end := func(version string) informer.Event[reflObj] {
		return informer.Event[reflObj]{Type: informer.EventEnd, Version: version}
	}
	source := &tapeSource[reflObj]{
		lists: [][]informer.Event[reflObj]{
			{of(added, "a", "1"), of(added, "b", "2"), of(added, "c", "3"), end("4")},
			{of(added, "a", "1"), of(added, "c", "9"), end("9")},
		},
		watches: [][]informer.Event[reflObj]{
			{of(modified, "b", "5"), of(deleted, "c", "6"), of(added, "d", "7"), {Type: informer.EventDeleted, Key: informer.Key{Name: "d"}, Version: "8"}},
			{},
		},
	}
	synctest.Test(t, func(t *testing.T) {
		inf, err := informer.New[reflObj](source, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		byVersion, err := informer.AddIndex(inf, "version", func(o reflObj) (string, bool) { return o.version, true })
		if err != nil {
			t.Fatal(err)
		}
		holds, log := map[informer.Key]reflObj{}, []string{}
		handler := informer.HandlerFuncs[reflObj]{
			OnAdd:    func(o reflObj, initial bool) { holds[informer.KeyOf(o)] = o },
			OnUpdate: func(old, o reflObj) { holds[informer.KeyOf(o)] = o },
			OnDelete: func(o reflObj, exact bool) {
				delete(holds, informer.KeyOf(o))
				log = append(log, fmt.Sprint(o, exact))
			},
		}
		if _, err := inf.AddHandler(handler.Handle, informer.HandlerOptions{Resync: time.Hour}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- inf.Run(ctx) }()
		<-time.After(3 * time.Hour)
		if err := inf.WaitForResourceVersion(ctx, "9"); err != nil {
			t.Fatal(err)
		}
		c, ok := inf.Get(informer.Key{Name: "c"})
		if n := byVersion.Len("9"); !ok || c != (reflObj{"c", "9"}) || inf.Len() != 2 || n != 1 {
			t.Errorf("Get(c) = %v, %v; Len() = %d; %d at version 9", c, ok, inf.Len(), n)
		}
		for range inf.In("ns") {
			t.Error("there is an object in a namespace")
		}
		if len(holds) != 2 || holds[informer.Key{Name: "c"}] != c {
			t.Errorf("the handler holds %v", holds)
		}
		if got := strings.Join(log, " "); !strings.Contains(got, "{b 5} false") && !strings.Contains(got, "{b 2} false") {
			t.Errorf("deletions were %s, want one of b, inexact", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Promise 12: an event that brings a nil pointer, or another object than the one
// that it names, is one bad object; a deletion just loses its final state.
func TestInformerOfMisnamedObjects(t *testing.T) {
	obj := func(name, uid, version string) *fifoObject {
		return &fifoObject{name: name, uid: uid, version: version}
	}
	ev := func(t informer.EventType, name, uid, version string, o *fifoObject) informer.Event[*fifoObject] {
		return informer.Event[*fifoObject]{
			Type: t, Exact: t == informer.EventDeleted, Key: fifoKey(name), UID: obj("", uid, "").GetUID(), Version: version, Object: o,
		}
	}
	source := &tapeSource[*fifoObject]{
		lists: [][]informer.Event[*fifoObject]{{
			ev(informer.EventAdded, "a", "u1", "1", obj("a", "u1", "1")),
			ev(informer.EventAdded, "b", "u2", "2", nil),
			ev(informer.EventAdded, "c", "u3", "3", obj("x", "u3", "3")),
			ev(informer.EventAdded, "d", "u4", "4", obj("d", "u4", "4")),
			ev(informer.EventAdded, "e", "", "4", obj("e", "u5", "4")),
			{Type: informer.EventEnd, Version: "5"},
		}},
		watches: [][]informer.Event[*fifoObject]{{
			ev(informer.EventModified, "a", "u1", "6", nil),
			ev(informer.EventModified, "a", "u1", "7", obj("a", "u9", "7")),
			ev(informer.EventDeleted, "d", "u4", "8", nil),
		}},
	}
	synctest.Test(t, func(t *testing.T) {
		log := &told{}
		inf, err := informer.New(source, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &running{Informer: inf}
		r.handler(t, log.handle, informer.HandlerOptions{})
		start(t, inf)
		<-time.After(time.Minute)
		var bad []string
		for _, e := range inf.Status().Bad {
			bad = append(bad, e.Key.Name)
		}
		if got := strings.Join(bad, " "); got != "a b c" {
			t.Errorf("bad objects are %s, want a b c", got)
		}
		if _, ok := inf.Get(fifoKey("d")); ok || inf.Len() != 2 {
			t.Errorf("the cache has %v, want a and e", inf.List())
		}
		if a, ok := inf.Get(fifoKey("a")); !ok || a.version != "1" {
			t.Errorf("a is %v, want its last good state", a)
		}
		if got := log.take(); strings.Contains(got, "exact") {
			t.Errorf("the handler was told\n%s\nwant no exact deletion", got)
		}
	})
}
