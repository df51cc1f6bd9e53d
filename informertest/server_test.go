package informertest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-99a027e8/informer/informertest"
)

// inBoth runs a test in a bubble with a server in memory, and with one on a
// socket.
func inBoth(t *testing.T, opts informertest.Options, test func(*testing.T, *informertest.Server)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, informertest.Start(t, opts)) })
	})
	t.Run("socket", func(t *testing.T) {
		opts := opts
		opts.Socket = true
		test(t, informertest.Start(t, opts))
	})
}

// inBubble runs a test in a bubble with a server in memory.
func inBubble(t *testing.T, opts informertest.Options, test func(*testing.T, *informertest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, informertest.Start(t, opts)) })
}

func clientsetFor(t *testing.T, srv *informertest.Server) kubernetes.Interface {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(srv.Config())
	if err != nil {
		t.Fatal(err)
	}
	return clientset
}

// raw is the answer to a request made without any client library.
type raw struct {
	code   int
	header http.Header
	body   map[string]any
	text   string
}

// ask sends a request. Headers are given as "Name: value".
func ask(t *testing.T, srv *informertest.Server, method, url, body string, headers ...string) raw {
	t.Helper()
	response := open(t, srv, method, url, body, headers...)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	answer := raw{code: response.StatusCode, header: response.Header, text: string(text)}
	_ = json.Unmarshal(text, &answer.body) // may be plain text
	return answer
}

func open(t *testing.T, srv *informertest.Server, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	config := srv.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return response
}

// at returns what stands at a path of a JSON object.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return nil
			}
			value = list[step]
		}
	}
	return value
}

// stream reads a watch event by event.
type stream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
}

func watchRaw(t *testing.T, srv *informertest.Server, url string, headers ...string) *stream {
	t.Helper()
	response := open(t, srv, "GET", url, "", headers...)
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d", url, response.StatusCode)
	}
	return &stream{t: t, response: response, lines: bufio.NewReader(response.Body)}
}

// next returns the next event, such as "ADDED a@7", or "closed".
func (s *stream) next() string {
	s.t.Helper()
	event, object := s.nextObject()
	if event == "closed" {
		return event
	}
	name, _ := at(object, "metadata", "name").(string)
	if event == "ERROR" {
		code, _ := json.Marshal(object["code"])
		message, _ := object["message"].(string)
		return "ERROR " + string(code) + " " + message
	}
	version, _ := at(object, "metadata", "resourceVersion").(string)
	if at(object, "metadata", "annotations", metav1.InitialEventsAnnotationKey) == "true" {
		name = "end"
	}
	return strings.TrimSpace(event + " " + name + "@" + version)
}

func (s *stream) nextObject() (string, map[string]any) {
	s.t.Helper()
	line, err := s.lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return "closed", nil
	}
	if err != nil {
		s.t.Fatalf("watch: %v after %q", err, line)
	}
	var event struct {
		Type   string         `json:"type"`
		Object map[string]any `json:"object"`
	}
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&event); err != nil {
		s.t.Fatalf("watch: %v in %q", err, line)
	}
	return event.Type, event.Object
}

func (s *stream) want(events ...string) {
	s.t.Helper()
	for _, want := range events {
		if got := s.next(); got != want {
			s.t.Fatalf("next event = %q, want %q", got, want)
		}
	}
}

func configMap(name string, labels ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		metav1.SetMetaDataLabel(&cm.ObjectMeta, key, value)
	}
	return cm
}

// write creates objects directly and returns the version of the last one.
func write(t *testing.T, srv *informertest.Server, objects ...informertest.APIObject) string {
	t.Helper()
	var version string
	for _, obj := range objects {
		var err error
		if version, err = srv.Create(obj); err != nil {
			t.Fatal(err)
		}
	}
	return version
}

func update(t *testing.T, srv *informertest.Server, obj informertest.APIObject) string {
	t.Helper()
	version, err := srv.Update(obj)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func remove(t *testing.T, srv *informertest.Server, obj informertest.APIObject) string {
	t.Helper()
	version, err := srv.Delete(obj)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

const configMaps = "/api/v1/namespaces/default/configmaps"

func TestRunOnce(t *testing.T) {
	srv, err := informertest.NewServer(informertest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if err := srv.Run(t.Context()); err == nil {
		t.Error("second Run = nil, want an error")
	}
	if _, err := clientsetFor(t, srv).Discovery().ServerVersion(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("request after the end = %v, want connection refused", err)
	}
}

// A server that ends closes open watches, and leaves no goroutine (promise 29).
func TestRunEndsWatches(t *testing.T) {
	for _, socket := range []bool{false, true} {
		srv, err := informertest.NewServer(informertest.Options{Socket: socket})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- srv.Run(ctx) }()
		w, err := clientsetFor(t, srv).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if event, ok := <-w.ResultChan(); ok {
			t.Errorf("event %v after the end of the server", event)
		}
		w.Stop()
	}
}

func TestOptionsRefused(t *testing.T) {
	resource := informertest.Resource{Group: "example.com", Version: "v1", Name: "things", Kind: "Thing"}
	bad := resource
	bad.Verbs = []string{"lst"}
	for name, opts := range map[string]informertest.Options{
		"negative":     {History: -1},
		"no kind":      {Resources: []informertest.Resource{{Group: "example.com", Version: "v1", Name: "things"}}},
		"twice":        {Resources: []informertest.Resource{resource, resource}},
		"unknown verb": {Resources: []informertest.Resource{bad}},
	} {
		if _, err := informertest.NewServer(opts); err == nil {
			t.Errorf("%s: NewServer = nil, want an error", name)
		}
	}
}

func TestRequests(t *testing.T) {
	inBubble(t, informertest.Options{Record: 2}, func(t *testing.T, srv *informertest.Server) {
		ask(t, srv, "GET", "/version", "")
		pass(time.Minute)
		ask(t, srv, "GET", configMaps+"/none", "")
		watchRaw(t, srv, configMaps+"?watch=1")
		requests := srv.Requests()
		if len(requests) != 2 {
			t.Fatalf("Requests = %v, want the last two", requests)
		}
		if r := requests[0]; r.Method != "GET" || r.Path != configMaps+"/none" || r.Status != 404 || r.Watch() {
			t.Errorf("first = %+v", r)
		}
		if r := requests[1]; !r.Watch() || r.Status != 200 || !r.Time.Equal(time.Now()) {
			t.Errorf("second = %+v", r)
		}
	})
}

// Who asked is remembered, so that the requests of several clients can be told
// apart.
func TestRequestsUserAgent(t *testing.T) {
	inBubble(t, informertest.Options{Record: 2}, func(t *testing.T, srv *informertest.Server) {
		for _, name := range []string{"one", "other"} {
			config := srv.Config()
			config.UserAgent = name
			clientset, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := clientset.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if r := srv.Requests(); r[0].UserAgent != "one" || r[1].UserAgent != "other" {
			t.Errorf("Requests = %+v, want one and other", r)
		}
	})
}

// The seam for faults: what Intercept does is seen by clients and in Requests.
func TestIntercept(t *testing.T) {
	broken := true
	opts := informertest.Options{Record: 10, Intercept: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}
	inBubble(t, opts, func(t *testing.T, srv *informertest.Server) {
		if got := ask(t, srv, "GET", configMaps, ""); got.code != 429 || got.header.Get("Retry-After") != "7" {
			t.Errorf("intercepted = %+v", got)
		}
		if got := srv.Requests()[0].Status; got != 429 {
			t.Errorf("recorded status = %d, want 429", got)
		}
		broken = false
		watchRaw(t, srv, configMaps+"?watch=1&allowWatchBookmarks=true").want("BOOKMARK end@" + srv.Version())
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }
