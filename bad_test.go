package informer_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// rawServer sends what a test has written: a list, and the frames of one watch.
type rawServer struct {
	list   string
	frames *io.PipeReader
	send   *io.PipeWriter
}

func newRawServer(list string) *rawServer {
	s := &rawServer{list: list}
	s.frames, s.send = io.Pipe()
	return s
}

func (s *rawServer) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case query.Has("sendInitialEvents"):
		return restResponse(400, "application/json",
			strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`)), nil
	case query.Has("watch"):
		return restResponse(200, "application/json", s.frames), nil
	}
	return restResponse(200, "application/json", strings.NewReader(s.list)), nil
}

// badWord is an object in a scenario: "a@5", "a#2@5" with another UID, and "!a@5"
// if it is bad.
type badWord string

// json returns the object, which is bad as bytes, or for a function that reads
// it.
func (w badWord) json(asBytes bool) string {
	body, isBad := strings.CutPrefix(string(w), "!")
	name, version, _ := strings.Cut(body, "@")
	name, generation, _ := strings.Cut(name, "#")
	data := `{"state":"good"}`
	switch {
	case isBad && asBytes:
		data = `5`
	case isBad:
		data = `{"state":"bad"}`
	}
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"ns","name":%q,"uid":"u%s%s","resourceVersion":%q},"data":%s}`,
		name, name, generation, version, data)
}

// badSource is a way to get objects of which some are bad.
type badSource struct {
	name    string
	asBytes bool // they cannot be decoded; else a function does not like them
	run     func(t *testing.T, s *rawServer)
}

var errDisliked = errors.New("disliked")

func dislike[T informer.Object](state func(T) string) func(T) (T, error) {
	return func(obj T) (T, error) {
		if state(obj) == "bad" {
			return obj, errDisliked
		}
		return obj, nil
	}
}

func badSources() []badSource {
	stateOf := func(o *corev1.ConfigMap) string { return o.Data["state"] }
	rest := func(t *testing.T, s *rawServer) informer.ListerWatcher[*corev1.ConfigMap] {
		return informer.FromREST[corev1.ConfigMap](restClient(t, s), corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{})
	}
	return []badSource{
		{"FromREST", true, func(t *testing.T, s *rawServer) { badScenario(t, s, true, rest(t, s)) }},
		{"FromREST and Transform", false, func(t *testing.T, s *rawServer) {
			badScenario(t, s, false, informer.Transform(rest(t, s), dislike(stateOf)))
		}},
		{"FromREST and Project", false, func(t *testing.T, s *rawServer) {
			badScenario(t, s, false, informer.Project(rest(t, s), func(o *corev1.ConfigMap) (*thingAddr, bool, error) {
				_, err := dislike(stateOf)(o)
				return &thingAddr{o.Namespace, o.Name, string(o.UID), o.ResourceVersion, [64]byte{}}, true, err
			}))
		}},
		{"FromClient, typed, and Transform", false, func(t *testing.T, s *rawServer) {
			cs, err := kubernetes.NewForConfig(restConfig(s))
			if err != nil {
				t.Fatal(err)
			}
			source := informer.FromClient[*corev1.ConfigMap](cs.CoreV1().ConfigMaps("ns"))
			badScenario(t, s, false, informer.Transform(source, dislike(stateOf)))
		}},
		{"FromClient, dynamic, and a Transform that panics", false, func(t *testing.T, s *rawServer) {
			client, err := dynamic.NewForConfig(restConfig(s))
			if err != nil {
				t.Fatal(err)
			}
			source := informer.FromClient[*unstructured.Unstructured](client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("ns"))
			badScenario(t, s, false, informer.Transform(source, func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				if state, _, _ := unstructured.NestedString(u.Object, "data", "state"); state == "bad" {
					panic(errDisliked)
				}
				return u, nil
			}))
		}},
	}
}

// Promise 12, case 7 (k8s#57705, cr#2591, argo-workflows#3680): whatever makes
// an object bad, and through each source: the others are there, it is reported
// with its key and listed while it is bad, and its last good state stays. When
// it is repaired that is an update, or an addition if it never was good. When it
// is deleted while bad, only a good state is deleted; and a new object that is
// bad from the start deletes the one before.
func TestBadObjects(t *testing.T) {
	for _, source := range badSources() {
		t.Run(source.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var items []string
				for _, word := range []badWord{"a@5", "!b@6", "c@7"} {
					items = append(items, word.json(source.asBytes))
				}
				source.run(t, newRawServer(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[`+
					strings.Join(items, ",")+`]}`))
			})
		})
	}
}

func badScenario[T informer.Object](t *testing.T, server *rawServer, asBytes bool, source informer.ListerWatcher[T]) {
	var failures, changes []string
	skipped := 0
	inf := startOf(t, source, informer.Options{OnFailure: func(f informer.Failure) error {
		bad, ok := errors.AsType[*informer.ObjectError](f.Err)
		if !ok || f.Op != "decode" || !asBytes && !errors.Is(f.Err, errDisliked) {
			t.Errorf("reported was %+v, want an *ObjectError", f)
			return nil
		}
		failures = append(failures, bad.Key.String())
		return nil
	}})
	t.Cleanup(func() { server.send.Close() })
	if _, err := inf.AddHandler(func(c informer.Change[T]) { changes = append(changes, changeText(c)) }, informer.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		send    string // type and object
		changes string
		failure string
		bad     string // what the status lists
	}{
		{"", "Added a@5,Added c@7", "ns/b", "ns/b"},
		{"MODIFIED !b@11", "", "ns/b", "ns/b"},
		{"MODIFIED !b@11", "", "", "ns/b"}, // the same once more is no news
		{"MODIFIED b@12", "Added b@12", "", ""},
		{"MODIFIED !a@13", "", "ns/a", "ns/a"},
		{"MODIFIED a@14", "Updated a@5 a@14", "", ""},
		{"MODIFIED !c@15", "", "ns/c", "ns/c"},
		{"DELETED !c@16", "Deleted c@7", "", ""},
		{"ADDED !d@17", "", "ns/d", "ns/d"},
		{"DELETED !d@18", "", "", ""},
		{"ADDED !e@19", "", "ns/e", "ns/e"},
		{"MODIFIED !a#2@20", "Deleted a@14", "ns/a", "ns/a,ns/e"},
		{"DELETED !e@21", "", "", "ns/a"},
		{"MODIFIED a#2@22", "Added a@22", "", ""},
		{"DELETED a#2@23", "Deleted a@22 exact a@23", "", ""},
	}
	for _, step := range steps {
		if step.send != "" {
			typ, word, _ := strings.Cut(step.send, " ")
			fmt.Fprintf(server.send, `{"type":%q,"object":%s}`+"\n", typ, badWord(word).json(asBytes))
			if strings.Contains(word, "!") && typ != "DELETED" {
				skipped++
			}
		} else {
			<-time.After(time.Second)
			skipped++
		}
		synctest.Wait()
		status := inf.Status()
		var bad []string
		for _, o := range status.Bad {
			bad = append(bad, o.Key.String())
		}
		wantEqual(t, step.send+": changes", changes, step.changes, ",")
		wantEqual(t, step.send+": failures", failures, step.failure, ",")
		wantEqual(t, step.send+": Bad", bad, step.bad, ",")
		if int(status.Skipped) != skipped || status.Objects != inf.Len() {
			t.Errorf("%s: skipped are %d and objects %d, want %d and %d", step.send, status.Skipped, status.Objects, skipped, inf.Len())
		}
		changes, failures = nil, nil
	}
}

// changeText returns the type, and the names and versions of old and new.
func changeText[T informer.Object](c informer.Change[T]) string {
	name := func(obj T) string { return " " + obj.GetName() + "@" + obj.GetResourceVersion() }
	switch {
	case c.Type == informer.Added:
		return "Added" + name(c.New)
	case c.Type == informer.Updated:
		return "Updated" + name(c.Old) + name(c.New)
	case c.Exact:
		return "Deleted" + name(c.Old) + " exact" + name(c.New)
	}
	return "Deleted" + name(c.New)
}

// Promise 12, case 7: the same by a script, in plain and in streaming lists, and
// across relists.
func TestBadObjectsScripted(t *testing.T) {
	tests := []struct {
		name    string
		lines   []string
		changes string
		bad     string
	}{
		{"in a stream", []string{"stream a@5 !b@6 c@7 end 10 ~b@11 hang"}, "Added a@5,Added c@7,Added b@11", ""},
		{"good, then bad in one stream", []string{"stream a@5 !a@6 end 10 hang"}, "Added a@5", "a"},
		{"a new object that is bad in the stream", []string{"stream a#1@5 !a#2@6 end 10 hang"}, "", "a"},
		{"bad by relist", []string{"stream invalid", "list 10 a@5", "watch expired", "list 20 !a@6", "watch hang"}, "Added a@5", "a"},
		{"another that is bad by relist", []string{"stream invalid", "list 10 a#1@5", "watch expired", "list 20 !a#2@6", "watch hang"}, "Added a@5,Deleted a@5", "a"},
		{"another that is bad by watch, then a relist without it", []string{
			"stream invalid", "list 10 a#1@5", "watch sleep=1s !a#2@11 sleep=1s expired", "list 20 b@15", "watch hang"}, "Added a@5,Deleted a@5,Added b@15", ""},
		{"good again by relist", []string{"stream invalid", "list 10 !a@5", "watch expired", "list 20 a@6", "watch hang"}, "Added a@6", ""},
		{"gone by relist while bad", []string{"stream invalid", "list 10 a@5", "watch sleep=1s !a@11 sleep=1s expired", "list 20", "watch hang"}, "Added a@5,Deleted a@5", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inf := startOf(t, informertest.NewScript(t, informertest.NewObject, tt.lines...), informer.Options{})
				var changes, bad []string
				if _, err := inf.AddHandler(func(c informer.Change[*informertest.Object]) {
					changes = append(changes, changeText(c))
				}, informer.HandlerOptions{}); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				for _, o := range inf.Status().Bad {
					bad = append(bad, o.Key.Name)
				}
				wantEqual(t, "changes", changes, tt.changes, ",")
				wantEqual(t, "Bad", bad, tt.bad, ",")
			})
		})
	}
}

// Promise 7, case 11 (cert-manager#4722, external-secrets#2504): an object that
// leaves a projection is one deletion, one that enters it is one addition, and
// what happens to it outside is nothing.
func TestProjectionLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := informertest.NewScript(t, informertest.NewObject,
			"stream invalid", "list 10 a=in@5 b=out@6", "watch sleep=1s b=out@11 a=out@12 a=out@13 b=in@14 sleep=1s -b@15 -a@16 hang")
		source := informer.Project(script, func(o *informertest.Object) (*thingAddr, bool, error) {
			return &thingAddr{o.Namespace, o.Name, string(o.UID), o.Version, [64]byte{}}, o.Value == "in", nil
		})
		inf := startOf(t, source, informer.Options{})
		var changes []string
		if _, err := inf.AddHandler(func(c informer.Change[*thingAddr]) { changes = append(changes, changeText(c)) }, informer.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		wantEqual(t, "changes", changes, "Added a@5,Deleted a@5,Added b@14,Deleted b@14 exact b@15", ",")
		if s := inf.Status(); s.Version != "16" || s.Objects != 0 {
			t.Errorf("Status() = %+v, want version 16 and nothing", s)
		}
	})
}
