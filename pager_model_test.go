package informer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// pagerScript is what a server has and does, and when the caller has enough.
type pagerScript struct {
	server pagerServer
	limit  int64
	leave  int  // after so many steps the loop is left; 0: never
	cancel bool // and its context ends, but the loop goes on
}

func drawPagerScript(rt *rapid.T) pagerScript {
	s := pagerScript{
		server: pagerServer{expire: map[int]bool{}, fail: map[int]bool{}},
		limit:  rapid.Int64Range(0, 7).Draw(rt, "limit"),
		leave:  rapid.SampledFrom([]int{0, 0, 1, 2, 5, 20}).Draw(rt, "leave"),
		cancel: rapid.Bool().Draw(rt, "cancel"),
	}
	var bad []string
	for i := range rapid.IntRange(0, 30).Draw(rt, "objects") {
		s.server.names = append(s.server.names, fmt.Sprint(i))
		if rapid.IntRange(0, 9).Draw(rt, "bad") == 0 {
			bad = append(bad, fmt.Sprint(i))
		}
	}
	s.server.bad = strings.Join(bad, " ")
	for _, n := range rapid.SliceOfN(rapid.IntRange(1, 12), 0, 3).Draw(rt, "expire") {
		s.server.expire[n] = true
	}
	if rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
		s.server.fail[rapid.IntRange(1, 12).Draw(rt, "fail")] = true
	}
	return s
}

// want returns what a pager has to yield, one by one or as pages, and after how
// many requests.
func (s pagerScript) want(pages bool) (steps []string, requests int) {
	from, restarted, ends := 0, false, false
	limit := int(s.limit)
	if limit == 0 {
		limit = 500
	}
	enough := func() bool { return s.leave > 0 && len(steps) >= s.leave }
	for !ends && !enough() {
		requests++
		switch {
		case s.server.expire[requests] && from > 0 && !restarted:
			from, restarted = 0, true
			steps = append(steps, "restarted")
			continue
		case s.server.expire[requests]:
			steps = append(steps, "expired")
			ends = true
			continue
		case s.server.fail[requests]:
			steps = append(steps, "error:"+errSource.Error())
			ends = true
			continue
		}
		to := min(from+limit, len(s.server.names))
		var page []string
		for _, name := range s.server.names[from:to] {
			switch {
			case slices.Contains(strings.Fields(s.server.bad), name):
				steps = append(steps, "bad:"+name)
			case pages:
				page = append(page, name)
			default:
				steps = append(steps, name)
			}
		}
		if pages {
			steps = append(steps, "["+strings.Join(page, " ")+"]")
		}
		from, ends = to, to == len(s.server.names)
	}
	if !enough() {
		return steps, requests
	}
	// An error, and the last page, are the end: what is cancelled after it is
	// too late.
	over := ends && len(steps) == s.leave && (pages || isPagerEnd(steps[s.leave-1]))
	steps = steps[:s.leave]
	if s.cancel && !over {
		steps = append(steps, "error:context canceled")
	}
	return steps, requests
}

func isPagerEnd(step string) bool {
	return step == "expired" || strings.HasPrefix(step, "error:")
}

// got returns what a pager yields.
func (s pagerScript) got(rt *rapid.T, pages bool) (steps []string, requests int) {
	server := s.server
	pager, err := informer.NewPager[sourceItem](&server)
	if err != nil {
		rt.Fatal(err)
	}
	ctx, stop := context.WithCancel(rt.Context())
	defer stop()
	opts := metav1.ListOptions{Limit: s.limit, ResourceVersion: "1", ResourceVersionMatch: "Exact"}
	step := func(what string, err error) (more bool) {
		if errors.Is(err, context.Canceled) {
			what, err = "error:context canceled", nil
		}
		steps = append(steps, pagerStep(what, err))
		if len(steps) == s.leave {
			stop()
			return s.cancel
		}
		return true
	}
	if pages {
		for page, err := range pager.Pages(ctx, opts) {
			var names []string
			for _, obj := range page {
				names = append(names, obj.name)
			}
			if !step("["+strings.Join(names, " ")+"]", err) {
				break
			}
		}
	} else {
		for obj, err := range pager.All(ctx, opts) {
			if !step(obj.name, err) {
				break
			}
		}
	}
	return steps, len(server.requests)
}

// TestPagerModel is for promise 13 (client-go#1042, argo-workflows#16099): for
// any collection, page size, bad objects, moments of expiry and of failure, and
// whenever the caller leaves or its context ends, both ways to read yield what a
// naive pager does, after as many requests. The server enforces the rules of the
// API. With -v it tells how many of each step.
func TestPagerModel(t *testing.T) {
	counts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		script := drawPagerScript(rt)
		for _, pages := range []bool{false, true} {
			want, requests := script.want(pages)
			got, asked := script.got(rt, pages)
			if !slices.Equal(got, want) || asked != requests {
				rt.Fatalf("pages: %v\ngot  %q after %d requests\nwant %q after %d", pages, got, asked, want, requests)
			}
			for _, step := range got {
				kind, _, _ := strings.Cut(step, ":")
				switch {
				case strings.HasPrefix(step, "["):
					kind = "page"
				case kind == step && kind != "restarted" && kind != "expired":
					kind = "object"
				}
				counts[kind]++
			}
		}
	})
	if counts["object"] > 1000 && len(counts) != 6 {
		t.Errorf("steps of only %v", slices.Sorted(maps.Keys(counts)))
	}
	t.Log(counts)
}
