package informertest_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer/informertest"
)

// modelWrite is one write: app is what the label says after it, "" if the
// object is gone. A write of another resource has no name.
type modelWrite struct{ version, name, app string }

// model is a naive server: the list of all writes to configmaps.
type model struct {
	srv    *informertest.Server
	start  string
	writes []modelWrite
	floor  int // writes before it are forgotten
}

// state returns name to app after n writes.
func (m *model) state(n int) map[string]string {
	state := map[string]string{}
	for _, w := range m.writes[:n] {
		if w.app == "" {
			delete(state, w.name)
		} else {
			state[w.name] = w.app
		}
	}
	return state
}

func (m *model) version(n int) string {
	if n == 0 {
		return m.start
	}
	return m.writes[n-1].version
}

// items returns what a list after n writes shows.
func (m *model) items(n int, app string) string {
	state := m.state(n)
	maps.DeleteFunc(state, func(_, is string) bool { return app != "" && is != app })
	return strings.Join(slices.Sorted(maps.Keys(state)), " ")
}

// events returns what a watch after n writes tells.
func (m *model) events(n int, app string) []string {
	var events []string
	for i := n; i < len(m.writes); i++ {
		w := m.writes[i]
		was, is := m.state(i)[w.name], w.app
		had := was != "" && (app == "" || was == app)
		has := is != "" && (app == "" || is == app)
		kind := map[[2]bool]string{{false, true}: "ADDED", {true, true}: "MODIFIED", {true, false}: "DELETED"}[[2]bool{had, has}]
		if kind != "" {
			events = append(events, kind+" "+w.name+"@"+w.version)
		}
	}
	return events
}

func (m *model) write(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name")
	app := rapid.SampledFrom([]string{"", "web", "db"}).Draw(t, "app")
	was := m.state(len(m.writes))[name]
	obj := configMap(name, "app="+app, "n="+strconv.Itoa(len(m.writes)))
	w := modelWrite{name: name, app: app}
	switch {
	case was == "" && app == "":
		w = modelWrite{version: write(t, m.srv, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s" + strconv.Itoa(len(m.writes))}})}
	case was == "":
		w.version = write(t, m.srv, obj)
	case app == "":
		w.version = remove(t, m.srv, obj)
	default:
		w.version = update(t, m.srv, obj)
	}
	m.writes = append(m.writes, w)
}

func (m *model) query(app string) string {
	if app == "" {
		return configMaps + "?"
	}
	return configMaps + "?labelSelector=app%3D" + app + "&"
}

func (m *model) list(t *rapid.T) {
	n := rapid.IntRange(0, len(m.writes)).Draw(t, "after")
	app := rapid.SampledFrom([]string{"", "web"}).Draw(t, "selector")
	limit := rapid.IntRange(0, 3).Draw(t, "limit")
	query := m.query(app) + "limit=" + strconv.Itoa(limit)
	next := "&resourceVersionMatch=Exact&resourceVersion=" + m.version(n)
	var got []string
	for next != "" {
		answer := ask(t, m.srv, "GET", query+next, "")
		if n < m.floor {
			if answer.code != http.StatusGone {
				t.Fatalf("list at a forgotten version: %s", answer.text)
			}
			return
		}
		if at(answer.body, "metadata", "resourceVersion") != m.version(n) {
			t.Fatalf("list at %s: %s", m.version(n), answer.text)
		}
		got = append(got, strings.Fields(names(answer))...)
		if next = token(answer); next != "" {
			next = "&continue=" + next
			m.write(t) // between two pages
		}
	}
	if want := m.items(n, app); strings.Join(got, " ") != want {
		t.Fatalf("list after %d writes = %q, want %q", n, got, want)
	}
}

func (m *model) watch(t *rapid.T) {
	n := rapid.IntRange(m.floor, len(m.writes)).Draw(t, "after")
	app := rapid.SampledFrom([]string{"", "web"}).Draw(t, "selector")
	initial := rapid.Bool().Draw(t, "initial")
	query := m.query(app) + "watch=true&allowWatchBookmarks=true"
	var want []string
	if initial {
		n = len(m.writes)
		for name := range strings.FieldsSeq(m.items(n, app)) {
			want = append(want, "ADDED "+name+"@"+m.last(name))
		}
		want = append(want, "BOOKMARK end@"+m.srv.Version())
	} else {
		query += "&resourceVersion=" + m.version(n)
	}
	w := watchRaw(t, m.srv, query)
	w.want(want...) // first, or they might show what is written now
	for range rapid.IntRange(0, 3).Draw(t, "writes") {
		m.write(t)
	}
	w.want(m.events(n, app)...)
	_ = w.response.Body.Close()
}

// last returns the version of the last write of an object.
func (m *model) last(name string) string {
	for _, w := range slices.Backward(m.writes) {
		if w.name == name {
			return w.version
		}
	}
	return ""
}

// Lists and watches at any version, with selectors and pages, say what a naive
// list of all writes says.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		srv := informertest.Start(t, informertest.Options{})
		m := &model{srv: srv, start: srv.Version()}
		t.Repeat(map[string]func(*rapid.T){
			"write":   m.write,
			"write 2": m.write,
			"list":    m.list,
			"watch":   m.watch,
			"compact": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
					srv.Compact()
					m.floor = len(m.writes)
				}
			},
		})
	})
}

// No request makes the server panic, or say something that is not HTTP.
func FuzzServer(f *testing.F) {
	srv, err := informertest.NewServer(informertest.Options{Resources: widgets(), Socket: false})
	if err != nil {
		f.Fatal(err)
	}
	methods := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	for i, seed := range []string{
		`{"metadata":{"name":"a"}}`, `null`, `[]`, `{"metadata":{"labels":{"a":1},"finalizers":["x/y"]}}`,
		`[{"op":"add","path":"/metadata/labels","value":null}]`, widget("w", `"status":7`),
	} {
		for j := range methods {
			f.Add(uint8(j), uint8(i), "metadata=name", seed)
		}
	}
	paths := []string{configMaps, configMaps + "/a", pods + "/a/status", widgetsPath, widgetsPath + "/w", "/apis", "/api/v1/namespaces/x"}
	types := []string{"", "application/json", "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"}
	f.Fuzz(func(t *testing.T, method, path uint8, query, body string) {
		url := &url.URL{Path: paths[int(path)%len(paths)], RawQuery: query}
		if values := url.Query(); values.Has("watch") || values.Get("resourceVersion") > "0" || values.Has("resourceVersionMatch") {
			return // may take its time
		}
		for _, contentType := range types {
			r := httptest.NewRequest(methods[int(method)%len(methods)], "/", strings.NewReader(body)).WithContext(t.Context())
			r.URL = url
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, r)
			if w.Code < 200 || w.Code > 599 || w.Body.Len() == 0 {
				t.Errorf("%s %s %q = %d %q", r.Method, url, body, w.Code, w.Body)
			}
		}
	})
}
