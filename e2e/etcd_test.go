package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcd returns a client of the server's etcd, to look or to do harm behind the
// API server's back. The client is closed with the test.
func (s *server) etcd() *clientv3.Client {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{fmt.Sprintf("http://127.0.0.1:%d", s.etcdPort)},
		DialTimeout: 10 * time.Second,
	})
	if err != nil {
		s.t.Fatalf("etcd: %v", err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// currentRevision returns etcd's newest revision, which is the newest resource
// version of the server. The server itself writes now and then, so it moves.
func (s *server) currentRevision() int64 {
	s.t.Helper()
	got, err := s.etcd().Get(s.t.Context(), "any")
	if err != nil {
		s.t.Fatalf("currentRevision: %v", err)
	}
	return got.Header.Revision
}

// compact makes etcd forget what was before revision. The watch cache of a
// running API server still knows: a client sees nothing of it before a restart,
// unless the server runs with --watch-cache=false.
func (s *server) compact(revision int64) {
	s.t.Helper()
	_, err := s.etcd().Compact(s.t.Context(), revision, clientv3.WithCompactPhysical())
	if err != nil {
		s.t.Fatalf("compact(%d): %v", revision, err)
	}
}

// backup is a copy of etcd's data.
type backup struct{ dir string }

// backup copies etcd's data. The server must be down.
func (s *server) backup() backup {
	s.t.Helper()
	s.mustBeDown("backup")
	b := backup{dir: filepath.Join(s.t.TempDir(), "etcd")}
	s.copyTree(b.dir, s.etcdDir())
	return b
}

// restore puts etcd back to where it was at the backup, which may be restored
// any number of times. The server must be down.
func (s *server) restore(b backup) {
	s.t.Helper()
	s.mustBeDown("restore")
	if err := os.RemoveAll(s.etcdDir()); err != nil {
		s.t.Fatalf("restore: %v", err)
	}
	s.copyTree(s.etcdDir(), b.dir)
}

func (s *server) etcdDir() string { return filepath.Join(s.dir, "etcd") }

func (s *server) copyTree(to, from string) {
	s.t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		s.t.Fatalf("copy of etcd's data: %v", err)
	}
}

func (s *server) mustBeDown(what string) {
	s.t.Helper()
	if s.process != nil {
		s.t.Fatalf("%s: the server is running", what)
	}
}
