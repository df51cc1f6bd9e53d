package informer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leftOut is a node in the tree of the paths of [RESTOptions.LeaveOut]. It is
// about one member of a JSON object, or one value of a map. A list has no node
// of its own: what its node says holds for each of its elements.
//
//	metadata ─┬─ managedFields: out
//	          └─ annotations ─── kubectl.kubernetes.io/last-applied-configuration: out
//	spec ─────── containers ──── env: out
//
// A tree does not change once it is made. A nil node is about what is kept as a
// whole.
type leftOut struct {
	out     bool                // this is left out, and has no members
	members map[string]*leftOut // of which something is left out
}

// newLeftOut returns the tree of the paths, which must lead to something in a t.
// Without paths it is nil.
func newLeftOut(paths []string, t reflect.Type) (*leftOut, error) {
	var root *leftOut
	var errs []error
	for _, path := range paths {
		names, err := pathNames(path)
		if err == nil {
			err = mayLeaveOut(t, names)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("path %q to leave out: %w", path, err))
			continue
		}
		root = root.with(names)
	}
	return root, errors.Join(errs...)
}

// with adds the path to the tree, and returns its root.
func (l *leftOut) with(names []string) *leftOut {
	switch {
	case l == nil:
		l = &leftOut{}
	case l.out: // with all in it
		return l
	}
	if len(names) == 0 {
		return &leftOut{out: true}
	}
	if l.members == nil {
		l.members = map[string]*leftOut{}
	}
	l.members[names[0]] = l.members[names[0]].with(names[1:])
	return l
}

// inside returns the tree of a value in which l is about one member.
func (l *leftOut) inside(member string) *leftOut {
	return &leftOut{members: map[string]*leftOut{member: l}}
}

// pathNames returns the names of which a path consists: they are separated by
// dots, or between brackets and quotes, as in metadata.annotations['a.b/c'].
func pathNames(path string) (names []string, err error) {
	for rest := path; ; {
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, errors.New("a name is empty")
		}
		names = append(names, rest[:end])
		rest = rest[end:]
		for strings.HasPrefix(rest, "[") {
			key, behind, ok := strings.Cut(strings.TrimPrefix(rest, "['"), "']")
			if !ok || !strings.HasPrefix(rest, "['") || key == "" {
				return nil, errors.New("a key must be between [' and ']")
			}
			names, rest = append(names, key), behind
		}
		if rest == "" {
			return names, nil
		}
		if rest[0] != '.' {
			return nil, errors.New("a name must come behind a dot")
		}
		rest = rest[1:]
	}
}

// mayLeaveOut returns an error unless the names lead to something in a t that
// may be left out.
func mayLeaveOut(t reflect.Type, names []string) error {
	identity := []string{"kind", "apiVersion", "metadata", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}
	if slices.Contains(identity, strings.Join(names[:min(2, len(names))], ".")) {
		return errors.New("it says which object it is")
	}
	if decodesItself(t) { // unstructured, or nobody knows
		return nil
	}
	for _, name := range names {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		found := t
		switch {
		case t.Kind() == reflect.Interface, t == reflect.TypeFor[unstructured.Unstructured]():
			return nil
		case decodesItself(t):
			return fmt.Errorf("a %v has no members that are known", t)
		case t.Kind() == reflect.Map:
			found = t.Elem()
		case t.Kind() == reflect.Struct:
			found, _ = fieldNamed(t, name)
		}
		if found == nil || found == t && t.Kind() != reflect.Map {
			return fmt.Errorf("a %v has no %q", t, name)
		}
		t = found
	}
	return nil
}
