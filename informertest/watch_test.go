package informertest_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer/informertest"
)

func plus(t *testing.T, version string, n int) string {
	t.Helper()
	v, err := strconv.Atoi(version)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(v + n)
}

func TestWatchFromVersion(t *testing.T) {
	inBoth(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		start := write(t, srv, configMap("a"))
		w := watchRaw(t, srv, configMaps+"?watch=true&resourceVersion="+start)
		b := write(t, srv, configMap("b"))
		write(t, srv, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		write(t, srv, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "kube-system"}})
		a := update(t, srv, configMap("a", "k=v"))
		gone := remove(t, srv, configMap("a"))
		w.want("ADDED b@"+b, "MODIFIED a@"+a)
		// A deletion carries the last state at the version of the deletion.
		event, object := w.nextObject()
		if event != "DELETED" || at(object, "metadata", "resourceVersion") != gone || at(object, "metadata", "labels", "k") != "v" {
			t.Errorf("deletion = %s %v", event, object)
		}
		if object["kind"] != "ConfigMap" || object["apiVersion"] != "v1" {
			t.Errorf("deletion = %v, want kind and apiVersion", object)
		}
	})
}

func TestWatchSelection(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		start := srv.Version()
		w := watchRaw(t, srv, configMaps+"?watch=true&labelSelector=app%3Dweb&resourceVersion="+start)
		write(t, srv, configMap("a", "app=db"))
		in := update(t, srv, configMap("a", "app=web"))
		stays := update(t, srv, configMap("a", "app=web", "more=yes"))
		out := update(t, srv, configMap("a", "app=db"))
		remove(t, srv, configMap("a"))
		b := write(t, srv, configMap("b", "app=web"))
		w.want("ADDED a@"+in, "MODIFIED a@"+stays)
		event, object := w.nextObject()
		if event != "DELETED" || at(object, "metadata", "resourceVersion") != out || at(object, "metadata", "labels", "more") != "yes" {
			t.Errorf("leaving = %s %v, want the last matching state at version %s", event, object, out)
		}
		w.want("ADDED b@" + b)
	})
}

// Without a version, or with "0", a watch starts with the current objects; with
// bookmarks allowed, their end is marked, as in a streaming list.
func TestWatchInitial(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		b := write(t, srv, configMap("b"))
		a := write(t, srv, configMap("a"))
		now := write(t, srv, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		stream := "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
		var open []func(...string)
		for query, ends := range map[string]bool{
			"":                                      false,
			"&resourceVersion=0":                    false,
			"&allowWatchBookmarks=true":             true,
			stream:                                  false,
			stream + "&allowWatchBookmarks=true":    true,
			stream + "&resourceVersion=0":           false,
			stream + "&resourceVersion=" + b:        false,
			stream + "&labelSelector=!x&timeout=5s": false,
		} {
			t.Log(query)
			w := watchRaw(t, srv, configMaps+"?watch=true"+query)
			w.want("ADDED a@"+a, "ADDED b@"+b)
			if ends {
				w.want("BOOKMARK end@" + now)
			}
			open = append(open, w.want)
		}
		c := write(t, srv, configMap("c"))
		for _, want := range open {
			want("ADDED c@" + c)
		}
		// Initial events can be declined.
		w := watchRaw(t, srv, configMaps+"?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
		d := write(t, srv, configMap("d"))
		w.want("ADDED d@" + d)
	})
}

func TestWatchInvalid(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		for query, message := range map[string]string{
			"sendInitialEvents=true":                                                  "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
			"resourceVersionMatch=NotOlderThan&resourceVersion=5":                     "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
			"resourceVersionMatch=Exact&sendInitialEvents=true&resourceVersion=5":     "Unsupported value",
			"resourceVersionMatch=NotOlderThan&sendInitialEvents=true&continue=aaaaa": "resourceVersionMatch is forbidden when continue is provided",
		} {
			t.Log(query)
			wantError(t, ask(t, srv, "GET", configMaps+"?watch=true&"+query, ""), 422, metav1.StatusReasonInvalid, message)
		}
		wantError(t, ask(t, srv, "GET", configMaps+"?watch=true&resourceVersion=x", ""), 500, "", `resourceVersion: Invalid value: "x"`)
		wantError(t, ask(t, srv, "GET", configMaps+"?watch=true&timeoutSeconds=x", ""), 400, metav1.StatusReasonBadRequest, "")
		wantError(t, ask(t, srv, "GET", configMaps+"?watch=true&labelSelector=!!", ""), 400, metav1.StatusReasonBadRequest, "")
	})
}

func TestWatchExpired(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		old := write(t, srv, configMap("a"))
		idle := watchRaw(t, srv, configMaps+"?watch=true&resourceVersion="+old)
		now := write(t, srv, configMap("b"))
		idle.want("ADDED b@" + now)
		synctest.Wait()
		srv.Compact()
		watchRaw(t, srv, configMaps+"?watch=true&resourceVersion="+old).want(
			fmt.Sprintf("ERROR 410 too old resource version: %s (%s)", old, now), "closed")
		w := watchRaw(t, srv, configMaps+"?watch=true&resourceVersion="+now)
		c := write(t, srv, configMap("c"))
		w.want("ADDED c@" + c)
		idle.want("ADDED c@" + c) // an open watch does not notice
	})
}

// A watch at a version that is not reached yet: silence, then what comes after
// that version.
func TestWatchFuture(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		w := watchRaw(t, srv, configMaps+"?watch=true&allowWatchBookmarks=true&timeoutSeconds=340&resourceVersion="+plus(t, srv.Version(), 2))
		pass(310 * time.Second)
		write(t, srv, configMap("a"), configMap("b"))
		c := write(t, srv, configMap("c"))
		w.want("ADDED c@"+c, "BOOKMARK @"+c, "closed")

		future := plus(t, srv.Version(), 5)
		start := time.Now()
		watchRaw(t, srv, configMaps+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion="+future).want(
			fmt.Sprintf("ERROR 504 Timeout: Too large resource version: %s, current: %s", future, srv.Version()), "closed")
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3s", took)
		}
	})
}

func TestWatchTimeout(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		start := time.Now()
		watchRaw(t, srv, configMaps+"?watch=true&timeoutSeconds=7").want("closed")
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("took %v, want 7s", took)
		}
		start = time.Now()
		watchRaw(t, srv, configMaps+"?watch=true").want("closed")
		if took := time.Since(start); took < 30*time.Minute || took > time.Hour {
			t.Errorf("took %v, want 30 to 60 min", took)
		}
	})
}

// Bookmarks come each interval and two seconds before the end, once something,
// of whatever resource, has been written since the start.
func TestWatchBookmarks(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		start := time.Now()
		url := configMaps + "?watch=true&timeoutSeconds=270&resourceVersion=" + srv.Version()
		w := watchRaw(t, srv, url+"&allowWatchBookmarks=true")
		silent := watchRaw(t, srv, url)
		pass(90 * time.Second) // the first one has nothing to say
		secret := write(t, srv, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		event, object := w.nextObject()
		if event != "BOOKMARK" || at(object, "metadata", "resourceVersion") != secret || object["kind"] != "ConfigMap" || at(object, "metadata", "annotations") != nil {
			t.Errorf("bookmark = %s %v", event, object)
		}
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("first bookmark after %v, want 2m", took)
		}
		a := write(t, srv, configMap("a"))
		w.want("ADDED a@"+a, "BOOKMARK @"+a, "BOOKMARK @"+a)
		if took := time.Since(start); took != 4*time.Minute {
			t.Errorf("third bookmark after %v, want 4m", took)
		}
		w.want("BOOKMARK @" + a)
		if took := time.Since(start); took != 268*time.Second {
			t.Errorf("last bookmark after %v, want 268s", took)
		}
		w.want("closed")
		silent.want("ADDED a@"+a, "closed")
	})
}

// The interval can be set.
func TestBookmarkInterval(t *testing.T) {
	inBubble(t, informertest.Options{BookmarkInterval: 7 * time.Second}, func(t *testing.T, srv *informertest.Server) {
		w := watchRaw(t, srv, configMaps+"?watch=true&allowWatchBookmarks=true&resourceVersion="+srv.Version())
		start := time.Now()
		secret := write(t, srv, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		w.want("BOOKMARK @"+secret, "BOOKMARK @"+secret)
		if took := time.Since(start); took != 14*time.Second {
			t.Errorf("second bookmark after %v, want 14s", took)
		}
	})
}

// A client that does not read for so long that history passes it by finds the
// stream closed, and nothing missing before that.
func TestWatchSlowClient(t *testing.T) {
	inBubble(t, informertest.Options{History: 10}, func(t *testing.T, srv *informertest.Server) {
		w := watchRaw(t, srv, configMaps+"?watch=true&resourceVersion="+srv.Version())
		var versions []string
		for i := range 1000 {
			cm := configMap(fmt.Sprintf("c%03d", i))
			cm.Data = map[string]string{"x": string(make([]byte, 1000))}
			versions = append(versions, write(t, srv, cm))
			synctest.Wait()
		}
		for i, version := range versions {
			got := w.next()
			if got == "closed" && i > 0 {
				return
			}
			if want := fmt.Sprintf("ADDED c%03d@%s", i, version); got != want {
				t.Fatalf("event %d = %q, want %q", i, got, want)
			}
		}
		t.Error("the stream was not closed")
	})
}
