package informertest

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// patchTypes returns the kinds of patches that res takes. A strategic merge
// needs to know the Go type.
func patchTypes(res *Resource) []string {
	kinds := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if res.builtin {
		kinds = append(kinds, string(types.StrategicMergePatchType))
	}
	return kinds
}

// patch returns what a patch makes of old.
func patch(res *Resource, kind types.PatchType, old *object, body []byte) (*object, error) {
	before, err := json.Marshal(old.Object)
	if err != nil {
		return nil, fmt.Errorf("informertest: encode %s %q: %w", res.Name, old.GetName(), err)
	}
	var after []byte
	switch kind {
	case types.JSONPatchType:
		after, err = applyJSONPatch(before, body)
	case types.StrategicMergePatchType:
		after, err = applyStrategic(res, before, body)
	default:
		after, err = applyMergePatch(before, body)
	}
	if err != nil {
		return nil, err
	}
	obj, err := decodeObject(res, after)
	if err != nil {
		return nil, apierrors.NewInvalid(res.groupKind(), old.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(body), err.Error()),
		})
	}
	return obj, nil
}

func applyJSONPatch(before, body []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	after, err := decoded.Apply(before)
	if err != nil {
		return nil, unprocessable(err)
	}
	return after, nil
}

func applyMergePatch(before, body []byte) ([]byte, error) {
	if err := utiljson.Unmarshal(body, &map[string]any{}); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

func applyStrategic(res *Resource, before, body []byte) ([]byte, error) {
	typed, err := scheme.Scheme.New(res.groupVersion().WithKind(res.Kind))
	if err != nil {
		return nil, fmt.Errorf("informertest: strategic merge patch: %w", err)
	}
	if err := utiljson.Unmarshal(body, &map[string]any{}); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	after, err := strategicpatch.StrategicMergePatch(before, body, typed)
	if err != nil {
		return nil, unprocessable(err)
	}
	return after, nil
}

// unprocessable says that a patch is well-formed, but does not fit the object.
func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(
		http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// namespaceKind is the kind of namespaces.
func namespaceKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
}
