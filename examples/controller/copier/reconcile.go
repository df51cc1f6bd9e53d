package copier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

const (
	// LabelCopyOf marks a copy as one. Its value is the namespace of the source,
	// whose name is that of the copy.
	LabelCopyOf = "copier.example.com/copy-of"
	// AnnotationVersion tells which version of the source a copy was made of.
	AnnotationVersion = "copier.example.com/source-version"
	// manager is the name under which the server records the writes.
	manager = "copier"
	// ownWrite is how long to wait for a write to show up in the cache.
	ownWrite = 10 * time.Second
)

// errNotOurs means that a copy cannot be made.
var errNotOurs = errors.New("there is a ConfigMap of that name that is not a copy")

// reconcile makes one namespace right, whatever it was that changed.
//
// It is level-triggered: it compares what should be with what is, both from the
// cache, and makes one step. If that fails, the key comes back after a while; by
// then the cache knows better, so that a conflict needs no care of its own.
func (c *Copier) reconcile(ctx context.Context, namespace string) error {
	now := c.configMaps.Snapshot() // the source and the copy, as of one moment
	source, hasSource := now.Get(c.opts.Source)
	have, exists := now.Get(informer.Key{Namespace: namespace, Name: c.opts.Source.Name})
	wanted := hasSource && c.wants(namespace)

	var err error
	switch {
	case namespace == c.opts.Source.Namespace:
		// the source itself
	case exists && have.Labels[LabelCopyOf] != c.opts.Source.Namespace:
		if wanted {
			err = informer.Terminal(errNotOurs) // until it changes
		}
	case wanted && !exists:
		err = c.create(ctx, c.copyOf(source, namespace))
	case wanted:
		err = c.update(ctx, have, c.copyOf(source, namespace))
	case exists:
		err = c.remove(ctx, have)
	default:
		c.forget(namespace)
	}
	if err == nil {
		c.reconciled.Add(1)
	}
	return err
}

// failed is told of every error of reconcile, before the key comes back.
func (c *Copier) failed(namespace string, err error) {
	if errors.Is(err, errNotOurs) {
		c.log.Warn("no copy", "namespace", namespace, "err", err)
		return
	}
	c.retries.Add(1)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		c.conflicts.Add(1)
	}
	c.log.Info("will try again", "namespace", namespace, "err", err)
}

// wants reports whether a namespace is to have a copy.
func (c *Copier) wants(namespace string) bool {
	ns, ok := c.namespaces.Get(informer.Key{Name: namespace})
	if !ok || ns.DeletionTimestamp != nil { // the server would refuse
		return false
	}
	_, labelled := ns.Labels[c.opts.Label]
	return labelled
}

// copyOf returns what the copy of source in a namespace should be. It shares
// the data with the source, and must not be changed. A copy is never immutable:
// it has to follow.
func (c *Copier) copyOf(source *corev1.ConfigMap, namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: source.Name,
			Labels:      map[string]string{LabelCopyOf: source.Namespace},
			Annotations: map[string]string{AnnotationVersion: source.ResourceVersion},
		},
		Data:       source.Data,
		BinaryData: source.BinaryData,
	}
}

func (c *Copier) create(ctx context.Context, want *corev1.ConfigMap) error {
	created, err := c.client.CoreV1().ConfigMaps(want.Namespace).Create(ctx, want, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return err
	}
	c.created.Add(1)
	if c.lastRight(want.Namespace) != "" {
		c.repaired.Add(1)
		c.log.Info("repaired: the copy was deleted", "namespace", want.Namespace)
	} else {
		c.log.Info("created the copy", "namespace", want.Namespace)
	}
	return c.written(ctx, created)
}

func (c *Copier) update(ctx context.Context, have, want *corev1.ConfigMap) error {
	if have.Annotations[AnnotationVersion] == want.Annotations[AnnotationVersion] && sameData(have, want) {
		c.remember(have)
		return nil
	}
	next := have.DeepCopy() // the cache's objects are shared
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, AnnotationVersion, want.Annotations[AnnotationVersion])
	next.Data, next.BinaryData = want.Data, want.BinaryData

	// The version of have goes with it: if the copy is not at that version any
	// more, the server answers with a conflict, and nothing is overwritten that
	// this controller has not seen.
	updated, err := c.client.CoreV1().ConfigMaps(next.Namespace).Update(ctx, next, metav1.UpdateOptions{FieldManager: manager})
	if err != nil {
		return err
	}
	c.updated.Add(1)
	if right := c.lastRight(have.Namespace); right != "" && right != have.ResourceVersion {
		c.repaired.Add(1)
		c.log.Info("repaired: the copy was changed", "namespace", have.Namespace)
	} else {
		c.log.Debug("the copy follows the source", "namespace", have.Namespace)
	}
	return c.written(ctx, updated)
}

// remove deletes a copy, if it is still the one that is known.
func (c *Copier) remove(ctx context.Context, have *corev1.ConfigMap) error {
	err := c.client.CoreV1().ConfigMaps(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c.forget(have.Namespace) // that it is missing from now on is no drift
	if err == nil {
		c.deleted.Add(1)
		c.log.Info("deleted the copy", "namespace", have.Namespace)
	}
	ctx, cancel := context.WithTimeout(ctx, ownWrite)
	defer cancel()
	return c.configMaps.WaitUntil(ctx, func(now informer.Reader[*corev1.ConfigMap]) bool {
		left, exists := now.Get(informer.KeyOf(have))
		return !exists || left.UID != have.UID || left.DeletionTimestamp != nil
	})
}

// written returns when the cache shows what was written. Without that, the next
// call for the same key could still see the state of before, and write again.
func (c *Copier) written(ctx context.Context, cm *corev1.ConfigMap) error {
	c.remember(cm)
	ctx, cancel := context.WithTimeout(ctx, ownWrite)
	defer cancel()
	if err := c.configMaps.WaitForResourceVersion(ctx, cm.ResourceVersion); err != nil {
		return fmt.Errorf("written, but not seen yet: %w", err)
	}
	return nil
}

// remember notes that this version of a copy is right.
func (c *Copier) remember(cm *corev1.ConfigMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.right[cm.Namespace] = cm.ResourceVersion
}

// forget notes that a namespace is to have no copy.
func (c *Copier) forget(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.right, namespace)
}

// lastRight returns the version of the copy that was right, as far as this
// replica knows: another one now was not made by the controller.
func (c *Copier) lastRight(namespace string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.right[namespace]
}

// sameData reports whether two ConfigMaps hold the same.
func sameData(a, b *corev1.ConfigMap) bool {
	return maps.Equal(a.Data, b.Data) && maps.EqualFunc(a.BinaryData, b.BinaryData, func(x, y []byte) bool {
		return string(x) == string(y)
	})
}
