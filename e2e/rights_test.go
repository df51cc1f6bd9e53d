package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-99a027e8/informer"
)

// testRightsComeAndGo runs an informer as somebody who may not list, then may,
// then may not any more. Promises 18 and 20; case 4 (client-go#732,
// cr#1653): the wait says why.
func testRightsComeAndGo(t *testing.T, s *server) {
	namespace := s.namespace("rights")
	s.putMaps(namespace, 0, 20)
	opts := impatient()
	opts.Name, opts.WatchTimeout = "alice's maps", time.Second
	r := runMaps(t, s.user("alice"), namespace, opts)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := r.WaitSynced(ctx)
	if !apierrors.IsForbidden(err) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), opts.Name) {
		t.Errorf("WaitSynced = %v, want a forbidden, out of time, of %s", err, opts.Name)
	}
	status := r.Status()
	if status.State != informer.StateFailing || !apierrors.IsForbidden(status.Err) || status.FailingSince.IsZero() {
		t.Errorf("status = %+v, want failing, forbidden", status)
	}
	if failures := r.failures(); len(failures) == 0 || !apierrors.IsForbidden(failures[0].Err) {
		t.Errorf("failures = %v, want forbidden", failures)
	}

	maps := rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
	s.allow("alice", maps)
	r.waitSynced()
	convergesToMaps(r, s, namespace)
	eventually(t, "the failure is over", func(context.Context) error {
		if status := r.Status(); status.State != informer.StateWatching || status.Err != nil {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})

	// The right is taken away: the cache is kept, and resumes when it is back.
	s.disallow("alice")
	eventually(t, "the informer is failing", func(context.Context) error {
		if status := r.Status(); !apierrors.IsForbidden(status.Err) {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	if got := r.Len(); got < 20 {
		t.Errorf("%d objects while forbidden, want all kept", got)
	}
	s.putMaps(namespace, 10, 40)
	s.allow("alice", maps)
	convergesToMaps(r, s, namespace)
	if got := r.fold.count(informer.Added, informer.CauseRelist); got != 0 {
		t.Errorf("%d additions by a list, want the watch resumed", got)
	}
}

// putMaps writes maps from to to-1.
func (s *server) putMaps(namespace string, from, to int) {
	s.t.Helper()
	maps := clientset(s.t, s.admin()).CoreV1().ConfigMaps(namespace)
	inParallel(s.t, to-from, func(i int) error { return putMap(s.t.Context(), maps, from+i) })
}
