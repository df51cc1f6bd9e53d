package informertest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// guardedPod is a pod with something of everything that can be changed.
func guardedPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web", "example.com/a": "b"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "web:1", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1000m")}},
		}}},
		Status: corev1.PodStatus{StartTime: &metav1.Time{Time: time.Unix(1e9, 0)}},
	}
}

// guardedRun runs an informer of pods behind a guard, on a server with a pod.
func guardedRun(t *testing.T) (*informertest.Server, *informertest.Guard[corev1.Pod, *corev1.Pod], *informer.Informer[*corev1.Pod]) {
	t.Helper()
	srv := informertest.Start(t, informertest.Options{})
	mustWrite(t)(srv.Create(guardedPod("a")))
	guard := informertest.NewGuard(informer.FromClient[*corev1.Pod](clientsetFor(t, srv).CoreV1().Pods("")))
	pods, err := informer.New(guard, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return srv, guard, pods
}

// runUntilEnd runs an informer to the end of the test.
func runUntilEnd(t *testing.T, inf interface{ Run(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
}

// mustWrite returns a function that ends the test if a write has failed.
func mustWrite(t *testing.T) func(string, error) string {
	return func(version string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
}

// mutated returns what a check finds, as "name field".
func mutated(t *testing.T, err error) (found []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		var m *informertest.MutatedError
		if !errors.As(err, &m) || !strings.Contains(err.Error(), m.Field) || !strings.Contains(err.Error(), m.Key.String()) || m.Version == "" {
			t.Errorf("error %v", err)
			continue
		}
		found = append(found, m.Key.Name+" "+m.Field)
	}
	return found
}

// Promise 31, case 12 (kyverno#5608, k8s#27784): whoever changes an object of the
// cache, and wherever in it, one check names key and field, once.
func TestGuardCase12Mutations(t *testing.T) {
	changes := map[string]func(p *corev1.Pod){
		"spec.nodeName":                           func(p *corev1.Pod) { p.Spec.NodeName = "n" },
		`metadata.labels.app`:                     func(p *corev1.Pod) { p.Labels["app"] = "db" },
		`metadata.labels["example.com/a"]`:        func(p *corev1.Pod) { delete(p.Labels, "example.com/a") },
		"metadata.labels.new":                     func(p *corev1.Pod) { p.Labels["new"] = "" },
		"metadata.labels":                         func(p *corev1.Pod) { p.Labels = nil; p.Finalizers = nil },
		"metadata.annotations":                    func(p *corev1.Pod) { p.Annotations = map[string]string{} },
		"spec.containers[0].image":                func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" },
		"spec.containers[1]":                      func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) },
		"spec.containers[0].resources.limits.cpu": func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2") },
		"spec.hostUsers":                          func(p *corev1.Pod) { p.Spec.HostUsers = new(true) },
		"status.startTime":                        func(p *corev1.Pod) { p.Status.StartTime.Time = time.Unix(2e9, 0) },
	}
	users := map[string]func(t *testing.T, srv *informertest.Server, pods *informer.Informer[*corev1.Pod], change func(*corev1.Pod)){
		"reader": func(t *testing.T, _ *informertest.Server, pods *informer.Informer[*corev1.Pod], change func(*corev1.Pod)) {
			runUntilEnd(t, pods)
			p, _ := pods.Get(informer.Key{Namespace: "default", Name: "a"})
			change(p)
		},
		"handler": func(t *testing.T, _ *informertest.Server, pods *informer.Informer[*corev1.Pod], change func(*corev1.Pod)) {
			_, err := pods.AddHandler(func(c informer.Change[*corev1.Pod]) { change(c.New) }, informer.HandlerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			runUntilEnd(t, pods)
		},
		"index function": func(t *testing.T, _ *informertest.Server, pods *informer.Informer[*corev1.Pod], change func(*corev1.Pod)) {
			if _, err := informer.AddIndex(pods, "bad", func(p *corev1.Pod) (string, bool) { change(p); return "", false }); err != nil {
				t.Fatal(err)
			}
			runUntilEnd(t, pods)
		},
		"handler, old object": func(t *testing.T, srv *informertest.Server, pods *informer.Informer[*corev1.Pod], change func(*corev1.Pod)) {
			_, err := pods.AddHandler(func(c informer.Change[*corev1.Pod]) {
				if c.Old != nil {
					change(c.Old)
				}
			}, informer.HandlerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			runUntilEnd(t, pods)
			next := guardedPod("a")
			next.Finalizers = []string{"example.com/f"}
			mustWrite(t)(srv.Update(next))
			synctest.Wait()
			runtime.GC() // nobody has the old one any more
		},
		"handler, deleted object": func(t *testing.T, srv *informertest.Server, pods *informer.Informer[*corev1.Pod], change func(*corev1.Pod)) {
			_, err := pods.AddHandler(func(c informer.Change[*corev1.Pod]) {
				if c.Type == informer.Deleted {
					change(c.Old)
				}
			}, informer.HandlerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			runUntilEnd(t, pods)
			mustWrite(t)(srv.Delete(guardedPod("a")))
			synctest.Wait()
			runtime.GC()
		},
	}
	for user, by := range users {
		for field, change := range changes {
			t.Run(user+" "+field, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, guard, pods := guardedRun(t)
					if found := mutated(t, guard.Check()); found != nil {
						t.Errorf("found %q before", found)
					}
					by(t, srv, pods, change)
					if found := mutated(t, guard.Check()); len(found) != 1 || found[0] != "a "+field {
						t.Errorf("found %q, want %q", found, "a "+field)
					}
					if found := mutated(t, guard.Check()); found != nil {
						t.Errorf("found %q again", found)
					}
				})
			})
		}
	}
}

// Promise 31: where nothing is changed, a guard is silent, through an hour of
// churn with lists that break off, expire and are answered from before a
// restore; it keeps a copy of what is in use, and of no more.
func TestGuardCase12Silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, guard, pods := guardedRun(t)
		guard.Verify(t)
		_, err := pods.AddHandler(func(informer.Change[*corev1.Pod]) {}, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		must := mustWrite(t)
		version := ""
		runUntilEnd(t, pods)
		most := 0
		for i := range 3600 {
			must(srv.Create(guardedPod(fmt.Sprint("p", i)))) // a name never comes again
			changed := guardedPod("a")
			changed.Spec.NodeName = fmt.Sprint("n", i)
			must(srv.Update(changed))
			if i >= 20 {
				must(srv.Delete(guardedPod(fmt.Sprint("p", i-20))))
			}
			switch {
			case i%600 == 250:
				version = srv.Version()
			case i%600 == 300:
				if err := srv.Restore(version); err != nil {
					t.Fatal(err)
				}
				for n := range 20 { // the restored server has others
					must(srv.Delete(guardedPod(fmt.Sprint("p", i-50-n))))
					must(srv.Create(guardedPod(fmt.Sprint("p", i-n))))
				}
			case i%100 == 0 && i%600 != 300:
				srv.Compact()
			}
			<-time.After(time.Second)
			if i%600 == 599 {
				if err := guard.Check(); err != nil {
					t.Errorf("after %d s: %v", i, err)
				}
				runtime.GC()
				most = max(most, guard.Copies())
			}
		}
		if limit := 21 + informertest.Recent + 5; most > limit || pods.Len() != 21 {
			t.Errorf("%d copies of %d objects, want at most %d", most, pods.Len(), limit)
		}
	})
}

// scriptGuard runs an informer of a script behind a guard, for a minute.
func scriptGuard(t *testing.T, lines ...string) (*informertest.Guard[informertest.Object, *informertest.Object], *informer.Informer[*informertest.Object]) {
	t.Helper()
	guard := informertest.NewGuard(informertest.NewScript(t, informertest.NewObject, lines...))
	inf, err := informer.New(guard, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, inf)
	<-time.After(time.Minute)
	synctest.Wait()
	return guard, inf
}

// Promise 31: a list that brings an unchanged object leaves the old one in the
// cache, and a list that breaks off, or that is not believed, brings nothing:
// it is the object in the cache that is guarded, whichever that is.
func TestGuardRelists(t *testing.T) {
	for name, lines := range map[string][]string{
		"unchanged":      {"stream notallowed", "list 10 a@5 b@6", "watch expired", "list 11 a@5 b@6", "watch expired", "list 12 a@5 b@6", "watch hang"},
		"broken off":     {"stream notallowed", "list 10 a@5 eof", "list 10 a@5 b@6", "watch expired", "list 11 a@5 eof", "list 12 a@5 b@6", "watch hang"},
		"pages":          {"stream notallowed", "list 10 a@5 continue=t", "list 10 b@6", "watch hang"},
		"not believed":   {"stream notallowed", "list 10 a@5 b@6", "watch expired", "list 8 a@5", "list 11 a@5 b@6", "watch hang"},
		"went back":      {"stream notallowed", "list 10 a@9 b@9", "watch expired", "list 8 a@5 b@6", "list 8 a@5 b@6", "watch hang"},
		"bad for a time": {"stream notallowed", "list 10 a@5 b@6", "watch !a@11 expired", "list 12 a@12 b@6", "watch hang"},
		"streamed":       {"stream a@5 b@6 end 10 -b@11 +b@12 hang"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guard, inf := scriptGuard(t, lines...)
				runtime.GC()
				if err := guard.Check(); err != nil {
					t.Errorf("nothing was changed: %v", err)
				}
				for _, key := range []string{"a", "b"} {
					obj, ok := inf.Get(informer.Key{Name: key})
					if !ok {
						t.Fatalf("%s is not there", key)
					}
					obj.Value = "changed"
					if found := mutated(t, guard.Check()); len(found) != 1 || found[0] != key+" Value" {
						t.Errorf("found %q, want that %s has another Value", found, key)
					}
				}
			})
		})
	}
}

// Promise 31: deleted and replaced objects are looked at once more when a guard
// lets them go, without a check in between.
func TestGuardLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := "watch sleep=1s x=b@19 sleep=1s" // the handler has had the first one by then
		for i := range 2 * informertest.Recent {
			line += fmt.Sprintf(" x=%d@%d", i, 20+i)
		}
		guard := informertest.NewGuard(informertest.NewScript(t, informertest.NewObject, "stream notallowed", "list 10 x=a@5", line+" hang"))
		inf, err := informer.New(guard, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		once := false
		_, err = inf.AddHandler(func(c informer.Change[*informertest.Object]) {
			if c.Old != nil && !once {
				once, c.Old.Value = true, "changed"
			}
		}, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		runUntilEnd(t, inf)
		<-time.After(time.Minute)
		runtime.GC()
		if found := mutated(t, guard.Check()); len(found) != 1 {
			t.Errorf("found %q, want one", found)
		}
		runtime.GC()
		if n := guard.Copies(); n > informertest.Recent+2 {
			t.Errorf("%d copies, want at most %d", n, informertest.Recent+2)
		}
	})
}

// Promise 31: what a list does not have any more is let go.
func TestGuardListsLess(t *testing.T) {
	full := "list 10"
	for i := range 2 * informertest.Recent {
		full += fmt.Sprintf(" x%d@5", i)
	}
	guard := informertest.NewGuard(informertest.NewScript(t, informertest.NewObject, full, "list 11 a@11"))
	for range 2 {
		for _, err := range guard.List(t.Context(), metav1.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	if err := guard.Check(); err != nil {
		t.Error(err)
	}
	if n := guard.Copies(); n > informertest.Recent+1 {
		t.Errorf("%d copies, want at most %d", n, informertest.Recent+1)
	}
}

// odd is a type without DeepCopyObject.
type odd struct {
	informertest.Object
	Map     map[string][]int
	Any     any
	Array   [2]*int
	Chan    chan int
	Keys    map[int]string
	Deep    **odd
	private map[string]int
	Amount  resource.Quantity `json:"amount"`
	When    time.Time
}

// Promise 31: objects of any type are copied and compared: what means the same
// is the same, and what only a private field leads to is seen as far as it is a
// plain value.
func TestGuardAnyType(t *testing.T) {
	for want, change := range map[string]func(o *odd){
		"":           func(o *odd) { _ = o.Amount.String(); o.When = o.When.In(time.FixedZone("x", 3600)) },
		"Map.a[1]":   func(o *odd) { o.Map["a"][1]++ },
		"Map.a[2]":   func(o *odd) { o.Map["a"] = append(o.Map["a"], 0) },
		"Map.b":      func(o *odd) { o.Map["b"] = nil },
		"Any.x[0]":   func(o *odd) { o.Any.(map[string]any)["x"].([]any)[0] = "" },
		"Any":        func(o *odd) { o.Any = nil },
		"Array[1]":   func(o *odd) { *o.Array[1]++ },
		`Keys["7"]`:  func(o *odd) { o.Keys[7] = "x" },
		"Deep.Value": func(o *odd) { (*o.Deep).Value = "x" },
		"Deep":       func(o *odd) { o.Deep = nil },
		"private":    func(o *odd) { o.private = nil },
		"amount":     func(o *odd) { o.Amount.Add(resource.MustParse("1")) },
		"When":       func(o *odd) { o.When = o.When.Add(1) },
	} {
		n, deep := 1, &odd{}
		guard := informertest.NewGuard(informertest.NewScript(t, func(o informertest.Object) *odd {
			return &odd{
				Object: o, Map: map[string][]int{"a": {1, 2}}, Any: map[string]any{"x": []any{1}}, Array: [2]*int{&n, new(2)},
				Keys: map[int]string{7: ""}, Deep: &deep, private: map[string]int{"a": 1}, Amount: resource.MustParse("1500m"), When: time.Unix(1e9, 0),
				Chan: make(chan int),
			}
		}, "list 10 a@5"))
		for ev, err := range guard.List(t.Context(), metav1.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Object != nil {
				change(ev.Object) // the first that anybody can do
			}
		}
		if found := strings.Join(mutated(t, guard.Check()), ","); found != strings.TrimSuffix("a "+want, "a ") {
			t.Errorf("found %q, want %q", found, want)
		}
	}
}

// Promise 31: an unstructured object is named by the paths of its content.
func TestGuardUnstructured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := informertest.Start(t, informertest.Options{})
		mustWrite(t)(srv.Create(guardedPod("a")))
		client := dynamic.NewForConfigOrDie(srv.Config()).Resource(corev1.SchemeGroupVersion.WithResource("pods"))
		guard := informertest.NewGuard(informer.FromClient[*unstructured.Unstructured](client))
		pods, err := informer.New(guard, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runUntilEnd(t, pods)
		p, _ := pods.Get(informer.Key{Namespace: "default", Name: "a"})
		p.SetLabels(map[string]string{"app": "db", "example.com/a": "b"})
		if found := mutated(t, guard.Check()); len(found) != 1 || found[0] != "a metadata.labels.app" {
			t.Errorf("found %q", found)
		}
	})
}

// failing notes how a test failed.
type failing struct {
	*testing.T
	cleanup func()
	errors  []string
}

func (f *failing) Cleanup(fn func()) { f.cleanup = fn }
func (f *failing) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// Promise 31: Verify fails a test at its end, and Run ends when there is
// something to tell.
func TestGuardVerifyAndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, guard, pods := guardedRun(t)
		runUntilEnd(t, pods)
		p, _ := pods.Get(informer.Key{Namespace: "default", Name: "a"})
		end := &failing{T: t}
		guard.Verify(end)
		p.Spec.NodeName = "x"
		end.cleanup()
		if len(end.errors) != 1 || !strings.Contains(end.errors[0], `"default/a"`) || !strings.Contains(end.errors[0], "spec.nodeName") {
			t.Errorf("the test failed with %q", end.errors)
		}

		p.Spec.NodeName = "y"
		began := time.Now()
		if found := mutated(t, guard.Run(t.Context(), time.Minute)); len(found) != 1 || time.Since(began) != time.Minute {
			t.Errorf("Run found %q after %v", found, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		if err := guard.Run(ctx, time.Minute); err != nil {
			t.Errorf("Run = %v", err)
		}
		p.Spec.NodeName = "z"
		if found := mutated(t, guard.Run(ctx, time.Minute)); len(found) != 1 {
			t.Errorf("the last check of Run found %q", found)
		}
		if err := guard.Run(ctx, 0); err == nil {
			t.Error("Run every 0s = nil, want an error")
		}
	})
}

// Promise 31: what a transform behind the guard does is no change.
func TestGuardTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := informertest.NewScript(t, informertest.NewObject, "stream a@5 end 10 hang")
		guard := informertest.NewGuard(informer.Transform(script, func(o *informertest.Object) (*informertest.Object, error) {
			o.Value = "small"
			return o, nil
		}))
		inf, err := informer.New(guard, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runUntilEnd(t, inf)
		if err := guard.Check(); err != nil || inf.Len() != 1 {
			t.Errorf("%d objects, %v", inf.Len(), err)
		}
	})
}
