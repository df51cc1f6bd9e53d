package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer/informertest"
)

// The test of this file asks the fake server and the real one the same, word by
// word. The conformance suite wants what every source must do; this wants that
// the fake does what the real server does, down to its refusals.

// questions are paths and queries, below the config maps of a namespace unless
// they begin with a slash. {1} stands for the version after the first write,
// {far} for one that is not reached, {token} for that of a page.
var questions = strings.Fields(`
?
?limit=2
?limit=2&continue={token}
?limit=500
?limit=2&resourceVersion=0
?limit=1&resourceVersion={3}
?limit=1&labelSelector=value%3Dred
?limit=-1
?limit=abc
?resourceVersion=0
?resourceVersion={3}
?resourceVersion=abc
?resourceVersion=-1
?resourceVersion=0&resourceVersionMatch=NotOlderThan
?resourceVersion=0&resourceVersionMatch=Exact
?resourceVersion={3}&resourceVersionMatch=Exact
?resourceVersion={3}&resourceVersionMatch=Exact&limit=1
?resourceVersion={3}&resourceVersionMatch=NotOlderThan
?resourceVersion={3}&resourceVersionMatch=NotOlderThan&limit=1
?resourceVersion={3}&resourceVersionMatch=Bogus
?resourceVersion={far}
?resourceVersion={far}&resourceVersionMatch=NotOlderThan
?resourceVersion={far}&resourceVersionMatch=Exact
?resourceVersionMatch=Exact
?resourceVersionMatch=NotOlderThan
?continue=garbage
?continue={token}&resourceVersion={3}
?continue={token}&resourceVersion=0
?continue={token}&resourceVersionMatch=Exact
?sendInitialEvents=true
?sendInitialEvents=true&resourceVersionMatch=NotOlderThan
?labelSelector=value%3Dred
?labelSelector=value
?labelSelector=!value
?labelSelector=value+in+(red,green)
?labelSelector=((
?fieldSelector=metadata.name%3Da
?fieldSelector=metadata.name!%3Da
?fieldSelector=metadata.namespace%3Ddifferences
?fieldSelector=data%3D1
?fieldSelector=((
?timeoutSeconds=abc
?watch=maybe&timeoutSeconds=2
?watch=true&timeoutSeconds=2
?watch=true&timeoutSeconds=2&resourceVersion=0
?watch=true&timeoutSeconds=2&resourceVersion={1}
?watch=true&timeoutSeconds=2&resourceVersion={3}&labelSelector=value%3Dred
?watch=true&timeoutSeconds=2&resourceVersion={1}&labelSelector=value%3Dred
?watch=true&timeoutSeconds=2&resourceVersion={1}&fieldSelector=metadata.name%3Da
?watch=true&timeoutSeconds=2&resourceVersion={far}
?watch=true&timeoutSeconds=2&resourceVersion=abc
?watch=true&timeoutSeconds=2&resourceVersion=-1
?watch=true&timeoutSeconds=2&resourceVersionMatch=NotOlderThan
?watch=true&timeoutSeconds=2&resourceVersionMatch=Exact&resourceVersion={1}
?watch=true&timeoutSeconds=2&resourceVersionMatch=NotOlderThan&resourceVersion={1}
?watch=true&timeoutSeconds=2&limit=1&resourceVersion={1}
?watch=true&timeoutSeconds=2&continue={token}
?watch=true&timeoutSeconds=2&sendInitialEvents=true
?watch=true&timeoutSeconds=2&sendInitialEvents=true&resourceVersionMatch=NotOlderThan
?watch=true&timeoutSeconds=2&sendInitialEvents=true&resourceVersionMatch=Exact
?watch=true&timeoutSeconds=2&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true
?watch=true&timeoutSeconds=2&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={3}
?watch=true&timeoutSeconds=2&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0
?watch=true&timeoutSeconds=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={far}
?watch=true&timeoutSeconds=2&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=value%3Dred
?watch=true&timeoutSeconds=2&sendInitialEvents=false&resourceVersion={1}
?watch=true&timeoutSeconds=2&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={1}
?watch=true&timeoutSeconds=2&sendInitialEvents=false
?watch=true&timeoutSeconds=2&labelSelector=((
?watch=true&timeoutSeconds=2&fieldSelector=data%3D1
/a
/absent
/a?resourceVersion={1}
/a?resourceVersion=abc
/a?resourceVersion={far}
//api/v1/configmaps?fieldSelector=metadata.namespace%3Ddifferences
//api/v1/namespaces/differences
//api/v1/namespaces/absent/configmaps
//api/v1/bogus
//api/v1/bogus?watch=true
//api/v1/namespaces/differences/bogus
//apis/bogus.example.com/v1/things
//apis/bogus.example.com/v1/things?watch=true
//apis/apps/v2/deployments
`)

// TestFakeAnswersAsReal compares the answers of the two servers. Where they
// differ, the real one is right. These differences were found, and mended in the
// fake:
//
//   - a negative limit is none;
//   - an unknown version of a known group is answered 404 with a status;
//   - a namespace has a label with its name;
//   - what a dry run answers has no version, or the present one;
//   - an update at a version that is no number is a 500 of other words.
//
// These remain: a namespace has no finalizers, as it is emptied at once. A fake
// server forgets what was before its first write, so a watch from version 1 is
// answered 410, as from a server of some age; the real one is new here too, and
// knows. Some refusals of bodies that cannot be decoded have other words.
func TestFakeAnswersAsReal(t *testing.T) {
	t.Parallel()
	real := newAnswerer(t, startServer(t, serverOptions{}).admin())
	fake := newAnswerer(t, informertest.Start(t, informertest.Options{Socket: true}).Config())
	var want, got sync.Map
	inParallel(t, len(questions), func(i int) error {
		want.Store(i, real.ask(t, questions[i]))
		got.Store(i, fake.ask(t, questions[i]))
		return nil
	})
	for i, question := range questions {
		a, _ := want.Load(i)
		b, _ := got.Load(i)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: real (-), fake (+):\n%s", question, diff)
		}
	}
}

// forgotten are questions about a state that is compacted.
var forgotten = strings.Fields(`
?limit=2&continue={token}
?limit=1&resourceVersion={3}
?resourceVersion={3}&resourceVersionMatch=Exact
?resourceVersion={3}&resourceVersionMatch=NotOlderThan
?resourceVersion={3}
?watch=true&timeoutSeconds=2&resourceVersion={3}
`)

// TestFakeForgetsAsReal compares the answers of the two servers after a
// compaction. The real one is restarted, as its watch cache would still know.
func TestFakeForgetsAsReal(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	srv := informertest.Start(t, informertest.Options{Socket: true})
	real, fake := newAnswerer(t, s.admin()), newAnswerer(t, srv.Config())
	for _, a := range []*answerer{real, fake} {
		// What the token leads to is compacted too, even if the real server wrote
		// nothing of its own since.
		a.write(t, "PUT", "/api/v1/namespaces/differences/configmaps/d", `{"metadata":{"name":"d"},"data":{"n":"3"}}`)
	}
	s.compact(s.currentRevision())
	s.kill()
	s.start()
	srv.Compact()
	for _, question := range forgotten {
		want, got := real.ask(t, question), fake.ask(t, question)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: real (-), fake (+):\n%s", question, diff)
		}
	}
}

// otherWords are methods and bodies of writes that the fake refuses for the same
// reason, but in other words.
var otherWords = []string{
	"POST" + `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}`,
	"POST" + `{"metadata":`,
	"POST",
	"PUT" + `{"metadata":{"name":"a","uid":"another"}}`,
	"PATCH+unknown" + `{}`,
}

// dropWords drops what a status says to humans.
func (a *answer) dropWords() {
	for _, line := range a.Lines {
		if status, ok := line.(map[string]any); ok {
			delete(status, "message")
			delete(status, "details")
		}
	}
}

// TestFakeWritesAsReal makes the same writes to both servers, one after the
// other, and compares what they answer.
func TestFakeWritesAsReal(t *testing.T) {
	t.Parallel()
	real := newAnswerer(t, startServer(t, serverOptions{}).admin())
	fake := newAnswerer(t, informertest.Start(t, informertest.Options{Socket: true}).Config())
	for i, w := range []struct{ method, where, body string }{
		{"POST", "", `{"metadata":{"name":"a"}}`},
		{"PUT", "/d?dryRun=All", `{"metadata":{"name":"d"},"data":{"n":"9"}}`},
		{"POST", "", `{"metadata":{"name":"Not_A_Name"}}`},
		{"POST", "", `{"metadata":{}}`},
		{"POST", "", `{"metadata":{"name":"x","namespace":"other"}}`},
		{"POST", "", `{"metadata":{"name":"x","resourceVersion":"5"}}`},
		{"POST", "", `{"metadata":{"name":"x","labels":{"not a label":"x"}}}`},
		{"POST", "", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}`},
		{"POST", "", `{"metadata":`},
		{"POST", "", ``},
		{"POST", "/a", `{"metadata":{"name":"a"}}`},
		{"POST", "?dryRun=All", `{"metadata":{"name":"dry"}}`},
		{"POST", "", `{"metadata":{"name":"x","uid":"mine","generation":7,"creationTimestamp":"2001-01-01T00:00:00Z"}}`},
		{"POST", "//api/v1/namespaces/absent/configmaps", `{"metadata":{"name":"x"}}`},
		{"POST", "//api/v1/configmaps", `{"metadata":{"name":"x","namespace":"differences"}}`},
		{"PUT", "/a", `{"metadata":{"name":"a","resourceVersion":"{1}"}}`},
		{"PUT", "/a", `{"metadata":{"name":"a","resourceVersion":"abc"}}`},
		{"PUT", "/a", `{"metadata":{"name":"a","uid":"another"}}`},
		{"PUT", "/a", `{"metadata":{"name":"b"}}`},
		{"PUT", "/absent", `{"metadata":{"name":"absent"}}`},
		{"PUT", "/a", `{"metadata":{"name":"a","labels":{"value":"blue"}},"data":{"n":"2"}}`}, // changes nothing
		{"PUT", "/a", `{"metadata":{"name":"a"},"data":{"n":"3"}}`},
		{"PATCH+merge-patch", "/a", `{"metadata":{"labels":{"value":"green"}},"data":{"m":"1","n":null}}`},
		{"PATCH+merge-patch", "/a", `{"metadata":{"resourceVersion":"{1}"}}`},
		{"PATCH+merge-patch", "/absent", `{"data":{"m":"1"}}`},
		{"PATCH+merge-patch", "/a", `{"metadata":{"name":"b"}}`},
		{"PATCH+merge-patch", "/a", `[]`},
		{"PATCH+json-patch", "/a", `[{"op":"replace","path":"/data/m","value":"2"}]`},
		{"PATCH+json-patch", "/a", `[{"op":"test","path":"/data/m","value":"1"}]`},
		{"PATCH+json-patch", "/a", `[{"op":"remove","path":"/data/absent"}]`},
		{"PATCH+strategic-merge-patch", "/a", `{"data":{"k":"1"}}`},
		{"PATCH+unknown", "/a", `{}`},
		{"DELETE", "/absent", ``},
		{"DELETE", "/b", `{"preconditions":{"uid":"another"}}`},
		{"DELETE", "/b", `{"preconditions":{"resourceVersion":"{1}"}}`},
		{"DELETE", "/b?dryRun=All", ``},
		{"DELETE", "/b", ``},
		{"PATCH+merge-patch", "/c", `{"metadata":{"finalizers":["example.com/f"]}}`},
		{"DELETE", "/c", ``},
		{"DELETE", "/c", ``},
		{"PATCH+merge-patch", "/c", `{"metadata":{"finalizers":["example.com/f","example.com/g"]}}`},
		{"PATCH+merge-patch", "/c", `{"metadata":{"finalizers":null}}`},
		{"GET", "/c", ``},
		{"DELETE", "?labelSelector=value%3Dgreen", ``},
		{"GET", "", ``},
	} {
		want, got := real.tell(t, w.method, w.where, w.body), fake.tell(t, w.method, w.where, w.body)
		for _, words := range otherWords {
			if w.method+w.body == words {
				want.dropWords()
				got.dropWords()
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: %s %s %s: real (-), fake (+):\n%s", i, w.method, w.where, w.body, diff)
		}
	}
}

// answerer is a server with objects that have a history.
type answerer struct {
	config   *rest.Config
	client   *http.Client
	versions []int64 // after each write
	token    string
}

// newAnswerer writes the objects.
func newAnswerer(t *testing.T, config *rest.Config) *answerer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	a := &answerer{config: config, client: client}
	a.write(t, "POST", "/api/v1/namespaces", `{"metadata":{"name":"differences"}}`)
	const maps = "/api/v1/namespaces/differences/configmaps"
	for _, w := range []struct{ method, path, body string }{
		{"POST", maps, `{"metadata":{"name":"a","labels":{"value":"red"}},"data":{"n":"1"}}`},
		{"POST", maps, `{"metadata":{"name":"b","labels":{"value":"blue"}},"data":{"n":"1"}}`},
		{"POST", maps, `{"metadata":{"name":"c"},"data":{"n":"1"}}`},
		{"PUT", maps + "/a", `{"metadata":{"name":"a","labels":{"value":"blue"}},"data":{"n":"2"}}`},
		{"PUT", maps + "/b", `{"metadata":{"name":"b","labels":{"value":"red"}},"data":{"n":"2"}}`},
		{"DELETE", maps + "/c", ``},
		{"POST", maps, `{"metadata":{"name":"c","labels":{"value":"red"}},"data":{"n":"2"}}`},
		{"POST", maps, `{"metadata":{"name":"d"},"data":{"n":"1"}}`},
		{"PUT", maps + "/d", `{"metadata":{"name":"d"},"data":{"n":"2"}}`},
	} {
		a.write(t, w.method, w.path, w.body)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(a.get(t, maps+"?limit=2"), &list); err != nil {
		t.Fatal(err)
	}
	a.token = list.Continue
	return a
}

// write makes one write. That of a deletion has no version.
func (a *answerer) write(t *testing.T, method, path, body string) {
	t.Helper()
	resp, data, err := a.fetch(t.Context(), method, path, body)
	if err != nil || resp.StatusCode > 299 {
		t.Fatalf("%s %s: %v %s", method, path, err, data)
	}
	var made metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &made); err != nil {
		t.Fatal(err)
	}
	if method != http.MethodDelete {
		a.versions = append(a.versions, version(t, &made))
	}
}

func (a *answerer) get(t *testing.T, path string) []byte {
	t.Helper()
	_, body, err := a.fetch(t.Context(), http.MethodGet, path, "")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// fetch makes a request. A method PATCH+X is a patch of media type X.
func (a *answerer) fetch(ctx context.Context, method, path, body string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	method, patch, _ := strings.Cut(method, "+")
	req, err := http.NewRequestWithContext(ctx, method, a.config.Host+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	if patch != "" {
		req.Header.Set("Content-Type", "application/"+patch+"+json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

// answer is what matters of an answer.
type answer struct {
	Status      int
	ContentType string
	RetryAfter  string
	Err         string
	Lines       []any // JSON values, or what is none as text
}

// ask puts a question.
func (a *answerer) ask(t *testing.T, question string) answer {
	return a.tell(t, http.MethodGet, question, "")
}

// tell makes a request, of which question says where.
func (a *answerer) tell(t *testing.T, method, question, body string) answer {
	path := "/api/v1/namespaces/differences/configmaps" + question
	if absolute, ok := strings.CutPrefix(question, "//"); ok {
		path = "/" + absolute
	}
	for i, v := range a.versions {
		path = strings.ReplaceAll(path, fmt.Sprintf("{%d}", i), fmt.Sprint(v))
	}
	far := fmt.Sprint(a.versions[len(a.versions)-1] * 10_000)
	path = strings.NewReplacer("{far}", far, "{token}", a.token).Replace(path)
	body = strings.ReplaceAll(body, "{1}", fmt.Sprint(a.versions[1]))
	resp, data, err := a.fetch(t.Context(), method, path, body)
	if err != nil {
		return answer{Err: err.Error()}
	}
	got := answer{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), RetryAfter: resp.Header.Get("Retry-After")}
	decoder := json.NewDecoder(bytes.NewReader(data))
	for decoder.More() {
		var value any
		if err := decoder.Decode(&value); err != nil {
			got.Lines = append(got.Lines, string(data))
			break
		}
		if !isPlainBookmark(value) {
			got.Lines = append(got.Lines, a.plain("", value))
		}
	}
	return got
}

// isPlainBookmark tells bookmarks that only say how far a watch has come. When
// they come is a matter of the clock; the suite has a check for them.
func isPlainBookmark(line any) bool {
	event, _ := line.(map[string]any)
	object, _ := event["object"].(map[string]any)
	about, _ := object["metadata"].(map[string]any)
	return event["type"] == "BOOKMARK" && about["annotations"] == nil
}

var (
	longNumber = regexp.MustCompile(`\d{3,}`)
	anyUID     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// plain drops what differs between any two servers: versions become the last
// write that they show, UIDs and times are dropped.
func (a *answerer) plain(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		plain := map[string]any{}
		for key, item := range value {
			switch key {
			case "uid", "creationTimestamp", "deletionTimestamp", "managedFields":
			case "finalizers": // of a namespace: the fake needs nobody to empty it
			default:
				plain[key] = a.plain(key, item)
			}
		}
		return plain
	case []any:
		for i := range value {
			value[i] = a.plain("", value[i])
		}
		return value
	case string:
		if name == "continue" {
			return value != ""
		}
		value = anyUID.ReplaceAllString(value, "UID")
		value = strings.ReplaceAll(value, "123-abc", "abc") // the example of a label in a message
		return longNumber.ReplaceAllStringFunc(value, a.writeOf)
	}
	return value
}

// writeOf returns the last write that a version shows.
func (a *answerer) writeOf(text string) string {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	if v > 10*a.versions[len(a.versions)-1] {
		return "far"
	}
	i, found := slices.BinarySearch(a.versions, v)
	if !found {
		i--
	}
	return fmt.Sprintf("{%d}", i)
}
