package informer_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-99a027e8/informer"
)

// Case 4 (client-go#732, cr#1653, k8s#57074; promise 20): the reason why
// nothing comes is in the status, and it recovers by itself.
func TestReflectorCase4ForbiddenAtFirst(t *testing.T) {
	run := runReflector(t, []string{"stream 403", "list 403", "stream 403", "list +a@5 ? ]10", "watch 1s +b@11 ? hang"}, informer.Options{}, 4*time.Minute)
	wantEqual(t, "statuses", run.statuses,
		"Failing v n0 err,Failing v n0 err,Failing v n0 err,Failing v n1 err,Watching v11 n1", ",")
	for _, f := range run.failed {
		if !apierrors.IsForbidden(f.Err) {
			t.Errorf("OnFailure got %v, want an error that is forbidden", f.Err)
		}
	}
}

// Case 5 (external-dns#1458, client-go#755, fabric8#6379; promises 10 and 11): a
// watch that neither sends nor closes is given up a little after the time that
// it was asked for, and resumed from its version without a list; a bookmark is
// enough to know that the server has reached it.
func TestReflectorCase5SilentWatch(t *testing.T) {
	run := runReflector(t, []string{"list ]10", "watch +a@11 hang", "watch *12 hang"}, informer.Options{}, time.Hour)
	if lists := run.status.Lists; lists != 1 {
		t.Errorf("there were %d lists, want 1", lists)
	}
	if len(run.failures) > 0 {
		t.Errorf("reported were %q, want none", run.failures)
	}
	var last *reflRequest
	for _, q := range run.requests {
		if !strings.HasPrefix(q.text, "watch") {
			continue
		}
		asked := q.timeout()
		if asked < 5*time.Minute || asked >= 10*time.Minute {
			t.Errorf("asked for %v, want a time in [5m, 10m)", asked)
		}
		if last != nil {
			took, asked := q.at-last.at, last.timeout()
			if took <= asked || took > asked+10*time.Second {
				t.Errorf("a watch that asked for %v was given up after %v", asked, took)
			}
		}
		last = &q
	}
	if last == nil || last.text != "watch 12" {
		t.Errorf("the last watch is %v, want one from 12", last)
	}
}

// Promises 8 and 10: the watch that a streaming list has become has the time of
// a watch, too.
func TestReflectorStreamGoesOnAsWatch(t *testing.T) {
	run := runReflector(t, []string{"stream 20s ]10 hang", "watch *11 hang"}, informer.Options{}, 11*time.Minute)
	if len(run.requests) < 2 || len(run.failures) > 0 {
		t.Fatalf("requests are %v, failures %q; want a second watch and none", run.requests, run.failures)
	}
	took, asked := run.requests[1].at, run.requests[0].timeout()
	if took <= asked || took > asked+10*time.Second {
		t.Errorf("a streaming list that asked for %v was given up after %v", asked, took)
	}
}

// Case 6 (k8s#140890, k8s#135895, calico#11114, kcp#4384; promise 8): a streaming
// list that does not end is given up, and a plain list takes its place.
func TestReflectorCase6StreamHangs(t *testing.T) {
	tests := []struct {
		name, stream string
		synced       time.Duration // at the latest
		failures     string
	}{
		{"silence", "hang", 30 * time.Second, "streaming list 1"},
		{"events and then silence", "+a@5 20s +b@6 20s *7 hang", 70 * time.Second, "streaming list 1"},
		{"events for ever", strings.Repeat("20s +a@5 ", 100), 5 * time.Minute, "streaming list 1"},
		{"closed after a few events", "+a@5 +b@6", 2 * time.Second, "streaming list 1"},
		{"always expired", "410", 2 * time.Second, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := runReflector(t, []string{"stream " + tt.stream, "list +a@5 ]10", "watch *11 hang"}, informer.Options{}, time.Hour)
			wantEqual(t, "failures", run.failures, tt.failures, ",")
			if n := run.count("stream", time.Hour); n != 1 {
				t.Errorf("there were %d streaming lists, want 1", n)
			}
			if run.count("list", tt.synced+time.Millisecond) != 1 {
				t.Errorf("requests are %v, want a list by %v", run.requests, tt.synced)
			}
		})
	}
}

// A server that ignores what makes a watch a list is not asked so again in this
// Run (promise 8).
func TestReflectorRemembersSilence(t *testing.T) {
	run := runReflector(t, []string{"stream hang", "list ]10", "watch 410", "list ]20", "watch hang"}, informer.Options{}, time.Minute)
	wantEqual(t, "requests", run.texts(), "stream,list 0,watch 10,list >=10,watch 20", ",")
}

// Promise 8: a server that ends the watch in time but never the list ignores
// it, too.
func TestReflectorRemembersCloseWithoutEnd(t *testing.T) {
	run := runReflector(t, []string{"stream 1s", "list ]10", "watch 410", "list ]20", "watch hang"}, informer.Options{WatchTimeout: time.Second}, 10*time.Second)
	wantEqual(t, "requests", run.texts()[:4], "stream,list 0,watch 10,list >=10", ",")
	if run.requests[1].at != time.Second {
		t.Errorf("requests are %v, want the list at once", run.requests)
	}
}

// Promises 11 and 20: an expired version is no failure, but does not hide one
// either.
func TestReflectorExpiredWhileFailing(t *testing.T) {
	run := runReflector(t, []string{"list ]10", "watch 410", "list ? ]20", "watch 500", "watch 410", "list ? ]30", "watch hang"}, informer.Options{}, 4*time.Minute)
	wantEqual(t, "statuses", run.statuses, "Listing v10 n0,Failing v20 n0 err,Failing v20 n0 err", ",")
	wantEqual(t, "failures", run.failures, "watch 1", ",")
}

// Case 17 (k8s#87794, k8s#90514, cilium#25551; promise 9): when a server has been
// down for a minute, clients come back spread over time, and none lists.
func TestReflectorCase17ThunderingHerd(t *testing.T) {
	const down, back = 10 * time.Second, 70 * time.Second
	var mu sync.Mutex // guards first
	var first []time.Duration
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				script := newReflScript(t, []string{"list ]10", "watch 10s refused", "watch refused"})
				r, err := informer.NewReflector(script, func(informer.Event[reflObj]) error { return nil }, informer.Options{
					OnFailure: func(informer.Failure) error {
						if time.Since(script.start) > back {
							script.lines["watch"] = []string{"hang"}
						}
						return nil
					},
				})
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := contextFor(t, 2*time.Minute)
				defer cancel()
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
				if s := r.Status(); s.Lists != 1 {
					t.Errorf("a client sent %d lists, want 1", s.Lists)
				}
				for _, q := range script.requests {
					if q.at > back {
						mu.Lock()
						first = append(first, q.at)
						mu.Unlock()
						break
					}
				}
			})
		}
		all.Wait()
	})
	early, late := back+time.Hour, time.Duration(0)
	for _, at := range first {
		early, late = min(early, at), max(late, at)
	}
	if len(first) != 50 || late-early < 10*time.Second || late > back+30*time.Second {
		t.Errorf("%d clients came back between %v and %v (down at %v, back at %v)", len(first), early, late, down, back)
	}
}

// Case 18 (k8s#102718, k8s#129266, werf/kubedog#134; promises 9 and 11): n expired
// watches make n lists, with pauses that grow, and no report.
func TestReflectorCase18ExpiredForEver(t *testing.T) {
	run := runReflector(t, []string{"list +a@5 ]10", "watch ? 410"}, informer.Options{}, time.Hour)
	lists, watches := run.count("list", time.Hour), run.count("watch", time.Hour)
	if lists != watches && lists != watches+1 {
		t.Errorf("%d expired watches made %d lists", watches, lists)
	}
	if lists < 150 || lists > 350 {
		t.Errorf("there were %d lists in an hour, want about 230", lists)
	}
	if len(run.failures) > 0 || run.status.Err != nil {
		t.Errorf("reported were %q, status %v, want none", run.failures, run.status.Err)
	}
}

// Case 19 (k8s#87329, client-go#1256; promise 20): whatever fails, and
// wherever, is reported once, as it was.
func TestReflectorCase19EveryErrorOnce(t *testing.T) {
	classes := []string{"400", "401", "403", "404", "429", "500", "503", "decode", "refused", "["}
	places := []struct {
		op     string
		script func(class string) []string
		sent   int // requests before the failing one has been repeated
	}{
		{"list", func(c string) []string { return []string{"list " + c, "list ]10"} }, 4},
		{"list", func(c string) []string { return []string{"list +a@5 ]10/x", "list +b@6 " + c, "list ]10"} }, 5},
		{"watch", func(c string) []string { return []string{"list ]10", "watch " + c, "watch *11 hang"} }, 4},
		{"watch", func(c string) []string { return []string{"list ]10", "watch +a@11 " + c, "watch *11 hang"} }, 4},
		{"watch", func(c string) []string { return []string{"stream ]10 " + c, "stream ]10 hang", "watch *11 hang"} }, 2},
		{"streaming list", func(c string) []string { return []string{"stream +a@5 " + c, "list ]10"} }, 3},
	}
	for _, class := range classes {
		for i, place := range places {
			if class == "400" && place.op == "streaming list" {
				continue // an answer of servers that do not know such lists
			}
			t.Run(fmt.Sprintf("%s/%s/%d", class, place.op, i), func(t *testing.T) {
				run := runReflector(t, place.script(class), informer.Options{}, 2*time.Minute)
				wantEqual(t, "failures", run.failures, place.op+" 1", ",")
				if class == "[" || len(run.failed) == 0 {
					return
				}
				if got, want := run.failed[0].Err, reflError(class); got.Error() != want.Error() {
					t.Errorf("reported was %v, want %v", got, want)
				}
				if !strings.Contains(run.statuses[0], "err") || run.status.Err != nil {
					t.Errorf("status was %q, later %v; want an error, and later none", run.statuses[0], run.status.Err)
				}
			})
		}
	}
}

// Case 28 (kubespawner#920, k8s#67350; promise 9): watches that are closed
// after one event are paced, those that have had their time are not.
func TestReflectorCase28ClosedEarly(t *testing.T) {
	run := runReflector(t, []string{"list ]10", "watch *11"}, informer.Options{}, time.Minute)
	if n := run.count("watch", 10*time.Second); n != 10 {
		t.Errorf("there were %d watches in 10 s, want 10", n)
	}
	if run.status.Lists != 1 || len(run.failures) > 0 {
		t.Errorf("there were %d lists and %q failures, want 1 and none", run.status.Lists, run.failures)
	}

	run = runReflector(t, []string{"list ]10", "watch 5m", "watch hang"}, informer.Options{}, 6*time.Minute)
	wantEqual(t, "requests", []string{run.requests[3].String()}, "5m0s watch 10", ",")

	// A stream that is closed after its end is paced as well.
	run = runReflector(t, []string{"stream +a@5 ]10", "watch *11 hang"}, informer.Options{}, time.Minute)
	wantEqual(t, "requests", []string{run.requests[1].String()}, "1s watch 10", ",")
}

// Case 34 (k8s#120621, karmada#7663; promise 20): while credentials are out of
// date the cache is kept; each failure is one report; no list when they are
// back.
func TestReflectorCase34CredentialsRotate(t *testing.T) {
	run := runReflector(t, []string{"stream +a@5 ]10 1m 401", "watch 401", "watch 401", "watch +b@11 ? hang"}, informer.Options{}, 5*time.Minute)
	wantEqual(t, "applied", run.applied, "[ ~a@5 ]10 +b@11", " ")
	wantEqual(t, "failures", run.failures, "watch 1,watch 2,watch 3", ",")
	if run.status.Lists != 0 {
		t.Errorf("there were %d lists, want none", run.status.Lists)
	}
}

// Promise 11: at a version that the server has not reached it is silent. After
// two silent watches a list of one object decides.
func TestReflectorSilenceAtAnUnreachedVersion(t *testing.T) {
	tests := []struct{ name, probe, requests, failures string }{
		{"reached", "+a@5 ]10", "stream,watch 10,watch 10,probe >=10,watch 10,watch 10,probe >=10", ""},
		{"too large", "large", "stream,watch 10,watch 10,probe >=10,stream,watch 7", ""},
		{"ignored", "]7", "stream,watch 10,watch 10,probe >=10,stream,watch 7", ""},
		{"refused", "400", "stream,watch 10,watch 10,probe >=10,stream,watch 7", "list 1"},
		{"no version", "]", "stream,watch 10,watch 10,probe >=10,probe >=10", "list 1"},
		{"failed", "500", "stream,watch 10,watch 10,probe >=10,probe >=10", "list 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := runReflector(t, []string{"stream ]10 5m", "stream ]7 5m", "watch 5m", "watch 5m", "watch 5m", "watch 5m", "probe " + tt.probe, "probe hang"},
				informer.Options{}, 26*time.Minute)
			want := splitNonEmpty(tt.requests, ",")
			got := run.texts()
			wantEqual(t, "requests", got[:min(len(got), len(want))], tt.requests, ",")
			wantEqual(t, "failures", run.failures[:min(len(run.failures), 1)], tt.failures, ",")
			if strings.Contains(strings.Join(run.applied, " "), "a@5") {
				t.Errorf("applied is %q, want nothing of the probe", run.applied)
			}
		})
	}
}

// Promise 20: a resource that is gone is a state of its own; it is asked for
// slowly, what there was is kept, and it comes back by itself.
func TestReflectorGone(t *testing.T) {
	run := runReflector(t, []string{"stream +a@5 ]10 1m 404", "watch 404", "watch 404", "watch 404", "watch 59s ? 1s ? +b@11 ? hang"}, informer.Options{}, 6*time.Minute)
	wantEqual(t, "applied", run.applied, "[ ~a@5 ]10 +b@11", " ")
	wantEqual(t, "statuses", run.statuses, "Gone v10 n1 err,Gone v10 n1 err,Gone v10 n1 err,Gone v10 n1 err,Gone v10 n1 err,Watching v10 n1,Watching v11 n1", ",")
	for i, q := range run.requests[1:] {
		gap := q.at - run.requests[i].at
		if i > 0 && (gap < 15*time.Second || gap > 30*time.Second) {
			t.Errorf("asked again after %v, want 15 to 30 s", gap)
		}
	}
	run = runReflector(t, []string{"list nomatch", "list ]10", "watch hang"}, informer.Options{}, time.Minute)
	wantEqual(t, "statuses", run.statuses, "Gone v n0 err", ",")
}

// Promise 20: these end Run, with an error of their type and the name.
func TestReflectorTerminal(t *testing.T) {
	hook := errors.New("enough")
	tests := []struct {
		name   string
		script []string
		opts   informer.Options
		is     func(error) bool
	}{
		{"no watch", []string{"list ]10", "watch 405"}, informer.Options{Name: "pods"}, func(err error) bool {
			return errors.Is(err, informer.ErrWatchNotSupported) && apierrors.IsMethodNotSupported(err)
		}},
		{"wrong type in a list", []string{"list type"}, informer.Options{Name: "pods"}, isWrongType},
		{"wrong type in a stream", []string{"stream type"}, informer.Options{Name: "pods"}, isWrongType},
		{"wrong type in a watch", []string{"stream ]10 type"}, informer.Options{Name: "pods"}, isWrongType},
		{"hook", []string{"list 500"}, informer.Options{Name: "pods", OnFailure: func(f informer.Failure) error { return hook }},
			func(err error) bool { return errors.Is(err, hook) }},
		{"hook at an object", []string{"list !a@5"}, informer.Options{Name: "pods", OnFailure: func(f informer.Failure) error { return hook }},
			func(err error) bool { return errors.Is(err, hook) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := runReflector(t, tt.script, tt.opts, time.Hour)
			if run.err == nil || !tt.is(run.err) || !strings.Contains(run.err.Error(), "pods") {
				t.Errorf("Run() = %v, want the error and the name", run.err)
			}
			if run.status.State != informer.StateStopped || run.status.Err == nil {
				t.Errorf("status is %v, %v; want stopped, and why", run.status.State, run.status.Err)
			}
			if tt.opts.OnFailure == nil && len(run.failures) > 0 {
				t.Errorf("reported were %q, want what Run returns only there", run.failures)
			}
		})
	}
}

func isWrongType(err error) bool {
	_, ok := errors.AsType[*informer.WrongTypeError](err)
	return ok
}

// Promise 12: an object that is repaired while a streaming list goes on.
func TestReflectorRepairedInList(t *testing.T) {
	run := runReflector(t, []string{"stream !a@5 !b@6 ~a@7 -b@8 ]10 ? hang"}, informer.Options{}, time.Minute)
	wantEqual(t, "statuses", run.statuses, "Listing v n0 !a,Listing v n0 !a !b,Watching v10 n1", ",")
}

// Promise 12: a list that breaks off repairs nothing.
func TestReflectorBrokenListRepairsNothing(t *testing.T) {
	run := runReflector(t, []string{"list !d@5 ]10", "watch 410", "list +d@12 500", "list ? !d@12 ]13", "watch ? hang"}, informer.Options{}, 4*time.Minute)
	wantEqual(t, "statuses", run.statuses,
		"Listing v n0 !d,Failing v10 n1 err !d,Failing v10 n1 err !d,Failing v10 n0 err !d,Watching v13 n0 !d", ",")
}

// Promise 12: a bad object is told of once, listed while it is bad, and costs
// the others nothing. Promise 4: an event of a lower version than before is
// dropped, and counted.
func TestReflectorBadObjects(t *testing.T) {
	run := runReflector(t, []string{
		"stream +a@5 !b@6 +c@7 +@8 ]10 ? !b@6 !b@11 !c@12 ? ~b@13 -c@14 ? !d@15 !e@15 410",
		"stream !d@15 +a@5 410",           // breaks off: does not count
		"list +a@5 +a@5 +a@6 !e@15 ? ]20", // a is there three times
		"watch hang",
	}, informer.Options{}, 4*time.Minute)
	wantEqual(t, "applied", run.applied,
		"[ ~a@5 !b@6 ~c@7 ]10 !b@11 !c@12 ~b@13 -c@14 !d@15 !e@15 [ !d@15 ~a@5 [ +a@5 +a@5 +a@6 !e@15 ]20", " ")
	wantEqual(t, "statuses", run.statuses, strings.Join([]string{
		"Listing v n1 !b", "Listing v n2 !b", // reports of b and of the object without a name
		"Watching v10 n2 !b",
		"Watching v10 n2 !b", "Watching v11 n2 !b !c", // reports of b and c
		"Watching v12 n2 !b !c",
		"Watching v14 n2",
		"Watching v14 n2 !d", "Watching v15 n2 !d !e",
		"Listing v15 n1 !d !e", "Listing v15 n1 !d !e", // the second and third a
		"Listing v15 n1 !d !e",
	}, ","), ",")
	if got, want := reflStatus(run.status), "Stopped v20 n1 !e"; got != want {
		t.Errorf("the last status is %q, want %q", got, want)
	}
	wantEqual(t, "failures", run.failures, strings.Repeat("decode 0,", 7)+"decode 0", ",")
	if run.status.Skipped != 10 || run.status.Dropped != 1 {
		t.Errorf("skipped %d, dropped %d, want 10 and 1", run.status.Skipped, run.status.Dropped)
	}
	for _, f := range run.failed {
		if _, ok := errors.AsType[*informer.ObjectError](f.Err); !ok || f.Next != 0 {
			t.Errorf("reported was %+v, want an *ObjectError without a next time", f)
		}
	}
}
