package informer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/seed-99a027e8/informer"
)

// The canaries stand for what must never be seen in an error or in a log. The
// clients of all tests carry the first, and the objects of many the second.
const (
	canaryToken = "canary-of-the-bearer-token"
	canaryBody  = "canary-in-a-body"
	canaryNext  = "canary-in-the-continue-token"
)

// seen looks for canaries in what the tests of this package see.
var seen canaries

type canaries struct {
	mu    sync.Mutex // guards the fields below
	leaks []string
	texts int
}

// look looks for canaries in a text.
func (c *canaries) look(where, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts++
	for _, canary := range []string{canaryToken, canaryBody, canaryNext} {
		if strings.Contains(text, canary) {
			c.leaks = append(c.leaks, fmt.Sprintf("%s: %s", where, text))
		}
	}
}

// err looks for canaries in an error as one prints it, and in what errors.As
// finds in it that has texts of its own.
func (c *canaries) err(where string, err error) {
	if err == nil {
		return
	}
	c.look(where, fmt.Sprintf("%v %+v %q", err, err, err))
	var request *url.Error
	if errors.As(err, &request) {
		c.look(where+", URL", request.URL+" "+request.Error())
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		c.look(where+", status", fmt.Sprintf("%+v %+v", status.Status(), status.Status().Details))
	}
	var unexpected *apierrors.UnexpectedObjectError
	if errors.As(err, &unexpected) {
		c.look(where+", object", fmt.Sprintf("%+v", unexpected.Object))
	}
}

// Write takes a line of a log.
func (c *canaries) Write(line []byte) (int, error) {
	c.look("log", string(line))
	return len(line), nil
}

// found returns what was seen.
func (c *canaries) found() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.leaks)
}

// options returns opts with a log, and an OnFailure, that look for canaries.
func (c *canaries) options(opts informer.Options) informer.Options {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewJSONHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	next := opts.OnFailure
	opts.OnFailure = func(f informer.Failure) error {
		c.err("OnFailure", f.Err)
		c.look("OnFailure", fmt.Sprintf("%+v", f))
		if next == nil {
			return nil
		}
		return next(f)
	}
	return opts
}

// canarySecret is an object that nobody is to see, with what may be wrong.
func canarySecret(fault string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"s","namespace":"n","resourceVersion":"7","labels":{%q:%q}}%s}`, canaryBody, canaryBody, fault)
}

// canaryFaults are what may be wrong with an object.
func canaryFaults() map[string]string {
	faults := map[string]string{"nothing": canarySecret(""), "no kind": strings.Replace(canarySecret(""), `"kind":"Pod",`, "", 1),
		"no version": strings.Replace(canarySecret(""), `"apiVersion":"v1",`, "", 1), "a string": `"` + canaryBody + `"`, "an array": `["` + canaryBody + `"]`,
		"a wrong kind": strings.Replace(canarySecret(""), "Pod", "Service", 1)}
	for name, value := range map[string]string{
		"time":     `"metadata":{"name":"s","creationTimestamp":%q}`,
		"quantity": `"spec":{"containers":[{"resources":{"limits":{%[1]q:%[1]q}}}]}`,
		"number":   `"spec":{"priority":%q}`,
		"float":    `"spec":{"priority":1.5e7777}`,
		"bool":     `"spec":{"hostNetwork":%q}`,
		"list":     `"spec":{"containers":%q}`,
		"map":      `"spec":{"nodeSelector":{%[1]q:[%[1]q]}}`,
		"key":      `"spec":{"nodeSelector":{%q:7}}`,
		"syntax":   `"spec":{"nodeSelector":{%[1]q:%[1]q %[1]q}}`,
		"literal":  `"spec":{"nodeSelector":{"a":canary-in-a-body}}`,
		"escape":   `"spec":{"nodeSelector":{"a":"canary-in-a-body\q"}}`,
		"control":  `"spec":{"nodeSelector":{"a":"canary-in-a-body` + "\x01" + `"}}`,
		"UTF-8":    `"spec":{"nodeSelector":{"a":"canary-in-a-body` + "\xff" + `"}}`,
	} {
		if strings.Contains(value, "%") {
			value = fmt.Sprintf(value, canaryBody)
		}
		faults[name] = canarySecret("," + value)
	}
	return faults
}

// canaryAnswers are what a server may say to any request, for lists and watches.
func canaryAnswers() map[string]restTrip {
	list := func(items, more string) string {
		return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]%s`, canaryNext, items, more)
	}
	answers := map[string]restTrip{
		"refused": func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		},
		"garbage header": func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("malformed HTTP response %q", canaryBody)
		},
	}
	add := func(name string, code int, contentType, body string) {
		answers[name] = func(r *http.Request) (*http.Response, error) {
			response := restResponse(code, contentType, strings.NewReader(body))
			response.Request = r
			return response, nil
		}
	}
	for _, code := range []int{301, 304, 400, 401, 403, 404, 405, 406, 409, 410, 415, 422, 429, 500, 503, 504} {
		add(fmt.Sprint(code, " text"), code, "text/plain", canaryBody+" <html>"+canarySecret("")+"</html>")
		add(fmt.Sprint(code, " object"), code, "application/json", canarySecret(""))
		add(fmt.Sprint(code, " garbage"), code, "application/json", canaryBody)
	}
	for name, object := range canaryFaults() {
		add("list "+name, 200, "application/json", list(object, "}"))
		add("list cut at "+name, 200, "application/json", list(object, `,"`+canaryBody))
		for _, typ := range []string{"ADDED", "DELETED", "BOOKMARK", "ERROR", "OTHER"} {
			add("watch "+typ+" "+name, 200, "application/json", fmt.Sprintf(`{"type":%q,"object":%s}`, typ, object))
			add("watch late "+typ+" "+name, 200, "application/json", fmt.Sprintf(`{"object":%s,"type":%q}`, object, typ))
		}
	}
	add("an object for a list", 200, "application/json", canarySecret(""))
	add("garbage", 200, "application/json", canaryBody)
	add("quoted garbage", 200, "application/json", `"`+canaryBody+`"`)
	add("HTML", 200, "text/html", "<html>"+canaryBody)
	add("protobuf", 200, "application/vnd.kubernetes.protobuf", "k8s\x00"+canaryBody)
	add("event type", 200, "application/json", fmt.Sprintf(`{"type":%q,"object":%s}`, canaryBody, canarySecret("")))
	add("member", 200, "application/json", fmt.Sprintf(`{%q:%q`, canaryBody, canaryBody))
	add("metadata", 200, "application/json", fmt.Sprintf(`{"metadata":{"continue":[%q]},"items":[]}`, canaryNext))
	return answers
}

// Promises 20, 21: tokens and bodies are in no error and in no log, whatever a
// server answers, to whichever client, at whatever time: neither the bearer
// token, nor the continue token, nor anything of an object. What they have been
// hidden by still says what kind of error it was.
func TestCanaries(t *testing.T) {
	for name, trip := range canaryAnswers() {
		for _, first := range []string{"", list1} {
			trip := canaryTrip{answer: trip, first: first}
			config := restConfig(trip)
			cs := kubernetes.NewForConfigOrDie(config)
			core := cs.CoreV1().RESTClient()
			where := name + ", first " + first
			canaryRun(t, where+", REST", informer.FromREST[corev1.Pod](core, podsGVR(), informer.RESTOptions{}))
			canaryRun(t, where+", client", informer.FromClient[*corev1.Pod](cs.CoreV1().Pods("")))
			canaryRun(t, where+", REST unstructured", informer.FromREST[unstructured.Unstructured](core, podsGVR(), informer.RESTOptions{}))
			canaryRun(t, where+", dynamic", informer.FromClient[*unstructured.Unstructured](dynamic.NewForConfigOrDie(config).Resource(podsGVR())))
			canaryRun(t, where+", opaque", informer.FromREST[decodeOpaque](core, podsGVR(), informer.RESTOptions{}))
			canaryRun(t, where+", metadata", informer.FromClient[*metav1.PartialObjectMetadata](metadata.NewForConfigOrDie(metadata.ConfigFor(config)).Resource(podsGVR())))
			if leaks := seen.found(); len(leaks) > 0 {
				t.Fatalf("%d leaks, the first: %s", len(leaks), leaks[:min(len(leaks), 10)])
			}
		}
	}
	if seen.texts < 1000 {
		t.Errorf("only %d texts were looked at", seen.texts)
	}
}

// list1 is a good first page.
const list1 = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"` + canaryNext + `"},"items":[]}`

// canaryTrip answers the first list with a page, if there is one, so that what
// comes then has a continue token in its URL.
type canaryTrip struct {
	answer restTrip
	first  string
}

func (c canaryTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if c.first != "" && query.Get("watch") == "" && query.Get("continue") == "" {
		return restResponse(200, "application/json", strings.NewReader(c.first)), nil
	}
	return c.answer(r)
}

// canaryRun has a source used in every way for a while.
func canaryRun[T informer.Object](t *testing.T, where string, source informer.ListerWatcher[T]) {
	synctest.Test(t, func(t *testing.T) {
		for _, err := range source.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"}) {
			seen.err(where+", watch", err)
		}
		pager, err := informer.NewPager(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range pager.All(t.Context(), metav1.ListOptions{}) {
			seen.err(where+", pager", err)
		}
		inf, err := informer.New(source, seen.options(informer.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- inf.Run(ctx) }()
		wait, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		seen.err(where+", WaitSynced", inf.WaitSynced(wait))
		status := inf.Status()
		seen.err(where+", status", status.Err)
		for _, bad := range status.Bad {
			seen.err(where+", bad", bad)
		}
		seen.err(where+", Run", <-done)
	})
}

// Promise 20: an error without what is not to be seen is still the error that
// it was, for the predicates and for errors.As.
func TestErrorsWithoutSecrets(t *testing.T) {
	synctest.Test(t, testErrorsWithoutSecrets) // clients retry for a minute
}

func testErrorsWithoutSecrets(t *testing.T) {
	is := map[int]func(error) bool{
		400: apierrors.IsBadRequest, 401: apierrors.IsUnauthorized, 403: apierrors.IsForbidden, 404: apierrors.IsNotFound,
		405: apierrors.IsMethodNotSupported, 410: apierrors.IsGone, 422: apierrors.IsInvalid, 429: apierrors.IsTooManyRequests,
		500: apierrors.IsInternalError, 503: apierrors.IsServiceUnavailable, 504: apierrors.IsTimeout,
	}
	for code, is := range is {
		trip := restTrip(func(r *http.Request) (*http.Response, error) {
			response := restResponse(code, "text/plain", strings.NewReader(canaryBody))
			response.Request, response.Header["Retry-After"] = r, []string{"7"}
			return response, nil
		})
		for name, source := range bothSources(t, trip) {
			for _, err := range append(sourceErrors(source.Watch(t.Context(), metav1.ListOptions{})), sourceErrors(source.List(t.Context(), metav1.ListOptions{}))...) {
				seen.err(name, err)
				seconds, _ := apierrors.SuggestsClientDelay(err)
				if code == 410 && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
					continue // as client-go has it
				}
				if !is(err) || (code == 429 || code == 503) && seconds != 7 {
					t.Errorf("%s: %d: %v, with a delay of %d", name, code, err, seconds)
				}
			}
		}
	}
	down := &net.DNSError{Err: "no such host", Name: "server.invalid", IsNotFound: true}
	trip := restTrip(func(*http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("a proxy said %q: %w", canaryBody, down)
	})
	for name, source := range bothSources(t, trip) {
		for _, err := range sourceErrors(source.List(t.Context(), metav1.ListOptions{Continue: canaryNext})) {
			seen.err(name, err)
			var dns *net.DNSError
			var request *url.Error
			if !errors.As(err, &dns) || !errors.As(err, &request) || !strings.Contains(err.Error(), "/api/v1/pods") || !strings.Contains(err.Error(), "no such host") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	bad := restPods(t, restAnswer(podListJSON(`{"metadata":{"name":"x"},"spec":{"containers":[{},{"env":[{"value":7}]}]}}`)))
	for _, err := range sourceErrors(bad.List(t.Context(), metav1.ListOptions{})) {
		if want := `object "/x": spec.containers.1.env.0.value: number in place of a Go string`; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}
