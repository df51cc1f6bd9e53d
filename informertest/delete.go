package informertest

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// defaultGrace is how long a pod takes to go, in seconds, if it does not say.
const defaultGrace = 30

// delete removes an object, or marks it to be removed. It returns the last
// state and whether the object is gone.
func (w writer) delete(t target, opts metav1.DeleteOptions) (last *record, gone bool, err error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.dry = w.dry || slices.Contains(opts.DryRun, metav1.DryRunAll)
	old := w.store.getLocked(t.resource, t.resource.key(t.namespace, t.name))
	if old == nil {
		return nil, false, apierrors.NewNotFound(t.resource.groupResource(), t.name)
	}
	return w.deleteLocked(old, opts)
}

func (w writer) deleteLocked(old *record, opts metav1.DeleteOptions) (last *record, gone bool, err error) {
	obj, err := old.object()
	if err != nil {
		return nil, false, err
	}
	if err := checkPreconditions(old.resource, obj, opts.Preconditions); err != nil {
		return nil, false, err
	}
	if old.resource.is("namespaces") {
		if err := w.emptyLocked(obj.GetName()); err != nil {
			return nil, false, err
		}
	}
	grace := graceOf(old.resource, obj, opts)
	gone = grace == 0 && len(obj.GetFinalizers()) == 0
	last = old
	if !gone || old.resource.is("pods") {
		// A pod is marked before it goes, however fast.
		last, err = w.markLocked(old, obj, grace)
	}
	if gone && err == nil {
		w.removeLocked(last)
	}
	return last, gone, err
}

// markLocked stores that an object is to be deleted, unless that is known. obj
// is the content of old.
func (w writer) markLocked(old *record, obj *object, grace int64) (*record, error) {
	if was := obj.GetDeletionGracePeriodSeconds(); obj.GetDeletionTimestamp() != nil && (was == nil || *was <= grace) {
		return old, nil
	}
	if obj.GetGeneration() > 0 && obj.GetDeletionTimestamp() == nil {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	at := metav1.NewTime(time.Now().UTC().Add(time.Duration(grace) * time.Second))
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	return w.commitLocked(old.resource, old, obj)
}

// emptyLocked deletes what is in a namespace, as a cluster's controller would.
// What has finalizers stays, until they are gone.
func (w writer) emptyLocked(namespace string) error {
	kinds := make([]schema.GroupResource, 0, len(w.store.collections))
	for kind := range w.store.collections {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupResource) int {
		return slices.Compare([]string{a.Group, a.Resource}, []string{b.Group, b.Resource})
	})
	for _, kind := range kinds {
		prefix := namespace + "/"
		c := w.store.collections[kind]
		for _, r := range c.withPrefix(prefix) {
			if _, _, err := w.deleteLocked(r, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPreconditions returns a conflict if obj is not what the client thinks.
func checkPreconditions(res *Resource, obj *object, want *metav1.Preconditions) error {
	if want == nil {
		return nil
	}
	kind := schema.GroupResource{Group: res.Group, Resource: res.Kind}
	if want.UID != nil && *want.UID != obj.GetUID() {
		return apierrors.NewConflict(kind, obj.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). "+
				"The object might have been deleted and then recreated", *want.UID, obj.GetUID()))
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != obj.GetResourceVersion() {
		return apierrors.NewConflict(kind, obj.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
				"The object might have been modified", *want.ResourceVersion, obj.GetResourceVersion()))
	}
	return nil
}

// graceOf returns the seconds that an object has to end. Only a pod that is on
// a node, and not done, needs any: there, its node's agent deletes it for good.
func graceOf(res *Resource, obj *object, opts metav1.DeleteOptions) int64 {
	if !res.is("pods") {
		return 0
	}
	node, _, _ := unstructured.NestedString(obj.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if opts.GracePeriodSeconds != nil {
		return max(*opts.GracePeriodSeconds, 0)
	}
	grace, found, err := unstructured.NestedInt64(obj.Object, "spec", "terminationGracePeriodSeconds")
	if !found || err != nil {
		return defaultGrace
	}
	return grace
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, t target, v view) {
	opts, err := decodeDeleteOptions(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	last, gone, err := s.writer(r).delete(t, opts)
	switch {
	case err != nil:
		writeError(w, err)
	case gone && !t.resource.is("pods"): // those are shown once more
		writeDeleted(w, t, last)
	default:
		writeRecord(w, http.StatusOK, v, last)
	}
}

func writeDeleted(w http.ResponseWriter, t target, last *record) {
	obj, err := last.object()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: t.name, Group: t.resource.Group, Kind: t.resource.Name, UID: obj.GetUID(),
		},
	})
}

// serveDeleteCollection deletes one by one, each at a version of its own.
func (s *Server) serveDeleteCollection(w http.ResponseWriter, r *http.Request, t target, v view) {
	opts, err := decodeDeleteOptions(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	listOpts, sel, err := parseListOptions(r, t)
	if err != nil {
		writeError(w, err)
		return
	}
	p, err := s.store.listAs(r.Context(), listOpts, sel)
	if err != nil {
		writeError(w, err)
		return
	}
	for _, old := range p.records {
		one, err := targetOf(old)
		if err == nil {
			_, _, err = s.writer(r).delete(one, opts)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			writeError(w, err)
			return
		}
	}
	writePage(w, v, p)
}
