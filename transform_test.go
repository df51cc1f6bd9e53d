package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-99a027e8/informer"
)

// sourceItem is a small object of the user's own, a value type.
type sourceItem struct {
	namespace, name string
	uid             types.UID
	version         string
	payload         string
}

func (o sourceItem) GetNamespace() string       { return o.namespace }
func (o sourceItem) GetName() string            { return o.name }
func (o sourceItem) GetUID() types.UID          { return o.uid }
func (o sourceItem) GetResourceVersion() string { return o.version }

func sourceItemOf(name, payload string) sourceItem {
	return sourceItem{namespace: "n", name: name, uid: "u", version: "5", payload: payload}
}

// sourceStub answers both requests with steps; an error in a step comes with it.
type sourceStub[T informer.Object] []sourceStubStep[T]

type sourceStubStep[T informer.Object] struct {
	ev  informer.Event[T]
	err error
}

func (s sourceStub[T]) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return func(yield func(informer.Event[T], error) bool) {
		for _, step := range s {
			if !yield(step.ev, step.err) {
				return
			}
		}
	}
}

func (s sourceStub[T]) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[T], error] {
	return s.List(ctx, opts)
}

func sourceEventOf(t informer.EventType, name, payload string) sourceStubStep[sourceItem] {
	return sourceStubStep[sourceItem]{ev: informer.EventOf(t, sourceItemOf(name, payload))}
}

// sourceEverything has each kind of step once.
func sourceEverything(payload string) sourceStub[sourceItem] {
	badKey := informer.Key{Namespace: "n", Name: "bad"}
	inexact := sourceEventOf(informer.EventDeleted, "i", payload)
	inexact.ev.Exact, inexact.ev.Object = false, sourceItem{}
	return sourceStub[sourceItem]{
		sourceEventOf(informer.EventAdded, "a", payload),
		sourceEventOf(informer.EventModified, "m", payload),
		sourceEventOf(informer.EventDeleted, "d", payload),
		inexact,
		{ev: informer.Event[sourceItem]{Type: informer.EventBad, Key: badKey, UID: "u", Version: "6"}, err: &informer.ObjectError{Key: badKey, Err: errors.New("x")}},
		{ev: informer.Event[sourceItem]{Type: informer.EventBookmark, Version: "7"}},
		{ev: informer.Event[sourceItem]{Type: informer.EventEnd, Version: "8", Continue: "c"}},
		{err: errors.New("cut")},
	}
}

var errSource = errors.New("no use for it")

// TestTransform (promise 12) is for CASES 31 (k8s#116432, k8s#124344,
// karmada#3908): once for each received object, never without one; a mistake
// concerns one object.
func TestTransform(t *testing.T) {
	rest := []string{"Deleted n/i uid=u v=5 exact=false", "Bad n/bad uid=u v=6", "Bookmark v=7", "End v=8 next=c", "error cut"}
	good := append([]string{"Added n/a uid=u v=5", "Modified n/m uid=u v=5", "Deleted n/d uid=u v=5 exact=true"}, rest...)
	bad := append([]string{"Bad n/a uid=u v=5", "Bad n/m uid=u v=5", "Deleted n/d uid=u v=5 exact=false"}, rest...)
	tests := []struct {
		name string
		fn   func(sourceItem) (sourceItem, error)
		want []string
		err  string
	}{
		{"payload", func(o sourceItem) (sourceItem, error) { o.payload = ""; return o, nil }, good, ""},
		{"error", func(o sourceItem) (sourceItem, error) { return o, errSource }, bad, `object "n/a": transform: no use for it`},
		{"panic", func(sourceItem) (sourceItem, error) { panic("boom") }, bad, `object "n/a": transform: panic: boom`},
		{"panic with an error", func(sourceItem) (sourceItem, error) { panic(errSource) }, bad, `transform: panic: no use for it`},
		{"name", func(o sourceItem) (sourceItem, error) { o.name = "z"; return o, nil }, bad, `the key was changed to "n/z"`},
		{"namespace", func(o sourceItem) (sourceItem, error) { o.namespace = "z"; return o, nil }, bad, `the key was changed to "z/a"`},
		{"UID", func(o sourceItem) (sourceItem, error) { o.uid = "z"; return o, nil }, bad, `the UID was changed from "u" to "z"`},
		{"version", func(o sourceItem) (sourceItem, error) { o.version = ""; return o, nil }, bad, `the resource version was changed from "5" to ""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var seen []string
			source := informer.Transform(sourceEverything("x"), func(o sourceItem) (sourceItem, error) {
				seen = append(seen, o.name)
				return tt.fn(o)
			})
			var steps []string
			var first error
			for ev, err := range source.Watch(t.Context(), metav1.ListOptions{}) {
				steps = append(steps, sourceStep(ev, err))
				if first == nil {
					first = err
				}
				if ev.Object.payload != "" {
					t.Errorf("%v has an object that was not transformed", ev)
				}
			}
			wantSteps(t, steps, tt.want...)
			if fmt.Sprint(seen) != "[a m d]" {
				t.Errorf("called for %v, want [a m d]", seen)
			}
			if tt.err != "" && !strings.Contains(first.Error(), tt.err) {
				t.Errorf("error %q, want %q", first, tt.err)
			}
			if wraps := strings.Contains(tt.err, errSource.Error()); wraps && !errors.Is(first, errSource) {
				t.Errorf("error %v does not wrap the function's", first)
			}
		})
	}
}

// TestTransformNilResult: a nil pointer is one bad object.
func TestTransformNilResult(t *testing.T) {
	source := informer.Transform(restPods(t, restAnswer(podListJSON(podItem("a")))),
		func(*corev1.Pod) (*corev1.Pod, error) { return nil, nil })
	wantSteps(t, sourceEvents(source.List(t.Context(), metav1.ListOptions{})), "Bad n/a uid=u-a v=5", "End v=9 next=c")
}

// TestTransformLeave: a loop that is left ends the source's, and what panics in
// the loop is not taken for a panic of the function.
func TestTransformLeave(t *testing.T) {
	keep := func(o sourceItem) (sourceItem, error) { return o, nil }
	source := informer.Transform(sourceEverything("x"), keep)
	for _, seq := range []iter.Seq2[informer.Event[sourceItem], error]{
		source.List(t.Context(), metav1.ListOptions{}), source.Watch(t.Context(), metav1.ListOptions{}),
	} {
		func() {
			defer func() {
				if r := recover(); r != "mine" {
					t.Errorf("recovered %v", r)
				}
			}()
			for range seq {
				panic("mine")
			}
		}()
		for range source.List(t.Context(), metav1.ListOptions{}) {
			break
		}
	}
}

// TestProject is for CASES 11 (cert-manager#4722): what leaves the projection is
// one delete, and the version advances for what is not kept.
func TestProject(t *testing.T) {
	project := func(keep bool, err error) informer.ListerWatcher[sourceItem] {
		slim := informer.Project(pods(sourceEverything("x")), func(p *corev1.Pod) (sourceItem, bool, error) {
			return sourceItem{namespace: p.Namespace, name: p.Name, uid: p.UID, version: p.ResourceVersion}, keep, err
		})
		return slim
	}
	rest := []string{"Deleted n/i uid=u v=5 exact=false", "Bad n/bad uid=u v=6", "Bookmark v=7", "End v=8 next=c", "error cut"}
	wantSteps(t, sourceEvents(project(true, nil).Watch(t.Context(), metav1.ListOptions{})),
		append([]string{"Added n/a uid=u v=5", "Modified n/m uid=u v=5", "Deleted n/d uid=u v=5 exact=true"}, rest...)...)
	wantSteps(t, sourceEvents(project(false, nil).Watch(t.Context(), metav1.ListOptions{})),
		append([]string{"Deleted n/a uid=u v=5 exact=false", "Deleted n/m uid=u v=5 exact=false", "Deleted n/d uid=u v=5 exact=false"}, rest...)...)
	wantSteps(t, sourceEvents(project(true, errSource).Watch(t.Context(), metav1.ListOptions{})),
		append([]string{"Bad n/a uid=u v=5", "Bad n/m uid=u v=5", "Deleted n/d uid=u v=5 exact=false"}, rest...)...)
	// A list has no deletions: what is not kept is not there.
	wantSteps(t, sourceEvents(project(false, nil).List(t.Context(), metav1.ListOptions{})),
		"Bad n/bad uid=u v=6", "Bookmark v=7", "End v=8 next=c", "error cut")
}

// pods turns a script of items into one of pods.
func pods(items sourceStub[sourceItem]) informer.ListerWatcher[*corev1.Pod] {
	var out sourceStub[*corev1.Pod]
	for _, step := range items {
		ev := informer.Event[*corev1.Pod]{
			Type: step.ev.Type, Exact: step.ev.Exact, Key: step.ev.Key, UID: step.ev.UID, Version: step.ev.Version, Continue: step.ev.Continue,
		}
		if step.ev.Object.name != "" {
			o := step.ev.Object
			ev.Object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name, UID: o.uid, ResourceVersion: o.version}}
		}
		out = append(out, sourceStubStep[*corev1.Pod]{ev: ev, err: step.err})
	}
	return out
}

// TestSourceMistakes: nil sources and functions are errors of the constructor
// that the source is given to, however many sources are between.
func TestSourceMistakes(t *testing.T) {
	keep := func(o sourceItem) (sourceItem, error) { return o, nil }
	project := func(o sourceItem) (sourceItem, bool, error) { return o, true, nil }
	var none *sourceStub[sourceItem]
	for want, source := range map[string]informer.ListerWatcher[sourceItem]{
		"the source of informer_test.sourceItem is nil":                                   nil,
		"source of informer_test.sourceItem is nil":                                       none,
		"the transform of informer_test.sourceItem is nil":                                informer.Transform(sourceEverything(""), nil),
		"the projection from informer_test.sourceItem to informer_test.sourceItem is nil": informer.Project[sourceItem, sourceItem](sourceEverything(""), nil),
		"source of informer_test.sourceItem is":                                           informer.Transform(nil, keep),
		"of informer_test.sourceItem is nil":                                              informer.Project(informer.Transform(nil, keep), project),
	} {
		if _, err := informer.NewPager(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
