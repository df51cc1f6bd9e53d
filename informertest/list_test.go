package informertest_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer/informertest"
)

// names returns the names of the items of a list.
func names(list raw) string {
	items, _ := list.body["items"].([]any)
	var all []string
	for _, item := range items {
		name, _ := at(item, "metadata", "name").(string)
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func wantList(t *testing.T, list raw, items, version string) {
	t.Helper()
	if list.code != 200 {
		t.Fatalf("list: %d %s", list.code, list.text)
	}
	if got := names(list); got != items {
		t.Errorf("items = %q, want %q", got, items)
	}
	if got := at(list.body, "metadata", "resourceVersion"); got != version {
		t.Errorf("version = %v, want %v", got, version)
	}
}

// wantError checks the answer against a Status; message may be a part of it.
func wantError(t *testing.T, got raw, code int, reason metav1.StatusReason, message string) {
	t.Helper()
	text, _ := got.body["message"].(string)
	if got.code != code || got.body["reason"] != string(reason) && !(reason == "" && got.body["reason"] == nil) ||
		!strings.Contains(text, message) {
		t.Errorf("answer = %d %s\nwant %d %s %q", got.code, got.text, code, reason, message)
	}
	if got.body["kind"] != "Status" || got.body["status"] != "Failure" {
		t.Errorf("answer = %s, want a Status", got.text)
	}
}

func TestListVersions(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		first := write(t, srv, configMap("b"), configMap("a"))
		second := write(t, srv, configMap("c"))
		remove(t, srv, configMap("a"))
		write(t, srv, configMap("a", "again=yes"))
		now := write(t, srv, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
		for query, want := range map[string][2]string{
			"":                                       {"a b c", now},
			"?resourceVersion=0":                     {"a b c", now},
			"?resourceVersion=0&limit=1":             {"a b c", now}, // the limit is ignored
			"?resourceVersion=" + first:              {"a b c", now}, // not older than
			"?resourceVersion=" + first + "&limit=5": {"a b", first}, // exact, of old
			"?resourceVersionMatch=Exact&resourceVersion=" + first:                     {"a b", first},
			"?resourceVersionMatch=Exact&resourceVersion=" + second:                    {"a b c", second},
			"?resourceVersionMatch=NotOlderThan&resourceVersion=" + first:              {"a b c", now},
			"?resourceVersionMatch=NotOlderThan&limit=2&resourceVersion=" + first:      {"a b", now},
			"?resourceVersionMatch=NotOlderThan&limit=2&resourceVersion=0":             {"a b c", now},
			"?resourceVersionMatch=Exact&labelSelector=again&resourceVersion=" + first: {"", first},
		} {
			t.Log(query)
			wantList(t, ask(t, srv, "GET", configMaps+query, ""), want[0], want[1])
		}
		if got := ask(t, srv, "GET", configMaps, ""); got.body["kind"] != "ConfigMapList" || got.body["apiVersion"] != "v1" ||
			at(got.body, "items", 0, "kind") != nil {
			t.Errorf("list = %s, want items of a built-in type without kind", got.text)
		}
		if got := ask(t, srv, "GET", "/api/v1/configmaps", ""); names(got) != "a b c" {
			t.Errorf("all namespaces = %s", got.text)
		}
		if got := ask(t, srv, "GET", "/api/v1/namespaces/kube-system/configmaps", ""); names(got) != "" || at(got.body, "items") == nil {
			t.Errorf("other namespace = %s", got.text)
		}
	})
}

func TestListTooLarge(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		current, err := strconv.Atoi(srv.Version())
		if err != nil {
			t.Fatal(err)
		}
		future := strconv.Itoa(current + 1)
		message := fmt.Sprintf("Too large resource version: %s, current: %d", future, current)
		for _, query := range []string{
			"?resourceVersion=" + future,
			"?resourceVersion=" + future + "&limit=3",
			"?resourceVersionMatch=Exact&resourceVersion=" + future,
			"?resourceVersionMatch=NotOlderThan&resourceVersion=" + future,
			"/a?resourceVersion=" + future,
		} {
			start := time.Now()
			got := ask(t, srv, "GET", configMaps+query, "")
			wantError(t, got, 504, metav1.StatusReasonTimeout, message)
			if cause := at(got.body, "details", "causes", 0, "reason"); cause != string(metav1.CauseTypeResourceVersionTooLarge) {
				t.Errorf("cause = %v", cause)
			}
			if after := at(got.body, "details", "retryAfterSeconds"); after != 1.0 || got.header.Get("Retry-After") != "1" {
				t.Errorf("retry after = %v, header %q", after, got.header.Get("Retry-After"))
			}
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("took %v, want 3s", took)
			}
		}
		// What comes in time is waited for.
		time.AfterFunc(2*time.Second, func() { _, _ = srv.Create(configMap("late")) })
		wantList(t, ask(t, srv, "GET", configMaps+"?resourceVersion="+future, ""), "late", future)
	})
}

func TestListPages(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			write(t, srv, configMap(name, "odd="+strconv.FormatBool(name == "a" || name == "c" || name == "e")))
		}
		write(t, srv, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "z", Namespace: "kube-system"}})
		version := srv.Version()
		page := ask(t, srv, "GET", configMaps+"?limit=2", "")
		wantList(t, page, "a b", version)
		if left := at(page.body, "metadata", "remainingItemCount"); left != 3.0 {
			t.Errorf("remaining = %v, want 3", left)
		}
		// Later changes do not show, neither as additions nor as losses.
		write(t, srv, configMap("bb"), configMap("f"))
		remove(t, srv, configMap("c"))
		update(t, srv, configMap("d", "changed=yes"))
		page = ask(t, srv, "GET", configMaps+"?limit=2&continue="+token(page), "")
		wantList(t, page, "c d", version)
		if changed := at(page.body, "items", 1, "metadata", "labels", "changed"); changed != nil {
			t.Error("the second page shows a later state of d")
		}
		page = ask(t, srv, "GET", configMaps+"?limit=2&continue="+token(page), "")
		wantList(t, page, "e", version)
		if token(page) != "" || at(page.body, "metadata", "remainingItemCount") != nil {
			t.Errorf("last page = %s", page.text)
		}
		all := ask(t, srv, "GET", "/api/v1/configmaps?limit=1", "")
		wantList(t, all, "a", srv.Version())
		all = ask(t, srv, "GET", "/api/v1/configmaps?continue="+token(all), "")
		wantList(t, all, "b bb d e f z", srv.Version())

		selected := ask(t, srv, "GET", configMaps+"?limit=1&labelSelector=odd%3Dtrue", "")
		if names(selected) != "a" || token(selected) == "" || at(selected.body, "metadata", "remainingItemCount") != nil {
			t.Errorf("selected page = %s, want a token but no count", selected.text)
		}
	})
}

func token(list raw) string {
	token, _ := at(list.body, "metadata", "continue").(string)
	return url.QueryEscape(token)
}

func TestListExpired(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		old := write(t, srv, configMap("a"), configMap("b"), configMap("c"))
		page := ask(t, srv, "GET", configMaps+"?limit=1", "")
		now := write(t, srv, configMap("d"))
		srv.Compact()
		wantError(t, ask(t, srv, "GET", configMaps+"?resourceVersionMatch=Exact&resourceVersion="+old, ""),
			410, metav1.StatusReasonExpired, "The resourceVersion for the provided list is too old.")
		expired := ask(t, srv, "GET", configMaps+"?limit=1&continue="+token(page), "")
		wantError(t, expired, 410, metav1.StatusReasonExpired, "The provided continue parameter is too old")
		// The answer holds a token that goes on with the current state.
		rest := ask(t, srv, "GET", configMaps+"?limit=2&continue="+token(expired), "")
		wantList(t, rest, "b c", now)
		wantList(t, ask(t, srv, "GET", configMaps+"?continue="+token(rest), ""), "d", now)
		wantList(t, ask(t, srv, "GET", configMaps+"?resourceVersionMatch=Exact&resourceVersion="+now, ""), "a b c d", now)
	})
}

// The history is as long as the option says, and no longer.
func TestHistory(t *testing.T) {
	inBubble(t, informertest.Options{History: 2}, func(t *testing.T, srv *informertest.Server) {
		zero := srv.Version()
		one := write(t, srv, configMap("a"))
		write(t, srv, configMap("b"))
		exact := configMaps + "?resourceVersionMatch=Exact&resourceVersion="
		wantList(t, ask(t, srv, "GET", exact+zero, ""), "", zero)
		watchRaw(t, srv, configMaps+"?watch=1&resourceVersion="+zero).want("ADDED a@" + one)
		write(t, srv, configMap("c"))
		if got := ask(t, srv, "GET", exact+zero, ""); got.code != 410 {
			t.Errorf("list before the history = %s", got.text)
		}
		watchRaw(t, srv, configMaps+"?watch=1&resourceVersion="+zero).want(
			fmt.Sprintf("ERROR 410 too old resource version: %s (%s)", zero, one), "closed")
		wantList(t, ask(t, srv, "GET", exact+one, ""), "a", one)
	})
}

func TestListInvalid(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		write(t, srv, configMap("a"), configMap("b"))
		good := token(ask(t, srv, "GET", configMaps+"?limit=1", ""))
		tests := []struct {
			query   string
			code    int
			reason  metav1.StatusReason
			message string
		}{
			{"resourceVersion=x", 400, "BadRequest", "invalid resource version: resourceVersion: Invalid value: \"x\""},
			{"limit=x", 400, "BadRequest", ""},
			{"labelSelector=a==b==c", 400, "BadRequest", ""},
			{"labelSelector=a in", 400, "BadRequest", ""},
			{"fieldSelector=data.x=1", 400, "BadRequest", `"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"`},
			{"continue=x", 400, "BadRequest", "invalid continue token: continue key is not valid"},
			{"continue=e30", 400, "BadRequest", "does not recognize this encoded version"},
			{"resourceVersion=5&continue=" + good, 400, "BadRequest", "specifying resource version is not allowed when using continue"},
			{"resourceVersionMatch=Exact", 422, "Invalid", "resourceVersionMatch is forbidden unless resourceVersion is provided"},
			{"resourceVersionMatch=Exact&resourceVersion=0", 422, "Invalid", `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`},
			{"resourceVersionMatch=Exact&resourceVersion=5&continue=" + good, 422, "Invalid", "resourceVersionMatch is forbidden when continue is provided"},
			{"resourceVersionMatch=Newest&resourceVersion=5", 422, "Invalid", "Unsupported value"},
			{"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=5", 422, "Invalid", "sendInitialEvents is forbidden for list"},
		}
		for _, test := range tests {
			t.Log(test.query)
			query := strings.ReplaceAll(test.query, " ", "%20")
			wantError(t, ask(t, srv, "GET", configMaps+"?"+query, ""), test.code, test.reason, test.message)
		}
		wantList(t, ask(t, srv, "GET", configMaps+"?resourceVersion=0&continue="+good, ""), "b", srv.Version())
		wantError(t, ask(t, srv, "GET", "/api/v1/pods?fieldSelector=spec.x=1", ""), 400, "BadRequest", "field label not supported: spec.x")
	})
}

func TestSelectors(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		pod := func(name, node string, phase corev1.PodPhase, app string) *corev1.Pod {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
				Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
			}
		}
		write(t, srv, pod("a", "n1", corev1.PodRunning, "web"), pod("b", "n2", corev1.PodRunning, "web"), pod("c", "", corev1.PodPending, "db"))
		for query, want := range map[string]string{
			"labelSelector=app%3Dweb":                                      "a b",
			"labelSelector=app%20notin%20(web)":                            "c",
			"labelSelector=!app":                                           "",
			"fieldSelector=spec.nodeName%3Dn1":                             "a",
			"fieldSelector=spec.nodeName!%3D":                              "a b",
			"fieldSelector=status.phase%3DRunning,metadata.name%3Db":       "b",
			"fieldSelector=spec.hostNetwork%3Dfalse":                       "a b c",
			"fieldSelector=metadata.namespace%3Dnone":                      "",
			"fieldSelector=spec.nodeName%3Dn2&labelSelector=app%3Ddb":      "",
			"fieldSelector=spec.restartPolicy%3DAlways,metadata.name!%3Da": "b c",
		} {
			if got := ask(t, srv, "GET", "/api/v1/pods?"+query, ""); names(got) != want {
				t.Errorf("%s: %q, want %q (%s)", query, names(got), want, got.text)
			}
		}
	})
}
