// Package copier is a controller: it keeps a copy of one ConfigMap in every
// namespace that carries a label.
//
// When the ConfigMap changes, the copies follow; what others do to a copy is
// undone; and when a namespace loses the label, or the ConfigMap is deleted,
// the copies go. A ConfigMap of the same name that the controller did not make
// is left alone.
//
// Its client needs these rights: get, list and watch namespaces; get, list,
// watch, create, update and delete configmaps in all namespaces; get, create
// and update leases in the namespace of the ConfigMap.
package copier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// Options tunes a [Copier].
type Options struct {
	// Source is the ConfigMap that is copied. Required.
	Source informer.Key

	// Label is the key of the label of namespaces that are to have a copy; its
	// value does not matter. Required.
	Label string

	// Identity is this replica among those that compete to be the leader.
	//
	// Default: the host name and the process ID.
	Identity string

	// LeaseDuration is how long the others wait for a leader that is silent.
	//
	// Default: 15s.
	LeaseDuration time.Duration

	// Grace is how long the work that is at hand may take at the end.
	//
	// Default: 10s.
	Grace time.Duration

	// Workers is how many namespaces are worked on at a time.
	//
	// Default: 4.
	Workers int

	// Logger is told what the controller does.
	//
	// Default: no logs.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Source.Namespace == "" || o.Source.Name == "" || o.Label == "" {
		return o, errors.New("copier: Source and Label are required")
	}
	if o.LeaseDuration < 0 || o.Grace < 0 || o.Workers < 0 {
		return o, errors.New("copier: LeaseDuration, Grace and Workers must not be negative")
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("copier: no Identity: %w", err)
		}
		o.Identity = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if o.LeaseDuration == 0 {
		o.LeaseDuration = 15 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Counts is what a [Copier] has done so far.
type Counts struct {
	// Synced is how many objects were there when both caches were complete.
	Synced int64
	// Changes counts the changes that came after that.
	Changes int64
	// Reconciled counts the keys that were worked off without an error.
	Reconciled int64
	// Retries counts the keys that were put back because of an error.
	Retries int64
	// Conflicts counts the retries because someone else was faster.
	Conflicts int64
	// Created, Updated and Deleted count the writes.
	Created, Updated, Deleted int64
	// Repaired counts those writes that undid what someone else did to a copy.
	Repaired int64
}

// A Copier is the controller. Make one with [New].
type Copier struct {
	opts   Options
	client kubernetes.Interface
	log    *slog.Logger

	namespaces *informer.Informer[*corev1.Namespace]
	configMaps *informer.Informer[*corev1.ConfigMap] // the source, and all copies
	byLabel    *informer.Index[string, *corev1.Namespace]
	queue      *informer.WorkQueue[string] // names of namespaces

	synced, changes, reconciled, retries, conflicts atomic.Int64
	created, updated, deleted, repaired             atomic.Int64

	mu    sync.Mutex        // guards right
	right map[string]string // by namespace: the last version of a copy that was right
}

// New returns a controller that works through client. It starts nothing: see
// Run.
func New(client kubernetes.Interface, opts Options) (*Copier, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Copier{opts: opts, client: client, log: opts.Logger, right: make(map[string]string)}
	if err := c.addCaches(); err != nil {
		return nil, err
	}
	return c, c.addQueue()
}

// addCaches makes the informers, and the index.
func (c *Copier) addCaches() (err error) {
	c.namespaces, err = informer.New(
		informer.FromClient[*corev1.Namespace](c.client.CoreV1().Namespaces()),
		informer.Options{Name: "namespaces", Logger: c.log})
	if err != nil {
		return err
	}
	// A copy has the name of the source, so one field selector finds both, and
	// the many other ConfigMaps of a cluster never leave the server.
	c.configMaps, err = informer.New(
		informer.FromClient[*corev1.ConfigMap](c.client.CoreV1().ConfigMaps("")),
		informer.Options{
			Name: "configmaps", Logger: c.log,
			FieldSelector: fields.OneTermEqualSelector("metadata.name", c.opts.Source.Name).String(),
		})
	if err != nil {
		return err
	}
	c.byLabel, err = informer.AddMultiIndex(c.namespaces, "label", func(ns *corev1.Namespace, file func(string)) {
		for label := range ns.Labels {
			file(label)
		}
	})
	return err
}

// addQueue makes the queue, and connects it with the informers.
func (c *Copier) addQueue() (err error) {
	c.queue, err = informer.NewWorkQueue(informer.QueueOptions[string]{Name: "copier", OnError: c.failed})
	if err != nil {
		return err
	}
	_, err = informer.EnqueueEach(c.namespaces, c.queue, func(ns *corev1.Namespace, add func(string)) {
		add(ns.Name)
	})
	if err != nil {
		return err
	}
	_, err = informer.EnqueueEach(c.configMaps, c.queue, func(cm *corev1.ConfigMap, add func(string)) {
		add(cm.Namespace)
		if informer.KeyOf(cm) != c.opts.Source {
			return
		}
		// All copies follow the source. A namespace that gets the label only
		// later, or is not in the cache yet, is added by its own change.
		for ns := range c.byLabel.Get(c.opts.Label) {
			add(ns.Name)
		}
	})
	if err != nil {
		return err
	}
	return errors.Join(count(c.namespaces, &c.changes), count(c.configMaps, &c.changes))
}

// count adds the changes of an informer to n.
func count[T informer.Object](of *informer.Informer[T], n *atomic.Int64) error {
	_, err := of.AddHandler(func(c informer.Change[T]) {
		if c.Cause != informer.CauseInitial {
			n.Add(1)
		}
	}, informer.HandlerOptions{Name: "count"})
	return err
}

// WaitSynced waits until both caches are complete, and returns why they are not
// if ctx ends before.
func (c *Copier) WaitSynced(ctx context.Context) error {
	return informer.WaitSynced(ctx, c.namespaces, c.configMaps)
}

// Pending returns how many namespaces wait to be worked on.
func (c *Copier) Pending() int { return c.queue.Len() }

// Counts returns what was done so far.
func (c *Copier) Counts() Counts {
	return Counts{
		Synced: c.synced.Load(), Changes: c.changes.Load(), Reconciled: c.reconciled.Load(),
		Retries: c.retries.Load(), Conflicts: c.conflicts.Load(), Created: c.created.Load(),
		Updated: c.updated.Load(), Deleted: c.deleted.Load(), Repaired: c.repaired.Load(),
	}
}
