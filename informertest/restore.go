package informertest

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Restore takes the server back to the state and the version that it had when
// [Server.Version] returned version, as an etcd that is restored from a backup:
// writes of after are forgotten, and their versions are given again. Watches
// that are open end. A client that asks only after the version which it has seen
// has been given again cannot know of it.
//
// Restore returns an error if the history does not go back so far, or if there
// were not all namespaces yet that are there from the start.
func (s *Server) Restore(version string) error {
	point, err := s.parsePoint(version)
	if err != nil {
		return fmt.Errorf("informertest: restore to version %q: %w", version, err)
	}
	return s.store.restore(point)
}

// EndWatches ends all watches that are open, as a server does that restarts.
func (s *Server) EndWatches() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.epoch++
	s.store.wakeLocked()
}

// Recreate deletes the object that obj names and creates it again, as it was but
// for its UID and what else a server decides, and returns its version. It must
// have no finalizers.
func (s *Server) Recreate(obj APIObject) (version string, err error) {
	t, _, err := s.targetOf(obj)
	if err != nil {
		return "", err
	}
	return s.recreate(t)
}

func (s *Server) recreate(t target) (version string, err error) {
	found, err := s.get(t)
	if err != nil {
		return "", err
	}
	obj, err := found.object()
	if err != nil {
		return "", err
	}
	if _, _, err := s.direct().delete(t, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return "", err
	}
	obj.SetResourceVersion("")
	created, err := s.direct().create(t, obj)
	if err != nil {
		return "", err
	}
	return formatVersion(created.version), nil
}

// restore goes back to a version, and ends all watches.
func (s *store) restore(version int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.floor || version > s.version {
		return fmt.Errorf("informertest: restore to version %d: the history is from %d to %d", version, s.floor, s.version)
	}
	later := s.sinceLocked(version)
	for _, c := range slices.Backward(later) {
		s.replaceLocked(c.new, c.old)
	}
	clear(later)
	s.history = s.history[:len(s.history)-len(later)]
	s.version = version
	s.epoch++
	s.wakeLocked()
	return nil
}

// names reports whether a resource of that name is known.
func (c catalog) names(name string) bool {
	return slices.ContainsFunc(c, func(res *Resource) bool { return res.Name == name })
}

// pageOf returns which page a token is for, from 1.
func pageOf(encoded string) int {
	t, err := decodeToken(encoded)
	if err != nil {
		return 1
	}
	return max(t.Page, 1)
}
