package e2e_test

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allow gives a user the rights of rules in the whole cluster, and returns
// before the server has noticed: the first requests may still be forbidden.
func (s *server) allow(user string, rules ...rbacv1.PolicyRule) {
	s.t.Helper()
	rbac := clientset(s.t, s.admin()).RbacV1()
	meta := metav1.ObjectMeta{Name: "test:" + user}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	if _, err := rbac.ClusterRoles().Create(s.t.Context(), role, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("allow(%q): %v", user, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := rbac.ClusterRoleBindings().Create(s.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("allow(%q): %v", user, err)
	}
}

// disallow takes back what allow gave.
func (s *server) disallow(user string) {
	s.t.Helper()
	rbac := clientset(s.t, s.admin()).RbacV1()
	name := "test:" + user
	if err := rbac.ClusterRoleBindings().Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatalf("disallow(%q): %v", user, err)
	}
	if err := rbac.ClusterRoles().Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatalf("disallow(%q): %v", user, err)
	}
}
