package informertest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	generateTries   = 8  // as often a generated name may be taken
	generatePrefix  = 58 // bytes of generateName that are used
	generateSuffix  = 5  // random bytes behind it
	modifiedMessage = "the object has been modified; please apply your changes to the latest version and try again"
)

// writer makes changes to the store.
type writer struct {
	store *store
	known catalog
	dry   bool // only finds out what would happen
	whole bool // an object is written with its status
}

// commitLocked stores obj in place of old, which is nil for a new object.
func (w writer) commitLocked(res *Resource, old *record, obj *object) (*record, error) {
	if w.dry { // what would come of it has the version of what it comes from
		var version int64
		if old != nil {
			version = old.version
		}
		return newRecord(res, obj, version)
	}
	next, err := newRecord(res, obj, w.store.version+1)
	if err == nil {
		w.store.commitLocked(old, next)
	}
	return next, err
}

// removeLocked removes old.
func (w writer) removeLocked(old *record) {
	if !w.dry {
		w.store.commitLocked(old, nil)
	}
}

// create adds obj, which it takes over.
func (w writer) create(t target, obj *object) (*record, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if err := checkNamespace(t, obj); err != nil {
		return nil, err
	}
	if err := w.needNamespaceLocked(t); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	return w.createLocked(t, obj)
}

func (w writer) createLocked(t target, obj *object) (*record, error) {
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	for try := 1; ; try++ {
		if generated {
			prefix := obj.GetGenerateName()
			obj.SetName(prefix[:min(len(prefix), generatePrefix)] + utilrand.String(generateSuffix))
		}
		old := w.store.getLocked(t.resource, t.resource.key(t.namespace, obj.GetName()))
		if old == nil {
			break
		}
		if !generated || try == generateTries {
			return nil, alreadyExists(t, old, obj.GetName())
		}
	}
	w.prepareCreate(t, obj)
	if err := validate(t.resource, obj, nil); err != nil {
		return nil, err
	}
	return w.commitLocked(t.resource, nil, obj)
}

func alreadyExists(t target, old *record, name string) error {
	err := apierrors.NewAlreadyExists(t.resource.groupResource(), name)
	if obj, decodeErr := old.object(); decodeErr == nil && obj.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// needNamespaceLocked returns an error if the namespace of t is missing.
func (w writer) needNamespaceLocked(t target) error {
	if t.resource.ClusterScoped {
		return nil
	}
	namespaces := w.known.findKind(namespaceKind())
	if w.store.getLocked(namespaces, t.namespace) == nil {
		return apierrors.NewNotFound(namespaces.groupResource(), t.namespace)
	}
	return nil
}

// checkNamespace fills in the namespace of obj, or returns an error if it is
// another one than that of t.
func checkNamespace(t target, obj *object) error {
	switch obj.GetNamespace() {
	case t.namespace:
	case "":
		obj.SetNamespace(t.namespace)
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// prepareCreate sets what the server decides about a new object.
func (w writer) prepareCreate(t target, obj *object) {
	res := t.resource
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().UTC()))
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	if res.Status && !res.noGeneration {
		obj.SetGeneration(1)
	}
	given, _ := obj.Object["status"].(map[string]any)
	if w.whole && len(given) > 0 || res.keepsStatus || !res.Status {
		return
	}
	switch {
	case res.is("namespaces"):
		obj.Object["status"] = map[string]any{"phase": "Active"}
	case res.is("pods"), res.is("persistentvolumeclaims"), res.is("persistentvolumes"):
		obj.Object["status"] = map[string]any{"phase": "Pending"}
	case res.builtin:
		obj.Object["status"] = map[string]any{}
	default:
		delete(obj.Object, "status")
	}
}

// nameInLabel sets the label by which namespaces are selected by name.
func nameInLabel(namespace *object) {
	labels := maps.Clone(namespace.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = namespace.GetName()
	namespace.SetLabels(labels)
}

// validate returns what is wrong with the metadata of obj, and if old is not
// nil, with the way from there. It repairs what a write may leave out.
func validate(res *Resource, obj, old *object) error {
	names := validation.NameIsDNSSubdomain
	if res.is("namespaces") {
		nameInLabel(obj)
	}
	switch {
	case res.anyName:
		names = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case res.is("namespaces"), res.is("services"):
		names = validation.NameIsDNSLabel
	}
	at := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(obj, !res.ClusterScoped, validation.ValidateNameFunc(names), at)
	if old != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, at)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(res.groupKind(), obj.GetName(), errs)
	}
	return nil
}

// update replaces an object by what change makes of it. If there is none and
// the resource allows it, change gets nil, and the object is created.
func (w writer) update(t target, change func(old *object) (*object, error)) (next *record, created bool, err error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	old := w.store.getLocked(t.resource, t.resource.key(t.namespace, t.name))
	if old == nil {
		if !t.resource.upserts {
			return nil, false, apierrors.NewNotFound(t.resource.groupResource(), t.name)
		}
		next, err := w.upsertLocked(t, change)
		return next, true, err
	}
	was, err := old.object()
	if err != nil {
		return nil, false, err
	}
	obj, err := change(was.DeepCopy())
	if err != nil {
		return nil, false, err
	}
	if err := checkUpdate(t, obj, was); err != nil {
		return nil, false, err
	}
	w.prepareUpdate(t, obj, was)
	if err := validate(t.resource, obj, was); err != nil {
		return nil, false, err
	}
	next, err = w.replaceLocked(old, was, obj)
	return next, false, err
}

func (w writer) upsertLocked(t target, change func(old *object) (*object, error)) (*record, error) {
	obj, err := change(nil)
	if err != nil {
		return nil, err
	}
	if obj.GetUID() != "" {
		return nil, apierrors.NewConflict(t.resource.groupResource(), t.name, wrongUID(obj.GetUID(), ""))
	}
	if err := w.needNamespaceLocked(t); err != nil {
		return nil, err
	}
	obj.SetNamespace(t.namespace)
	return w.createLocked(t, obj)
}

// replaceLocked stores obj in place of old, whose content is was. Nothing is
// written if nothing changed, and an object that is being deleted goes with
// its last finalizer.
func (w writer) replaceLocked(old *record, was, obj *object) (*record, error) {
	if equality.Semantic.DeepEqual(obj.Object, was.Object) {
		return old, nil
	}
	grace := was.GetDeletionGracePeriodSeconds()
	if was.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && (grace == nil || *grace == 0) {
		gone, err := newRecord(old.resource, obj, old.version)
		if err == nil {
			w.removeLocked(old)
		}
		return gone, err
	}
	return w.commitLocked(old.resource, old, obj)
}

// checkUpdate returns an error if obj is not meant as an update of was.
func checkUpdate(t target, obj, was *object) error {
	res := t.resource
	if err := checkName(t, obj); err != nil {
		return err
	}
	if uid := obj.GetUID(); uid != "" && uid != was.GetUID() {
		return apierrors.NewConflict(res.groupResource(), t.name, wrongUID(uid, was.GetUID()))
	}
	version, bad := parseVersion(obj.GetResourceVersion())
	if bad != nil {
		return errors.New(bad.Detail) // 500, as from a real server
	}
	if version == 0 && (res.strictVersion || !res.builtin) {
		kind := schema.GroupKind{Group: res.Group, Kind: res.Name}
		return apierrors.NewInvalid(kind, t.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	if version != 0 && strconv.FormatInt(version, 10) != was.GetResourceVersion() {
		return apierrors.NewConflict(res.groupResource(), t.name, errors.New(modifiedMessage))
	}
	return nil
}

// checkName returns an error if obj is not the one that t names.
func checkName(t target, obj *object) error {
	if obj.GetName() != t.name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), t.name))
	}
	return checkNamespace(t, obj)
}

// prepareUpdate keeps of was what an update of t cannot change.
func (w writer) prepareUpdate(t target, obj, was *object) {
	if t.subresource == "status" {
		keepAllButStatus(t.resource, obj, was)
		return
	}
	obj.SetUID(was.GetUID())
	obj.SetResourceVersion(was.GetResourceVersion())
	obj.SetCreationTimestamp(was.GetCreationTimestamp())
	obj.SetDeletionTimestamp(was.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	obj.SetGeneration(was.GetGeneration())
	obj.SetKind(was.GetKind())
	obj.SetAPIVersion(was.GetAPIVersion())
	if t.resource.Status && !w.whole {
		delete(obj.Object, "status")
		if status, found := was.Object["status"]; found {
			obj.Object["status"] = status
		}
	}
	if t.resource.Status && !t.resource.noGeneration && !sameSpec(obj, was) {
		obj.SetGeneration(was.GetGeneration() + 1)
	}
}

// keepAllButStatus makes obj the object that was, with the status of obj. The
// built-in types but for deployments let some metadata through as well.
func keepAllButStatus(res *Resource, obj, was *object) {
	given := obj.DeepCopy()
	obj.Object = was.DeepCopy().Object
	delete(obj.Object, "status")
	if status, found := given.Object["status"]; found {
		obj.Object["status"] = status
	}
	if res.builtin && res.Name != "deployments" {
		obj.SetLabels(given.GetLabels())
		obj.SetAnnotations(given.GetAnnotations())
		obj.SetFinalizers(given.GetFinalizers())
	}
}

// sameSpec reports that a and b differ in metadata and status at most.
func sameSpec(a, b *object) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, part := range []string{"metadata", "status"} {
		delete(a.Object, part)
		delete(b.Object, part)
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

func (s *Server) writer(r *http.Request) writer {
	return writer{store: s.store, known: s.known, dry: slices.Contains(r.URL.Query()["dryRun"], metav1.DryRunAll)}
}

func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, t target, v view) {
	body, _, err := readBody(w, r, "application/json")
	if err != nil {
		writeError(w, err)
		return
	}
	obj, err := decodeObject(t.resource, body)
	if err != nil {
		writeError(w, err)
		return
	}
	created, err := s.writer(r).create(t, obj)
	if err != nil {
		writeError(w, err)
		return
	}
	writeRecord(w, http.StatusCreated, v, created)
}

func (s *Server) serveUpdate(w http.ResponseWriter, r *http.Request, t target, v view) {
	body, _, err := readBody(w, r, "application/json")
	if err != nil {
		writeError(w, err)
		return
	}
	obj, err := decodeObject(t.resource, body)
	if err == nil {
		err = checkName(t, obj)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	next, created, err := s.writer(r).update(t, func(*object) (*object, error) { return obj, nil })
	writeUpdated(w, v, next, created, err)
}

func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, t target, v view) {
	body, mediaType, err := readBody(w, r, patchTypes(t.resource)...)
	if err != nil {
		writeError(w, err)
		return
	}
	next, created, err := s.writer(r).update(t, func(old *object) (*object, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(t.resource.groupResource(), t.name)
		}
		return patch(t.resource, types.PatchType(mediaType), old, body)
	})
	writeUpdated(w, v, next, created, err)
}

func writeUpdated(w http.ResponseWriter, v view, next *record, created bool, err error) {
	switch {
	case err != nil:
		writeError(w, err)
	case created:
		writeRecord(w, http.StatusCreated, v, next)
	default:
		writeRecord(w, http.StatusOK, v, next)
	}
}

// wrongUID is the reason of a conflict, in the real server's words.
func wrongUID(want, got types.UID) error {
	//lint:ignore ST1005 the server's own words
	return fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", want, got)
}
