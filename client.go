package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"reflect"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// FromClient returns a source that asks a client with the usual List and Watch
// pair: one of a clientset, a dynamic client with T *unstructured.Unstructured,
// a metadata client with T *metav1.PartialObjectMetadata, or client-go's fake
// of one of them. L, the client's list type, is inferred:
//
//	informer.FromClient[*corev1.Pod](clientset.CoreV1().Pods(""))
//
// Such a client decodes a page, or an event, before the source sees it: a page
// is in memory as a whole, whatever its length, and one object that cannot be
// decoded is an error of the whole request. [FromREST] has neither weakness.
// Each item of a page is moved to memory of its own, so that no object keeps its
// page alive: a client must return a new list each time.
//
// A client of another kind than T compiles. A list of another kind, or a watch
// whose objects are of another kind before any was right, is a *[WrongTypeError].
// Later on, one object of a wrong type is one bad object. A nil client is an
// error from the constructor that the source is given to.
//
// The fakes, which are known by their package name "fake" and by apimachinery's
// fake watchers, do not understand streaming lists, and panic if a watch from
// nowhere meets more than 100 objects. Asked for SendInitialEvents, the source
// opens a watch for what is new, lists through the same client, yields the
// items and EventEnd, and goes on with the watch: nothing is lost between the
// two. As the versions of fakes are made up by tests, the events of such a
// stream have none. Fakes are also the only clients whose lists may lack one.
//
// A watcher that does not close its channel within 50 ms after Stop costs a
// goroutine until it does.
func FromClient[T Object, L runtime.Object](client interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}) ListerWatcher[T] {
	if isNil(client) {
		return brokenSource[T]{fmt.Errorf("informer: the client for %s is nil (%T)", typeName[T](), client)}
	}
	list := func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, opts)
	}
	s := &clientSource[T]{list: list, watch: client.Watch}
	s.fake.Store(path.Base(reflect.Indirect(reflect.ValueOf(client)).Type().PkgPath()) == "fake")
	return s
}

// onlyNew is a resource version that makes the fakes of client-go send what
// happens from now on, and nothing that is there already.
const onlyNew = "9223372036854775807"

// releaseGrace is how long the end of a sequence waits for a stopped watcher
// to close its channel.
const releaseGrace = 50 * time.Millisecond

// clientSource is the source of FromClient, with the type of the list erased:
// it is found again by reflection, in eachItem.
type clientSource[T Object] struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)

	right atomic.Bool // an object of type T has come
	fake  atomic.Bool // the client is a fake
}

// List yields a page.
func (s *clientSource[T]) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		s.page(ctx, opts, yield)
	}
}

// Watch yields what the client's watcher sends.
func (s *clientSource[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		request, cancel := context.WithCancel(ctx)
		defer cancel()

		initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
		plain := metav1.ListOptions{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector}
		opts.Watch = true
		if initial && s.fake.Load() {
			opts.ResourceVersion = onlyNew
		}
		w, err := s.watch(request, opts)
		if err == nil && isNil(w) {
			err = fmt.Errorf("informer: the client for %s returned no watcher", typeName[T]())
		}
		if err != nil {
			yield(Event[T]{}, ended(ctx, withoutSecrets(err)))
			return
		}
		results := w.ResultChan()
		defer release(w, results)

		s.noteFake(w)
		if initial && s.fake.Load() {
			initial = false
			yield = withoutVersions(yield)
			if !s.page(ctx, plain, yield) {
				return
			}
		}
		s.follow(ctx, results, initial, yield)
	}
}

// withoutVersions returns a yield that is not told of versions.
func withoutVersions[T Object](yield func(Event[T], error) bool) func(Event[T], error) bool {
	return func(ev Event[T], err error) bool {
		ev.Version = ""
		return yield(ev, err)
	}
}

// noteFake remembers that the client is a fake, if w says so.
func (s *clientSource[T]) noteFake(w watch.Interface) {
	switch w.(type) {
	case *watch.FakeWatcher, *watch.RaceFreeFakeWatcher:
		s.fake.Store(true)
	}
}

// release stops w and drains its channel, so that no goroutine of the client
// stays behind, blocked in a send.
func release(w watch.Interface, results <-chan watch.Event) {
	w.Stop()
	drained := make(chan struct{})
	go func() { // ends when w closes the channel
		defer close(drained)
		for range results { // what comes after Stop is nobody's
		}
	}()
	select {
	case <-drained:
	case <-time.After(releaseGrace):
	}
}

// page yields one page, and reports whether the sequence goes on after it.
func (s *clientSource[T]) page(ctx context.Context, opts metav1.ListOptions, yield func(Event[T], error) bool) bool {
	fail := func(err error) bool {
		yield(Event[T]{}, ended(ctx, withoutSecrets(err)))
		return false
	}
	list, err := s.list(ctx, opts)
	if err != nil {
		return fail(err)
	}
	if isNil(list) {
		return fail(fmt.Errorf("informer: the client for %s returned no list", typeName[T]()))
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return fail(fmt.Errorf("informer: list of %s: %w", typeName[T](), err))
	}
	version, next := about.GetResourceVersion(), about.GetContinue()
	if version == "" && !s.fake.Load() {
		return fail(errNoVersion)
	}
	more := true
	err = eachItem(list, func(item any) bool {
		if ctx.Err() != nil {
			more = fail(ctx.Err())
		} else {
			more = yield(s.convert(EventAdded, item))
		}
		return more
	}, typeName[T](), reflect.TypeFor[T]())
	if err != nil {
		return fail(err)
	}
	return more && yield(Event[T]{Type: EventEnd, Version: version, Continue: next}, nil)
}

// follow yields what comes from a watcher's channel. While initial is set, the
// bookmark that ends the initial state is awaited.
func (s *clientSource[T]) follow(
	ctx context.Context, results <-chan watch.Event, initial bool, yield func(Event[T], error) bool,
) {
	for {
		var result watch.Event
		var open bool
		select {
		case <-ctx.Done():
		case result, open = <-results:
		}
		if err := ctx.Err(); err != nil {
			yield(Event[T]{}, err)
			return
		}
		if !open {
			return
		}
		ev, err := s.event(result, initial)
		if ev.Type == 0 && err == nil {
			continue
		}
		if !yield(ev, err) || ev.Type == 0 {
			return
		}
		initial = initial && ev.Type != EventEnd
	}
}

// event converts what a watcher sent. An event of type zero ends the sequence
// if there is an error, and is to be passed over if there is none.
func (s *clientSource[T]) event(result watch.Event, initial bool) (Event[T], error) {
	switch result.Type {
	case watch.Added:
		return s.watched(EventAdded, result.Object)
	case watch.Modified:
		return s.watched(EventModified, result.Object)
	case watch.Deleted:
		return s.watched(EventDeleted, result.Object)
	case watch.Bookmark:
		about, err := meta.Accessor(result.Object)
		if err != nil {
			return Event[T]{}, fmt.Errorf("informer: bookmark: %w", err)
		}
		return bookmark[T](about.GetResourceVersion(), about.GetAnnotations(), initial)
	case watch.Error:
		if isNil(result.Object) {
			return Event[T]{}, errors.New("informer: watch: an error event without a status")
		}
		return Event[T]{}, withoutSecrets(apierrors.FromObject(result.Object))
	}
	return Event[T]{}, fmt.Errorf("informer: watch: unknown event type %q", result.Type)
}

// watched converts an object of a watch.
func (s *clientSource[T]) watched(t EventType, obj runtime.Object) (Event[T], error) {
	if status, ok := obj.(*metav1.Status); ok {
		return Event[T]{}, withoutSecrets(apierrors.FromObject(status))
	}
	ev, err := s.convert(t, obj)
	if ev.Type == EventBad && !s.right.Load() && !isNil(obj) {
		if _, ok := obj.(T); !ok {
			return Event[T]{}, &WrongTypeError{Want: typeName[T](), Got: fmt.Sprintf("%T", obj)}
		}
	}
	if t == EventDeleted && ev.Type == EventBad && ev.Key.Name != "" {
		return Event[T]{Type: EventDeleted, Key: ev.Key, UID: ev.UID, Version: ev.Version}, nil
	}
	return ev, err
}

// convert returns the event about item. This is where an untyped client ends
// and T begins: an item of another type is a bad object.
func (s *clientSource[T]) convert(t EventType, item any) (Event[T], error) {
	if isNil(item) {
		return badEvent(Event[T]{}, errNoName)
	}
	if obj, ok := item.(T); ok {
		s.right.Store(true)
		return eventFrom(t, obj)
	}
	var ev Event[T]
	if about, err := meta.Accessor(item); err == nil {
		ev.Key = Key{Namespace: about.GetNamespace(), Name: about.GetName()}
		ev.UID, ev.Version = about.GetUID(), about.GetResourceVersion()
	}
	return badEvent(ev, fmt.Errorf("the object is a %T, not a %s", item, typeName[T]()))
}

// eachItem calls fn for the items of list until it returns false. An item of
// struct type is moved to memory of its own, and its place in the list is
// cleared: an object that is kept then keeps no list alive, and the list
// shrinks as its items are taken. It returns a *WrongTypeError if no item of
// such a list can be a want.
//
// This is the one place where a list is walked by reflection: a list type does
// not say in Go's type system what its items are.
func eachItem(list runtime.Object, fn func(item any) bool, name string, want reflect.Type) error {
	value := reflect.Indirect(reflect.ValueOf(list))
	var items reflect.Value
	if value.Kind() == reflect.Struct {
		items = value.FieldByName("Items")
	}
	if !items.IsValid() || items.Kind() != reflect.Slice {
		return &WrongTypeError{Want: "a list of " + name, Got: fmt.Sprintf("%T", list)}
	}
	kind := items.Type().Elem()
	byAddress := kind.Kind() == reflect.Struct && !kind.AssignableTo(want)
	if byAddress {
		kind = reflect.PointerTo(kind)
	}
	if kind.Kind() != reflect.Interface && !kind.AssignableTo(want) {
		return &WrongTypeError{Want: name, Got: fmt.Sprintf("%s in a %T", kind, list)}
	}
	for i := range items.Len() {
		item := items.Index(i)
		out := item
		if byAddress {
			out = reflect.New(item.Type())
			out.Elem().Set(item)
		}
		obj := out.Interface()
		item.SetZero()
		if !fn(obj) {
			break
		}
	}
	return nil
}
