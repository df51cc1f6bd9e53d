package informertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object is an object that is being worked on. One that is stored is a record.
type object = unstructured.Unstructured

// record is one version of a stored object. It never changes.
type record struct {
	resource *Resource
	key      string
	version  int64
	labels   labels.Set
	fields   fields.Set
	// body is the JSON of the object without kind and apiVersion, which
	// depend on who asks. It is never "{}", as there always is metadata.
	body []byte
}

// newRecord takes obj at a version, 0 for none. The caller gives obj away.
func newRecord(res *Resource, obj *object, version int64) (*record, error) {
	obj.SetResourceVersion("")
	if version > 0 {
		obj.SetResourceVersion(formatVersion(version))
	}
	delete(obj.Object, "kind")
	delete(obj.Object, "apiVersion")
	body, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("informertest: encode %s %q: %w", res.Name, obj.GetName(), err)
	}
	return &record{
		resource: res, version: version, body: body,
		key:    res.key(obj.GetNamespace(), obj.GetName()),
		labels: obj.GetLabels(), fields: fieldSet(res, obj),
	}, nil
}

// object returns a fresh copy that the caller owns, of kind and apiVersion as
// stored.
func (r *record) object() (*object, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(r.body, &content); err != nil {
		return nil, fmt.Errorf("informertest: decode %s %q: %w", r.resource.Name, r.key, err)
	}
	content["kind"] = r.resource.Kind
	content["apiVersion"] = r.resource.groupVersion().String()
	return &object{Object: content}, nil
}

// at returns the same object at another version, as the final event about it
// shows it.
func (r *record) at(version int64) (*record, error) {
	obj, err := r.object()
	if err != nil {
		return nil, err
	}
	return newRecord(r.resource, obj, version)
}

// fieldSet returns the fields of obj that selectors may ask for.
func fieldSet(res *Resource, obj *object) fields.Set {
	set := fields.Set{"metadata.name": obj.GetName()}
	if !res.ClusterScoped {
		set["metadata.namespace"] = obj.GetNamespace()
	}
	for _, field := range res.Fields {
		path, value, _ := strings.Cut(field, "=")
		found, ok, err := unstructured.NestedFieldNoCopy(obj.Object, strings.Split(path, ".")...)
		if ok && err == nil && found != nil {
			value = fmt.Sprint(found)
		}
		set[path] = value
	}
	return set
}

// view is the form in which a client wants to see objects.
type view struct {
	resource *Resource
	partial  bool // metadata only
}

// object returns the JSON of r as a single object.
func (v view) object(r *record) ([]byte, error) {
	if v.partial {
		return v.metadata(r)
	}
	return withKind(v.resource.Kind, v.resource.groupVersion().String(), r.body), nil
}

// item returns the JSON of r within a list. Kinds of built-in types leave out
// what the list says already.
func (v view) item(r *record) ([]byte, error) {
	if !v.partial && v.resource.builtin {
		return r.body, nil
	}
	return v.object(r)
}

func (v view) metadata(r *record) ([]byte, error) {
	var part struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(r.body, &part); err != nil {
		return nil, fmt.Errorf("informertest: decode %s %q: %w", r.resource.Name, r.key, err)
	}
	body, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("informertest: encode %s %q: %w", r.resource.Name, r.key, err)
	}
	return withKind("PartialObjectMetadata", metav1.SchemeGroupVersion.String(), body), nil
}

// kind returns kind and apiVersion of single objects.
func (v view) kind() metav1.TypeMeta {
	if v.partial {
		return metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()}
	}
	return metav1.TypeMeta{Kind: v.resource.Kind, APIVersion: v.resource.groupVersion().String()}
}

// withKind puts kind and apiVersion in front of the members of body.
func withKind(kind, apiVersion string, body []byte) []byte {
	var buf bytes.Buffer
	buf.Grow(len(body) + len(kind) + len(apiVersion) + 32)
	buf.WriteString(`{"kind":"` + kind + `","apiVersion":"` + apiVersion + `",`)
	buf.Write(body[1:])
	return buf.Bytes()
}
