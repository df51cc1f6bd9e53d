package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/seed-99a027e8/informer"
)

var soakTime = flag.Duration("soak", 0, "how long TestSoak runs, at least 1m; 0 skips it")

const (
	soakObjects   = 5000
	soakInformers = 20
	soakWrites    = 40   // a second
	soakGrowth    = 1.10 // most, of heap and goroutines
)

// TestSoak lets 20 informers with 5 handlers each follow 5,000 objects that
// change all the time, through crashes, restarts, compactions and cut
// connections at random. After each sixth of the time all comes to rest:
// each cache, and what each handler was told, must be what the server has
// (promises 3, 14 and 16). The heap of then must not have grown by more than a
// tenth from the end of the second sixth to that of the last (promise 30), nor
// the number of goroutines (promise 29).
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("takes long: run it with -soak 30m")
	}
	if *soakTime < time.Minute {
		t.Fatalf("-soak %v: want at least a minute", *soakTime)
	}
	s := newSoak(t)
	const rounds = 6
	var heaps [rounds]uint64
	var goroutines [rounds]int
	for i := range rounds {
		s.disturb(*soakTime / rounds)
		heaps[i], goroutines[i] = s.settle(), runtime.NumGoroutine()
		if t.Failed() {
			t.Fatalf("SOAK FAILED after %v: %s", s.age(), s.summary())
		}
	}
	summary := s.summary()
	s.stop()
	first, last := heaps[1], heaps[rounds-1]
	growth := float64(last) / float64(first)
	if growth > soakGrowth {
		t.Errorf("the heap grew from %s to %s, %.3f times", megabytes(first), megabytes(last), growth)
	}
	if before, after := goroutines[1], goroutines[rounds-1]; float64(after) > soakGrowth*float64(before) {
		t.Errorf("the goroutines grew from %d to %d", before, after)
	}
	verdict := "SOAK PASSED"
	if t.Failed() {
		verdict = "SOAK FAILED"
	}
	t.Logf("%s after %v: heap %s, at the end %s (%.3f times); %s",
		verdict, s.age(), megabytes(first), megabytes(last), growth, summary)
}

// soak is one run.
type soak struct {
	t         *testing.T
	server    *server
	proxy     *proxy // in front of half of the informers
	etcd      *clientv3.Client
	namespace string
	maps      typedcorev1.ConfigMapInterface
	began     time.Time
	reported  time.Time // the last line of progress
	members   []soakMember
	running   chan error // of all informers
	stop      func()

	writes, refused                            atomic.Int64
	kills, stops, compactions, cuts, exchanges int // of the test's goroutine
}

// soakMember is an informer under test, of whatever type.
type soakMember interface {
	// converged returns why cache and handlers are not as the server is.
	converged(want map[informer.Key]string) error
	// exchange removes a handler and adds another.
	exchange() error
	// status returns the informer's.
	status() informer.Status
	// forget drops what the test itself gathers.
	forget()
	// run runs the informer.
	run(context.Context) error
}

// newSoak starts everything.
func newSoak(t *testing.T) *soak {
	s := &soak{t: t, server: startServer(t, serverOptions{}), running: make(chan error, soakInformers)}
	s.proxy = startProxy(t, s.server.address())
	s.etcd = s.server.etcd()
	s.namespace = s.server.namespace("soak")
	s.maps = clientset(t, s.server.admin()).CoreV1().ConfigMaps(s.namespace)
	inParallel(t, soakObjects, func(i int) error { return putMap(t.Context(), s.maps, i) })
	for i := range soakInformers {
		s.members = append(s.members, s.newMember(i))
	}
	ctx, cancel := context.WithCancel(context.Background()) // the test's own ends too early for Cleanup
	for _, m := range s.members {
		go func() { s.running <- m.run(ctx) }() // stop waits for it
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		for range s.members {
			if err := <-s.running; err != nil {
				t.Errorf("Run = %v, want nil after a cancel", err)
			}
		}
	})
	t.Cleanup(s.stop)
	s.began = time.Now()
	s.reported = s.began
	t.Logf("%d objects, %d informers, %d writes a second, GOMAXPROCS %d, for %v",
		soakObjects, soakInformers, soakWrites, runtime.GOMAXPROCS(0), *soakTime)
	return s
}

// newMember makes the ith informer. Odd ones are behind the proxy.
func (s *soak) newMember(i int) soakMember {
	config := s.server.admin()
	if i%2 == 1 {
		config = s.proxy.through(config)
	}
	switch i % 10 {
	case 0, 1, 2, 3:
		return newSoakInformer(s.t, mapsOf(s.t, config, s.namespace))
	case 4, 5, 6, 7:
		return newSoakInformer(s.t, restMapsOf(s.t, config, s.namespace))
	case 8:
		client := dynamic.NewForConfigOrDie(config).Resource(mapResource).Namespace(s.namespace)
		return newSoakInformer(s.t, informer.FromClient[*unstructured.Unstructured](client))
	default:
		client := metadata.NewForConfigOrDie(config).Resource(mapResource).Namespace(s.namespace)
		return newSoakInformer(s.t, informer.FromClient[*metav1.PartialObjectMetadata](client))
	}
}

// disturb writes, and does harm, for some time.
func (s *soak) disturb(most time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), most)
	defer cancel()
	var writers sync.WaitGroup
	const workers = 4
	for range workers {
		writers.Go(func() { s.write(ctx, workers*time.Second/soakWrites) })
	}
	for {
		select {
		case <-ctx.Done():
			writers.Wait()
			return
		case <-time.After(time.Second + rand.N(*soakTime/60)):
			s.harm(ctx)
		}
		if time.Since(s.reported) >= time.Minute {
			s.report()
		}
	}
}

// write changes objects at random, a time apart. What the server does not take
// is not written.
func (s *soak) write(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		request, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := writeAny(request, s.maps, rand.IntN(soakObjects))
		cancel()
		if err != nil {
			s.refused.Add(1)
		} else {
			s.writes.Add(1)
		}
	}
}

// harm does one bad thing.
func (s *soak) harm(ctx context.Context) {
	switch rand.IntN(6) {
	case 0:
		s.kills++
		s.server.kill()
		s.server.start()
	case 1:
		s.stops++
		s.server.stop()
		s.server.start()
	case 2: // watches that broke off are answered 410
		s.proxy.refuse()
		s.proxy.cut()
		s.compact(ctx)
		s.kills++
		s.server.kill()
		s.server.start()
		s.proxy.pass()
	case 3:
		s.compact(ctx)
	case 4:
		s.cuts++
		s.proxy.cut()
	default:
		s.exchanges++
		for _, m := range s.members {
			if err := m.exchange(); err != nil {
				s.t.Errorf("exchange of handlers: %v", err)
			}
		}
	}
}

// compact makes etcd forget all but the present state.
func (s *soak) compact(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	got, err := s.etcd.Get(ctx, "any")
	if err == nil {
		_, err = s.etcd.Compact(ctx, got.Header.Revision)
	}
	if err != nil {
		s.t.Logf("not compacted: %v", err)
		return
	}
	s.compactions++
}

// settle lets everything come to rest with all objects there, checks it, and
// returns the size of the heap.
func (s *soak) settle() uint64 {
	list := s.fill()
	want := map[informer.Key]string{}
	for _, m := range list {
		want[informer.KeyOf(&m)] = string(m.UID) + " " + m.ResourceVersion
	}
	began := time.Now()
	for i, m := range s.members {
		var last error
		err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, 3*time.Minute, true,
			func(context.Context) (bool, error) {
				last = m.converged(want)
				return last == nil, nil
			})
		if err != nil {
			s.t.Errorf("informer %d has not converged: %v; status %+v", i, last, m.status())
		}
		m.forget()
	}
	list, want = nil, nil // or they were part of the heap
	s.t.Logf("at rest after %v", time.Since(began).Round(time.Millisecond))
	s.report()
	return heapSize()
}

// fill makes the objects that are not there, and returns all of them.
func (s *soak) fill() []corev1.ConfigMap {
	var all []corev1.ConfigMap
	err := wait.PollUntilContextTimeout(s.t.Context(), 100*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			list, err := s.maps.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, nil // the server may just have started
			}
			there := byKey(pointers(list.Items))
			for i := range soakObjects {
				if _, ok := there[informer.Key{Namespace: s.namespace, Name: mapName(i)}]; !ok && putMap(ctx, s.maps, i) != nil {
					return false, nil
				}
			}
			list, err = s.maps.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, nil
			}
			all = list.Items
			return len(all) >= soakObjects, nil
		})
	if err != nil {
		s.t.Fatalf("fill: %v", err)
	}
	return all
}

// report prints a line of progress.
func (s *soak) report() {
	s.reported = time.Now()
	s.t.Logf("%v: heap %s, %d goroutines; %s", s.age(), megabytes(heapSize()), runtime.NumGoroutine(), s.summary())
}

// summary says what has happened so far.
func (s *soak) summary() string {
	var lists, watches, skipped, dropped, faults uint64
	failing := 0
	for _, m := range s.members {
		status := m.status()
		lists, watches = lists+status.Lists, watches+status.Watches
		skipped, dropped, faults = skipped+status.Skipped, dropped+status.Dropped, faults+status.Faults
		if status.Err != nil {
			failing++
		}
	}
	return fmt.Sprintf("%d writes, %d not taken; %d kills, %d stops, %d compactions, %d cuts, %d exchanges; "+
		"%d lists, %d watches, %d skipped, %d dropped, %d faults, %d failing",
		s.writes.Load(), s.refused.Load(), s.kills, s.stops, s.compactions, s.cuts, s.exchanges,
		lists, watches, skipped, dropped, faults, failing)
}

func (s *soak) age() time.Duration { return time.Since(s.began).Round(time.Second) }

// heapSize returns how much is in use after a collection.
func heapSize() uint64 {
	runtime.GC() // the second one frees what the first one's finalizers held
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func megabytes(bytes uint64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }

// soakInformer is an informer with five handlers: one that folds its changes,
// one that does so slowly, one that is told everything again every minute, one
// that is exchanged for another now and then, and a queue with workers.
type soakInformer[T informer.Object] struct {
	*informer.Informer[T]
	folds []*folder[T] // the last one is that of guest
	guest *informer.Registration
	t     testing.TB
	queue *informer.WorkQueue[informer.Key]

	mu   sync.Mutex // guards the field below
	done map[informer.Key]string
}

func newSoakInformer[T informer.Object](t *testing.T, source informer.ListerWatcher[T]) soakMember {
	t.Helper()
	inf, err := informer.New(source, informer.Options{MaxBackoff: 5 * time.Second, WatchTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m := &soakInformer[T]{Informer: inf, t: t, done: map[informer.Key]string{}}
	for i, opts := range []informer.HandlerOptions{{}, {Backlog: 64}, {Resync: time.Minute}} {
		fold := newFolder[T](t)
		handle := fold.handle
		if i == 1 {
			handle = slowly(fold.handle)
		}
		if _, err := inf.AddHandler(handle, opts); err != nil {
			t.Fatal(err)
		}
		m.folds = append(m.folds, fold)
	}
	m.folds = append(m.folds, nil)
	if err := m.exchange(); err != nil {
		t.Fatal(err)
	}
	if m.queue, err = informer.NewWorkQueue(informer.QueueOptions[informer.Key]{}); err != nil {
		t.Fatal(err)
	}
	if _, err := informer.Enqueue(inf, m.queue); err != nil {
		t.Fatal(err)
	}
	return m
}

// slowly makes a handler that takes a millisecond over each eighth change.
func slowly[T informer.Object](handle informer.Handler[T]) informer.Handler[T] {
	n := 0
	return func(c informer.Change[T]) {
		if n++; n%8 == 0 {
			<-time.After(time.Millisecond)
		}
		handle(c)
	}
}

func (m *soakInformer[T]) run(ctx context.Context) error {
	work := make(chan error, 1)
	go func() { work <- m.queue.Run(ctx, 2, m.reconcile) }() // run waits for it
	err := m.Run(ctx)
	return errors.Join(err, <-work)
}

// reconcile notes which version a worker has seen.
func (m *soakInformer[T]) reconcile(_ context.Context, key informer.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if obj, ok := m.Get(key); ok {
		m.done[key] = identity(obj)
	} else {
		delete(m.done, key)
	}
	return nil
}

func identity[T informer.Object](obj T) string {
	return string(obj.GetUID()) + " " + obj.GetResourceVersion()
}

func (m *soakInformer[T]) converged(want map[informer.Key]string) error {
	cached := map[informer.Key]string{}
	for obj := range m.All() {
		cached[informer.KeyOf(obj)] = identity(obj)
	}
	if err := differs(want, cached); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	for i, fold := range m.folds {
		folded := map[informer.Key]string{}
		for key, obj := range fold.copied() {
			folded[key] = identity(obj)
		}
		if err := differs(want, folded); err != nil {
			return fmt.Errorf("handler %d: %w", i, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := differs(want, m.done); err != nil {
		return fmt.Errorf("workers: %w", err)
	}
	return nil
}

// differs returns an error that names one difference.
func differs(want, have map[informer.Key]string) error {
	for key, is := range want {
		if have[key] != is {
			return fmt.Errorf("%v is %q, want %q (%d objects, want %d)", key, have[key], is, len(have), len(want))
		}
	}
	if len(have) > len(want) {
		return fmt.Errorf("%d objects, want %d", len(have), len(want))
	}
	return nil
}

func (m *soakInformer[T]) exchange() error {
	if m.guest != nil {
		m.guest.Remove()
	}
	fold := newFolder[T](m.t)
	guest, err := m.AddHandler(fold.handle, informer.HandlerOptions{})
	if err != nil {
		return err
	}
	m.guest, m.folds[len(m.folds)-1] = guest, fold
	return nil
}

func (m *soakInformer[T]) status() informer.Status { return m.Status() }

func (m *soakInformer[T]) forget() {
	for _, fold := range m.folds {
		fold.forget()
	}
}

// forget drops what was counted of deletions.
func (f *folder[T]) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted = make(map[string]int)
}
