package informertest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer/informertest"
)

const (
	pods      = "/api/v1/namespaces/default/pods"
	mergeType = "Content-Type: application/merge-patch+json"
	jsonType  = "Content-Type: application/json-patch+json"
	strategic = "Content-Type: application/strategic-merge-patch+json"
)

func widgets() []informertest.Resource {
	return []informertest.Resource{{
		Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Status: true, Fields: []string{"spec.color"},
	}, {
		Group: "example.com", Version: "v1", Name: "gadgets", Kind: "Gadget", ClusterScoped: true, Verbs: []string{"get", "list", "create"},
	}}
}

const widgetsPath = "/apis/example.com/v1/namespaces/default/widgets"

func widget(name, members string) string {
	if members != "" {
		members = "," + members
	}
	return fmt.Sprintf(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":%q}%s}`, name, members)
}

func version(answer raw) string {
	v, _ := at(answer.body, "metadata", "resourceVersion").(string)
	return v
}

func wantCode(t *testing.T, got raw, code int) raw {
	t.Helper()
	if got.code != code {
		t.Fatalf("answer = %d %s, want %d", got.code, got.text, code)
	}
	return got
}

func TestCreate(t *testing.T) {
	inBoth(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		before := srv.Version()
		created := wantCode(t, ask(t, srv, "POST", configMaps, `{"metadata":{"name":"a","creationTimestamp":null},"data":{"k":"v"}}`), 201)
		if version(created) != plus(t, before, 1) || srv.Version() != version(created) {
			t.Errorf("version = %s, want one more than %s", version(created), before)
		}
		for _, path := range []string{"uid", "creationTimestamp"} {
			if s, _ := at(created.body, "metadata", path).(string); s == "" {
				t.Errorf("%s is empty in %s", path, created.text)
			}
		}
		if at(created.body, "metadata", "namespace") != "default" || at(created.body, "data", "k") != "v" ||
			created.body["kind"] != "ConfigMap" || created.body["apiVersion"] != "v1" {
			t.Errorf("created = %s", created.text)
		}
		if got := wantCode(t, ask(t, srv, "GET", configMaps+"/a", ""), 200); got.text != created.text {
			t.Errorf("get = %s\nwant %s", got.text, created.text)
		}
		wantError(t, ask(t, srv, "POST", configMaps, `{"metadata":{"name":"a"}}`), 409, "AlreadyExists", `configmaps "a" already exists`)

		one := wantCode(t, ask(t, srv, "POST", configMaps, `{"metadata":{"generateName":"gen-"}}`), 201)
		two := wantCode(t, ask(t, srv, "POST", configMaps, `{"metadata":{"generateName":"gen-"}}`), 201)
		n1, _ := at(one.body, "metadata", "name").(string)
		n2, _ := at(two.body, "metadata", "name").(string)
		if n1 == n2 || !strings.HasPrefix(n1, "gen-") || len(n1) != len("gen-")+5 {
			t.Errorf("generated names %q and %q", n1, n2)
		}
	})
}

func TestCreateRefused(t *testing.T) {
	inBubble(t, informertest.Options{Resources: widgets()}, func(t *testing.T, srv *informertest.Server) {
		before := srv.Version()
		tests := []struct {
			url, body string
			code      int
			reason    metav1.StatusReason
			message   string
		}{
			{configMaps, `{`, 400, "BadRequest", ""},
			{configMaps, `{"metadata":7}`, 400, "BadRequest", "metadata is not an object"},
			{configMaps, `null`, 400, "BadRequest", "it is null"},
			{configMaps, `{"metadata":{"name":7}}`, 400, "BadRequest", "cannot be handled as a ConfigMap"},
			{configMaps, `{"data":{"a":7}}`, 400, "BadRequest", "cannot be handled as a ConfigMap"},
			{widgetsPath, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"ownerReferences":[7]}}`, 400, "BadRequest", "cannot be handled as a Widget"},
			{configMaps, `{"kind":"Pod","metadata":{"name":"a"}}`, 400, "BadRequest", "cannot be handled as a ConfigMap"},
			{configMaps, `{"apiVersion":"v2","metadata":{"name":"a"}}`, 400, "BadRequest", "the API version in the data (v2) does not match the expected API version (v1)"},
			{configMaps, `{"metadata":{"name":"a","namespace":"other"}}`, 400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"},
			{configMaps, `{"metadata":{"name":"A"}}`, 422, "Invalid", "a lowercase RFC 1123 subdomain"},
			{configMaps, `{"metadata":{}}`, 422, "Invalid", "name or generateName is required"},
			{configMaps, `{"metadata":{"name":"a","labels":{"-":"-"}}}`, 422, "Invalid", "metadata.labels"},
			{configMaps, `{"metadata":{"name":"a","resourceVersion":"5"}}`, 500, "", "resourceVersion should not be set on objects to be created"},
			{"/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"a"}}`, 404, "NotFound", `namespaces "none" not found`},
			{"/api/v1/configmaps", `{"metadata":{"name":"a"}}`, 405, "MethodNotAllowed", ""},
			{widgetsPath, `{"metadata":{"name":"a"}}`, 400, "BadRequest", "Object 'Kind' is missing"},
		}
		for _, test := range tests {
			t.Log(test.body)
			wantError(t, ask(t, srv, "POST", test.url, test.body), test.code, test.reason, test.message)
		}
		wantError(t, ask(t, srv, "POST", configMaps, "x", "Content-Type: application/vnd.kubernetes.protobuf"), 415, "UnsupportedMediaType", "application/json")
		wantError(t, ask(t, srv, "POST", configMaps, "{}", "Accept: application/vnd.kubernetes.protobuf"), 406, "NotAcceptable", "application/json")
		wantError(t, ask(t, srv, "POST", configMaps, `{"data":{"a":"`+strings.Repeat("x", 3<<20)+`"}}`), 413, "RequestEntityTooLarge", "")
		wantCode(t, ask(t, srv, "POST", configMaps+"?dryRun=All", `{"metadata":{"name":"a"}}`), 201)
		if srv.Version() != before {
			t.Errorf("version went from %s to %s, but nothing was written", before, srv.Version())
		}
		wantCode(t, ask(t, srv, "GET", configMaps+"/a", ""), 404)
	})
}

func TestUpdate(t *testing.T) {
	inBubble(t, informertest.Options{Resources: widgets()}, func(t *testing.T, srv *informertest.Server) {
		created := wantCode(t, ask(t, srv, "POST", configMaps, `{"metadata":{"name":"a"},"data":{"k":"1"}}`), 201)
		uid, _ := at(created.body, "metadata", "uid").(string)
		body := func(version, value string) string {
			return fmt.Sprintf(`{"metadata":{"name":"a","resourceVersion":%q},"data":{"k":%q}}`, version, value)
		}
		updated := wantCode(t, ask(t, srv, "PUT", configMaps+"/a", body(version(created), "2")), 200)
		if version(updated) != plus(t, version(created), 1) || at(updated.body, "metadata", "uid") != uid ||
			at(updated.body, "metadata", "creationTimestamp") != at(created.body, "metadata", "creationTimestamp") {
			t.Errorf("updated = %s, created = %s", updated.text, created.text)
		}
		wantError(t, ask(t, srv, "PUT", configMaps+"/a", body(version(created), "3")), 409, "Conflict", "the object has been modified")
		// Without a version: unconditional, for a built-in kind.
		updated = wantCode(t, ask(t, srv, "PUT", configMaps+"/a", body("", "4")), 200)
		// An update that changes nothing writes nothing.
		same := wantCode(t, ask(t, srv, "PUT", configMaps+"/a", body("", "4")), 200)
		if same.text != updated.text || srv.Version() != version(updated) {
			t.Errorf("no-op update = %s, want %s", same.text, updated.text)
		}
		wantError(t, ask(t, srv, "PUT", configMaps+"/b", body("", "4")), 400, "BadRequest", "the name of the object (a) does not match the name on the URL (b)")
		wantError(t, ask(t, srv, "PUT", configMaps+"/b", `{"metadata":{"name":"b"}}`), 404, "NotFound", `configmaps "b" not found`)
		wantError(t, ask(t, srv, "PUT", configMaps+"/a", `{"metadata":{"name":"a","uid":"other"}}`), 409, "Conflict", "Precondition failed: UID in precondition: other")
		wantError(t, ask(t, srv, "PUT", configMaps+"/a", `{"metadata":{"name":"a","namespace":"x"}}`), 400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request")
		wantError(t, ask(t, srv, "PUT", configMaps+"/a", `{"metadata":{"name":"a","resourceVersion":"x"}}`), 500, "", `parsing "x": invalid syntax`)

		wantCode(t, ask(t, srv, "POST", widgetsPath, widget("w", "")), 201)
		wantError(t, ask(t, srv, "PUT", widgetsPath+"/w", widget("w", "")), 422, "Invalid", "must be specified for an update")
		// A lease is created by an update.
		lease := "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
		wantCode(t, ask(t, srv, "PUT", lease, `{"metadata":{"name":"l"}}`), 201)
		wantError(t, ask(t, srv, "PUT", lease, `{"metadata":{"name":"l"}}`), 422, "Invalid", `leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
	})
}

func TestPatch(t *testing.T) {
	inBubble(t, informertest.Options{Resources: widgets()}, func(t *testing.T, srv *informertest.Server) {
		wantCode(t, ask(t, srv, "POST", pods, `{"metadata":{"name":"p","labels":{"a":"1"}},"spec":{"containers":[{"name":"x","image":"i"}]}}`), 201)
		merged := wantCode(t, ask(t, srv, "PATCH", pods+"/p", `{"metadata":{"labels":{"a":null,"b":"2"}}}`, mergeType), 200)
		if at(merged.body, "metadata", "labels", "a") != nil || at(merged.body, "metadata", "labels", "b") != "2" {
			t.Errorf("merged = %s", merged.text)
		}
		patched := wantCode(t, ask(t, srv, "PATCH", pods+"/p", `[{"op":"replace","path":"/metadata/labels/b","value":"3"}]`, jsonType), 200)
		if at(patched.body, "metadata", "labels", "b") != "3" || version(patched) != plus(t, version(merged), 1) {
			t.Errorf("patched = %s", patched.text)
		}
		// A strategic merge finds list items by their key.
		strat := wantCode(t, ask(t, srv, "PATCH", pods+"/p", `{"spec":{"containers":[{"name":"y","image":"j"}]}}`, strategic), 200)
		if at(strat.body, "spec", "containers", 1, "name") == nil {
			t.Errorf("strategic merge = %s, want two containers", strat.text)
		}
		before := srv.Version()
		wantCode(t, ask(t, srv, "PATCH", pods+"/p", `{"metadata":{"labels":{"b":"3"}}}`, mergeType), 200)
		if srv.Version() != before {
			t.Error("a patch that changes nothing was written")
		}
		stale := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"labels":{"b":"4"}}}`, version(merged))
		wantError(t, ask(t, srv, "PATCH", pods+"/p", stale, mergeType), 409, "Conflict", "the object has been modified")
		wantError(t, ask(t, srv, "PATCH", pods+"/q", `{}`, mergeType), 404, "NotFound", `pods "q" not found`)
		wantError(t, ask(t, srv, "PATCH", pods+"/p", `[`, mergeType), 400, "BadRequest", "error decoding patch")
		wantError(t, ask(t, srv, "PATCH", pods+"/p", `{}`, jsonType), 400, "BadRequest", "error decoding patch")
		wantError(t, ask(t, srv, "PATCH", pods+"/p", `[{"op":"remove","path":"/spec/none"}]`, jsonType), 422, "Invalid", "")
		wantError(t, ask(t, srv, "PATCH", pods+"/p", `{"spec":7}`, mergeType), 422, "Invalid", "patch: Invalid value")
		wantError(t, ask(t, srv, "PATCH", pods+"/p", `{}`, "Content-Type: application/apply-patch+yaml"), 415, "UnsupportedMediaType", "application/strategic-merge-patch+json")
		wantCode(t, ask(t, srv, "POST", widgetsPath, widget("w", "")), 201)
		wantError(t, ask(t, srv, "PATCH", widgetsPath+"/w", `{}`, strategic), 415, "UnsupportedMediaType", "application/merge-patch+json")
	})
}

func TestStatusSubresource(t *testing.T) {
	inBubble(t, informertest.Options{Resources: widgets()}, func(t *testing.T, srv *informertest.Server) {
		w := wantCode(t, ask(t, srv, "POST", widgetsPath, widget("w", `"spec":{"color":"red"},"status":{"ok":true}`)), 201)
		if w.body["status"] != nil || at(w.body, "metadata", "generation") != 1.0 {
			t.Errorf("created = %s, want no status and generation 1", w.text)
		}
		w = wantCode(t, ask(t, srv, "PATCH", widgetsPath+"/w/status", `{"spec":{"color":"blue"},"metadata":{"labels":{"a":"b"}},"status":{"ok":true}}`, mergeType), 200)
		if at(w.body, "spec", "color") != "red" || at(w.body, "status", "ok") != true || at(w.body, "metadata", "generation") != 1.0 || at(w.body, "metadata", "labels") != nil {
			t.Errorf("after status = %s, want the status changed only", w.text)
		}
		w = wantCode(t, ask(t, srv, "PATCH", widgetsPath+"/w", `{"spec":{"color":"blue"},"status":{"ok":false}}`, mergeType), 200)
		if at(w.body, "spec", "color") != "blue" || at(w.body, "status", "ok") != true || at(w.body, "metadata", "generation") != 2.0 {
			t.Errorf("after main = %s, want the status unchanged", w.text)
		}
		before := srv.Version()
		wantCode(t, ask(t, srv, "PATCH", widgetsPath+"/w", `{"status":{"ok":false}}`, mergeType), 200)
		if srv.Version() != before {
			t.Error("a change of status at the main resource was written")
		}
		body := strings.Replace(widget("w", `"status":{"n":1}`), `"name":"w"`, `"name":"w","resourceVersion":"`+before+`"`, 1)
		w = wantCode(t, ask(t, srv, "PUT", widgetsPath+"/w/status", body), 200)
		if at(w.body, "status", "n") != 1.0 || at(w.body, "spec", "color") != "blue" {
			t.Errorf("after put of status = %s", w.text)
		}
		if got := wantCode(t, ask(t, srv, "GET", widgetsPath+"/w/status", ""), 200); got.text != w.text {
			t.Errorf("get of status = %s", got.text)
		}
		wantCode(t, ask(t, srv, "GET", configMaps+"/a/status", ""), 404)

		pod := wantCode(t, ask(t, srv, "POST", pods, `{"metadata":{"name":"p"},"status":{"phase":"Running"}}`), 201)
		if at(pod.body, "status", "phase") != "Pending" {
			t.Errorf("pod = %s, want phase Pending", pod.text)
		}
		pod = wantCode(t, ask(t, srv, "PATCH", pods+"/p/status", `{"metadata":{"labels":{"a":"b"}},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}`, mergeType), 200)
		if at(pod.body, "metadata", "labels", "a") != "b" || at(pod.body, "spec", "nodeName") != nil || at(pod.body, "status", "phase") != "Running" {
			t.Errorf("pod after status = %s, want labels and status changed", pod.text)
		}
		node := wantCode(t, ask(t, srv, "POST", "/api/v1/nodes", `{"metadata":{"name":"n"},"status":{"phase":"x"},"bogus":1}`), 201)
		if at(node.body, "status", "phase") != "x" || node.body["bogus"] != nil {
			t.Errorf("node = %s, want its status kept", node.text)
		}
		// What is written directly is written as it is.
		write(t, srv, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "direct"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		if got := ask(t, srv, "GET", pods+"/direct", ""); at(got.body, "status", "phase") != "Running" {
			t.Errorf("direct = %s", got.text)
		}
	})
}

func TestDelete(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		created := wantCode(t, ask(t, srv, "POST", configMaps, `{"metadata":{"name":"a"}}`), 201)
		uid, _ := at(created.body, "metadata", "uid").(string)
		wantError(t, ask(t, srv, "DELETE", configMaps+"/a", `{"preconditions":{"uid":"other"}}`), 409, "Conflict", "the UID in the precondition (other) does not match the UID in record ("+uid+")")
		wantError(t, ask(t, srv, "DELETE", configMaps+"/a", `{"preconditions":{"resourceVersion":"5"}}`), 409, "Conflict", "the ResourceVersion in the precondition (5) does not match")
		wantCode(t, ask(t, srv, "DELETE", configMaps+"/a", `{"dryRun":["All"]}`), 200)
		wantCode(t, ask(t, srv, "DELETE", configMaps+"/a?dryRun=All", ""), 200)
		if srv.Version() != version(created) {
			t.Error("something was deleted")
		}
		good := fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":%q}}`, uid, version(created))
		gone := wantCode(t, ask(t, srv, "DELETE", configMaps+"/a", good), 200)
		if gone.body["kind"] != "Status" || gone.body["status"] != "Success" || at(gone.body, "details", "uid") != uid {
			t.Errorf("answer = %s", gone.text)
		}
		wantError(t, ask(t, srv, "DELETE", configMaps+"/a", ""), 404, "NotFound", `configmaps "a" not found`)
		wantError(t, ask(t, srv, "DELETE", configMaps+"/a", "7"), 400, "BadRequest", "")
	})
}

func TestFinalizers(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		start := srv.Version()
		created := wantCode(t, ask(t, srv, "POST", configMaps, `{"metadata":{"name":"a","finalizers":["example.com/x"],"deletionTimestamp":"2020-01-01T00:00:00Z"}}`), 201)
		if at(created.body, "metadata", "deletionTimestamp") != nil {
			t.Errorf("created = %s, want no deletionTimestamp", created.text)
		}
		marked := wantCode(t, ask(t, srv, "DELETE", configMaps+"/a", ""), 200)
		if at(marked.body, "metadata", "deletionTimestamp") == nil || at(marked.body, "metadata", "deletionGracePeriodSeconds") != 0.0 {
			t.Errorf("deleted = %s, want a deletionTimestamp", marked.text)
		}
		again := wantCode(t, ask(t, srv, "DELETE", configMaps+"/a", ""), 200)
		if again.text != marked.text {
			t.Errorf("deleted again = %s, want no change", again.text)
		}
		wantError(t, ask(t, srv, "POST", configMaps, `{"metadata":{"name":"a"}}`), 409, "AlreadyExists", "object is being deleted")
		kept := wantCode(t, ask(t, srv, "PATCH", configMaps+"/a", `{"metadata":{"deletionTimestamp":null},"data":{"k":"v"}}`, mergeType), 200)
		if at(kept.body, "metadata", "deletionTimestamp") == nil {
			t.Error("an update took deletionTimestamp away")
		}
		wantCode(t, ask(t, srv, "PATCH", configMaps+"/a", `{"metadata":{"finalizers":null}}`, mergeType), 200)
		wantCode(t, ask(t, srv, "GET", configMaps+"/a", ""), 404)
		watchRaw(t, srv, configMaps+"?watch=1&resourceVersion="+start).want(
			"ADDED a@"+version(created), "MODIFIED a@"+version(marked), "MODIFIED a@"+version(kept), "DELETED a@"+srv.Version())
	})
}

// A pod on a node goes when its node says so, and any is marked before it goes.
func TestPodGrace(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		c := wantCode(t, ask(t, srv, "POST", pods, `{"metadata":{"name":"c"}}`), 201)
		if gone := wantCode(t, ask(t, srv, "DELETE", pods+"/c", ""), 200); gone.body["kind"] != "Pod" {
			t.Errorf("deleted = %s, want the pod", gone.text)
		}
		watchRaw(t, srv, pods+"?watch=1&resourceVersion="+version(c)).want(
			"MODIFIED c@"+plus(t, version(c), 1), "DELETED c@"+plus(t, version(c), 2))
		for _, name := range []string{"a", "b"} {
			wantCode(t, ask(t, srv, "POST", pods, `{"metadata":{"name":"`+name+`"},"spec":{"nodeName":"n"}}`), 201)
		}
		marked := wantCode(t, ask(t, srv, "DELETE", pods+"/a", ""), 200)
		if at(marked.body, "metadata", "deletionGracePeriodSeconds") != 30.0 {
			t.Errorf("deleted = %s, want 30 s of grace", marked.text)
		}
		wantCode(t, ask(t, srv, "GET", pods+"/a", ""), 200)
		wantCode(t, ask(t, srv, "DELETE", pods+"/a", `{"gracePeriodSeconds":0}`), 200)
		wantCode(t, ask(t, srv, "GET", pods+"/a", ""), 404)
		wantCode(t, ask(t, srv, "DELETE", pods+"/b?gracePeriodSeconds=0", ""), 200)
		wantCode(t, ask(t, srv, "GET", pods+"/b", ""), 404)
	})
}

func TestDeleteCollection(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		write(t, srv, configMap("a", "x=1"), configMap("b"), configMap("c", "x=1"))
		before := srv.Version()
		deleted := wantCode(t, ask(t, srv, "DELETE", configMaps+"?labelSelector=x", ""), 200)
		if names(deleted) != "a c" || srv.Version() != plus(t, before, 2) {
			t.Errorf("deleted = %s", deleted.text)
		}
		wantList(t, ask(t, srv, "GET", configMaps, ""), "b", srv.Version())
		wantCode(t, ask(t, srv, "DELETE", "/api/v1/configmaps", ""), 405)
	})
}

func TestNamespaces(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		if got := ask(t, srv, "GET", "/api/v1/namespaces", ""); names(got) != "default kube-node-lease kube-public kube-system" {
			t.Errorf("namespaces = %s", got.text)
		}
		wantCode(t, ask(t, srv, "POST", "/api/v1/namespaces", `{"metadata":{"name":"mine"}}`), 201)
		got := ask(t, srv, "GET", "/api/v1/namespaces/mine", "")
		if at(got.body, "status", "phase") != "Active" {
			t.Errorf("namespace = %s", got.text)
		}
		mine := "/api/v1/namespaces/mine/configmaps"
		wantCode(t, ask(t, srv, "POST", mine, `{"metadata":{"name":"a"}}`), 201)
		wantCode(t, ask(t, srv, "DELETE", "/api/v1/namespaces/mine", ""), 200)
		wantCode(t, ask(t, srv, "GET", mine+"/a", ""), 404)
		wantCode(t, ask(t, srv, "POST", mine, `{"metadata":{"name":"a"}}`), 404)
	})
}

func TestUnknown(t *testing.T) {
	inBubble(t, informertest.Options{Resources: widgets()}, func(t *testing.T, srv *informertest.Server) {
		for _, url := range []string{
			"/", "/x", "/api/v2", "/api/v1/widgets", "/apis/example.com/v2/widgets", "/apis/example.com/v1/things",
			"/apis/none", "/apis/none/v1", "/api/v1/configmaps/a", "/api/v1/namespaces/default/nodes",
			"/api/v1/namespaces/default/pods/p/log", "/api/v1/namespaces/default/pods/p/status/x",
		} {
			if got := ask(t, srv, "GET", url, ""); got.code != 404 {
				t.Errorf("%s = %d %s", url, got.code, got.text)
			}
		}
		wantError(t, ask(t, srv, "GET", "/api/v1/nothing", ""), 404, "NotFound", "the server could not find the requested resource")
		if got := ask(t, srv, "GET", "/apis/none/v1/x", ""); got.text != "404 page not found\n" {
			t.Errorf("unknown group = %q", got.text)
		}
		gadgets := "/apis/example.com/v1/gadgets"
		wantCode(t, ask(t, srv, "POST", gadgets, `{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"g"}}`), 201)
		wantError(t, ask(t, srv, "GET", gadgets+"?watch=1", ""), 405, "MethodNotAllowed", `watch is not supported on resources of kind "gadgets.example.com"`)
		wantError(t, ask(t, srv, "DELETE", gadgets+"/g", ""), 405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
		if got := ask(t, srv, "GET", gadgets, ""); names(got) != "g" || at(got.body, "items", 0, "kind") != "Gadget" {
			t.Errorf("list = %s, want items of a custom type with kind", got.text)
		}
	})
}

func TestMetadataOnly(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		cm := configMap("a", "x=1")
		cm.Data = map[string]string{"big": "data"}
		a := write(t, srv, cm)
		const as = "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata"
		list := ask(t, srv, "GET", configMaps, "", as+"List;g=meta.k8s.io;v=v1,application/json")
		wantList(t, list, "a", a)
		if list.body["kind"] != "PartialObjectMetadataList" || list.body["apiVersion"] != "meta.k8s.io/v1" ||
			at(list.body, "items", 0, "kind") != "PartialObjectMetadata" || at(list.body, "items", 0, "data") != nil {
			t.Errorf("list = %s", list.text)
		}
		one := ask(t, srv, "GET", configMaps+"/a", "", as+";g=meta.k8s.io;v=v1")
		if one.body["kind"] != "PartialObjectMetadata" || one.body["data"] != nil || at(one.body, "metadata", "labels", "x") != "1" {
			t.Errorf("get = %s", one.text)
		}
		w := watchRaw(t, srv, configMaps+"?watch=1&allowWatchBookmarks=1", as+";g=meta.k8s.io;v=v1")
		for range 2 {
			if event, object := w.nextObject(); object["kind"] != "PartialObjectMetadata" || object["data"] != nil {
				t.Errorf("%s %v, want metadata only", event, object)
			}
		}
		wantError(t, ask(t, srv, "GET", configMaps, "", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"), 406, "NotAcceptable", "")
		wantList(t, ask(t, srv, "GET", configMaps, "", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1,application/json"), "a", a)
	})
}
