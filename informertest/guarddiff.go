package informertest

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// copied returns a copy of v that shares nothing with it that can be reached
// through exported fields.
func copied(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(copied(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(copied(v.Elem()))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for key, value := range v.Seq2() {
				out.SetMapIndex(key, copied(value))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			copyItems(out, v)
		}
	case reflect.Array:
		copyItems(out, v)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(copied(v.Field(i)))
			}
		}
	}
	return out
}

func copyItems(out, v reflect.Value) {
	for i := range v.Len() {
		out.Index(i).Set(copied(v.Index(i)))
	}
}

// firstDifference returns the path of the first field in which b differs from a,
// which is of the same type, or false if it does not. Quantities and times are
// compared by what they mean, as to print a quantity changes it.
func firstDifference(a, b reflect.Value) (path string, differs bool) {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return "", true
	}
	if !a.IsValid() {
		return "", false
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() || a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer() {
			return "", a.IsNil() != b.IsNil()
		}
		return firstDifference(a.Elem(), b.Elem())
	case reflect.Struct:
		if same, known := sameMeaning(a, b); known {
			return "", !same
		}
		return fieldDifference(a, b)
	case reflect.Slice, reflect.Array:
		return itemDifference(a, b)
	case reflect.Map:
		return entryDifference(a, b)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return "", a.Pointer() != b.Pointer()
	}
	return "", !a.Equal(b)
}

// sameMeaning compares values that may differ and mean the same.
func sameMeaning(a, b reflect.Value) (same, known bool) {
	if !a.CanInterface() || !b.CanInterface() {
		return false, false
	}
	switch a := a.Interface().(type) {
	case resource.Quantity:
		return a.Cmp(b.Interface().(resource.Quantity)) == 0, true
	case time.Time:
		return a.Equal(b.Interface().(time.Time)), true
	}
	return false, false
}

// fieldDifference compares two structs.
func fieldDifference(a, b reflect.Value) (string, bool) {
	for i := range a.NumField() {
		if path, differs := firstDifference(a.Field(i), b.Field(i)); differs {
			return joined(fieldName(a.Type(), i), path), true
		}
	}
	return "", false
}

// fieldName returns the name of a field in JSON, its Go name if it has none, or
// nothing if its own fields take its place.
func fieldName(t reflect.Type, i int) string {
	field := t.Field(i)
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	inline := field.Anonymous || strings.Contains(options, "inline")
	switch {
	case name != "" && name != "-":
		return name
	case inline && field.Type.Kind() == reflect.Struct, t == reflect.TypeFor[unstructured.Unstructured]():
		return ""
	}
	return field.Name
}

// itemDifference compares two slices or arrays.
func itemDifference(a, b reflect.Value) (string, bool) {
	if a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
		return "", true
	}
	for i := range min(a.Len(), b.Len()) {
		if path, differs := firstDifference(a.Index(i), b.Index(i)); differs {
			return joined(fmt.Sprintf("[%d]", i), path), true
		}
	}
	if a.Len() != b.Len() {
		return fmt.Sprintf("[%d]", min(a.Len(), b.Len())), true
	}
	return "", false
}

// entryDifference compares two maps. Of several differences it takes the one
// that comes first in the alphabet.
func entryDifference(a, b reflect.Value) (first string, differs bool) {
	if a.IsNil() != b.IsNil() {
		return "", true
	}
	note := func(key reflect.Value, path string) {
		path = joined(keyName(key), path)
		if !differs || path < first {
			first, differs = path, true
		}
	}
	for key, was := range a.Seq2() {
		if path, differs := firstDifference(was, b.MapIndex(key)); differs {
			note(key, path)
		}
	}
	for key := range b.Seq2() {
		if !a.MapIndex(key).IsValid() {
			note(key, "")
		}
	}
	return first, differs
}

// keyName returns how a path names the value of a key.
func keyName(key reflect.Value) string {
	text := fmt.Sprint(key)
	if key.Kind() == reflect.String && regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`).MatchString(text) {
		return text
	}
	return fmt.Sprintf("[%q]", text)
}

// joined returns the path that leads through name and then along path.
func joined(name, path string) string {
	if name == "" || path == "" || path[0] == '[' {
		return name + path
	}
	return name + "." + path
}
