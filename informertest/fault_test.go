package informertest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer/informertest"
)

// inject makes faults happen.
func inject(t tester, srv *informertest.Server, rules ...informertest.Rule) (remove func()) {
	t.Helper()
	remove, err := srv.Inject(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return remove
}

// onTheWire returns what a request gets within 50 seconds: the status, the
// objects or events as they come, and how it ends. Seconds that pass before
// something comes are shown as "+2s".
func onTheWire(t tester, srv *informertest.Server, url string) string {
	t.Helper()
	config := srv.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+url, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	waited := func() string {
		d := time.Since(start).Truncate(time.Second)
		start = time.Now()
		if d == 0 {
			return ""
		}
		return fmt.Sprintf("+%v ", d)
	}
	response, err := client.Do(request)
	if err != nil {
		return waited() + ending(err)
	}
	defer func() { _ = response.Body.Close() }()
	said := fmt.Sprintf("%s%d", waited(), response.StatusCode)
	if after := response.Header.Get("Retry-After"); after != "" {
		said += " after " + after
	}
	if strings.Contains(url, "watch=1") && response.StatusCode == http.StatusOK {
		lines := bufio.NewReader(response.Body)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				said += " " + waited() + frame(line)
			}
			if err != nil {
				return said + " " + waited() + ending(err)
			}
		}
	}
	text, err := io.ReadAll(response.Body)
	return said + " " + objects(text) + " " + waited() + ending(err)
}

func ending(err error) string {
	switch {
	case err == nil, err == io.EOF:
		return "end"
	case errors.Is(err, context.DeadlineExceeded):
		return "silence"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	}
	return "broken"
}

// frame returns a frame in short, such as "ADDED a@105".
func frame(line string) string {
	var event struct {
		Type   string
		Object map[string]any
	}
	if json.Unmarshal([]byte(line), &event) != nil {
		return "?"
	}
	if event.Type == "ERROR" {
		return fmt.Sprint("ERROR ", event.Object["code"])
	}
	if at(event.Object, "metadata", "annotations", metav1.InitialEventsAnnotationKey) == "true" {
		event.Type = "END"
	}
	return event.Type + " " + short(event.Object)
}

// objects returns the items of a list in short, "?" if that is no JSON.
func objects(text []byte) string {
	var list map[string]any
	if json.Unmarshal(text, &list) != nil {
		return "?"
	}
	kind, _ := list["kind"].(string)
	all := []string{strings.TrimSuffix(kind, "List")}
	for _, item := range listOf(list["items"]) {
		all = append(all, short(item))
	}
	for _, row := range listOf(list["rows"]) {
		all = append(all, short(at(row, "object")))
	}
	version, _ := at(list, "metadata", "resourceVersion").(string)
	return strings.Join(all, " ") + " @" + version
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// short returns name and version of an object, its kind if it is not a
// ConfigMap, and "!" if its labels are no map.
func short(object any) string {
	if at(object, "kind") == "Table" {
		return "Table of " + short(at(object, "rows", 0, "object"))
	}
	name, _ := at(object, "metadata", "name").(string)
	version, _ := at(object, "metadata", "resourceVersion").(string)
	text := name + "@" + version
	if kind := at(object, "kind"); kind != nil && kind != "ConfigMap" && kind != "PartialObjectMetadata" {
		text = fmt.Sprint(kind, " ", text)
	}
	if _, bad := at(object, "metadata", "labels").(string); bad {
		text += "!"
	}
	return text
}

// Each fault, as a client without a library sees it.
func TestFaultsOnTheWire(t *testing.T) {
	const (
		list   = configMaps + "?limit=2"
		stream = configMaps + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
		watch  = configMaps + "?watch=1&allowWatchBookmarks=true&resourceVersion=104"
	)
	tests := []struct {
		fault informertest.Fault
		rule  informertest.Rule // but for the fault
		url   string
		want  string
	}{
		{"refused", informertest.Rule{}, list, "refused"},
		{"drop", informertest.Rule{}, list, "broken"},
		{"drop", informertest.Rule{}, watch, "broken"},
		{"delay=2s", informertest.Rule{}, list, "+2s 200 ConfigMap a@105 b@106 @107 end"},
		{"hang", informertest.Rule{}, stream, "+50s silence"},
		{"halfopen", informertest.Rule{After: 1}, list, "200 ? +50s silence"},
		{"halfopen", informertest.Rule{After: 1}, watch, "200 ADDED a@105 +50s silence"},
		{"halfopen", informertest.Rule{}, watch, "200 +50s silence"},
		{"cut", informertest.Rule{After: 1}, list, "200 ? broken"},
		{"cut", informertest.Rule{After: 1}, watch, "200 ADDED a@105 ? broken"},
		{"eof", informertest.Rule{After: 1}, list, "200 ? broken"},
		{"eof", informertest.Rule{After: 1}, watch, "200 ADDED a@105 broken"},
		{"eof", informertest.Rule{}, watch, "200 broken"},
		{"truncated", informertest.Rule{After: 1}, list, "200 ? end"},
		{"truncated", informertest.Rule{After: 1}, watch, "200 ADDED a@105 ? end"},
		{"slow=2s", informertest.Rule{}, list, "200 ConfigMap a@105 b@106 @107 +6s end"},
		{"slow=2s", informertest.Rule{After: 1}, watch, "200 ADDED a@105 +2s ADDED b@106 +2s ADDED c@107 +46s silence"},
		{"close", informertest.Rule{After: 3}, stream, "200 ADDED a@105 ADDED b@106 ADDED c@107 end"},
		{"close", informertest.Rule{}, watch, "200 end"},
		{"gateway=3s", informertest.Rule{}, watch, "200 ADDED a@105 ADDED b@106 ADDED c@107 +3s end"},

		{"expired", informertest.Rule{}, list, "410 Status @ end"},
		{"expired", informertest.Rule{}, watch, "410 Status @ end"},
		{"expired", informertest.Rule{InStream: true}, watch, "200 ERROR 410 end"},
		{"toolarge", informertest.Rule{}, list, "504 after 1 Status @ end"},
		{"toomany", informertest.Rule{}, list, "429 Status @ end"},
		{"toomany=7s", informertest.Rule{}, watch, "429 after 7 Status @ end"},
		{"internal", informertest.Rule{After: 2}, watch, "200 ADDED a@105 ADDED b@106 ERROR 500 end"},
		{"unavailable", informertest.Rule{}, stream, "503 Status @ end"},
		{"timeout", informertest.Rule{}, list, "504 Status @ end"},
		{"unauthorized", informertest.Rule{}, list, "401 Status @ end"},
		{"forbidden", informertest.Rule{}, watch, "403 Status @ end"},
		{"notfound", informertest.Rule{}, list, "404 Status @ end"},
		{"notallowed", informertest.Rule{}, watch, "405 Status @ end"},
		{"invalid", informertest.Rule{}, stream, "422 Status @ end"},

		{"ignored", informertest.Rule{}, stream, "200 ADDED a@105 ADDED b@106 ADDED c@107 +50s silence"},
		{"nobookmarks", informertest.Rule{}, stream, "200 ADDED a@105 ADDED b@106 ADDED c@107 END @107 +50s silence"},
		{"nobookmarks", informertest.Rule{}, watch + "&timeoutSeconds=30", "200 ADDED a@105 ADDED b@106 ADDED c@107 +30s end"},
		{"table", informertest.Rule{}, list, "200 Table a@105 b@106 @107 end"},
		{"table", informertest.Rule{After: 2}, watch, "200 ADDED a@105 ADDED b@106 ADDED Table of c@107 +50s silence"},
		{"wrongkind", informertest.Rule{}, list, "200 Secret Secret a@105 Secret b@106 @107 end"},
		{"wrongkind", informertest.Rule{After: 2}, watch, "200 ADDED a@105 ADDED b@106 ADDED Secret c@107 +50s silence"},
		{"garbage", informertest.Rule{}, list, "200 ? end"},
		{"garbage", informertest.Rule{After: 2}, watch, "200 ADDED a@105 ADDED b@106 ? end"},
		{"malformed", informertest.Rule{After: 1}, list, "200 ConfigMap a@105 b@106! @107 end"},
		{"malformed", informertest.Rule{Key: key("b")}, stream, "200 ADDED a@105 ADDED b@106! ADDED c@107 END @107 +50s silence"},
		{"twice", informertest.Rule{Key: key("a")}, list, "200 ConfigMap a@105 b@106 a@105 @107 end"},
		{"twice", informertest.Rule{}, stream, "200 ADDED a@105 ADDED a@105 ADDED b@106 ADDED c@107 END @107 +50s silence"},
		{"nameless", informertest.Rule{}, list, "200 ConfigMap @105 b@106 @107 end"},
		{"versionless", informertest.Rule{After: 1}, watch, "200 ADDED a@105 ADDED b@ ADDED c@107 +50s silence"},
		{"unversioned", informertest.Rule{}, list, "200 ConfigMap a@105 b@106 @ end"},
		{"unversioned", informertest.Rule{}, stream, "200 ADDED a@105 ADDED b@106 ADDED c@107 END @ +50s silence"},
		{"duplicate", informertest.Rule{After: 2}, watch, "200 ADDED a@105 ADDED b@106 ADDED c@107 ADDED c@107 +50s silence"},
		{"reorder", informertest.Rule{}, watch, "200 ADDED b@106 ADDED a@105 +50s silence"},

		{"restored", informertest.Rule{Version: "106"}, list, "200 ConfigMap a@105 b@106 @106 end"},
		{"stale", informertest.Rule{Version: "105"}, list, "200 ConfigMap a@105 b@106 @107 end"},
		{"stale", informertest.Rule{Version: "105"}, list + "&resourceVersion=0", "200 ConfigMap a@105 @105 end"},
		{"stale", informertest.Rule{Version: "105"}, list + "&resourceVersion=105&resourceVersionMatch=NotOlderThan", "200 ConfigMap a@105 @105 end"},
		{"stale", informertest.Rule{Version: "105"}, list + "&resourceVersion=106&resourceVersionMatch=NotOlderThan", "200 ConfigMap a@105 b@106 @107 end"},
		{"stale=always", informertest.Rule{Version: "105"}, list, "200 ConfigMap a@105 @105 end"},
		{"stale", informertest.Rule{Version: "105"}, stream, "200 ADDED a@105 ADDED b@106 ADDED c@107 END @107 +50s silence"},
		{"stale", informertest.Rule{Version: "105"}, stream + "&resourceVersion=105", "200 ADDED a@105 END @105 ADDED b@106 ADDED c@107 +50s silence"},
		{"reborn", informertest.Rule{Key: key("a")}, watch, "200 ADDED a@105 ADDED b@106 ADDED c@107 DELETED a@108 ADDED a@109 +50s silence"},
		{"compacted", informertest.Rule{}, watch, "200 ERROR 410 end"},
	}
	met := map[informertest.Fault]bool{}
	for _, test := range tests {
		met[test.fault.Word()] = true
		test.rule.Fault = test.fault
		t.Run(fmt.Sprintf("%s %v", test.fault, strings.TrimPrefix(test.url, configMaps)), func(t *testing.T) {
			inBubble(t, informertest.Options{Record: 10}, func(t *testing.T, srv *informertest.Server) {
				write(t, srv, configMap("a"), configMap("b"), configMap("c"))
				inject(t, srv, test.rule)
				got := onTheWire(t, srv, test.url)
				if got != test.want {
					t.Errorf("GET %s\n got %s\nwant %s", test.url, got, test.want)
				}
				// A request that the rule does not fit is not struck.
				struck := srv.Requests()[0].Fault
				if fits := !strings.Contains(test.want, "@107") || test.fault.Word() != "stale"; fits != (struck == test.fault) {
					if !strings.Contains(test.want, "@105 END") {
						t.Errorf("Requests()[0].Fault = %q", struck)
					}
				}
			})
		})
	}
	for _, fault := range informertest.Faults() {
		if !met[fault] {
			t.Errorf("no row for %q", fault)
		}
	}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// Faults work on a socket as they do in memory, and no goroutine is left.
func TestFaultsOnASocket(t *testing.T) {
	inBoth(t, informertest.Options{Record: 10}, func(t *testing.T, srv *informertest.Server) {
		write(t, srv, configMap("a"), configMap("b"))
		for _, test := range []struct{ fault, want string }{
			{"refused", "refused"},
			{"drop", "broken"},
			{"cut", "200 ? broken"},
			{"eof", "200 ADDED a@105 broken"},
			{"close", "200 ADDED a@105 end"},
			{"internal", "200 ADDED a@105 ERROR 500 end"},
		} {
			rule := informertest.Rule{Fault: informertest.Fault(test.fault), Times: 1}
			url := configMaps
			if test.fault == "eof" || test.fault == "close" || test.fault == "internal" {
				rule.After, url = 1, configMaps+"?watch=1&resourceVersion=104"
			}
			inject(t, srv, rule)
			if got := onTheWire(t, srv, url); got != test.want {
				t.Errorf("%s: got %s, want %s", test.fault, got, test.want)
			}
		}
		if got, want := onTheWire(t, srv, configMaps), "200 ConfigMap a@105 b@106 @106 end"; got != want {
			t.Errorf("without a fault: got %s, want %s", got, want)
		}
		// The client goes away from an answer that never ends.
		inject(t, srv, informertest.Rule{Fault: "halfopen", Verb: "watch"})
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.Config().Host+configMaps+"?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: srv.Config().Transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = response.Body.Close()
	})
}

// Rules are asked in order; each is used up by itself.
func TestInject(t *testing.T) {
	inBubble(t, informertest.Options{Record: 100}, func(t *testing.T, srv *informertest.Server) {
		write(t, srv, configMap("a"), configMap("b"), configMap("c"))
		remove := inject(t, srv,
			informertest.Rule{Fault: "expired", Verb: "list", Page: 2, Times: 1},
			informertest.Rule{Fault: "forbidden", Verb: "list", Resource: "configmaps", Skip: 2, Times: 2},
			informertest.Rule{Fault: "internal", Verb: "list", Resource: "secrets"},
			informertest.Rule{Fault: "timeout", Match: func(r *http.Request) bool { return r.URL.Query().Get("limit") == "9" }},
		)
		first := ask(t, srv, "GET", configMaps+"?limit=1", "")
		second := configMaps + "?limit=1&continue=" + token(first)
		expired := ask(t, srv, "GET", second, "")
		wantError(t, expired, 410, metav1.StatusReasonExpired, "")
		if token(expired) == "" {
			t.Error("the answer to an expired token has none to go on with")
		}
		for i, want := range []int{200, 403, 403, 200} {
			if got := ask(t, srv, "GET", second, "").code; got != want {
				t.Errorf("request %d: status %d, want %d", i, got, want)
			}
		}
		if got := ask(t, srv, "GET", configMaps+"?limit=9", "").code; got != 504 {
			t.Errorf("what Match takes: status %d, want 504", got)
		}
		if got := ask(t, srv, "GET", configMaps+"/a", "").code; got != 200 {
			t.Errorf("get: status %d, want 200", got)
		}
		inject(t, srv, informertest.Rule{Fault: "unavailable", Verb: "get"})
		if got := ask(t, srv, "GET", configMaps+"/a", "").code; got != 503 {
			t.Errorf("get: status %d, want 503", got)
		}
		secrets := strings.ReplaceAll(configMaps, "configmaps", "secrets")
		for range 3 {
			if got := ask(t, srv, "GET", secrets, "").code; got != 500 {
				t.Errorf("secrets: status %d, want 500", got)
			}
		}
		remove()
		if got := ask(t, srv, "GET", secrets, "").code; got != 200 {
			t.Errorf("secrets, rules removed: status %d, want 200", got)
		}
		srv.Calm()
		if got := ask(t, srv, "GET", configMaps+"/a", "").code; got != 200 {
			t.Errorf("get, calm: status %d, want 200", got)
		}
	})
}

func TestInjectRefuses(t *testing.T) {
	srv, err := informertest.NewServer(informertest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule informertest.Rule
		want string // in the error
	}{
		{informertest.Rule{}, `Fault is "": not a known word`},
		{informertest.Rule{Fault: "dorp"}, `Fault is "dorp": not a known word`},
		{informertest.Rule{Fault: "drop=1s"}, `Fault is "drop=1s": value "1s" makes no sense`},
		{informertest.Rule{Fault: "delay"}, `Fault is "delay": time: invalid duration ""`},
		{informertest.Rule{Fault: "delay=-1s"}, `Fault is "delay=-1s": -1s is too short`},
		{informertest.Rule{Fault: "toomany=5ms"}, `Fault is "toomany=5ms": 5ms is too short`},
		{informertest.Rule{Fault: "stale=never", Version: "105"}, `Fault is "stale=never"`},
		{informertest.Rule{Fault: "drop", Verb: "lists"}, `Verb is "lists": not a kind of request`},
		{informertest.Rule{Fault: "close", Verb: "list"}, `Verb is "list": "close" makes no sense for it`},
		{informertest.Rule{Fault: "cut", Verb: "get"}, `Verb is "get": "cut" makes no sense for it`},
		{informertest.Rule{Fault: "drop", Resource: "pod"}, `Resource is "pod": not known`},
		{informertest.Rule{Fault: "drop", Page: -1}, `Page is -1`},
		{informertest.Rule{Fault: "drop", Verb: "watch", Page: 2}, `Page is 2: only lists have pages, and not a watch`},
		{informertest.Rule{Fault: "drop", Skip: -1}, `Skip is -1`},
		{informertest.Rule{Fault: "drop", Times: -1}, `Times is -1`},
		{informertest.Rule{Fault: "drop", After: -1}, `After is -1`},
		{informertest.Rule{Fault: "expired", Verb: "list", After: 1}, `After is 1, InStream false: "expired" strikes a list as a whole`},
		{informertest.Rule{Fault: "cut", InStream: true}, `InStream is set: "cut" is not an error`},
		{informertest.Rule{Fault: "reborn"}, `Key is empty: "reborn" needs one`},
		{informertest.Rule{Fault: "restored"}, `Version is "": not a version of the server`},
		{informertest.Rule{Fault: "stale", Version: "9000"}, `Version is "9000": must be between 104 and 104`},
	} {
		remove, err := srv.Inject(informertest.Rule{Fault: "drop"}, test.rule)
		if err == nil || !strings.Contains(err.Error(), "rule 2: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Inject(%+v) = %v, want %q in it", test.rule, err, test.want)
		}
		remove()
	}
	for _, chaos := range []informertest.Chaos{
		{Rate: -1}, {Rate: 2}, {Faults: []informertest.Fault{"dorp"}}, {Faults: []informertest.Fault{"refused"}},
		{Faults: []informertest.Fault{"reborn"}}, {Faults: []informertest.Fault{"stale"}},
	} {
		if _, err := informertest.NewServer(informertest.Options{Chaos: chaos}); err == nil {
			t.Errorf("NewServer with %+v: no error", chaos)
		}
	}
}

// The same seed strikes the same requests in the same way.
func TestChaos(t *testing.T) {
	run := func(t *testing.T, seed uint64) (said []string) {
		synctest.Test(t, func(t *testing.T) {
			srv := informertest.Start(t, informertest.Options{
				Record: 1000, Chaos: informertest.Chaos{Seed: seed, Rate: 0.5},
			})
			write(t, srv, configMap("a"), configMap("b"))
			for i := range 200 {
				url := configMaps
				if i%2 == 1 {
					url += "?watch=1&timeoutSeconds=40&resourceVersion=104"
				}
				said = append(said, onTheWire(t, srv, url))
			}
			met := map[informertest.Fault]bool{}
			for _, r := range srv.Requests().Struck() {
				met[r.Fault.Word()] = true
			}
			if n := len(srv.Requests().Struck()); n < 50 || n > 130 || len(met) < 15 {
				t.Errorf("%d of 200 requests were struck, by %d different faults", n, len(met))
			}
			srv.Calm()
			if got, want := onTheWire(t, srv, configMaps), "200 ConfigMap a@105 b@106 @106 end"; got != want {
				t.Errorf("calm: got %s, want %s", got, want)
			}
		})
		return said
	}
	one, again, other := run(t, 1), run(t, 1), run(t, 2)
	for i, said := range one {
		if said != again[i] {
			t.Errorf("one seed, request %d: %s, again %s", i, said, again[i])
		}
	}
	if slices.Equal(one, other) {
		t.Error("two seeds, one course")
	}
}

// A server goes back to an earlier state, as promise 11 has to cope with: watches
// end, and versions are given again.
func TestRestore(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		write(t, srv, configMap("a"), configMap("b", "v=1"))
		before := srv.Version()
		w := watchRaw(t, srv, configMaps+"?watch=1&resourceVersion="+before)
		remove(t, srv, configMap("a"))
		update(t, srv, configMap("b", "v=2"))
		write(t, srv, configMap("c"))
		w.want("DELETED a@107", "MODIFIED b@108", "ADDED c@109")
		if err := srv.Restore(before); err != nil {
			t.Fatal(err)
		}
		restored := time.Now()
		w.want("closed")
		if took := time.Since(restored); took > 0 {
			t.Errorf("the watch has ended %v after the restore, want at once", took)
		}
		wantList(t, ask(t, srv, "GET", configMaps, ""), "a b", before)
		if got := at(ask(t, srv, "GET", configMaps+"/b", "").body, "metadata", "labels", "v"); got != "1" {
			t.Errorf("b has v = %v, want 1", got)
		}
		// A watch from what is now the future is silent until it is reached.
		w = watchRaw(t, srv, configMaps+"?watch=1&resourceVersion=108")
		write(t, srv, configMap("d"), configMap("e"), configMap("f"))
		w.want("ADDED f@109")
		for _, version := range []string{"", "103", "1000"} {
			if err := srv.Restore(version); err == nil {
				t.Errorf("Restore(%q): no error", version)
			}
		}
		srv.Compact()
		if err := srv.Restore(before); err == nil {
			t.Error("Restore to a state that is forgotten: no error")
		}
	})
}

func TestRecreate(t *testing.T) {
	inBubble(t, informertest.Options{}, func(t *testing.T, srv *informertest.Server) {
		write(t, srv, configMap("a", "v=1"))
		was := ask(t, srv, "GET", configMaps+"/a", "").body
		version, err := srv.Recreate(configMap("a"))
		is := ask(t, srv, "GET", configMaps+"/a", "").body
		if err != nil || version != "107" || at(is, "metadata", "labels", "v") != "1" ||
			at(is, "metadata", "uid") == at(was, "metadata", "uid") {
			t.Errorf("Recreate = %q, %v; was %v, is %v", version, err, was, is)
		}
		if _, err := srv.Recreate(configMap("b")); err == nil {
			t.Error("Recreate of what is not there: no error")
		}
	})
}
