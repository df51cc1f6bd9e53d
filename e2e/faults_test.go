package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
)

// testNetworkSwallows lets the network swallow everything in mid-watch, without
// an end. Promise 10; case 5 (client-go#755, external-dns#1458,
// fabric8#6379): the watch is given up and asked for again from the same version,
// no list.
func testNetworkSwallows(t *testing.T, s *server) {
	for _, test := range []struct {
		name   string
		change func(*rest.Config)
	}{
		// HTTP/2 also sends the second watch into the dead connection, until
		// its own health check, half a minute later, closes that.
		{"http2", func(*rest.Config) {}},
		{"http1", func(c *rest.Config) { c.NextProtos = []string{"http/1.1"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := s.with(t)
			namespace := s.namespace("swallowed-" + test.name)
			s.putMaps(namespace, 0, 10)
			p := startProxy(t, s.address())
			var seen recorder
			config := seen.record(p.through(s.admin()))
			test.change(config)
			opts := impatient()
			opts.WatchTimeout = 5 * time.Second
			r := runMaps(t, config, namespace, opts)
			r.waitSynced()
			convergesToMaps(r, s, namespace)
			nextWatch(t, &seen, time.Time{}) // one that is not a streaming list

			p.swallow()
			dead := time.Now()
			version := r.Status().Version
			s.putMaps(namespace, 5, 15) // which nobody hears of
			second := nextWatch(t, &seen, dead)
			if took := second.at.Sub(dead); took > 10*time.Second {
				t.Errorf("the next watch came after %v, want at most 10s", took)
			}
			if got := second.query.Get("resourceVersion"); got != version {
				t.Errorf("the next watch is from version %s, want %s", got, version)
			}
			p.pass()
			convergesToMaps(r, s, namespace)
			listsFollowExpiries(r, &seen)
			t.Logf("recovered after %v", time.Since(dead).Round(time.Millisecond))
		})
	}
}

// nextWatch waits for a watch, other than a streaming list, that began after a
// time.
func nextWatch(t testing.TB, seen *recorder, after time.Time) (next request) {
	t.Helper()
	eventually(t, "another watch", func(context.Context) error {
		watches := seen.matching(func(req request) bool { return req.isWatch() && req.at.After(after) })
		if len(watches) == 0 {
			return fmt.Errorf("none")
		}
		next = watches[0]
		return nil
	})
	return next
}

// testNetworkCuts resets the connections in mid-watch, again and again, and
// refuses new ones for a while. Promises 3, 5, 9 and 11: no list.
func testNetworkCuts(t *testing.T, s *server) {
	namespace := s.namespace("cut")
	s.putMaps(namespace, 0, 10)
	p := startProxy(t, s.address())
	var seen recorder
	r := runMaps(t, seen.record(p.through(s.admin())), namespace, impatient())
	r.waitSynced()
	for i := range 5 {
		s.putMaps(namespace, i, i+10)
		p.cut()
		s.putMaps(namespace, i+5, i+15)
		deleteMaps(t, s, namespace, i, i+2)
		s.putMaps(namespace, i, i+2) // the same names, but other UIDs
		convergesToMaps(r, s, namespace)
	}
	p.refuse()
	p.cut()
	s.putMaps(namespace, 0, 30)
	eventually(t, "the informer is failing", func(context.Context) error {
		if status := r.Status(); status.State != informer.StateFailing {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	p.pass()
	convergesToMaps(r, s, namespace)
	listsFollowExpiries(r, &seen)
}

// testNetworkDelays has a slow network, between a list and a watch and in them.
// Promises 3 and 8.
func testNetworkDelays(t *testing.T, s *server) {
	namespace := s.namespace("delayed")
	s.putMaps(namespace, 0, 50)
	p := startProxy(t, s.address())
	p.delay(200 * time.Millisecond)
	var seen recorder
	r := runMaps(t, seen.record(p.through(s.admin())), namespace, impatient())
	s.putMaps(namespace, 25, 75)
	r.waitSynced()
	s.putMaps(namespace, 50, 100)
	convergesToMaps(r, s, namespace)
	listsFollowExpiries(r, &seen)
	if failures := r.failures(); len(failures) != 0 {
		t.Errorf("failures = %v, want none", failures)
	}
}

// TestServerRestarts ends the API server in mid-watch, by a crash or in order,
// and starts it again on its data, with changes that the informer cannot have
// seen around it. Promises 3, 9 and 11; case 17: as many lists as the server
// answered 410.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	p := startProxy(t, s.address())
	namespace := s.namespace("restarts")
	s.putMaps(namespace, 0, 50)
	var seen, seenREST recorder
	r := runMaps(t, seen.record(p.through(s.admin())), namespace, impatient())
	rest := run(t, restMapsOf(t, seenREST.record(p.through(s.admin())), namespace), impatient())
	// The third one sees all of it: refusals, and a server that is not ready.
	direct := runMaps(t, s.admin(), namespace, impatient())
	r.waitSynced()
	rest.waitSynced()
	for i, end := range []func(*server){(*server).kill, (*server).stop, (*server).kill, (*server).stop} {
		s.putMaps(namespace, 10*i, 10*i+50) // may be seen, or not
		end(s)
		p.refuse()
		p.cut()
		s.start()
		s.putMaps(namespace, 10*i+30, 10*i+60)
		deleteMaps(t, s, namespace, 10*i, 10*i+10)
		p.pass()
		convergesToMaps(r, s, namespace)
		convergesToMaps(rest, s, namespace)
		convergesToMaps(direct, s, namespace)
		t.Logf("round %d: %d answers of 410", i, len(seen.expired()))
	}
	listsFollowExpiries(r, &seen)
	listsFollowExpiries(rest, &seenREST)
}

// restMapsOf returns a source like mapsOf, but by FromREST.
func restMapsOf(t testing.TB, config *rest.Config, namespace string) informer.ListerWatcher[*corev1.ConfigMap] {
	t.Helper()
	return informer.FromREST[corev1.ConfigMap](clientset(t, config).CoreV1().RESTClient(),
		corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{Namespace: namespace})
}
