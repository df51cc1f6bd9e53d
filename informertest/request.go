package informertest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody is the most bytes of a request's body, as in a real server.
const maxBody = 3 << 20

// target is what the path of a request names.
type target struct {
	resource    *Resource
	namespace   string // empty for all
	name        string // empty for the collection
	subresource string
}

// parsePath returns false if the path names no resource that is known.
func (c catalog) parsePath(path string) (target, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return target{}, false
	}
	var t target
	if parts[0] == "namespaces" && len(parts) > 2 && !(gv.Group == "" && parts[2] == "status") {
		t.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return target{}, false
	}
	t.resource = c.find(gv, parts[0])
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = parts[2]
	}
	return t, t.valid()
}

func (t target) valid() bool {
	switch {
	case t.resource == nil:
		return false
	case t.resource.ClusterScoped && t.namespace != "":
		return false
	case !t.resource.ClusterScoped && t.namespace == "" && t.name != "":
		return false
	}
	return t.subresource == "" || t.subresource == "status" && t.resource.Status
}

// verb returns what a request wants to do to t, or "" if there is no such
// thing.
func (t target) verb(method string) string {
	switch {
	case t.subresource != "":
		return map[string]string{"GET": "get", "PUT": "update", "PATCH": "patch"}[method]
	case t.name != "":
		return map[string]string{"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
	case t.namespace != "" || t.resource.ClusterScoped:
		return map[string]string{"GET": "list", "POST": "create", "DELETE": "deletecollection"}[method]
	case method == http.MethodGet:
		return "list" // over all namespaces
	}
	return ""
}

// selection says which objects of a resource are meant.
type selection struct {
	resource *Resource
	prefix   string // of the keys
	labels   labels.Selector
	fields   fields.Selector
}

// matches reports whether r is meant. A nil record is not.
func (s selection) matches(r *record) bool {
	return r != nil && strings.HasPrefix(r.key, s.prefix) && s.labels.Matches(r.labels) && s.fields.Matches(r.fields)
}

// all reports that nothing is filtered out.
func (s selection) all() bool { return s.labels.Empty() && s.fields.Empty() }

// parseListOptions returns the options of a list or watch, checked and
// completed as a real server does it.
func parseListOptions(r *http.Request, t target) (internalversion.ListOptions, selection, error) {
	var opts internalversion.ListOptions
	err := internalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, &opts)
	if err != nil {
		return opts, selection{}, apierrors.NewBadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(&opts, true)
	if errs := validation.ValidateListOptions(&opts, true); len(errs) > 0 {
		kind := schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}
		return opts, selection{}, apierrors.NewInvalid(kind, "", errs)
	}
	sel := selection{
		resource: t.resource, prefix: t.resource.prefix(t.namespace),
		labels: labels.Everything(), fields: fields.Everything(),
	}
	if opts.LabelSelector != nil {
		sel.labels = opts.LabelSelector
	}
	if opts.FieldSelector != nil {
		sel.fields, err = opts.FieldSelector.Transform(t.resource.checkField)
		if err != nil {
			return opts, sel, apierrors.NewBadRequest(err.Error())
		}
	}
	return opts, sel, nil
}

// checkField returns an error if selectors may not ask for a field.
func (r *Resource) checkField(field, value string) (string, string, error) {
	if field == "metadata.name" || field == "metadata.namespace" && !r.ClusterScoped {
		return field, value, nil
	}
	for _, known := range r.Fields {
		if path, _, _ := strings.Cut(known, "="); path == field {
			return field, value, nil
		}
	}
	if r.builtin && len(r.Fields) == 0 {
		if field == "metadata.namespace" {
			return field, value, nil
		}
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", field, "metadata.name", "metadata.namespace")
	}
	return "", "", fmt.Errorf("field label not supported: %s", field)
}

// readBody returns the body of a request in one of the accepted media types,
// and which one it is. None said means the first.
func readBody(w http.ResponseWriter, r *http.Request, accepted ...string) ([]byte, string, error) {
	mediaType := accepted[0]
	if header := r.Header.Get("Content-Type"); header != "" {
		parsed, _, err := mime.ParseMediaType(header)
		if err != nil {
			return nil, "", apierrors.NewBadRequest(err.Error())
		}
		mediaType = parsed
	}
	known := false
	for _, a := range accepted {
		known = known || a == mediaType
	}
	if !known {
		return nil, "", unsupportedMediaType(accepted)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, "", apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	return body, mediaType, nil
}

// decodeObject decodes an object of a resource, and checks that it is one. Of a
// built-in kind it takes what the Go type knows, in the form that the type
// has, as a real server does.
func decodeObject(res *Resource, body []byte) (*object, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(body, &content); err != nil {
		return nil, cannotHandle(res, err)
	}
	if content == nil {
		return nil, cannotHandle(res, errors.New("it is null"))
	}
	obj := &object{Object: content}
	if err := checkKind(res, obj); err != nil {
		return nil, err
	}
	gvk := res.groupVersion().WithKind(res.Kind)
	if res.builtin {
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			return nil, fmt.Errorf("informertest: %w", err)
		}
		if err := utiljson.Unmarshal(body, typed); err != nil {
			return nil, cannotHandle(res, err)
		}
		if obj.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
			return nil, fmt.Errorf("informertest: %w", err)
		}
	}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}

func cannotHandle(res *Resource, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf(
		"%s in version %q cannot be handled as a %s: %v", res.Kind, res.Version, res.Kind, err))
}

func checkKind(res *Resource, obj *object) error {
	if kind := obj.GetKind(); kind == "" && !res.builtin {
		return apierrors.NewBadRequest("Object 'Kind' is missing")
	} else if kind != "" && kind != res.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"%s in version %q cannot be handled as a %s: no kind match", kind, res.Version, res.Kind))
	}
	if version := obj.GetAPIVersion(); version != "" && version != res.groupVersion().String() {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)",
			version, res.groupVersion()))
	}
	return checkMetadata(res, obj)
}

// checkMetadata returns an error if the metadata is not of the right form.
func checkMetadata(res *Resource, obj *object) error {
	if obj.Object["metadata"] == nil {
		obj.Object["metadata"] = map[string]any{}
	}
	content, ok := obj.Object["metadata"].(map[string]any)
	if !ok {
		return cannotHandle(res, errors.New("metadata is not an object"))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &metav1.ObjectMeta{}); err != nil {
		return cannotHandle(res, err)
	}
	return nil
}

// decodeDeleteOptions reads the options of a deletion from the body, which may
// be empty, or from the query.
func decodeDeleteOptions(w http.ResponseWriter, r *http.Request) (metav1.DeleteOptions, error) {
	var opts metav1.DeleteOptions
	body, _, err := readBody(w, r, "application/json")
	if err != nil {
		return opts, err
	}
	if len(body) > 0 {
		if err := utiljson.Unmarshal(body, &opts); err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		return opts, nil
	}
	query := r.URL.Query()
	opts.DryRun = query["dryRun"]
	if grace := query.Get("gracePeriodSeconds"); grace != "" {
		seconds, err := strconv.ParseInt(grace, 10, 64)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		opts.GracePeriodSeconds = &seconds
	}
	return opts, nil
}
