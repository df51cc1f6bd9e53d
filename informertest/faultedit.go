package informertest

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// jsonObject is the JSON of an object, by the names of its members.
type jsonObject map[string]json.RawMessage

// editList makes what a list says wrong, if the fault is of that kind.
func (x exchange) editList(l *listBody) error {
	switch x.word.fault {
	case FaultUnversioned:
		l.Metadata.ResourceVersion = ""
	case FaultTwice:
		if i := x.meant(l.Items); i >= 0 {
			l.Items = append(slices.Clip(l.Items), l.Items[i])
		}
	case FaultWrongKind:
		l.Kind, l.APIVersion = otherKind(l.Kind, "List"), "v1"
		return eachItem(l.Items, toOtherKind)
	case FaultTable:
		l.Kind, l.APIVersion, l.table = "Table", "meta.k8s.io/v1", true
		return eachItem(l.Items, toRow)
	default:
		edit := x.editor()
		i := x.meant(l.Items)
		if edit == nil || i < 0 {
			return nil
		}
		return eachItem(l.Items[i:i+1], edit)
	}
	return nil
}

// meant returns which item the fault is about, or -1 if it is about none.
func (x exchange) meant(items []json.RawMessage) int {
	if x.Key.Name == "" {
		if x.After < len(items) {
			return x.After
		}
		return -1
	}
	return slices.IndexFunc(items, func(item json.RawMessage) bool { return keyOfJSON(item) == x.Key })
}

// keyOfJSON returns the key of an object.
func keyOfJSON(item json.RawMessage) types.NamespacedName {
	var about struct {
		Metadata struct{ Namespace, Name string }
	}
	_ = json.Unmarshal(item, &about) // what is no object has no name
	return types.NamespacedName{Namespace: about.Metadata.Namespace, Name: about.Metadata.Name}
}

// editor returns what the fault does to one object, or nil.
func (s *strike) editor() func(jsonObject) error {
	switch s.word.fault {
	case FaultMalformed:
		return inMetadata(func(meta jsonObject) { meta["labels"] = json.RawMessage(`"malformed"`) })
	case FaultNameless:
		return inMetadata(func(meta jsonObject) { delete(meta, "name") })
	case FaultVersionless:
		return inMetadata(func(meta jsonObject) { delete(meta, "resourceVersion") })
	}
	return nil
}

// inMetadata returns a function that edits the metadata of an object.
func inMetadata(edit func(meta jsonObject)) func(jsonObject) error {
	return func(obj jsonObject) error {
		meta := jsonObject{}
		if err := json.Unmarshal(obj["metadata"], &meta); err != nil {
			return err
		}
		edit(meta)
		body, err := json.Marshal(meta)
		obj["metadata"] = body
		return err
	}
}

// eachItem edits objects in place.
func eachItem(items []json.RawMessage, edit func(jsonObject) error) error {
	for i, item := range items {
		obj := jsonObject{}
		if err := json.Unmarshal(item, &obj); err != nil {
			return err
		}
		if err := edit(obj); err != nil {
			return err
		}
		body, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		items[i] = body
	}
	return nil
}

// otherKind returns a kind that is another one than kind.
func otherKind(kind, suffix string) string {
	if kind == "Secret"+suffix {
		return "Endpoints" + suffix
	}
	return "Secret" + suffix
}

func toOtherKind(obj jsonObject) error {
	var kind string
	if raw, ok := obj["kind"]; ok {
		if err := json.Unmarshal(raw, &kind); err != nil {
			return err
		}
	}
	obj["kind"] = json.RawMessage(`"` + otherKind(kind, "") + `"`)
	obj["apiVersion"] = json.RawMessage(`"v1"`)
	return nil
}

// toRow makes an object a row of a table.
func toRow(obj jsonObject) error {
	obj["kind"] = json.RawMessage(`"PartialObjectMetadata"`)
	obj["apiVersion"] = json.RawMessage(`"meta.k8s.io/v1"`)
	body, err := json.Marshal(jsonObject{
		"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": obj["metadata"],
	})
	clear(obj)
	obj["cells"], obj["object"] = json.RawMessage(`[]`), body
	return err
}

// toTable makes an object a table of one row.
func toTable(obj jsonObject) error {
	if err := toRow(obj); err != nil {
		return err
	}
	row, err := json.Marshal(obj)
	clear(obj)
	obj["kind"] = json.RawMessage(`"Table"`)
	obj["apiVersion"] = json.RawMessage(`"meta.k8s.io/v1"`)
	obj["columnDefinitions"] = json.RawMessage(`[]`)
	obj["rows"] = append(append(json.RawMessage(`[`), row...), ']')
	return err
}
