package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The tests of this file prove the harness, with plain clients.

func TestServerStartsInSeconds(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := startServer(t, serverOptions{})
	took := time.Since(began)
	t.Logf("ready after %v, resident memory %s", took.Round(10*time.Millisecond), residentMemory(s))
	if most := time.Minute; took > most {
		t.Errorf("ready after %v, want at most %v", took, most)
	}
	version, err := clientset(t, s.admin()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.Major != "1" || version.Minor != "37" {
		t.Errorf("server version = %s.%s, want 1.37", version.Major, version.Minor)
	}
}

func TestServerServesListsAndWatches(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	maps := clientset(t, s.admin()).CoreV1().ConfigMaps("default")

	before, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := watchFrom(t, s.admin(), before.ResourceVersion)
	made := createMap(t, s, "a")
	if got := next(t, w); got.Type != watch.Added || got.Object.(*corev1.ConfigMap).Name != "a" {
		t.Errorf("first event = %v %v, want ADDED a", got.Type, got.Object)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(list.Items), len(before.Items)+1; got != want {
		t.Errorf("list has %d items, want %d", got, want)
	}
	if rev := s.currentRevision(); rev < version(t, made) {
		t.Errorf("currentRevision() = %d, want at least %s", rev, made.ResourceVersion)
	}
}

func TestServerKeepsDataAndAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(*server)
	}{
		{"after kill", (*server).kill},
		{"after stop", (*server).stop},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{})
			made := createMap(t, s, "a")
			client := clientset(t, s.admin()) // trusts the certificate of the first start
			w := watchFrom(t, s.admin(), made.ResourceVersion)

			began := time.Now()
			test.end(s)
			t.Logf("down after %v", time.Since(began).Round(time.Millisecond))
			for range w.ResultChan() { // the server's end ends the watch
			}
			s.start()

			got, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got.UID != made.UID || got.ResourceVersion != made.ResourceVersion {
				t.Errorf("after the restart: UID %s version %s, want %s and %s",
					got.UID, got.ResourceVersion, made.UID, made.ResourceVersion)
			}
		})
	}
}

func TestCompactionMakesWatchesExpire(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	old := createMap(t, s, "a")
	createMap(t, s, "b") // the event that the watch will miss
	createMap(t, s, "c")
	s.compact(s.currentRevision())
	s.kill()
	s.start()
	var seen recorder
	w := watchFrom(t, seen.record(s.admin()), old.ResourceVersion)
	if got := next(t, w); !apierrors.IsResourceExpired(apierrors.FromObject(got.Object)) {
		t.Errorf("first event = %v %v, want ERROR Expired", got.Type, got.Object)
	}
	if got := len(seen.expired()); got != 1 {
		t.Errorf("recorded %d expired requests, want 1", got)
	}
}

func TestCompactionShowsAtOnceWithoutWatchCache(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{flags: []string{"--watch-cache=false"}})
	old := createMap(t, s, "a")
	createMap(t, s, "b") // the event that the watch will miss
	createMap(t, s, "c")
	s.compact(s.currentRevision())
	w := watchFrom(t, s.admin(), old.ResourceVersion)
	if got := next(t, w); !apierrors.IsResourceExpired(apierrors.FromObject(got.Object)) {
		t.Errorf("first event = %v %v, want ERROR Expired", got.Type, got.Object)
	}
}

func TestRestoreGoesBack(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	createMap(t, s, "old")
	s.stop()
	copied := s.backup()
	s.start()
	var last *corev1.ConfigMap
	for i := range 500 { // more than the server itself writes when it starts
		last = createMap(t, s, fmt.Sprintf("new-%d", i))
	}
	s.kill()
	s.restore(copied)
	s.start()

	list, err := clientset(t, s.admin()).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, newest := version(t, list), version(t, last); got >= newest {
		t.Errorf("version after restore = %d, want below %d", got, newest)
	}
	for _, m := range list.Items {
		if m.Name != "old" && m.Name != "kube-root-ca.crt" {
			t.Errorf("%s outlived the restore", m.Name)
		}
	}
}

func TestUserHasTheRightsBoundToIt(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{users: []string{"alice", "bob"}})
	list := func(config *rest.Config) error {
		_, err := clientset(t, config).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(s.user("alice")); !apierrors.IsForbidden(err) {
		t.Errorf("list without rights = %v, want forbidden", err)
	}
	if err := list(s.user("nobody")); !apierrors.IsUnauthorized(err) {
		t.Errorf("list with an unknown token = %v, want unauthorized", err)
	}
	s.allow("alice", rbacv1.PolicyRule{
		Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
	})
	eventually(t, "alice may list", func(context.Context) error { return list(s.user("alice")) })
	if err := list(s.user("bob")); !apierrors.IsForbidden(err) {
		t.Errorf("list by another user = %v, want forbidden", err)
	}
	s.disallow("alice")
	eventually(t, "alice may not list any more", func(context.Context) error {
		if err := list(s.user("alice")); !apierrors.IsForbidden(err) {
			return fmt.Errorf("list = %w, want forbidden", err)
		}
		return nil
	})
}

func TestTwoServersShareNothing(t *testing.T) {
	t.Parallel()
	a, b := startServer(t, serverOptions{}), startServer(t, serverOptions{})
	createMap(t, a, "only-in-a")
	_, err := clientset(t, b.admin()).CoreV1().ConfigMaps("default").Get(t.Context(), "only-in-a", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get from the other server = %v, want not found", err)
	}
	a.kill()
	createMap(t, b, "alive")
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	var seen recorder
	client := clientset(t, seen.record(s.admin()))
	maps := client.CoreV1().ConfigMaps("default")

	list, err := maps.List(t.Context(), metav1.ListOptions{Limit: 7, ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = maps.Get(t.Context(), "missing", metav1.GetOptions{})
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	yes := true
	w, err = maps.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()

	if got := len(seen.all()); got != 5 {
		t.Errorf("recorded %d requests, want 5", got)
	}
	if got := seen.all()[1].status; got != http.StatusNotFound {
		t.Errorf("status of the get = %d, want 404", got)
	}
	lists := seen.lists()
	if len(lists) != 1 || lists[0].query.Get("limit") != "7" || lists[0].status != http.StatusOK {
		t.Errorf("lists = %+v, want one with limit 7 and status 200", lists)
	}
	if got := seen.watches(); len(got) != 1 || got[0].query.Get("resourceVersion") != list.ResourceVersion {
		t.Errorf("watches = %+v, want one from %s", got, list.ResourceVersion)
	}
	if got := len(seen.streamingLists()); got != 1 {
		t.Errorf("recorded %d streaming lists, want 1", got)
	}
	seen.reset()
	if got := len(seen.all()); got != 0 {
		t.Errorf("recorded %d requests after reset, want 0", got)
	}
}

// clientset returns a plain client.
func clientset(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// createMap makes a config map in the namespace default.
func createMap(t testing.TB, s *server, name string) *corev1.ConfigMap {
	t.Helper()
	made, err := clientset(t, s.admin()).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// watchFrom watches the config maps of the namespace default until the test
// ends.
func watchFrom(t testing.TB, config *rest.Config, version string) watch.Interface {
	t.Helper()
	w, err := clientset(t, config).CoreV1().ConfigMaps("default").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next returns the next event of a watch.
func next(t testing.TB, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			t.Fatal("the watch ended, want an event")
		}
		return event
	case <-time.After(30 * time.Second):
		t.Fatal("no event for 30s")
		panic("unreachable")
	}
}

// eventually waits until try returns nil, or fails the test with what try
// returned last.
func eventually(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			last = try(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: %v; last: %v", what, err, last)
	}
}

// version returns a resource version as the number that etcd made it.
func version(t testing.TB, object interface{ GetResourceVersion() string }) int64 {
	t.Helper()
	v, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
