package informer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-99a027e8/informer"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// fifoObject is what the tests of the queue and of the informer store.
type fifoObject struct {
	name, uid, version string
}

func (o *fifoObject) GetNamespace() string       { return "ns" }
func (o *fifoObject) GetName() string            { return o.name }
func (o *fifoObject) GetUID() types.UID          { return types.UID(o.uid) }
func (o *fifoObject) GetResourceVersion() string { return o.version }
func (o *fifoObject) String() string             { return o.name + "/" + o.uid + "@" + o.version }

// copy is what a decoder makes: the same at another address.
func (o *fifoObject) copy() *fifoObject { c := *o; return &c }

func fifoKey(name string) informer.Key { return informer.Key{Namespace: "ns", Name: name} }

// fifoServer is a truthful producer: it has one state, and tells of it.
type fifoServer struct {
	version int
	uids    int
	objects map[string]*fifoObject
	finals  map[string]*fifoObject // by UID: how objects ended
}

func newFIFOServer() *fifoServer {
	return &fifoServer{version: 10, objects: map[string]*fifoObject{}, finals: map[string]*fifoObject{}}
}

func (s *fifoServer) next() string { s.version++; return strconv.Itoa(s.version) }

// write creates or updates, and returns the event of it.
func (s *fifoServer) write(name string) informer.Event[*fifoObject] {
	typ := informer.EventModified
	was, ok := s.objects[name]
	if !ok {
		s.uids++
		was, typ = &fifoObject{name: name, uid: "u" + strconv.Itoa(s.uids)}, informer.EventAdded
	}
	now := was.copy()
	now.version = s.next()
	s.objects[name] = now
	return informer.EventOf(typ, now.copy())
}

func (s *fifoServer) delete(name string) (ev informer.Event[*fifoObject], ok bool) {
	was, ok := s.objects[name]
	if !ok {
		return ev, false
	}
	last := was.copy()
	last.version = s.next()
	s.finals[last.uid] = last
	delete(s.objects, name)
	return informer.EventOf(informer.EventDeleted, last), true
}

// fifoModel drives a queue with its server on one side and its consumer on the
// other, and knows what the queue has been told.
type fifoModel struct {
	*rapid.T
	server *fifoServer
	queue  *informer.DeltaFIFO[*fifoObject]
	store  *informer.Indexer[*fifoObject]
	told   map[string]*fifoObject // what the consumer has once it has taken all
	list   map[string]*fifoObject // what the list that is coming has told; nil: no list
	bads   map[string]bool        // the names that this list has called bad
	at     string                 // the version told
	all    bool                   // the consumer takes everything at once
	events int
}

func (m *fifoModel) name() string {
	return string(rune('a' + rapid.IntRange(0, 5).Draw(m.T, "name")))
}

func (m *fifoModel) apply(ev informer.Event[*fifoObject]) {
	m.events++
	if err := m.queue.Apply(ev); err != nil {
		m.Fatalf("Apply(%v) = %v", ev, err)
	}
	told := m.told
	if m.list != nil {
		told = m.list
	} else if ev.Version != "" {
		m.at = ev.Version
	}
	switch ev.Type {
	case informer.EventAdded, informer.EventModified:
		told[ev.Key.Name] = ev.Object
	case informer.EventDeleted:
		delete(told, ev.Key.Name)
	}
}

// watch tells of a few changes as they happen, in a list or outside.
func (m *fifoModel) watch() {
	for range rapid.IntRange(1, 4).Draw(m.T, "n") {
		name := m.name()
		switch rapid.IntRange(0, 6).Draw(m.T, "what") {
		case 0:
			if ev, ok := m.server.delete(name); ok {
				m.apply(ev)
			}
		case 1: // left the projection: no object comes with it
			if ev, ok := m.server.delete(name); ok {
				ev.Exact, ev.Object = false, nil
				m.apply(ev)
			}
		case 2: // recreated
			if ev, ok := m.server.delete(name); ok {
				m.apply(ev)
			}
			m.apply(m.server.write(name))
		case 3:
			if m.list == nil {
				m.apply(informer.Event[*fifoObject]{Type: informer.EventBookmark, Version: m.server.next()})
			}
		case 4: // the object, or a new one of that name, turns bad
			if rapid.Bool().Draw(m.T, "recreated") {
				m.server.delete(name)
			}
			m.bad(m.server.write(name))
		default:
			m.apply(m.server.write(name))
		}
	}
}

// bad tells that what ev is about is in a bad state: who has a good one of the
// same object keeps it, another object is gone.
func (m *fifoModel) bad(ev informer.Event[*fifoObject]) {
	m.apply(informer.Event[*fifoObject]{Type: informer.EventBad, Key: ev.Key, UID: ev.UID, Version: ev.Version})
	name, told := ev.Key.Name, m.told
	if m.list != nil {
		told, m.bads[name] = m.list, true
		if was, ok := m.told[name]; ok && was.uid == string(ev.UID) && told[name] == nil {
			told[name] = was
		}
	}
	if was, ok := told[name]; ok && was.uid != string(ev.UID) {
		delete(told, name)
	}
}

// miss changes the server without telling: only a list may follow.
func (m *fifoModel) miss() {
	for range rapid.IntRange(0, 4).Draw(m.T, "missed") {
		name := m.name()
		if rapid.Bool().Draw(m.T, "gone") {
			m.server.delete(name)
		}
		if rapid.Bool().Draw(m.T, "written") {
			m.server.write(name)
		}
	}
}

// relist tells a list, in which changes may come and which may break off.
func (m *fifoModel) relist() {
	for aborted := true; aborted; {
		m.miss()
		m.list, m.bads = map[string]*fifoObject{}, map[string]bool{}
		m.apply(informer.Event[*fifoObject]{Type: informer.EventBegin})
		for _, name := range slices.Sorted(maps.Keys(m.server.objects)) {
			obj, ok := m.server.objects[name]
			if _, seen := m.list[name]; !ok || seen || m.bads[name] {
				continue
			}
			m.item(obj)
			if rapid.IntRange(0, 5).Draw(m.T, "change in list") == 0 {
				m.watch()
			}
			if rapid.IntRange(0, 5).Draw(m.T, "take in list") == 0 {
				m.take()
			}
		}
		aborted = rapid.IntRange(0, 5).Draw(m.T, "abort") == 0
	}
	m.told, m.list = m.list, nil
	m.apply(informer.Event[*fifoObject]{Type: informer.EventEnd, Version: strconv.Itoa(m.server.version)})
}

// item tells one item of a list, well or badly, once or twice.
func (m *fifoModel) item(obj *fifoObject) {
	if rapid.IntRange(0, 9).Draw(m.T, "bad") == 0 {
		// A bad item keeps the last good state of the same object.
		m.apply(informer.Event[*fifoObject]{
			Type: informer.EventBad, Key: informer.KeyOf(obj), UID: obj.GetUID(), Version: obj.version})
		if was, ok := m.told[obj.name]; ok && was.uid == obj.uid {
			m.list[obj.name] = was
		}
		return
	}
	m.apply(informer.EventOf(informer.EventAdded, obj.copy()))
	if rapid.IntRange(0, 9).Draw(m.T, "twice") == 0 {
		var bad *informer.ObjectError
		if err := m.queue.Add(obj.copy()); !errors.As(err, &bad) || bad.Key != informer.KeyOf(obj) {
			m.Fatalf("Add of a second %v in one list = %v, want an ObjectError", obj, err)
		}
	}
}

// take lets the consumer take, if there is something.
func (m *fifoModel) take() {
	ctx := &impatient{Context: context.Background()}
	if m.all {
		if m.idle() {
			return
		}
		want, at := maps.Clone(m.told), m.at
		err := m.queue.PopAll(ctx, func(b informer.Batch[*fifoObject]) error {
			m.meanwhile()
			for _, d := range b.Deltas {
				m.check(d)
			}
			m.store.Apply(b)
			if b.Version != at {
				m.Fatalf("the batch is at version %s, want %s", b.Version, at)
			}
			m.equal(want)
			m.meanwhile()
			return nil
		})
		if err != nil {
			m.Fatal(err)
		}
		return
	}
	for range rapid.IntRange(1, 5).Draw(m.T, "pops") {
		if m.idle() {
			return
		}
		err := m.queue.Pop(ctx, func(d informer.Deltas[*fifoObject]) error {
			m.meanwhile()
			m.check(d)
			m.store.Apply(informer.Batch[*fifoObject]{Deltas: []informer.Deltas[*fifoObject]{d}})
			m.meanwhile()
			return nil
		})
		if errors.Is(err, context.Canceled) {
			return // all has come to nothing
		}
		if err != nil {
			m.Fatal(err)
		}
	}
}

// impatient is a context that ends as soon as somebody waits for its end.
type impatient struct {
	context.Context
	asked bool
}

func (c *impatient) Done() <-chan struct{} {
	c.asked = true
	done := make(chan struct{})
	close(done)
	return done
}

func (c *impatient) Err() error {
	if c.asked {
		return context.Canceled
	}
	return nil
}

// idle reports that the consumer would wait for ever.
func (m *fifoModel) idle() bool { return !informer.FIFOHasWork(m.queue) }

// meanwhile tells something while the consumer's function runs.
func (m *fifoModel) meanwhile() {
	if m.list != nil {
		return // the list goes on when take has returned
	}
	switch rapid.IntRange(0, 9).Draw(m.T, "meanwhile") {
	case 0, 1:
		m.watch()
	case 2:
		all := m.all
		m.all = true
		m.relistQuietly()
		m.all = all
	}
}

// relistQuietly tells a list in which nobody takes.
func (m *fifoModel) relistQuietly() {
	m.miss()
	m.list = map[string]*fifoObject{}
	m.apply(informer.Event[*fifoObject]{Type: informer.EventBegin})
	for _, name := range slices.Sorted(maps.Keys(m.server.objects)) {
		m.item(m.server.objects[name])
	}
	m.told, m.list = m.list, nil
	m.apply(informer.Event[*fifoObject]{Type: informer.EventEnd, Version: strconv.Itoa(m.server.version)})
}

// check checks deltas against the table of DeltaFIFO: what the consumer has is
// in the store.
func (m *fifoModel) check(d informer.Deltas[*fifoObject]) {
	was, had := m.store.Get(d.Key)
	if d.Len() == 0 {
		m.Fatalf("%v without deltas", d.Key)
	}
	for delta := range d.All() {
		obj := delta.Object
		switch delta.Type {
		case informer.Deleted:
			var final *fifoObject
			if had {
				final = m.server.finals[was.uid]
			}
			switch {
			case !had:
				m.Fatalf("Deleted %v, which the consumer does not have", obj)
			case obj == nil || obj.uid != was.uid:
				m.Fatalf("Deleted %v, where the consumer has %v", obj, was)
			case delta.Exact && (final == nil || *obj != *final):
				m.Fatalf("Deleted %v exactly, but it ended as %v", obj, final)
			case !delta.Exact && obj != was:
				m.Fatalf("Deleted %v inexactly, want the known %v", obj, was)
			}
			had = false
		case informer.Added:
			if had {
				m.Fatalf("Added %v, where the consumer has %v", obj, was)
			}
			had, was = true, obj
		case informer.Updated:
			if !had || was.uid != obj.uid || was.version == obj.version {
				m.Fatalf("Updated to %v, where the consumer has %v", obj, was)
			}
			was = obj
		case informer.Replaced:
			if had && (was.uid != obj.uid || was.version == obj.version) {
				m.Fatalf("Replaced by %v, where the consumer has %v", obj, was)
			}
			had, was = true, obj
		case informer.Sync:
			if !had || *was != *obj {
				m.Fatalf("Sync of %v, where the consumer has %v", obj, was)
			}
		}
	}
}

func (m *fifoModel) equal(want map[string]*fifoObject) {
	if m.store.Len() != len(want) {
		m.Fatalf("the consumer has %v, want %v", m.store.List(), slices.Collect(maps.Values(want)))
	}
	for name, obj := range want {
		if got, ok := m.store.Get(fifoKey(name)); !ok || *got != *obj {
			m.Fatalf("the consumer has %v, want %v", got, obj)
		}
	}
}

// A queue between a truthful producer and a slow consumer, by a naive model
// (promises 2, 3, 5, 7, 12 and 14, k8s#83810, k8s#115658): whoever takes everything has
// what was told, each delta is right for who has what the consumer has, and
// what waits is bounded by the number of objects.
func TestDeltaFIFOModel(t *testing.T) {
	rapid.Check(t, runFIFOModel)
}

func runFIFOModel(t *rapid.T) {
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	m := &fifoModel{
		T: t, server: newFIFOServer(), store: store,
		queue: informer.NewDeltaFIFO(store.Reader),
		told:  map[string]*fifoObject{}, at: "",
		all: rapid.Bool().Draw(t, "takes all"),
	}
	t.Repeat(map[string]func(*rapid.T){
		"watch":  func(*rapid.T) { m.watch() },
		"watch2": func(*rapid.T) { m.watch() },
		"take":   func(*rapid.T) { m.take() },
		"take2":  func(*rapid.T) { m.take() },
		"relist": func(*rapid.T) { m.relist() },
		"resync": func(*rapid.T) { m.queue.Resync() },
		"": func(*rapid.T) {
			informer.ValidateFIFO(m.T, m.queue)
			if n := m.queue.Len(); n > 12 {
				t.Fatalf("Len() = %d with 6 names", n)
			}
		},
	})
	for !m.idle() {
		m.take()
	}
	m.equal(m.told)
}

// Names that come and go leave nothing behind in the queue of a consumer that
// sleeps (promise 15's sibling, k8s#49705).
func TestDeltaFIFOChurnIsBounded(t *testing.T) {
	store := informer.NewIndexer[*fifoObject](informer.IndexerOptions{})
	queue := informer.NewDeltaFIFO(store.Reader)
	if err := queue.Add(&fifoObject{name: "stays", uid: "stays", version: "1"}); err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		obj := &fifoObject{name: fmt.Sprint(i), uid: fmt.Sprint(i), version: fmt.Sprint(2*i + 1)}
		last := obj.copy()
		last.version = fmt.Sprint(2*i + 2)
		if err := errors.Join(queue.Add(obj), queue.Delete(last)); err != nil {
			t.Fatal(err)
		}
	}
	if n := queue.Len(); n != 1 {
		t.Errorf("Len() = %d after 100,000 names came and went, want 1", n)
	}
	if n := informer.FIFOPlaces(queue); n > 2048 {
		t.Errorf("the queue keeps %d places for nothing", n)
	}
}
