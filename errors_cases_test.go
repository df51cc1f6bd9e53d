package informer_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
)

// faultyServer answers the first request of one phase with a fault, and all
// others as a server does that has nothing.
type faultyServer struct {
	phase string // "list", "page", "stream" or "watch"
	fault func(r *http.Request) (*http.Response, error)

	failed bool
	list   string // the kind of the list
}

func (s *faultyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	phase := "list"
	switch {
	case query.Has("sendInitialEvents"):
		phase = "stream"
	case query.Has("watch"):
		phase = "watch"
	case query.Has("continue"):
		phase = "page"
	}
	if phase == s.phase && !s.failed {
		s.failed = true
		return s.fault(r)
	}
	token := ""
	switch {
	case phase == "stream" && s.phase != "stream":
		return statusResponse(400, "BadRequest"), nil
	case phase == "stream", phase == "watch":
		return restResponse(200, "application/json", &silentBody{r.Context()}), nil
	case phase == "list" && s.phase == "page":
		token = "next"
	}
	return restResponse(200, "application/json", strings.NewReader(fmt.Sprintf(
		`{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"10","continue":%q},"items":[]}`, s.list, token))), nil
}

// statusResponse is an error as an API server sends it.
func statusResponse(code int, reason string) *http.Response {
	return restResponse(code, "application/json", strings.NewReader(statusText(code, reason)))
}

func statusText(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"it says %s","reason":%q,"code":%d}`, reason, reason, code)
}

// errorClass is a class of error: how it comes, and how it is recognised.
type errorClass struct {
	name   string
	phases string // where it may come
	fault  func(r *http.Request) (*http.Response, error)
	is     func(error) bool
}

func errorClasses() []errorClass {
	everywhere := "list page stream watch"
	status := func(code int, reason string, is func(error) bool) errorClass {
		return errorClass{reason, everywhere, func(*http.Request) (*http.Response, error) {
			return statusResponse(code, reason), nil
		}, is}
	}
	inStream := func(code int, reason string, is func(error) bool) errorClass {
		return errorClass{"ERROR event " + reason, "stream watch", func(*http.Request) (*http.Response, error) {
			return restResponse(200, "application/json", strings.NewReader(`{"type":"ERROR","object":`+statusText(code, reason)+"}\n")), nil
		}, is}
	}
	isStatus := func(err error) bool {
		_, ok := errors.AsType[*apierrors.StatusError](err)
		return ok
	}
	return []errorClass{
		status(401, "Unauthorized", apierrors.IsUnauthorized),
		status(403, "Forbidden", apierrors.IsForbidden),
		status(404, "NotFound", apierrors.IsNotFound),
		status(429, "TooManyRequests", apierrors.IsTooManyRequests),
		status(500, "InternalError", apierrors.IsInternalError),
		status(503, "ServiceUnavailable", apierrors.IsServiceUnavailable),
		status(504, "Timeout", apierrors.IsTimeout),
		inStream(403, "Forbidden", apierrors.IsForbidden),
		inStream(500, "InternalError", apierrors.IsInternalError),
		inStream(429, "TooManyRequests", apierrors.IsTooManyRequests),
		{"a gateway's page", everywhere, func(*http.Request) (*http.Response, error) {
			return restResponse(502, "text/html", strings.NewReader("<html>Bad gateway</html>")), nil
		}, isStatus},
		{"refused", everywhere, func(*http.Request) (*http.Response, error) {
			return nil, syscall.ECONNREFUSED
		}, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{"reset", everywhere, func(*http.Request) (*http.Response, error) {
			return restResponse(200, "application/json", io.MultiReader(strings.NewReader(`{"kind":"ConfigMap`), failingReader{syscall.ECONNRESET})), nil
		}, func(err error) bool { return err != nil }},
		{"no JSON", everywhere, func(*http.Request) (*http.Response, error) {
			return restResponse(200, "application/json", strings.NewReader("it works!")), nil
		}, func(err error) bool { return err != nil }},
		{"truncated", "list page", func(*http.Request) (*http.Response, error) {
			return restResponse(200, "application/json", strings.NewReader(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[{"meta`)), nil
		}, func(err error) bool { return err != nil }},
		{"an event of no type", "stream watch", func(*http.Request) (*http.Response, error) {
			return restResponse(200, "application/json", strings.NewReader(`{"type":"NEWS","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}}`+"\n")), nil
		}, func(err error) bool { return err != nil }},
		{"an ERROR event of nothing", "stream watch", func(*http.Request) (*http.Response, error) {
			return restResponse(200, "application/json", strings.NewReader(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1"}}`+"\n")), nil
		}, func(err error) bool { return err != nil }},
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// errorSource makes an informer on a server, and returns its Run and Status.
type errorSource func(*testing.T, *faultyServer, informer.Options) (run func() error, status func() informer.Status)

func errorSources() map[string]errorSource {
	return map[string]errorSource{
		"FromREST": func(t *testing.T, s *faultyServer, opts informer.Options) (func() error, func() informer.Status) {
			return controlOf(t, informer.FromREST[corev1.ConfigMap](restClient(t, s), corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{}), opts)
		},
		"typed": func(t *testing.T, s *faultyServer, opts informer.Options) (func() error, func() informer.Status) {
			cs, err := kubernetes.NewForConfig(restConfig(s))
			if err != nil {
				t.Fatal(err)
			}
			return controlOf(t, informer.FromClient[*corev1.ConfigMap](cs.CoreV1().ConfigMaps("")), opts)
		},
		"dynamic": func(t *testing.T, s *faultyServer, opts informer.Options) (func() error, func() informer.Status) {
			client, err := dynamic.NewForConfig(restConfig(s))
			if err != nil {
				t.Fatal(err)
			}
			return controlOf(t, informer.FromClient[*unstructured.Unstructured](client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))), opts)
		},
	}
}

func controlOf[T informer.Object](t *testing.T, source informer.ListerWatcher[T], opts informer.Options) (func() error, func() informer.Status) {
	t.Helper()
	inf, err := informer.New(source, opts)
	if err != nil {
		t.Fatal(err)
	}
	run := func() error {
		ctx, cancel := waitFor(2 * time.Minute)
		defer cancel()
		return inf.Run(ctx)
	}
	return run, inf.Status
}

// Promise 20, case 19 (k8s#87329, client-go#1256): each class of error, in each
// phase and through each source, is reported exactly once, as an error that
// apimachinery's predicates know; errors inside a stream too.
func TestEveryErrorOnce(t *testing.T) {
	ops := map[string]string{"list": "list", "page": "list", "stream": "streaming list", "watch": "watch"}
	for name, source := range errorSources() {
		for _, class := range errorClasses() {
			for _, phase := range strings.Fields(class.phases) {
				if name != "FromREST" && class.name == "reset" && phase != "list" && phase != "page" {
					continue // client-go's watchers call that an end
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, phase, class.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var failures []informer.Failure
						server := &faultyServer{phase: phase, list: "ConfigMapList", fault: class.fault}
						run, _ := source(t, server, informer.Options{PageSize: 10, OnFailure: func(f informer.Failure) error {
							failures = append(failures, f)
							return nil
						}})
						if err := run(); err != nil {
							t.Fatal(err)
						}
						if len(failures) != 1 {
							t.Fatalf("%d failures, want one: %v", len(failures), failures)
						}
						if f := failures[0]; f.Op != ops[phase] || f.Attempt != 1 || !class.is(f.Err) {
							t.Errorf("the failure is %s %d %#v", f.Op, f.Attempt, f.Err)
						}
					})
				})
			}
		}
	}
}

// Promise 20, case 19 (client-go#1256): objects of a wrong type end Run with both
// types, in each phase and through each source that can tell, and are not
// reported in any other way.
func TestWrongTypeEndsRun(t *testing.T) {
	frame := func(*http.Request) (*http.Response, error) {
		return restResponse(200, "application/json",
			strings.NewReader(`{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"11"}}}`+"\n")), nil
	}
	list := func(*http.Request) (*http.Response, error) {
		return restResponse(200, "application/json", strings.NewReader(`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"a"}}]}`)), nil
	}
	for _, phase := range []string{"list", "page", "stream", "watch"} {
		for name, source := range errorSources() {
			if name == "dynamic" || name == "typed" && phase != "stream" && phase != "watch" {
				continue // any kind will do, or the client takes it for its own
			}
			t.Run(name+"/"+phase, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &faultyServer{phase: phase, list: "ConfigMapList", fault: list}
					if phase == "stream" || phase == "watch" {
						server.fault = frame
					}
					run, status := source(t, server, informer.Options{Name: "maps", OnFailure: func(f informer.Failure) error {
						t.Errorf("reported was %+v", f)
						return nil
					}})
					err := run()
					wrong, ok := errors.AsType[*informer.WrongTypeError](err)
					if !ok || !strings.Contains(wrong.Want, "ConfigMap") || !strings.Contains(wrong.Got, "Secret") || !strings.Contains(err.Error(), "maps") {
						t.Errorf("Run() = %v, want both types and the name", err)
					}
					if s := status(); s.State != informer.StateStopped || s.Err == nil {
						t.Errorf("the status is %v, %v", s.State, s.Err)
					}
				})
			})
		}
	}
}
