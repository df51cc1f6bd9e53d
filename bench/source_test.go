package bench

import (
	"context"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/bench/fixture"
)

// A script is what a source in memory does: it lists, then follows one watch,
// and if there is a second list breaks that watch off. Both sides get it in the
// form that costs them least: ours as a sequence, client-go's as a list made
// beforehand and a buffered channel.
type script[T fixture.Object] struct {
	kind    fixture.Kind[T]
	version int // of the list

	lists [2][]T
	made  [2]runtime.Object // lists as client-go wants them, see makeLists
	// events are sent by the first watch, once begin is closed.
	begin  chan struct{}
	events iter.Seq[T]
	// relist is closed to break the first watch off; the second list follows,
	// and then a watch that brings last.
	relist chan struct{}
	last   T

	// buffer is how many events client-go may be behind. The clients have none.
	buffer int

	listed, watched atomic.Int32
	relisted        time.Time // when the second list was asked for
}

func newScript[T fixture.Object](kind fixture.Kind[T], objs []T) *script[T] {
	return &script[T]{
		kind: kind, version: 10_000_000, lists: [2][]T{objs},
		buffer: 1024, begin: make(chan struct{}), events: func(func(T) bool) {}, relist: make(chan struct{}),
	}
}

// makeLists makes what a typed client would return.
func (s *script[T]) makeLists() {
	for i, objs := range s.lists {
		s.made[i] = s.kind.List(objs, metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version + i)})
	}
}

// list returns the next list, and its version.
func (s *script[T]) list() (objs []T, version string) {
	turn := s.listed.Add(1) - 1
	if turn == 1 {
		s.relisted = time.Now()
	}
	return s.lists[min(turn, 1)], strconv.Itoa(s.version + int(turn))
}

// refuse is the answer to those who ask for a streaming list.
func refuse() error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("List").GroupKind(), "", nil)
}

// watch sends what a watch brings, and returns what ended it.
func (s *script[T]) watch(ctx context.Context, send func(T) bool) error {
	if s.watched.Add(1) > 1 {
		send(s.last)
		<-ctx.Done()
		return nil
	}
	select {
	case <-s.begin:
	case <-ctx.Done():
		return nil
	}
	for obj := range s.events {
		if !send(obj) {
			return nil
		}
	}
	select {
	case <-s.relist:
		return apierrors.NewResourceExpired("the version is too old")
	case <-ctx.Done():
		return nil
	}
}

// ourSource is a script as our side reads it.
type ourSource[T fixture.Object] struct{ *script[T] }

func (s ourSource[T]) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		objs, version := s.list()
		for _, obj := range objs {
			if !yield(informer.EventOf(informer.EventAdded, obj), nil) {
				return
			}
		}
		yield(informer.Event[T]{Type: informer.EventEnd, Version: version}, nil)
	}
}

func (s ourSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		if opts.SendInitialEvents != nil {
			yield(informer.Event[T]{}, refuse())
			return
		}
		left := false
		err := s.watch(ctx, func(obj T) bool {
			left = !yield(informer.EventOf(informer.EventModified, obj), nil)
			return !left
		})
		if !left && err != nil {
			yield(informer.Event[T]{}, err)
		}
	}
}

// theirSource returns the script as client-go reads it: as a list, which is
// faster there than a stream.
func theirSource[T fixture.Object](s *script[T]) cache.ListerWatcher {
	if s.made[0] == nil {
		s.makeLists()
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			_, version := s.list()
			return s.made[min(mustInt(version)-s.version, 1)], nil
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			ctx, cancel := context.WithCancel(ctx)
			w := &theirWatch{events: make(chan watch.Event, s.buffer), cancel: cancel}
			go func() {
				defer close(w.events)
				err := s.watch(ctx, func(obj T) bool { return w.send(ctx, watch.Event{Type: watch.Modified, Object: obj}) })
				if status, ok := err.(apierrors.APIStatus); ok {
					failure := status.Status()
					w.send(ctx, watch.Event{Type: watch.Error, Object: &failure})
				}
			}()
			return w, nil
		},
	}, noStreams{})
}

// noStreams is a client that does not know streaming lists.
type noStreams struct{}

func (noStreams) IsWatchListSemanticsUnSupported() bool { return true }

type theirWatch struct {
	events chan watch.Event
	cancel context.CancelFunc
}

func (w *theirWatch) send(ctx context.Context, ev watch.Event) bool {
	select {
	case w.events <- ev:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *theirWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *theirWatch) Stop() { w.cancel() }

func mustInt(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
