package copier_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/examples/controller/copier"
	"github.com/seed-99a027e8/informer/informertest"
)

const label = "wanted"

func source() *corev1.ConfigMap { return configMap("default", "v", "1") }

func configMap(namespace string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "config"}}
	cm.Data = map[string]string{data[0]: data[1]}
	return cm
}

func namespace(name string, wanted bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if wanted {
		ns.Labels = map[string]string{label: "yes"}
	}
	return ns
}

// faults are what a test does to requests; both may be changed at any time.
type faults struct {
	hold   atomic.Int64 // how long a write of a ConfigMap takes
	lag    atomic.Int64 // how long an event of a watch takes
	refuse atomic.Value // part of a path: requests for it are answered 500
}

func (f *faults) intercept(next http.Handler) http.Handler {
	f.refuse.Store("nothing")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if part, ok := f.refuse.Load().(string); ok && strings.Contains(r.URL.Path, part) {
			http.Error(w, "refused", http.StatusInternalServerError)
			return
		}
		if r.Method == http.MethodGet {
			w = &laggingWriter{w, &f.lag}
		} else if strings.Contains(r.URL.Path, "/configmaps") {
			select {
			case <-time.After(time.Duration(f.hold.Load())):
			case <-r.Context().Done():
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

type laggingWriter struct {
	http.ResponseWriter
	lag *atomic.Int64
}

func (w *laggingWriter) Write(p []byte) (int, error) {
	pass(time.Duration(w.lag.Load()))
	return w.ResponseWriter.Write(p)
}

func (w *laggingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// inBubble runs a test with a server that holds a source and the namespaces a
// and b, of which a has the label.
func inBubble(t *testing.T, test func(*testing.T, *informertest.Server, *faults)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := new(faults)
		srv := informertest.Start(t, informertest.Options{Record: 1000, Intercept: f.intercept})
		create(t, srv, source(), namespace("a", true), namespace("b", false))
		test(t, srv, f)
	})
}

func create(t *testing.T, srv *informertest.Server, objs ...informertest.APIObject) {
	t.Helper()
	for _, obj := range objs {
		if _, err := srv.Create(obj); err != nil {
			t.Fatal(err)
		}
	}
}

// replica is a controller that runs.
type replica struct {
	*copier.Copier
	cancel context.CancelFunc
	done   chan error
}

// start runs a replica, which stops with the test.
func start(t *testing.T, srv *informertest.Server, identity string) *replica {
	t.Helper()
	config := srv.Config()
	config.UserAgent = identity
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := copier.New(clientset, copier.Options{
		Source: informer.Key{Namespace: "default", Name: "config"}, Label: label, Identity: identity, Grace: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &replica{c, cancel, make(chan error, 1)}
	go func() {
		r.done <- c.Run(ctx)
		close(r.done)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

// stop ends a replica, and returns the error of Run and the time it took.
func (r *replica) stop() (time.Duration, error) {
	begin := time.Now()
	r.cancel()
	err := <-r.done
	return time.Since(begin), err
}

// wantCopy checks the data of the ConfigMap in a namespace, empty for none.
func wantCopy(t *testing.T, srv *informertest.Server, namespace, v string) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(srv.Config())
	if err != nil {
		t.Fatal(err)
	}
	cm, err := clientset.CoreV1().ConfigMaps(namespace).Get(t.Context(), "config", metav1.GetOptions{})
	switch {
	case v == "" && !apierrors.IsNotFound(err):
		t.Errorf("%s: there is a copy, want none (%v)", namespace, err)
	case v != "" && (err != nil || cm.Data["v"] != v):
		t.Errorf("%s: the copy is %v, %v, want %q", namespace, cm.Data, err, v)
	}
}

// writes returns the writes of a client to ConfigMaps and to leases, by the
// last part of the path, in order.
func writes(srv *informertest.Server, agent string) (all []string) {
	for _, r := range srv.Requests() {
		if r.Method != http.MethodGet && r.UserAgent == agent {
			what := "lease"
			if strings.Contains(r.Path, "/configmaps") {
				what = "configmap"
			}
			all = append(all, what)
		}
	}
	return all
}

func count(of []string, what string) (n int) {
	for _, s := range of {
		if s == what {
			n++
		}
	}
	return n
}

func TestFollows(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, _ *faults) {
		r := start(t, srv, "one")
		step := func(what string, a, b string, change func() (string, error)) {
			t.Helper()
			if _, err := change(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			pass(time.Second)
			wantCopy(t, srv, "a", a)
			wantCopy(t, srv, "b", b)
		}
		nothing := func() (string, error) { return "", nil }
		step("the first pass", "1", "", nothing)
		step("the source changes", "2", "", func() (string, error) { return srv.Update(configMap("default", "v", "2")) })
		step("the label comes", "2", "2", func() (string, error) { return srv.Update(namespace("b", true)) })
		step("the label goes", "", "2", func() (string, error) { return srv.Update(namespace("a", false)) })
		step("a copy is deleted", "", "2", func() (string, error) { return srv.Delete(configMap("b", "v", "")) })
		step("the source is deleted", "", "", func() (string, error) { return srv.Delete(source()) })
		step("the source comes back", "", "1", func() (string, error) { return srv.Create(source()) })
		step("a namespace is deleted", "", "", func() (string, error) { return srv.Delete(namespace("b", true)) })
		if n := r.Counts(); n.Repaired != 1 || n.Retries != 0 {
			t.Errorf("counts = %+v, want one repair and no retry", n)
		}
	})
}

// What others do to the data of a copy is undone.
func TestRepairs(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, _ *faults) {
		r := start(t, srv, "one")
		pass(time.Second)
		drifted := configMap("a", "v", "drift")
		drifted.Labels = map[string]string{copier.LabelCopyOf: "default"}
		if _, err := srv.Update(drifted); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		wantCopy(t, srv, "a", "1")
		if n := r.Counts(); n.Repaired != 1 || n.Created != 1 || n.Updated != 1 {
			t.Errorf("counts = %+v, want one creation and one repair", n)
		}
	})
}

// A ConfigMap that is not a copy is neither changed nor deleted, nor tried for
// ever.
func TestForeign(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, _ *faults) {
		create(t, srv, configMap("a", "v", "theirs"), configMap("b", "v", "theirs"))
		r := start(t, srv, "one")
		pass(time.Hour)
		wantCopy(t, srv, "a", "theirs")
		wantCopy(t, srv, "b", "theirs")
		if all := writes(srv, "one"); count(all, "configmap") != 0 || r.Counts().Retries != 0 {
			t.Errorf("writes = %v, retries = %d, want none", all, r.Counts().Retries)
		}
		if _, err := srv.Delete(configMap("a", "v", "")); err != nil { // then there is room
			t.Fatal(err)
		}
		pass(time.Second)
		wantCopy(t, srv, "a", "1")
	})
}

// A worker reads its own writes, however far the cache is behind: it never
// writes the same twice.
func TestReadsOwnWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, f *faults) {
		r := start(t, srv, "one")
		pass(time.Second)
		f.lag.Store(int64(time.Second))
		// Each change makes more than one key ready, one after the other.
		for _, v := range []string{"2", "3", "4"} {
			for _, obj := range []informertest.APIObject{configMap("default", "v", v), namespace("a", true), namespace("b", true)} {
				if _, err := srv.Update(obj); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Minute)
			wantCopy(t, srv, "a", v)
			wantCopy(t, srv, "b", v)
		}
		if n := r.Counts(); n.Retries != 0 || n.Created != 2 || n.Updated > 5 {
			t.Errorf("counts = %+v, want no retry, 2 creations and at most 5 updates", n)
		}
	})
}

// At the end, keys that are ready are worked off first, and the lease is
// released after the last write.
func TestShutdownOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, f *faults) {
		for _, name := range []string{"c", "d", "e", "f", "g", "h"} {
			create(t, srv, namespace(name, true))
		}
		f.hold.Store(int64(time.Second))
		r := start(t, srv, "one")
		pass(500 * time.Millisecond) // 4 of 7 keys are being worked on
		took, err := r.stop()
		if err != nil || took > 3*time.Second {
			t.Errorf("Run = %v, %v after the end; want nil, less than 3s", err, took)
		}
		for _, name := range []string{"a", "c", "d", "e", "f", "g", "h"} {
			wantCopy(t, srv, name, "1")
		}
		if all := writes(srv, "one"); count(all, "configmap") != 7 || all[len(all)-1] != "lease" {
			t.Errorf("writes = %v, want 7 copies, and the release of the lease after them", all)
		}
	})
}

// Work that outlasts the grace is cut off, and Run says so.
func TestGrace(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, f *faults) {
		f.hold.Store(int64(time.Hour))
		r := start(t, srv, "one")
		pass(time.Second)
		took, err := r.stop()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 keys still leased") || took != 10*time.Second {
			t.Errorf("Run = %v, %v after the end; want a lease that is left after 10s", err, took)
		}
		if all := writes(srv, "one"); all[len(all)-1] != "lease" {
			t.Errorf("writes = %v, want the release of the lease at the end", all)
		}
	})
}

// One replica works; the next one takes over as soon as that has stopped.
func TestTwoReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, _ *faults) {
		one := start(t, srv, "one")
		pass(time.Second)
		two := start(t, srv, "two")
		pass(time.Minute)
		if all := writes(srv, "two"); count(all, "configmap") != 0 {
			t.Errorf("writes of the other replica = %v, want none of copies", all)
		}
		if _, err := one.stop(); err != nil {
			t.Errorf("Run = %v", err)
		}
		create(t, srv, namespace("c", true))
		pass(5 * time.Second) // less than the duration of a lease
		wantCopy(t, srv, "c", "1")
		if n := two.Counts(); n.Created != 1 {
			t.Errorf("counts of the other replica = %+v, want one creation", n)
		}
	})
}

// A replica that is not the leader ends at once, and leaves the keys alone.
func TestStandbyEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, _ *faults) {
		start(t, srv, "one")
		pass(time.Second)
		two := start(t, srv, "two")
		pass(time.Second)
		if took, err := two.stop(); err != nil || took > 100*time.Millisecond {
			t.Errorf("Run = %v, %v after the end; want nil, at once", err, took)
		}
	})
}

// Who cannot renew the lease stops to write, and says so.
func TestLostLease(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, f *faults) {
		r := start(t, srv, "one")
		pass(time.Second)
		f.refuse.Store("/leases")
		pass(15 * time.Second)
		select {
		case err := <-r.done:
			if !errors.Is(err, copier.ErrLostLease) {
				t.Errorf("Run = %v, want %v", err, copier.ErrLostLease)
			}
		default:
			t.Error("Run goes on without a lease")
		}
		create(t, srv, namespace("c", true))
		pass(time.Minute)
		wantCopy(t, srv, "c", "")
	})
}

// While the caches cannot be filled, the controller says why and does nothing.
func TestNotSynced(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *informertest.Server, f *faults) {
		f.refuse.Store("/namespaces")
		r := start(t, srv, "one")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.WaitSynced(ctx); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "namespaces") {
			t.Errorf("WaitSynced = %v, want an internal error of namespaces", err)
		}
		if took, err := r.stop(); err != nil || took > 100*time.Millisecond {
			t.Errorf("Run = %v, %v after the end; want nil, at once", err, took)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	right := copier.Options{Source: informer.Key{Namespace: "a", Name: "b"}, Label: "c"}
	for name, change := range map[string]func(*copier.Options){
		"no source": func(o *copier.Options) { o.Source.Name = "" },
		"no label":  func(o *copier.Options) { o.Label = "" },
		"workers":   func(o *copier.Options) { o.Workers = -1 },
	} {
		opts := right
		change(&opts)
		if _, err := copier.New(kubernetes.New(nil), opts); err == nil {
			t.Errorf("%s: New = nil, want an error", name)
		}
	}
	if _, err := copier.New(kubernetes.New(nil), right); err != nil {
		t.Errorf("New = %v", err)
	}
}
