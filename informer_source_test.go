package informer_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/seed-99a027e8/informer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// liveSource is a source that a test writes to while an informer reads it. It
// answers streaming lists with a refusal, so that every list is a plain one.
type liveSource struct {
	mu      sync.Mutex // guards the fields below
	server  *fifoServer
	history []informer.Event[*fifoObject]
	expired int           // watches from below this version are answered 410
	moved   chan struct{} // closed with the next change
	lists   int
	failure error // of every request, if not nil
}

func newLiveSource() *liveSource {
	return &liveSource{server: newFIFOServer(), moved: make(chan struct{})}
}

// change changes the server, and tells those who watch.
func (s *liveSource) change(f func(*fifoServer) []informer.Event[*fifoObject]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = append(s.history, f(s.server)...)
	s.tellLocked()
}

// write creates or updates the object of that name, and returns its version.
func (s *liveSource) write(name string) (version string) {
	s.change(func(srv *fifoServer) []informer.Event[*fifoObject] {
		ev := srv.write(name)
		version = ev.Version
		return []informer.Event[*fifoObject]{ev}
	})
	return version
}

func (s *liveSource) delete(name string) {
	s.change(func(srv *fifoServer) []informer.Event[*fifoObject] {
		if ev, ok := srv.delete(name); ok {
			return []informer.Event[*fifoObject]{ev}
		}
		return nil
	})
}

// forget answers 410 to all who do not know the present version, so that they
// list; what f does before is not told in any other way.
func (s *liveSource) forget(f func(*fifoServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.server)
	s.history = nil
	s.server.version++
	s.expired = s.server.version
	s.tellLocked()
}

// fail makes every request fail, until it is called with nil.
func (s *liveSource) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	s.tellLocked()
}

func (s *liveSource) tellLocked() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// state returns the objects that the server has.
func (s *liveSource) state() map[string]*fifoObject {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.server.objects)
}

func (s *liveSource) List(_ context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[*fifoObject], error] {
	return func(yield func(informer.Event[*fifoObject], error) bool) {
		s.mu.Lock()
		if opts.Limit != 1 { // else it is only a question
			s.lists++
		}
		objects, version, failure := maps.Clone(s.server.objects), s.server.version, s.failure
		s.mu.Unlock()
		if failure != nil {
			yield(informer.Event[*fifoObject]{}, failure)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if !yield(informer.EventOf(informer.EventAdded, objects[name].copy()), nil) {
				return
			}
		}
		yield(informer.Event[*fifoObject]{Type: informer.EventEnd, Version: strconv.Itoa(version)}, nil)
	}
}

func (s *liveSource) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[*fifoObject], error] {
	return func(yield func(informer.Event[*fifoObject], error) bool) {
		if opts.SendInitialEvents != nil {
			yield(informer.Event[*fifoObject]{}, apierrors.NewBadRequest("no streaming lists here"))
			return
		}
		at, err := strconv.Atoi(opts.ResourceVersion)
		if err != nil {
			yield(informer.Event[*fifoObject]{}, apierrors.NewBadRequest(err.Error()))
			return
		}
		for {
			events, moved, err := s.after(at)
			if err != nil {
				yield(informer.Event[*fifoObject]{}, err)
				return
			}
			for _, ev := range events {
				at, _ = strconv.Atoi(ev.Version)
				if !yield(ev, nil) {
					return
				}
			}
			select {
			case <-moved:
			case <-ctx.Done():
				yield(informer.Event[*fifoObject]{}, ctx.Err())
				return
			}
		}
	}
}

// after returns the events after a version, and a channel that tells of more.
func (s *liveSource) after(at int) (events []informer.Event[*fifoObject], moved <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, nil, s.failure
	}
	if at < s.expired {
		return nil, nil, apierrors.NewResourceExpired("too old resource version")
	}
	for _, ev := range s.history {
		if v, _ := strconv.Atoi(ev.Version); v > at {
			if ev.Object != nil {
				ev.Object = ev.Object.copy()
			}
			events = append(events, ev)
		}
	}
	return events, s.moved, nil
}
