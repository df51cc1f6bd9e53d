package informertest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Resource is a kind of object that a [Server] keeps. The built-in ones of
// the groups core, apps, autoscaling, batch, coordination.k8s.io, discovery.k8s.io,
// events.k8s.io, networking.k8s.io, policy, rbac.authorization.k8s.io,
// scheduling.k8s.io and storage.k8s.io are known; others are given in Options.
type Resource struct {
	// Group is the API group, such as "example.com". It is never empty for
	// resources given in Options.
	Group string
	// Version is the version of the group, such as "v1". The same resource may
	// be given in several versions: they show the same objects.
	Version string
	// Name is the resource in the URL: plural, in lower case.
	Name string
	// Kind is the kind of the objects.
	Kind string
	// ClusterScoped says that the objects live in no namespace.
	ClusterScoped bool
	// Status says that there is a status subresource: then status can be
	// written there only, and metadata.generation counts the other changes.
	Status bool
	// Fields are the paths that field selectors understand beside
	// metadata.name and metadata.namespace, such as "spec.nodeName". A field
	// that an object lacks reads as empty, or as what stands after a "=", as
	// in "spec.paused=false".
	Fields []string
	// Verbs are what the server can do: create, get, list, watch, update,
	// patch, delete, deletecollection. A request for another is answered 405.
	//
	// Default: all of them.
	Verbs []string

	builtin bool
	// keepsStatus: status may be given at creation in spite of Status.
	keepsStatus bool
	// noGeneration: metadata.generation stays empty in spite of Status.
	noGeneration bool
	// upserts: an update of a missing object creates it.
	upserts bool
	// strictVersion: an update must say which version it is based on.
	strictVersion bool
	// anyName: names need only be fit for a path.
	anyName bool
}

// flags of the table below.
const (
	flagStatus = 1 << iota
	flagCluster
	flagKeepsStatus
	flagNoGeneration
	flagUpserts
	flagStrictVersion
	flagAnyName
)

func allVerbs() []string {
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

func builtin(gv, name, kind string, flags int, fields ...string) Resource {
	group, version, found := strings.Cut(gv, "/")
	if !found {
		group, version = "", gv
	}
	return Resource{
		Group: group, Version: version, Name: name, Kind: kind, Fields: fields, builtin: true,
		ClusterScoped: flags&flagCluster != 0,
		Status:        flags&flagStatus != 0,
		keepsStatus:   flags&flagKeepsStatus != 0,
		noGeneration:  flags&flagNoGeneration != 0,
		upserts:       flags&flagUpserts != 0,
		strictVersion: flags&flagStrictVersion != 0,
		anyName:       flags&flagAnyName != 0,
	}
}

func builtins() []Resource {
	return slices.Concat(coreResources(), workloadResources(), clusterResources())
}

func coreResources() []Resource {
	object := []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"}
	events := []string{"reason", "reportingComponent", "type", "source.component"}
	for _, field := range object {
		events = append(events, "involvedObject."+field)
	}
	regarding := []string{"reason", "reportingController", "type"}
	for _, field := range object {
		regarding = append(regarding, "regarding."+field)
	}
	const noGen = flagStatus | flagNoGeneration
	return []Resource{
		builtin("v1", "configmaps", "ConfigMap", 0),
		builtin("v1", "endpoints", "Endpoints", 0),
		builtin("v1", "events", "Event", flagUpserts, events...),
		builtin("v1", "limitranges", "LimitRange", 0),
		builtin("v1", "namespaces", "Namespace", noGen|flagCluster, "status.phase"),
		builtin("v1", "nodes", "Node", noGen|flagCluster|flagKeepsStatus, "spec.unschedulable=false"),
		builtin("v1", "persistentvolumeclaims", "PersistentVolumeClaim", noGen),
		builtin("v1", "persistentvolumes", "PersistentVolume", noGen|flagCluster),
		builtin("v1", "pods", "Pod", flagStatus,
			"spec.nodeName", "spec.restartPolicy=Always", "spec.schedulerName=default-scheduler",
			"spec.serviceAccountName", "spec.hostNetwork=false", "status.phase", "status.podIP",
			"status.nominatedNodeName"),
		builtin("v1", "podtemplates", "PodTemplate", 0),
		builtin("v1", "replicationcontrollers", "ReplicationController", flagStatus, "status.replicas=0"),
		builtin("v1", "resourcequotas", "ResourceQuota", noGen),
		builtin("v1", "secrets", "Secret", 0, "type=Opaque"),
		builtin("v1", "serviceaccounts", "ServiceAccount", 0),
		builtin("v1", "services", "Service", noGen, "spec.clusterIP", "spec.type=ClusterIP"),
		builtin("events.k8s.io/v1", "events", "Event", flagUpserts, regarding...),
	}
}

func workloadResources() []Resource {
	return []Resource{
		builtin("apps/v1", "controllerrevisions", "ControllerRevision", 0),
		builtin("apps/v1", "daemonsets", "DaemonSet", flagStatus),
		builtin("apps/v1", "deployments", "Deployment", flagStatus),
		builtin("apps/v1", "replicasets", "ReplicaSet", flagStatus, "status.replicas=0"),
		builtin("apps/v1", "statefulsets", "StatefulSet", flagStatus),
		builtin("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", flagStatus|flagNoGeneration),
		builtin("batch/v1", "cronjobs", "CronJob", flagStatus),
		builtin("batch/v1", "jobs", "Job", flagStatus, "status.successful=0"),
		builtin("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", 0),
		builtin("networking.k8s.io/v1", "ingresses", "Ingress", flagStatus),
		builtin("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", 0),
		builtin("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", flagStatus),
	}
}

func clusterResources() []Resource {
	return []Resource{
		builtin("coordination.k8s.io/v1", "leases", "Lease", flagUpserts|flagStrictVersion),
		builtin("networking.k8s.io/v1", "ingressclasses", "IngressClass", flagCluster),
		builtin("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", flagCluster|flagAnyName),
		builtin("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", flagCluster|flagAnyName),
		builtin("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", flagAnyName),
		builtin("rbac.authorization.k8s.io/v1", "roles", "Role", flagAnyName),
		builtin("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", flagCluster),
		builtin("storage.k8s.io/v1", "csidrivers", "CSIDriver", flagCluster),
		builtin("storage.k8s.io/v1", "csinodes", "CSINode", flagCluster),
		builtin("storage.k8s.io/v1", "storageclasses", "StorageClass", flagCluster),
		builtin("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", flagCluster|flagStatus|flagNoGeneration),
	}
}

// check returns what is wrong with a resource given by a user.
func (r *Resource) check() error {
	if r.Group == "" || r.Version == "" || r.Name == "" || r.Kind == "" {
		return fmt.Errorf("informertest: resource %q: group, version, name and kind are all needed", r.Name)
	}
	for _, verb := range r.Verbs {
		if !slices.Contains(allVerbs(), verb) {
			return fmt.Errorf("informertest: resource %q: unknown verb %q", r.Name, verb)
		}
	}
	return nil
}

func (r *Resource) allows(verb string) bool {
	return len(r.Verbs) == 0 || slices.Contains(r.Verbs, verb)
}

func (r *Resource) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

func (r *Resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

func (r *Resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

// is reports that r is the built-in resource of the core group of that name.
func (r *Resource) is(core string) bool { return r.Group == "" && r.Name == core }

// key returns where an object stands in the order of its resource.
func (r *Resource) key(namespace, name string) string {
	if r.ClusterScoped {
		return name
	}
	return namespace + "/" + name
}

// prefix returns what all keys of a namespace start with. No namespace means
// all of them.
func (r *Resource) prefix(namespace string) string {
	if r.ClusterScoped || namespace == "" {
		return ""
	}
	return namespace + "/"
}

// catalog finds resources. It never changes.
type catalog []*Resource

func newCatalog(custom []Resource) (catalog, error) {
	var all catalog
	for _, r := range builtins() {
		all = append(all, &r)
	}
	for _, r := range custom {
		if err := r.check(); err != nil {
			return nil, err
		}
		if all.find(r.groupVersion(), r.Name) != nil {
			return nil, fmt.Errorf("informertest: resource %q in %s is given twice", r.Name, r.groupVersion())
		}
		all = append(all, &r)
	}
	return all, nil
}

// find returns nil if there is no such resource.
func (c catalog) find(gv schema.GroupVersion, name string) *Resource {
	for _, r := range c {
		if r.Name == name && r.groupVersion() == gv {
			return r
		}
	}
	return nil
}

// findKind returns nil if there is no such kind.
func (c catalog) findKind(gvk schema.GroupVersionKind) *Resource {
	for _, r := range c {
		if r.Kind == gvk.Kind && r.groupVersion() == gvk.GroupVersion() {
			return r
		}
	}
	return nil
}
