package informer_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

// pagerServer is a source that enforces the rules of the API: a continuation
// has a token that it gave out, and neither resource version nor match.
type pagerServer struct {
	names    []string
	expire   map[int]bool // requests, from 1, that find their token expired
	fail     map[int]bool // requests that fail
	bad      string       // the objects of these names are bad
	requests []metav1.ListOptions
}

func (s *pagerServer) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	return func(yield func(informer.Event[sourceItem], error) bool) {
		s.requests = append(s.requests, opts)
		if opts.Limit < 0 {
			yield(informer.Event[sourceItem]{}, apierrors.NewBadRequest("negative limit"))
			return
		}
		from := 0
		if opts.Continue != "" {
			from, _ = strconv.Atoi(opts.Continue)
			if opts.ResourceVersion != "" || opts.ResourceVersionMatch != "" {
				yield(informer.Event[sourceItem]{}, apierrors.NewBadRequest("resource version with a continue token"))
				return
			}
		}
		if s.expire[len(s.requests)] {
			yield(informer.Event[sourceItem]{}, apierrors.NewResourceExpired("the token is too old"))
			return
		}
		if s.fail[len(s.requests)] {
			yield(informer.Event[sourceItem]{}, errSource)
			return
		}
		to := min(len(s.names), from+int(opts.Limit))
		for _, name := range s.names[from:to] {
			item := sourceItemOf(name, "")
			ev, err := informer.EventOf(informer.EventAdded, item), error(nil)
			if slices.Contains(strings.Fields(s.bad), name) {
				ev = informer.Event[sourceItem]{Type: informer.EventBad, Key: ev.Key}
				err = &informer.ObjectError{Key: ev.Key, Err: errSource}
			}
			if ctx.Err() != nil {
				yield(informer.Event[sourceItem]{}, ctx.Err())
				return
			}
			if !yield(ev, err) {
				return
			}
		}
		end := informer.Event[sourceItem]{Type: informer.EventEnd, Version: "9"}
		if to < len(s.names) {
			end.Continue = strconv.Itoa(to)
		}
		yield(end, nil)
	}
}

func (s *pagerServer) Watch(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	panic("a pager does not watch")
}

// pagerSteps writes what All and Pages yield as one line each.
func pagerSteps(t *testing.T, source informer.ListerWatcher[sourceItem], opts metav1.ListOptions) (all, pages string) {
	t.Helper()
	pager, err := informer.NewPager(source)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for obj, err := range pager.All(t.Context(), opts) {
		out = append(out, pagerStep(obj.name, err))
	}
	all, out = strings.Join(out, " "), nil
	if s, ok := source.(*pagerServer); ok {
		s.requests = nil
	}
	for page, err := range pager.Pages(t.Context(), opts) {
		var names []string
		for _, obj := range page {
			names = append(names, obj.name)
		}
		out = append(out, pagerStep("["+strings.Join(names, " ")+"]", err))
	}
	return all, strings.Join(out, " ")
}

func pagerStep(what string, err error) string {
	seen.err("a pager", err)
	var bad *informer.ObjectError
	switch {
	case errors.Is(err, informer.ErrRestarted) && apierrors.IsResourceExpired(err):
		return "restarted"
	case apierrors.IsResourceExpired(err):
		return "expired"
	case errors.As(err, &bad):
		return "bad:" + bad.Key.Name
	case err != nil:
		return "error:" + err.Error()
	}
	return what
}

// TestPager is for promise 13 (client-go#1042, argo-workflows#16099).
func TestPager(t *testing.T) {
	names := strings.Fields("a b c d e")
	versioned := metav1.ListOptions{Limit: 2, ResourceVersion: "5", ResourceVersionMatch: "NotOlderThan", LabelSelector: "x=y"}
	tests := []struct {
		name       string
		server     pagerServer
		opts       metav1.ListOptions
		all, pages string
	}{
		{"one page", pagerServer{names: names}, metav1.ListOptions{}, "a b c d e", "[a b c d e]"},
		{"pages", pagerServer{names: names}, metav1.ListOptions{Limit: 2}, "a b c d e", "[a b] [c d] [e]"},
		{"versions", pagerServer{names: names}, versioned, "a b c d e", "[a b] [c d] [e]"},
		{"empty", pagerServer{}, metav1.ListOptions{}, "", "[]"},
		{"bad", pagerServer{names: names, bad: "c"}, metav1.ListOptions{Limit: 2}, "a b bad:c d e", "[a b] bad:c [d] [e]"},
		{"expired on page 2", pagerServer{names: names, expire: map[int]bool{2: true}}, versioned, "a b restarted a b c d e", "[a b] restarted [a b] [c d] [e]"},
		{"expired on page 3", pagerServer{names: names, expire: map[int]bool{3: true}}, versioned, "a b c d restarted a b c d e", "[a b] [c d] restarted [a b] [c d] [e]"},
		{"expired twice", pagerServer{names: names, expire: map[int]bool{2: true, 4: true}}, versioned, "a b restarted a b expired", "[a b] restarted [a b] expired"},
		{"expired at once", pagerServer{names: names, expire: map[int]bool{1: true}}, versioned, "expired", "expired"},
		{"expired when starting over", pagerServer{names: names, expire: map[int]bool{2: true, 3: true}}, versioned, "a b restarted expired", "[a b] restarted expired"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all, pages := pagerSteps(t, &tt.server, tt.opts)
			if all != tt.all || pages != tt.pages {
				t.Errorf("All: %q, want %q\nPages: %q, want %q", all, tt.all, pages, tt.pages)
			}
			limit := tt.opts.Limit
			if limit == 0 {
				limit = 500
			}
			for _, got := range tt.server.requests {
				if got.Limit != limit || got.LabelSelector != tt.opts.LabelSelector {
					t.Errorf("request %+v", got)
				}
				if first := got.Continue == ""; first != (got.ResourceVersion == tt.opts.ResourceVersion) && tt.opts.ResourceVersion != "" {
					t.Errorf("request %+v", got)
				}
			}
		})
	}
}

// TestPagerContext is for promise 13: the end of the context is the end of the
// sequence, wherever it comes.
func TestPagerContext(t *testing.T) {
	server := &pagerServer{names: strings.Fields("a b c d")}
	pager, err := informer.NewPager[sourceItem](server)
	if err != nil {
		t.Fatal(err)
	}
	for cancelAt := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		if cancelAt == 0 {
			cancel()
		}
		var steps []string
		for obj, err := range pager.All(ctx, metav1.ListOptions{Limit: 2}) {
			if steps = append(steps, pagerStep(obj.name, err)); len(steps) == cancelAt {
				cancel()
			}
		}
		if len(steps) != cancelAt+1 || steps[cancelAt] != "error:context canceled" {
			t.Errorf("cancelled after %d: %q", cancelAt, steps)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pages := 0
	for _, err = range pager.Pages(ctx, metav1.ListOptions{Limit: 2}) {
		pages++
		cancel()
	}
	if pages != 2 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d pages, error %v", pages, err)
	}
}

// pagerDeaf yields one page after the other, whatever its context says.
type pagerDeaf struct{ requests int }

func (s *pagerDeaf) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	return func(yield func(informer.Event[sourceItem], error) bool) {
		s.requests++
		for _, name := range []string{"a", "b"} {
			if !yield(informer.EventOf(informer.EventAdded, sourceItemOf(name, "")), nil) {
				return
			}
		}
		yield(informer.Event[sourceItem]{Type: informer.EventEnd, Version: "9", Continue: strconv.Itoa(s.requests)}, nil)
	}
}

func (s *pagerDeaf) Watch(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	panic("a pager does not watch")
}

// Promise 13: the context holds also where the source does not heed it: within
// a page, and before one is asked for.
func TestPagerContextDeafSource(t *testing.T) {
	for cancelAt, wantRequests := range []int{0, 1, 1, 2} { // the source would go on for ever
		source := &pagerDeaf{}
		pager, err := informer.NewPager[sourceItem](source)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if cancelAt == 0 {
			cancel()
		}
		var steps []string
		for obj, err := range pager.All(ctx, metav1.ListOptions{}) {
			if steps = append(steps, pagerStep(obj.name, err)); len(steps) == cancelAt {
				cancel()
			}
		}
		cancel()
		if len(steps) != cancelAt+1 || steps[cancelAt] != "error:context canceled" || source.requests != wantRequests {
			t.Errorf("cancelled after %d: %q and %d requests, want %d", cancelAt, steps, source.requests, wantRequests)
		}
	}
}

// Promise 13: what came of a page that broke off does not count when the list
// starts over.
func TestPagerForgetsBrokenPage(t *testing.T) {
	pager, err := informer.NewPager[sourceItem](&pagerOnce{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for page, err := range pager.Pages(t.Context(), metav1.ListOptions{}) {
		names := ""
		for _, obj := range page {
			names += obj.name
		}
		got = append(got, pagerStep(names, err))
	}
	if want := "a restarted ac"; strings.Join(got, " ") != want {
		t.Errorf("Pages: %q, want %q", got, want)
	}
}

// pagerOnce breaks off once, in the middle of its second page.
type pagerOnce struct{ requests int }

func (s *pagerOnce) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	s.requests++
	names := map[int]string{1: "a", 2: "b", 3: "ac"}[s.requests]
	return func(yield func(informer.Event[sourceItem], error) bool) {
		for _, name := range strings.Split(names, "") {
			if !yield(informer.EventOf(informer.EventAdded, sourceItemOf(name, "")), nil) {
				return
			}
		}
		switch s.requests {
		case 1:
			yield(informer.Event[sourceItem]{Type: informer.EventEnd, Version: "9", Continue: "x"}, nil)
		case 2:
			yield(informer.Event[sourceItem]{}, apierrors.NewResourceExpired("the token is too old"))
		default:
			yield(informer.Event[sourceItem]{Type: informer.EventEnd, Version: "10"}, nil)
		}
	}
}

func (s *pagerOnce) Watch(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	panic("a pager does not watch")
}

// pagerSameToken gives the same token for ever.
type pagerSameToken struct{ requests int }

func (s *pagerSameToken) List(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	return func(yield func(informer.Event[sourceItem], error) bool) {
		if s.requests++; s.requests > 9 {
			yield(informer.Event[sourceItem]{}, errSource)
			return
		}
		yield(informer.Event[sourceItem]{Type: informer.EventEnd, Version: "9", Continue: "c"}, nil)
	}
}

func (s *pagerSameToken) Watch(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[sourceItem], error] {
	panic("a pager does not watch")
}

// Promise 13: a loop over a pager that is left makes no other request.
func TestPagerLeave(t *testing.T) {
	server := &pagerServer{names: strings.Fields("a b c d"), expire: map[int]bool{2: true}}
	pager, err := informer.NewPager[sourceItem](server)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range pager.All(t.Context(), metav1.ListOptions{Limit: 2}) {
		if err != nil {
			break
		}
	}
	for range pager.Pages(t.Context(), metav1.ListOptions{Limit: 2}) {
		break
	}
	if len(server.requests) != 3 {
		t.Errorf("%d requests, want 3: none after a loop is left", len(server.requests))
	}
}

// Promise 13: page bounds hold, and mistakes of the caller or the source are
// errors.
func TestPagerMistakes(t *testing.T) {
	yes := true
	for want, opts := range map[string]metav1.ListOptions{
		"limit is -1: must not be negative":  {Limit: -1},
		`continue is "x": must be empty`:     {Continue: "x"},
		"a pager lists":                      {Watch: true},
		"sendInitialEvents must not be set:": {SendInitialEvents: &yes},
	} {
		all, pages := pagerSteps(t, &pagerServer{}, opts)
		if !strings.HasPrefix(all, "error:informer: pager: ") || !strings.Contains(all, want) || pages != all {
			t.Errorf("All: %q, Pages: %q, want %q", all, pages, want)
		}
	}
	// Sources that break the rules.
	for want, source := range map[string]informer.ListerWatcher[sourceItem]{
		"error:informer: pager: the source ended a list without an end or an error": sourceStub[sourceItem]{},
		`error:informer: pager: the server sent the same continue token twice`:      &pagerSameToken{},
	} {
		if all, _ := pagerSteps(t, source, metav1.ListOptions{}); all != want {
			t.Errorf("All: %q, want %q", all, want)
		}
	}
}
