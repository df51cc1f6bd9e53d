package informertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// A script is a source.
var _ informer.ListerWatcher[*informertest.Object] = (*informertest.Script[*informertest.Object])(nil)

type scripted = informertest.Script[*informertest.Object]

func script(t informertest.TB, lines ...string) *scripted {
	return informertest.NewScript(t, informertest.NewObject, lines...)
}

// told returns what a request yields, one word an event.
func told(events iter.Seq2[informer.Event[*informertest.Object], error]) string {
	var words []string
	for event, err := range events {
		var bad *informer.ObjectError
		switch {
		case errors.As(err, &bad):
			words = append(words, fmt.Sprintf("Bad(%s@%s)", bad.Key, event.Version))
		case err != nil:
			words = append(words, "error")
		case event.Type == informer.EventEnd && event.Continue != "":
			words = append(words, fmt.Sprintf("End(%s,%s)", event.Version, event.Continue))
		case event.Type == informer.EventEnd, event.Type == informer.EventBookmark:
			words = append(words, fmt.Sprintf("%v(%s)", event.Type, event.Version))
		case event.Object == nil:
			words = append(words, fmt.Sprintf("%v(%s@%s)", event.Type, event.Key.Name, event.Version))
		default:
			words = append(words, fmt.Sprintf("%v(%v %s)", event.Type, event.Object, event.UID))
		}
	}
	return strings.Join(words, " ")
}

func streaming() metav1.ListOptions { return metav1.ListOptions{SendInitialEvents: new(true)} }

// play asks a script for all its lines, in their order.
func play(ctx context.Context, s *scripted) []string {
	var all []string
	for len(s.Left()) > 0 {
		switch line := s.Left()[0]; {
		case strings.HasPrefix(line, "list"):
			all = append(all, told(s.List(ctx, metav1.ListOptions{})))
		case strings.HasPrefix(line, "stream"):
			all = append(all, told(s.Watch(ctx, streaming())))
		default:
			all = append(all, told(s.Watch(ctx, metav1.ListOptions{})))
		}
	}
	return all
}

func TestScript(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{{
		name:  "list, watch, list",
		lines: []string{"list 10 a b", "watch a@11 expired", "list 20 b", "watch"},
		want: []string{
			"Added(a@10 uid-/a) Added(b@10 uid-/b) End(10)", "Modified(a@11 uid-/a) error",
			"Added(b@10 uid-/b) End(20)", "",
		},
	}, {
		name:  "what a list does not hold is gone",
		lines: []string{"list 10 a", "list 20", "watch a@21"},
		want:  []string{"Added(a@10 uid-/a) End(10)", "End(20)", "Added(a@21 uid-/a-1)"},
	}, {
		name:  "but not by a list that broke off",
		lines: []string{"list 10 a", "list 20 error", "watch a@21"},
		want:  []string{"Added(a@10 uid-/a) End(10)", "error", "Modified(a@21 uid-/a)"},
	}, {
		name:  "nor by one of several pages",
		lines: []string{"list 10 a continue=t1", "list 10 b", "watch a@11"},
		want:  []string{"Added(a@10 uid-/a) End(10,t1)", "Added(b@10 uid-/b) End(10)", "Modified(a@11 uid-/a)"},
	}, {
		name:  "deletions",
		lines: []string{"list 10 a=red b", "watch -a@11 --b@12 a@13 -a@14"},
		want: []string{
			"Added(a=red@10 uid-/a) Added(b@10 uid-/b) End(10)",
			"Deleted(a=red@11 uid-/a) Deleted(b@12) Added(a@13 uid-/a-1) Deleted(a@14 uid-/a-1)",
		},
	}, {
		name:  "signs, values, UIDs, namespaces",
		lines: []string{"watch ~a=x@1 +a#u@2 ns/a#v=y@3 a@4 bookmark 5 close"},
		want:  []string{"Modified(a=x@1 uid-/a) Added(a=x@2 u) Added(ns/a=y@3 v) Modified(a=x@4 u) Bookmark(5)"},
	}, {
		name:  "streaming lists",
		lines: []string{"stream a@5 b@6 end 10 c@11 a@12", "stream a -a@13 +c@14 end 14", "watch a@15 c@16"},
		want: []string{
			"Added(a@5 uid-/a) Added(b@6 uid-/b) End(10) Added(c@11 uid-/c) Modified(a@12 uid-/a)",
			"Added(a@12 uid-/a) Deleted(a@13 uid-/a) Added(c@14 uid-/c) End(14)",
			"Added(a@15 uid-/a-1) Modified(c@16 uid-/c)",
		},
	}, {
		name:  "bad objects",
		lines: []string{"list 10 a !b !", "watch !a@11 a@12"},
		want:  []string{"Added(a@10 uid-/a) Bad(/b@10) Bad(/@10) End(10)", "Bad(/a@11) Modified(a@12 uid-/a)"},
	}, {
		name:  "no versions, as with client-go's fakes",
		lines: []string{"list a", "watch a=x"},
		want:  []string{"Added(a@0 uid-/a) End()", "Modified(a=x@0 uid-/a)"},
	}, {
		name:  "an object without a version",
		lines: []string{"list 10 a@-", "watch a=x a=y@-"},
		want:  []string{"Added(a@ uid-/a) End(10)", "Modified(a=x@ uid-/a) Modified(a=y@ uid-/a)"},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := play(t.Context(), script(t, test.lines...)); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestScriptErrors(t *testing.T) {
	for word, is := range map[string]func(error) bool{
		"error":        func(err error) bool { return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown },
		"eof":          func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) },
		"drop":         func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) },
		"garbage":      func(err error) bool { return strings.Contains(err.Error(), "cannot be decoded") },
		"table":        isWrongType,
		"wrongkind":    isWrongType,
		"refused":      func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) },
		"expired":      apierrors.IsResourceExpired,
		"toolarge":     func(err error) bool { return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) },
		"toomany":      apierrors.IsTooManyRequests,
		"unauthorized": apierrors.IsUnauthorized,
		"forbidden":    apierrors.IsForbidden,
		"notfound":     apierrors.IsNotFound,
		"notallowed":   apierrors.IsMethodNotSupported,
		"unavailable":  apierrors.IsServiceUnavailable,
		"invalid":      apierrors.IsInvalid,
		"internal":     apierrors.IsInternalError,
		"timeout":      apierrors.IsTimeout,
		"toomany=7s": func(err error) bool {
			seconds, found := apierrors.SuggestsClientDelay(err)
			return found && seconds == 7
		},
	} {
		for _, kind := range []string{"list 10 a ", "watch a@11 ", "stream "} {
			s := script(t, kind+word)
			events := s.List(t.Context(), metav1.ListOptions{})
			switch kind {
			case "watch a@11 ":
				events = s.Watch(t.Context(), metav1.ListOptions{})
			case "stream ":
				events = s.Watch(t.Context(), streaming())
			}
			var last error
			for _, err := range events {
				last = err
			}
			if last == nil || !is(last) {
				t.Errorf("%s%s: last error = %v", kind, word, last)
			}
		}
	}
}

func isWrongType(err error) bool {
	_, wrong := errors.AsType[*informer.WrongTypeError](err)
	return wrong
}

// Each word of a fault is one of a script, or a mistake in it, or can be said in
// another way.
func TestScriptFaults(t *testing.T) {
	synctest.Test(t, testScriptFaults)
}

func testScriptFaults(t *testing.T) {
	mistakes := []informertest.Fault{"halfopen", "cut", "truncated", "slow"}
	objects := []informertest.Fault{
		"ignored", "nobookmarks", "malformed", "twice", "nameless", "versionless", "unversioned",
		"duplicate", "reorder", "restored", "stale", "reborn", "compacted",
	}
	for _, fault := range informertest.Faults() {
		line := "watch " + string(fault)
		if fault == "delay" || fault == "gateway" {
			line += "=3s"
		}
		tb := &failures{T: t}
		said := func() (said string) {
			defer func() { _ = recover() }()
			return told(script(tb, line).Watch(t.Context(), metav1.ListOptions{}))
		}
		switch {
		case slices.Contains(mistakes, fault):
			if said(); len(tb.fatals) != 1 {
				t.Errorf("line %q was taken", line)
			}
		case slices.Contains(objects, fault):
			if got := said(); !strings.HasPrefix(got, "Added("+string(fault)) {
				t.Errorf("line %q = %s, want an object of that name", line, got)
			}
		case fault == "hang", fault == "close": // see TestScriptTime, TestScript
		default:
			start := time.Now()
			got := said()
			if waits := strings.HasSuffix(line, "=3s"); waits != (got == "") || waits != (time.Since(start) == 3*time.Second) {
				t.Errorf("line %q = %s after %v", line, got, time.Since(start))
			}
		}
	}
}

func TestScriptTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := script(t, "list 10 sleep=5s a", "watch a@11 hang", "watch sleep=5s a@12", "list 20 a")
		start := time.Now()
		if got := told(s.List(ctx, metav1.ListOptions{})); got != "Added(a@10 uid-/a) End(10)" || time.Since(start) != 5*time.Second {
			t.Errorf("list = %s after %v", got, time.Since(start))
		}
		if got := told(s.Watch(ctx, metav1.ListOptions{})); got != "Modified(a@11 uid-/a) error" || time.Since(start) != time.Hour {
			t.Errorf("watch = %s after %v", got, time.Since(start))
		}
		// A context that has ended ends everything at once.
		for _, got := range []string{told(s.Watch(ctx, metav1.ListOptions{})), told(s.List(ctx, metav1.ListOptions{}))} {
			if got != "error" || time.Since(start) != time.Hour {
				t.Errorf("after the end = %s after %v", got, time.Since(start))
			}
		}
		calls := s.Calls()
		if len(calls) != 4 || calls[0].Kind != "list" || !calls[1].Time.Equal(start.Add(5*time.Second)) {
			t.Errorf("calls = %v", calls)
		}
	})
}

// A loop that is left gets nothing more, and the rest has not happened.
func TestScriptLoopLeft(t *testing.T) {
	s := script(t, "watch a@1 b@2 c@3", "watch a@4 b@5 c@6")
	for event := range s.Watch(t.Context(), metav1.ListOptions{}) {
		if event.Key.Name == "b" {
			break
		}
	}
	want := "Modified(a@4 uid-/a) Modified(b@5 uid-/b) Added(c@6 uid-/c)"
	if got := told(s.Watch(t.Context(), metav1.ListOptions{})); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// failures is a TB that only notes what fails.
type failures struct {
	*testing.T
	errors, fatals []string
}

func (f *failures) Errorf(format string, arguments ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, arguments...))
}

func (f *failures) Fatalf(format string, arguments ...any) {
	f.fatals = append(f.fatals, fmt.Sprintf(format, arguments...))
	panic(f)
}

func TestScriptMisfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for line, message := range map[string]string{
			"watch hang":            `the request list?limit=5&resourceVersion=3 does not fit the next line "watch hang"`,
			"list?continue=t1 10 a": `does not fit the next line "list?continue=t1 10 a"`,
			"list?limit= 10 a":      `does not fit the next line "list?limit= 10 a"`,
			"":                      "no line is left for the request list?limit=5&resourceVersion=3",
		} {
			tb := &failures{T: t}
			s := script(tb, "list 10 a")
			if line != "" {
				s = script(tb, line)
			} else {
				told(s.List(t.Context(), metav1.ListOptions{}))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			opts := metav1.ListOptions{Limit: 5, ResourceVersion: "3"}
			for range 3 { // the later ones hang
				if got := told(s.List(ctx, opts)); got != "error" {
					t.Errorf("%q: %s, want an error", line, got)
				}
			}
			if ctx.Err() == nil {
				t.Errorf("%q: did not hang", line)
			}
			cancel()
			if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], message) {
				t.Errorf("%q: test failed with %q, want %q", line, tb.errors, message)
			}
		}
	})
}

func TestScriptRequire(t *testing.T) {
	s := script(t, "list?limit=2&resourceVersion=0&labelSelector=a%3Db 10 a continue=t", "list?continue=t&resourceVersion= 10",
		"watch?allowWatchBookmarks=true&timeoutSeconds=7&resourceVersion=10", "stream?resourceVersionMatch=NotOlderThan&fieldSelector=x%3Dy")
	told(s.List(t.Context(), metav1.ListOptions{Limit: 2, ResourceVersion: "0", LabelSelector: "a=b"}))
	told(s.List(t.Context(), metav1.ListOptions{Continue: "t"}))
	told(s.Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: new(int64(7)), ResourceVersion: "10"}))
	opts := streaming()
	opts.ResourceVersionMatch, opts.FieldSelector = metav1.ResourceVersionMatchNotOlderThan, "x=y"
	told(s.Watch(t.Context(), opts))
	if left := s.Left(); len(left) != 0 {
		t.Errorf("left = %q", left)
	}
}

func TestScriptAlways(t *testing.T) {
	s := script(t, "list 10 a", "always watch?resourceVersion=5 a@11", "always watch expired", "always list 20")
	told(s.List(t.Context(), metav1.ListOptions{}))
	for range 3 {
		if got := told(s.Watch(t.Context(), metav1.ListOptions{})); got != "error" {
			t.Errorf("watch = %s", got)
		}
		if got := told(s.List(t.Context(), metav1.ListOptions{})); got != "End(20)" {
			t.Errorf("list = %s", got)
		}
		if got := told(s.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})); !strings.HasPrefix(got, "Added(a@11") {
			t.Errorf("watch at 5 = %s", got)
		}
	}
}

func TestScriptNonsense(t *testing.T) {
	for _, line := range []string{
		"", "always", "get a", "list?x=y 10", "list?%zz 10", "list 10 -a", "list 10 end 5", "watch end 5", "watch bookmark",
		"list 10 close", "watch close a", "watch continue=t", "list 10 continue=", "watch sleep=x", "watch sleep=-1s", "watch toomany=x",
		"watch delay", "list 10 gateway=3s", "watch gateway=3s a", "watch cut", "watch a@11 halfopen", "watch toomany=5ms",
		"watch ~", "watch +-a", "watch error a", "watch hang a", "stream @5",
	} {
		t.Run(line, func(t *testing.T) {
			tb := &failures{T: t}
			defer func() {
				if recover() != tb || len(tb.fatals) != 1 {
					t.Errorf("line %q was taken", line)
				}
			}()
			script(tb, line)
		})
	}
}

// A function writes the lines as the requests come; what it writes is checked
// as any line.
func TestScriptFunc(t *testing.T) {
	var asked []string
	next := func(c informertest.Call) string {
		asked = append(asked, c.String())
		return []string{"list 10 a", "watch a@11 expired", "watch", "now and then"}[len(asked)-1]
	}
	rec := &failures{T: t}
	s := informertest.NewScriptFunc(rec, informertest.NewObject, next)
	ctx, cancel := context.WithCancel(t.Context())
	if got, want := told(s.List(ctx, metav1.ListOptions{})), "Added(a@10 uid-/a) End(10)"; got != want {
		t.Errorf("the list yields %q, want %q", got, want)
	}
	opts := metav1.ListOptions{ResourceVersion: "10"}
	if got, want := told(s.Watch(ctx, opts)), "Modified(a@11 uid-/a) error"; got != want {
		t.Errorf("the watch yields %q, want %q", got, want)
	}
	if want := []string{"list", "watch?resourceVersion=10"}; !slices.Equal(asked, want) {
		t.Errorf("the function was asked for %q, want %q", asked, want)
	}
	if len(rec.errors) > 0 || len(s.Left()) > 0 || len(s.Calls()) != 2 {
		t.Errorf("errors %q, left %q, calls %v", rec.errors, s.Left(), s.Calls())
	}
	cancel()
	if got := told(s.List(ctx, metav1.ListOptions{})); got != "error" || len(rec.errors) != 1 {
		t.Errorf("a line for another request yields %q, errors %q", got, rec.errors)
	}
}

func TestScriptFuncWithoutSense(t *testing.T) {
	rec := &failures{T: t}
	s := informertest.NewScriptFunc(rec, informertest.NewObject, func(informertest.Call) string { return "" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := told(s.List(ctx, metav1.ListOptions{})); got != "error" || len(rec.errors) != 1 {
		t.Errorf("an empty line yields %q, errors %q", got, rec.errors)
	}
}
