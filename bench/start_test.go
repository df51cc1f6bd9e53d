package bench

import (
	"context"
	"sync"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/bench/fixture"
)

// A started informer of either side, which has synced.
type started struct {
	informer any
	// length is how many objects it has.
	length func() int
	stop   func()
}

// startOurs runs an informer with a handler for each function, and waits until
// all of them have seen the list.
func startOurs[T fixture.Object](tb testing.TB, kind fixture.Kind[T], source informer.ListerWatcher[T], indexed bool, onUpdate ...func(T)) started {
	tb.Helper()
	inf, err := informer.New(source, informer.Options{})
	must(tb, err)
	if indexed {
		_, err := informer.AddIndex(inf, byGroup, groupKey(kind))
		must(tb, err)
		_, err = informer.AddMultiIndex(inf, byLabel, kind.Labels)
		must(tb, err)
	}
	var handlers []*informer.Registration
	for _, update := range onUpdate {
		reg, err := inf.AddHandler(informer.HandlerFuncs[T]{OnUpdate: func(_, obj T) { update(obj) }}.Handle, informer.HandlerOptions{})
		must(tb, err)
		handlers = append(handlers, reg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	must(tb, inf.WaitSynced(ctx))
	for _, reg := range handlers {
		must(tb, reg.WaitSynced(ctx))
	}
	return started{inf, inf.Len, func() { cancel(); must(tb, <-done) }}
}

// theirInformer returns one of client-go over a script. The index by namespace
// is one that every informer factory adds, and ours has it always.
func theirInformer[T fixture.Object](s *script[T], indexed bool) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(theirSource(s), s.kind.New(0, 0),
		cache.SharedIndexInformerOptions{Indexers: indexersFor(s.kind, indexed)})
}

func indexersFor[T fixture.Object](kind fixture.Kind[T], indexed bool) cache.Indexers {
	if indexed {
		return indexersOf(kind)
	}
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

// startTheirs does with client-go what startOurs does.
func startTheirs[T fixture.Object](tb testing.TB, _ fixture.Kind[T], inf cache.SharedIndexInformer, onUpdate ...func(T)) started {
	tb.Helper()
	var handlers []cache.ResourceEventHandlerRegistration
	for _, update := range onUpdate {
		reg, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) { update(obj.(T)) }})
		must(tb, err)
		handlers = append(handlers, reg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { inf.RunWithContext(ctx) })
	<-inf.HasSyncedChecker().Done()
	for _, reg := range handlers {
		<-reg.HasSyncedChecker().Done()
	}
	return started{inf, func() int { return len(inf.GetStore().ListKeys()) }, func() { cancel(); done.Wait() }}
}
