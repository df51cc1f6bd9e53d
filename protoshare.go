package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ofMetadata makes the strings in an object's metadata be those that are
// remembered: of namespace, generateName, labels, annotations, finalizers, owner
// references, and managedFields without what the fields are. Generated code has
// made copies of them all; the rest of an object cannot be reached without
// reflection.
func (s *sharedStrings) ofMetadata(m metav1.Object) {
	m.SetNamespace(s.ofText(m.GetNamespace()))
	m.SetGenerateName(s.ofText(m.GetGenerateName()))
	s.inMap(m.GetLabels())
	s.inMap(m.GetAnnotations())
	finalizers := m.GetFinalizers()
	for i, f := range finalizers {
		finalizers[i] = s.ofText(f)
	}
	owners := m.GetOwnerReferences()
	for i := range owners {
		o := &owners[i]
		o.APIVersion, o.Kind, o.Name = s.ofText(o.APIVersion), s.ofText(o.Kind), s.ofText(o.Name)
		o.UID = types.UID(s.ofText(string(o.UID)))
	}
	managed := m.GetManagedFields()
	for i := range managed {
		f := &managed[i]
		f.Manager, f.APIVersion = s.ofText(f.Manager), s.ofText(f.APIVersion)
		f.FieldsType, f.Subresource = s.ofText(f.FieldsType), s.ofText(f.Subresource)
		f.Operation = metav1.ManagedFieldsOperationType(s.ofText(string(f.Operation)))
	}
}

// inMap does the same for the keys and values of a map: to assign to a key that
// is there puts the new string in the place of the old one, too.
func (s *sharedStrings) inMap(m map[string]string) {
	for key, value := range m {
		m[s.ofText(key)] = s.ofText(value)
	}
}
