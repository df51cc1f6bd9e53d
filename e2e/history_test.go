package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

// The tests of this file take history away from the server.

// TestWatchExpires makes the version that a watch resumes from too old, with a
// watch cache and without. Promises 5, 7 and 11; cases 1 (calico#12793) and 18
// (k8s#102718, k8s#129266, werf/kubedog#134): one list for each 410, only objects
// that changed are told, a new UID is a new object, and no failure is reported.
func TestWatchExpires(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		flags []string
	}{
		{"restart", nil},
		{"without watch cache", []string{"--watch-cache=false"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{flags: test.flags})
			p := startProxy(t, s.address())
			namespace := s.namespace("expires")
			s.putMaps(namespace, 0, 50)
			var seen recorder
			r := runMaps(t, seen.record(p.through(s.admin())), namespace, impatient())
			r.waitSynced()

			p.refuse()
			p.cut()
			s.putMaps(namespace, 45, 60) // 5 updates, 10 additions
			deleteMaps(t, s, namespace, 0, 20)
			s.putMaps(namespace, 10, 20) // the same names, but other UIDs
			s.compact(s.currentRevision())
			if test.flags == nil {
				s.kill() // the watch cache would still know
				s.start()
			}
			told := r.fold.changes()
			p.pass()
			convergesToMaps(r, s, namespace)

			if got := len(seen.expired()); got != 1 {
				t.Errorf("%d answers of 410, want 1", got)
			}
			listsFollowExpiries(r, &seen)
			if got := r.fold.changes() - told; got != 45 {
				t.Errorf("%d changes told, want 45", got)
			}
			if got := r.fold.count(informer.Deleted, informer.CauseRelist); got != 20 {
				t.Errorf("%d deletions by a list, want 20", got)
			}
			s.putMaps(namespace, 20, 30)
			convergesToMaps(r, s, namespace)
		})
	}
}

// TestListExpires lets the token of a page expire between two pages. Promises 3,
// 11 and 13: the list is begun again, and what its first part said is dropped.
func TestListExpires(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{flags: []string{"--feature-gates=WatchList=false", "--watch-cache=false"}})
	namespace := s.namespace("pages")
	s.putMaps(namespace, 0, 100)
	var seen recorder
	gate := &pageGate[*corev1.ConfigMap]{
		ListerWatcher: mapsOf(t, seen.record(s.admin()), namespace),
		paged:         make(chan struct{}), goOn: make(chan struct{}),
	}
	opts := impatient()
	opts.PageSize = 30
	r := run(t, gate, opts)
	<-gate.paged // the first page was read
	s.putMaps(namespace, 90, 110)
	deleteMaps(t, s, namespace, 0, 20)
	s.compact(s.currentRevision())
	close(gate.goOn)
	r.waitSynced()
	convergesToMaps(r, s, namespace)

	if got := len(seen.expired()); got != 1 {
		t.Errorf("%d answers of 410, want 1\n%s", got, &seen)
	}
	// The page before, the one that expired, and three.
	if got := len(seen.lists()); got != 5 {
		t.Errorf("%d pages were asked for, want 5\n%s", got, &seen)
	}
	for _, f := range r.failures() {
		t.Errorf("failure %v, want none", f)
	}
	if got := r.fold.changes(); got != r.Len() {
		t.Errorf("%d changes told, want one for each of %d objects", got, r.Len())
	}
}

// pageGate is a source that stops after its first page.
type pageGate[T informer.Object] struct {
	informer.ListerWatcher[T]
	paged, goOn chan struct{}
	passed      bool // of the informer's goroutine
}

// List waits before the second request.
func (g *pageGate[T]) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	if opts.Continue != "" && !g.passed {
		g.passed = true
		close(g.paged)
		<-g.goOn
	}
	return g.ListerWatcher.List(ctx, opts)
}

// TestRestoreBelow restores the server from a copy that is older than what the
// informer has seen. Promises 4 and 11: the restored state is followed, nothing
// old survives, and waits for versions that will not come end.
func TestRestoreBelow(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	namespace := s.namespace("restored")
	s.putMaps(namespace, 0, 50)
	s.stop()
	copied := s.backup()
	s.start()
	var seen recorder
	opts := impatient()
	opts.WatchTimeout = time.Second
	r := runMaps(t, seen.record(s.admin()), namespace, opts)
	rest := run(t, restMapsOf(t, s.admin(), namespace), opts)
	r.waitSynced()
	s.putMaps(namespace, 30, 600) // more than the server writes when it starts
	deleteMaps(t, s, namespace, 0, 10)
	convergesToMaps(r, s, namespace)
	before := r.Version()

	waited := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() { waited <- r.WaitForResourceVersion(ctx, before+"0") }() // ten times as far
	s.kill()
	s.restore(copied)
	s.start()
	began := time.Now()
	convergesToMaps(rest, s, namespace)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("converged after %v, want a few seconds", took)
	}
	// The server answers the question whether it has our version with
	// Retry-After, and a clientset asks ten times more before it tells us.
	convergesToMaps(r, s, namespace)
	if took := time.Since(began); took > 90*time.Second {
		t.Errorf("through a clientset converged after %v, want less than a minute", took)
	}
	if got := r.Len(); got != 50 {
		t.Errorf("%d objects after the restore, want 50", got)
	}
	if err := <-waited; !errors.Is(err, informer.ErrNewEpoch) {
		t.Errorf("wait for a version of the old epoch = %v, want ErrNewEpoch", err)
	}
	if got := len(seen.lists()) + len(seen.streamingLists()) - seen.probes(); got != 2 {
		t.Errorf("%d lists, want one before and one after\n%s", got, &seen)
	}
	s.putMaps(namespace, 40, 60)
	convergesToMaps(r, s, namespace)
	convergesToMaps(rest, s, namespace)
}

// TestRestoreAbove restores the server from a copy that is older than its own
// state, but newer than what the informer has seen. Promise 3.
func TestRestoreAbove(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	p := startProxy(t, s.address())
	namespace := s.namespace("restored")
	s.putMaps(namespace, 0, 50)
	var seen recorder
	r := runMaps(t, seen.record(p.through(s.admin())), namespace, impatient())
	r.waitSynced()
	p.refuse()
	p.cut()
	s.putMaps(namespace, 40, 60)
	deleteMaps(t, s, namespace, 0, 10)
	s.stop()
	copied := s.backup()
	s.start()
	s.putMaps(namespace, 0, 100) // the informer never hears of it
	s.kill()
	s.restore(copied)
	s.start()
	p.pass()
	convergesToMaps(r, s, namespace)
	if got := r.Len(); got != 50 {
		t.Errorf("%d objects after the restore, want 50", got)
	}
	listsFollowExpiries(r, &seen)
}

// deleteMaps deletes maps from to to-1, which must be there.
func deleteMaps(t testing.TB, s *server, namespace string, from, to int) {
	t.Helper()
	maps := clientset(t, s.admin()).CoreV1().ConfigMaps(namespace)
	inParallel(t, to-from, func(i int) error {
		if err := maps.Delete(t.Context(), mapName(from+i), metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		return nil
	})
}
