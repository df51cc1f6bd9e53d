package informer_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-99a027e8/informer"
	"k8s.io/apimachinery/pkg/types"
)

// tiny is an object of 64 bytes or so.
type tiny struct{ name, version string }

func (o *tiny) GetNamespace() string       { return "" }
func (o *tiny) GetName() string            { return o.name }
func (o *tiny) GetUID() types.UID          { return types.UID(o.name) }
func (o *tiny) GetResourceVersion() string { return o.version }

// tinies returns n objects that differ in their names.
func tinies(n int) []*tiny {
	objs := make([]*tiny, n)
	for i := range objs {
		objs[i] = &tiny{name: fmt.Sprint("object-", i), version: "1"}
	}
	return objs
}

// Promise 30: after a burst, each part of the pipeline holds at most twice the
// memory of a fresh one with the same content.
func TestMemoryAfterBursts(t *testing.T) {
	for _, rest := range []int{1000, 500} {
		t.Run(fmt.Sprint(rest), func(t *testing.T) { memoryAfterBursts(t, rest) })
	}
}

func memoryAfterBursts(t *testing.T, rest int) {
	const burst = 20_000
	objs := tinies(burst)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	event := func(typ informer.EventType, obj *tiny) informer.Event[*tiny] { return informer.EventOf(typ, obj) }
	newQueue := func() *informer.DeltaFIFO[*tiny] {
		return informer.NewDeltaFIFO(informer.NewIndexer[*tiny](informer.IndexerOptions{}).Reader)
	}
	list := func(f *informer.DeltaFIFO[*tiny], n int) {
		must(f.Apply(informer.Event[*tiny]{Type: informer.EventBegin}))
		for _, obj := range objs[:n] {
			must(f.Apply(event(informer.EventAdded, obj)))
		}
	}
	end := informer.Event[*tiny]{Type: informer.EventEnd, Version: "5"}
	filledQueue := func(n int) any {
		f := newQueue()
		for _, obj := range objs[:n] {
			must(f.Add(obj))
		}
		return f
	}
	tests := []struct {
		name   string
		build  func(n int) any // with the content of so many objects
		shrink func(x any)     // from burst to rest
	}{{
		name:  "queue, by Pop",
		build: filledQueue,
		shrink: func(x any) {
			for range burst - rest {
				must(x.(*informer.DeltaFIFO[*tiny]).Pop(t.Context(), func(informer.Deltas[*tiny]) error { return nil }))
			}
		},
	}, {
		name:  "queue, by deletions",
		build: filledQueue,
		shrink: func(x any) {
			for _, obj := range objs[rest:] {
				must(x.(*informer.DeltaFIFO[*tiny]).Delete(obj))
			}
		},
	}, {
		name:  "queue, by PopAll",
		build: filledQueue,
		shrink: func(x any) {
			f := x.(*informer.DeltaFIFO[*tiny])
			must(f.PopAll(t.Context(), func(informer.Batch[*tiny]) error { return nil }))
			for _, obj := range objs[:rest] {
				must(f.Add(obj))
			}
		},
	}, {
		name: "list, by a smaller one",
		build: func(n int) any {
			f := newQueue()
			list(f, n)
			must(f.Apply(end))
			return f
		},
		shrink: func(x any) {
			list(x.(*informer.DeltaFIFO[*tiny]), rest)
			must(x.(*informer.DeltaFIFO[*tiny]).Apply(end))
		},
	}, {
		name: "list, by deletions inside",
		build: func(n int) any {
			f := newQueue()
			list(f, n)
			return f
		},
		shrink: func(x any) {
			for _, obj := range objs[rest:] {
				must(x.(*informer.DeltaFIFO[*tiny]).Apply(event(informer.EventDeleted, obj)))
			}
		},
	}, {
		name: "backlog of a handler",
		build: func(n int) any {
			b := &informer.TestBacklog[*tiny]{}
			for _, obj := range objs[:n] {
				b.Record(informer.Change[*tiny]{Type: informer.Added, Key: informer.KeyOf(obj), New: obj})
			}
			return b
		},
		shrink: func(x any) {
			for _, obj := range objs[rest:] {
				x.(*informer.TestBacklog[*tiny]).Record(informer.Change[*tiny]{
					Type: informer.Deleted, Key: informer.KeyOf(obj), Old: obj, New: obj})
			}
		},
	}, {
		name: "table of bad objects, by repairs",
		build: func(n int) any {
			b := &informer.TestBadTable{}
			for _, obj := range objs[:n] {
				b.Bad(informer.KeyOf(obj))
			}
			return b
		},
		shrink: func(x any) {
			for _, obj := range objs[rest:] {
				x.(*informer.TestBadTable).Repair(informer.KeyOf(obj))
			}
		},
	}, {
		name: "table of bad objects, by a list",
		build: func(n int) any {
			b := &informer.TestBadTable{}
			for _, obj := range objs[:n] {
				b.Bad(informer.KeyOf(obj))
			}
			return b
		},
		shrink: func(x any) {
			x.(*informer.TestBadTable).List(func() {
				for _, obj := range objs[:rest] {
					x.(*informer.TestBadTable).Bad(informer.KeyOf(obj))
				}
			})
		},
	}, {
		name: "handlers",
		build: func(n int) any {
			inf, err := informer.New(newPushSource[*tiny](), informer.Options{})
			must(err)
			regs := &handlerSet{inf: inf}
			for range n / 20 {
				reg, err := inf.AddHandler(func(informer.Change[*tiny]) {}, informer.HandlerOptions{})
				must(err)
				regs.all = append(regs.all, reg)
			}
			return regs
		},
		shrink: func(x any) {
			regs := x.(*handlerSet)
			for _, reg := range regs.all[rest/20:] {
				reg.Remove()
			}
			regs.all = append([]*informer.Registration(nil), regs.all[:rest/20]...)
		},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fresh, want := heldBy(func() any { return tt.build(rest) })
			x, got := heldBy(func() any {
				x := tt.build(burst)
				tt.shrink(x)
				return x
			})
			if got > 2*want {
				t.Errorf("after a burst it holds %d bytes, a fresh one %d", got, want)
			}
			runtime.KeepAlive(fresh)
			runtime.KeepAlive(x)
		})
	}
	runtime.KeepAlive(objs)
}

// handlerSet is an informer with handlers.
type handlerSet struct {
	inf *informer.Informer[*tiny]
	all []*informer.Registration
}

// Promise 30: what has become empty holds next to nothing, whatever was in it.
func TestMemoryOfTheEmpty(t *testing.T) {
	objs := tinies(20_000)
	store := informer.NewIndexer[*tiny](informer.IndexerOptions{})
	for i := range 5 {
		if _, err := informer.AddMultiIndex(store, fmt.Sprint("index ", i), func(o *tiny, file func(string)) {
			file(o.name)
			file(o.name[:len(o.name)-i%3])
		}); err != nil {
			t.Fatal(err)
		}
	}
	queue := informer.NewDeltaFIFO(store.Reader)
	_, held := heldBy(func() error {
		apply := func(b informer.Batch[*tiny]) error {
			store.Apply(b)
			return nil
		}
		var errs []error
		for _, left := range [][]*tiny{objs, objs[:10_000], nil} {
			errs = append(errs, queue.Replace(left, "9"), queue.PopAll(t.Context(), apply))
		}
		return errors.Join(errs...)
	})
	if held > 16<<10 || store.Len() > 0 {
		t.Errorf("with %d objects, queue, store and five indexes hold %d bytes", store.Len(), held)
	}
	runtime.KeepAlive(objs)
	runtime.KeepAlive(queue)
}

// Promises 7 and 15: names that come and go inside a streaming list leave
// nothing behind (k8s#49705).
func TestChurnInsideList(t *testing.T) {
	store := informer.NewIndexer[*bulky](informer.IndexerOptions{})
	queue, all := informer.NewDeltaFIFO(store.Reader), &census[bulky]{}
	apply := func(ev informer.Event[*bulky]) {
		t.Helper()
		if err := queue.Apply(ev); err != nil {
			t.Fatal(err)
		}
	}
	apply(informer.Event[*bulky]{Type: informer.EventBegin})
	for i := range 10_000 {
		name := fmt.Sprint(i)
		apply(informer.EventOf(informer.EventModified, all.enter(newBulky(name, 5))))
		apply(informer.EventOf(informer.EventDeleted, all.enter(newBulky(name, 6))))
	}
	if n := all.alive(); n > 0 {
		t.Errorf("%d objects are alive of which nobody will be told", n)
	}
	runtime.KeepAlive(queue)
}

// Promise 7: what was taken is not kept in memory that waits for the next batch.
func TestDeltaFIFOLetsGo(t *testing.T) {
	queue, all := informer.NewDeltaFIFO(informer.Reader[*bulky]{}), &census[bulky]{}
	for i := range 1000 {
		if err := queue.Add(all.enter(newBulky(fmt.Sprint(i), 5))); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue.PopAll(t.Context(), func(informer.Batch[*bulky]) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n := all.alive(); n > 0 {
		t.Errorf("%d objects are alive after they were taken", n)
	}
	runtime.KeepAlive(queue)
}

// Promise 30: a watch that has read one big object holds no buffer of that size
// afterwards, though it goes on for minutes.
func TestMemoryAfterBigObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newRawServer(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}`)
		source := informer.FromREST[corev1.ConfigMap](restClient(t, server), corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{})
		inf := startOf(t, source, informer.Options{})
		t.Cleanup(func() { server.send.Close() })
		send := func(typ, version, value string) {
			fmt.Fprintf(server.send, `{"type":%q,"object":{"metadata":{"name":"a","uid":"u","resourceVersion":%q},"data":{"k":"%s"}}}`+"\n", typ, version, value)
			synctest.Wait()
		}
		synctest.Wait()
		send("ADDED", "11", "small")
		before := heap()
		send("MODIFIED", "12", strings.Repeat("big", 5<<20))
		send("MODIFIED", "13", "small again")
		send("MODIFIED", "14", "small as ever")
		if held := heap() - before; held > 1<<20 || inf.Version() != "14" {
			t.Errorf("at version %s, after an object of 15 MiB, %d bytes are held", inf.Version(), held)
		}
	})
}
