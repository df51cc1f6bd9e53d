package informertest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// memory is a source that is no Kubernetes: what an author of a source would
// write, as short as can be. It keeps every state that there ever was.
type memory struct {
	mu      sync.Mutex // guards the fields below
	states  []memState // by version
	floor   int        // older states are forgotten
	changed chan struct{}
}

// memState is the objects by name, and what led to them.
type memState struct {
	objects map[string]memObject
	name    string
}

type memObject struct {
	*informertest.Object
	bad bool
}

func newMemory() *memory {
	return &memory{states: make([]memState, 2), floor: 1, changed: make(chan struct{})}
}

// put makes or changes an object; without a value it deletes it.
func (m *memory) put(name, value string, bad bool) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	version := strconv.Itoa(len(m.states))
	objects := maps.Clone(m.states[len(m.states)-1].objects)
	if objects == nil {
		objects = map[string]memObject{}
	}
	old, known := objects[name]
	switch {
	case value == "" && !bad:
		delete(objects, name)
	default:
		obj := &informertest.Object{Name: name, UID: types.UID("uid-" + version), Version: version, Value: value}
		if known {
			obj.UID = old.UID
		}
		objects[name] = memObject{obj, bad}
	}
	m.states = append(m.states, memState{objects, name})
	close(m.changed)
	m.changed = make(chan struct{})
	return version, nil
}

func (m *memory) compact() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.floor = len(m.states) - 1
}

// memQuery is what list options mean.
type memQuery struct {
	version  int
	exact    bool
	after    string // name
	limit    int
	selected func(memObject) bool
}

func (m *memory) query(opts metav1.ListOptions) (memQuery, error) {
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return memQuery{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return memQuery{}, apierrors.NewBadRequest(err.Error())
	}
	q := memQuery{limit: int(opts.Limit), exact: opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact}
	q.selected = func(o memObject) bool {
		return o.Object != nil && byLabel.Matches(labels.Set{"value": o.Value}) && byField.Matches(fields.Set{"metadata.name": o.Name})
	}
	version := opts.ResourceVersion
	if opts.Continue != "" {
		version, q.after, _ = strings.Cut(opts.Continue, "/")
		q.exact = true
	}
	if version == "" {
		return q, nil
	}
	if q.version, err = strconv.Atoi(version); err != nil {
		return q, apierrors.NewBadRequest(err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if current := len(m.states) - 1; q.version > current && (opts.ResourceVersionMatch != "" || opts.Continue != "") {
		tooLarge := apierrors.NewTimeoutError(fmt.Sprintf("too large: %d, current: %d", q.version, current), 1)
		tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return q, tooLarge
	}
	if q.version > 0 && q.version < m.floor && (q.exact || opts.ResourceVersionMatch == "") {
		return q, apierrors.NewResourceExpired("too old")
	}
	return q, nil
}

// List yields a page.
func (m *memory) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[*informertest.Object], error] {
	return func(yield func(informer.Event[*informertest.Object], error) bool) {
		q, err := m.query(opts)
		if err = errors.Join(ctx.Err(), err); err != nil {
			yield(memEvent{}, err)
			return
		}
		m.mu.Lock()
		version := len(m.states) - 1
		if q.exact {
			version = q.version
		}
		objects := m.states[version].objects
		m.mu.Unlock()
		end := memEvent{Type: informer.EventEnd, Version: strconv.Itoa(version)}
		n := 0
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if name <= q.after || !q.selected(objects[name]) {
				continue
			}
			if q.limit > 0 && n == q.limit {
				end.Continue = end.Version + "/" + q.after
				break
			}
			if ctx.Err() != nil {
				yield(memEvent{}, ctx.Err())
				return
			}
			if !yield(objects[name].event(informer.EventAdded)) {
				return
			}
			n, q.after = n+1, name
		}
		yield(end, nil)
	}
}

type memEvent = informer.Event[*informertest.Object]

// event returns the event of a type about o.
func (o memObject) event(t informer.EventType) (memEvent, error) {
	ev := informer.EventOf(t, o.Object)
	if !o.bad {
		return ev, nil
	}
	ev.Object, ev.Exact = nil, false
	if t == informer.EventDeleted {
		return ev, nil
	}
	ev.Type = informer.EventBad
	return ev, &informer.ObjectError{Key: ev.Key, Err: errors.New("spoilt")}
}

// Watch yields what happens. There are no streaming lists.
func (m *memory) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[*informertest.Object], error] {
	return func(yield func(informer.Event[*informertest.Object], error) bool) {
		q, err := m.query(opts)
		if opts.SendInitialEvents != nil {
			err = apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		}
		if err = errors.Join(ctx.Err(), err); err != nil {
			yield(memEvent{}, err)
			return
		}
		if q.version == 0 {
			for ev, err := range m.List(ctx, metav1.ListOptions{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector}) {
				if q.version, _ = strconv.Atoi(ev.Version); ev.Type != informer.EventEnd && !yield(ev, err) {
					return
				}
			}
		}
		var over, mark <-chan time.Time
		if opts.TimeoutSeconds != nil {
			over = time.After(time.Duration(*opts.TimeoutSeconds) * time.Second)
			if opts.AllowWatchBookmarks {
				mark = time.After(time.Duration(*opts.TimeoutSeconds-2) * time.Second)
			}
		}
		for {
			m.mu.Lock()
			states, changed := m.states, m.changed
			m.mu.Unlock()
			for ; q.version < len(states)-1; q.version++ {
				if ctx.Err() != nil {
					break
				}
				ev, err := memDiff(q, states[q.version], states[q.version+1])
				if ev.Type != 0 && !yield(ev, err) {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(memEvent{}, ctx.Err())
				return
			case <-over:
				return
			case <-mark:
				if !yield(memEvent{Type: informer.EventBookmark, Version: strconv.Itoa(q.version)}, nil) {
					return
				}
			case <-changed:
			}
		}
	}
}

// memDiff returns what happened to the selected objects, of type zero if
// nothing did.
func memDiff(q memQuery, old, now memState) (memEvent, error) {
	before, after := old.objects[now.name], now.objects[now.name]
	switch was, is := q.selected(before), q.selected(after); {
	case is && was:
		return after.event(informer.EventModified)
	case is:
		return after.event(informer.EventAdded)
	case was:
		last := *before.Object
		last.Version = strconv.Itoa(q.version + 1)
		return memObject{&last, before.bad}.event(informer.EventDeleted)
	}
	return memEvent{}, nil
}

// rig returns a rig for the source, which is m or made of it.
func (m *memory) rig(source informer.ListerWatcher[*informertest.Object]) informertest.Rig[*informertest.Object] {
	put := func(_ context.Context, name, value string) (string, error) { return m.put(name, value, false) }
	return informertest.Rig[*informertest.Object]{
		Source: source,
		Create: put,
		Update: put,
		Delete: func(_ context.Context, name string) error {
			_, err := m.put(name, "", false)
			return err
		},
		Value: func(o *informertest.Object) string { return o.Value },
		Compact: func(context.Context) error {
			m.compact()
			return nil
		},
		Select: func(value string) string { return "value=" + value },
		Spoil:  func(_ context.Context, name string) (string, error) { return m.put(name, "", true) },
	}
}
