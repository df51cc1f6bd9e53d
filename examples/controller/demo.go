package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/examples/cluster"
	"github.com/seed-99a027e8/informer/examples/controller/copier"
	"github.com/seed-99a027e8/informer/informertest"
)

const (
	demoLabel  = "example.com/app-config"
	teams      = 400 // namespaces
	teamStride = 10  // every so manieth has the label
	orphans    = 5   // copies in namespaces without the label

	// calm is the time at the end in which nobody disturbs the controller: all
	// is right then.
	calm = 1500 * time.Millisecond

	linkBurst   = 32                    // writes of an answer before each
	linkPause   = 60 * time.Millisecond // pause in it
	writeDelay  = 10 * time.Millisecond // of each write of the controller
	failedWrite = 9                     // one write in so many is answered 500
)

func sourceKey() informer.Key { return informer.Key{Namespace: "default", Name: "app-config"} }

func team(i int) string { return fmt.Sprintf("team-%03d", i%teams) }

// demo is the controller on an embedded server, where others are at work too,
// and where not all goes well.
type demo struct {
	server *informertest.Server
	length time.Duration // 0: until interrupted
	out    io.Writer
	log    *slog.Logger
	copier *copier.Copier
	begun  chan struct{} // closed when the first pass is done: the others begin
}

// newDemo returns a demo whose server has its data.
func newDemo(length time.Duration, out io.Writer) (*demo, error) {
	d := &demo{length: length, out: out, log: newLogger(out), begun: make(chan struct{})}
	server, err := informertest.NewServer(informertest.Options{Intercept: weather, Record: 1 << 16})
	if err != nil {
		return nil, err
	}
	d.server = server
	if d.copier, err = newCopier(server.Config(), copier.Options{
		Source: sourceKey(), Label: demoLabel, Logger: d.log,
	}); err != nil {
		return nil, err
	}
	return d, d.fill()
}

// run is the demo. It ends by itself after its length.
func (d *demo) run(ctx context.Context) error {
	if d.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.length)
		defer cancel()
	}
	err := cluster.Serve(ctx, d.server, d.disturb, func(ctx context.Context, _ *rest.Config) error {
		done := make(chan error, 1)
		go func() { done <- d.copier.Run(ctx) }()
		d.firstPass(ctx)
		return <-done
	})
	n := d.copier.Counts()
	fmt.Fprintf(d.out, "demo: synced=%d changes=%d reconciled=%d retries=%d repaired=%d\n",
		n.Synced, n.Changes, n.Reconciled, n.Retries, n.Repaired)
	return err
}

// firstPass returns when every namespace has been looked at once.
func (d *demo) firstPass(ctx context.Context) {
	if d.copier.WaitSynced(ctx) != nil {
		return // Run says why
	}
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for d.copier.Pending() > 0 || d.copier.Counts().Reconciled < teams {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		d.log.Info("first pass", "reconciled", d.copier.Counts().Reconciled, "pending", d.copier.Pending())
	}
	close(d.begun)
}

// disturb has someone do something, now and then, until it is time to be calm.
func (d *demo) disturb(ctx context.Context) error {
	if d.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.length-calm)
		defer cancel()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-d.begun:
	}
	config := d.server.Config()
	config.UserAgent = rivalAgent
	return disturb(ctx, config, d.log)
}

// fill creates the source and the namespaces, and what an earlier run of the
// controller may have left: copies, some of them old, some not wanted any more.
func (d *demo) fill() error {
	source := configMap(sourceKey().Namespace)
	version, err := d.server.Create(source)
	if err != nil {
		return err
	}
	for i := range teams {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team(i)}}
		wanted := i%teamStride == 0
		if wanted {
			ns.Labels = map[string]string{demoLabel: ""}
		}
		if _, err := d.server.Create(ns); err != nil {
			return err
		}
		of := version
		switch {
		case wanted && i%4 == 0: // right
		case wanted && i%3 == 0, !wanted && i < orphans*teamStride && i%teamStride == 1:
			of = "1" // out of date, or in the wrong place
		default:
			continue
		}
		if _, err := d.server.Create(copyOf(team(i), of)); err != nil {
			return err
		}
	}
	return nil
}

// configMap returns a ConfigMap as the source is at first.
func configMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sourceKey().Name},
		Data:       map[string]string{"log-level": "info", "revision": "0"},
	}
}

// copyOf returns a copy that was made of a version of the source.
func copyOf(namespace, version string) *corev1.ConfigMap {
	cm := configMap(namespace)
	cm.Labels = map[string]string{copier.LabelCopyOf: sourceKey().Namespace}
	cm.Annotations = map[string]string{copier.AnnotationVersion: version}
	return cm
}

// weather makes an API server like a busy one behind a slow link: watches
// pause, the writes of the controller take time, and some of them fail.
func weather(next http.Handler) http.Handler {
	var writes atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			w = &slowWriter{ResponseWriter: w}
		case r.UserAgent() == copierAgent && strings.Contains(r.URL.Path, "/configmaps"):
			time.Sleep(writeDelay)
			if writes.Add(1)%failedWrite == 0 {
				http.Error(w, "the database is busy", http.StatusInternalServerError)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// slowWriter pauses now and then. Only one goroutine writes an answer.
type slowWriter struct {
	http.ResponseWriter
	writes int
}

// Write writes, perhaps later.
func (w *slowWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes%linkBurst == 0 {
		time.Sleep(linkPause)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find what the server's own writer can.
func (w *slowWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
