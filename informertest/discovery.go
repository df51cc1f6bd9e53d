package informertest

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery answers what does not concern objects. It returns false if
// the path is not of that kind.
func (s *Server) serveDiscovery(w http.ResponseWriter, path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/version":
		writeJSON(w, http.StatusOK, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+informertest"})
	case path == "/healthz", path == "/livez", path == "/readyz":
		writeBody(w, http.StatusOK, []byte("ok"))
	case parts[0] == "api" && len(parts) == 1:
		writeJSON(w, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
		})
	case parts[0] == "apis" && len(parts) == 1:
		writeJSON(w, http.StatusOK, metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.known.groups(),
		})
	case parts[0] == "apis" && len(parts) == 2:
		return s.serveGroup(w, parts[1])
	case parts[0] == "api" && len(parts) == 2:
		return s.serveVersion(w, schema.GroupVersion{Version: parts[1]})
	case parts[0] == "apis" && len(parts) == 3:
		return s.serveVersion(w, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		return false
	}
	return true
}

func (s *Server) serveGroup(w http.ResponseWriter, name string) bool {
	for _, group := range s.known.groups() {
		if group.Name == name {
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			writeJSON(w, http.StatusOK, group)
			return true
		}
	}
	return false
}

func (s *Server) serveVersion(w http.ResponseWriter, gv schema.GroupVersion) bool {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
	}
	for _, r := range s.known {
		if r.groupVersion() == gv {
			list.APIResources = append(list.APIResources, r.discovery()...)
		}
	}
	if list.APIResources == nil {
		return false
	}
	writeJSON(w, http.StatusOK, list)
	return true
}

// discovery returns how r and its subresource are announced.
func (r *Resource) discovery() []metav1.APIResource {
	verbs := r.Verbs
	if len(verbs) == 0 {
		verbs = allVerbs()
	}
	all := []metav1.APIResource{{
		Name: r.Name, SingularName: strings.ToLower(r.Kind), Namespaced: !r.ClusterScoped, Kind: r.Kind, Verbs: verbs,
	}}
	if r.Status {
		all = append(all, metav1.APIResource{
			Name: r.Name + "/status", Namespaced: !r.ClusterScoped, Kind: r.Kind,
			Verbs: metav1.Verbs{"get", "patch", "update"},
		})
	}
	return all
}

// groups returns the groups but for the core, in order of name. The first
// version given of a group is the preferred one.
func (c catalog) groups() []metav1.APIGroup {
	byName := map[string]*metav1.APIGroup{}
	var names []string
	for _, r := range c {
		if r.Group == "" {
			continue
		}
		group := byName[r.Group]
		if group == nil {
			group = &metav1.APIGroup{Name: r.Group}
			byName[r.Group] = group
			names = append(names, r.Group)
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: r.groupVersion().String(), Version: r.Version}
		if !slices.Contains(group.Versions, v) {
			group.Versions = append(group.Versions, v)
		}
		group.PreferredVersion = group.Versions[0]
	}
	slices.Sort(names)
	groups := make([]metav1.APIGroup, len(names))
	for i, name := range names {
		groups[i] = *byName[name]
	}
	return groups
}
