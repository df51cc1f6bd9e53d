package informer_test

import (
	"testing"
	"time"

	"github.com/seed-99a027e8/informer"
)

// TestReflectorStream (promises 2, 4, 8, 10, 11, 20 and 29) shows, for each
// thing that a server may do, what is applied, what is asked for, and what is
// reported.
func TestReflectorStream(t *testing.T) {
	tests := []struct {
		name     string
		script   []string
		opts     informer.Options
		applied  string
		requests string // comma-separated
		failures string // comma-separated: OP ATTEMPT
	}{{
		name:     "a streaming list goes on as the watch",
		script:   []string{"stream +a@5 +b@6 ]10 ~a@11 *12 -b@13 hang"},
		applied:  "[ ~a@5 ~b@6 ]10 ~a@11 *12 -b@13",
		requests: "stream",
	}, {
		name:     "changes inside a streaming list count (promise 8)",
		script:   []string{"stream +a@5 *6 ~a@7 -b@8 +a@9 ]10 hang"},
		applied:  "[ ~a@5 ~a@7 -b@8 ~a@9 ]10",
		requests: "stream",
	}, {
		name:     "a refused streaming list is no failure, and not tried again (promise 8)",
		script:   []string{"list +a@5 ]10", "watch 410", "list ]20", "watch hang"},
		applied:  "[ +a@5 ]10 [ ]20",
		requests: "stream,list 0,watch 10,list >=10,watch 20",
	}, {
		name:     "a streaming list that is not supported at all",
		script:   []string{"stream 405", "list +a@5 ]10"},
		applied:  "[ +a@5 ]10",
		requests: "stream,list 0,watch 10",
	}, {
		name:     "a failed streaming list makes only the next list plain (promise 8)",
		script:   []string{"stream +a@5 503", "list +a@5 ]10", "watch 410", "stream ]20 hang"},
		applied:  "[ ~a@5 [ +a@5 ]10 [ ]20",
		requests: "stream,list 0,watch 10,stream >=10",
		failures: "streaming list 1",
	}, {
		name:     "a bookmark does not end a streaming list (promise 2)",
		script:   []string{"stream +a@5 *7 +b@6 ]10 hang"},
		applied:  "[ ~a@5 ~b@6 ]10",
		requests: "stream",
	}, {
		name:     "a streaming list that is closed early",
		script:   []string{"stream +a@5 1s", "list +a@5 ]10"},
		applied:  "[ ~a@5 [ +a@5 ]10",
		requests: "stream,list 0,watch 10",
		failures: "streaming list 1",
	}, {
		name:     "an expired streaming list is routine (promise 11)",
		script:   []string{"stream 410", "list +a@5 ]10"},
		applied:  "[ +a@5 ]10",
		requests: "stream,list,watch 10",
	}, {
		name:     "pages are one list",
		script:   []string{"list +a@5 ]10/x", "list +b@6 ]10/y", "list +c@7 ]10"},
		applied:  "[ +a@5 +b@6 +c@7 ]10",
		requests: "stream,list 0,list x,list y,watch 10",
	}, {
		name:     "empty pages",
		script:   []string{"list ]10/x", "list ]10"},
		applied:  "[ ]10",
		requests: "stream,list 0,list x,watch 10",
	}, {
		name:     "a page that breaks off begins the list anew",
		script:   []string{"list +a@5 ]10/x", "list +b@6 decode", "list +a@5 +b@6 ]11"},
		applied:  "[ +a@5 +b@6 [ +a@5 +b@6 ]11",
		requests: "stream,list 0,list x,list 0,watch 11",
		failures: "list 1",
	}, {
		name:     "a token that expires begins the list anew, at the most recent version",
		script:   []string{"list +a@5 ]10/x", "list 410", "list +a@5 ]11"},
		applied:  "[ +a@5 [ +a@5 ]11",
		requests: "stream,list 0,list x,list,watch 11",
	}, {
		name:     "a page that continues where it began",
		script:   []string{"list +a@5 ]10/x", "list ]10/x", "list ]11"},
		applied:  "[ +a@5 [ ]11",
		requests: "stream,list 0,list x,list 0,watch 11",
		failures: "list 1",
	}, {
		name:     "a list without end, and one without a version",
		script:   []string{"list +a@5", "list +a@5 ]", "list ]11"},
		applied:  "[ +a@5 [ +a@5 [ ]11",
		requests: "stream,list 0,list 0,list 0,watch 11",
		failures: "list 1,list 2",
	}, {
		name:     "events that do not belong in a list, in a stream, in a watch",
		script:   []string{"stream [", "list ~a@5", "stream ]9", "watch [", "watch ]11", "watch hang"},
		applied:  "[ ]9",
		requests: "stream,list 0,stream,watch 9,watch 9,watch 9",
		failures: "streaming list 1,list 2,watch 3,watch 4",
	}, {
		name:     "a page size asks for the most recent version (promise 11)",
		script:   []string{"list +a@5 ]10/x", "list ]10", "watch 410", "list ]20", "watch hang"},
		opts:     informer.Options{PageSize: 2},
		applied:  "[ +a@5 ]10 [ ]20",
		requests: "stream,list,list x,watch 10,list,watch 20",
	}, {
		name:     "a list that expires is read at the most recent version (promise 11)",
		script:   []string{"list ]10", "watch 410", "list gone", "list ]20", "watch hang"},
		applied:  "[ ]10 [ ]20",
		requests: "stream,list 0,watch 10,list >=10,list,watch 20",
	}, {
		name:     "so is one whose version means nothing to the server (promise 11)",
		script:   []string{"list ]10", "watch 410", "list 400", "list ]20", "watch hang"},
		applied:  "[ ]10 [ ]20",
		requests: "stream,list 0,watch 10,list >=10,list,watch 20",
		failures: "list 1",
	}, {
		name:     "so is one whose version is too large (promise 11)",
		script:   []string{"list ]10", "watch 410", "list large", "list ]7", "watch hang"},
		applied:  "[ ]10 [ ]7",
		requests: "stream,list 0,watch 10,list >=10,list,watch 7",
	}, {
		name:     "an older list is not believed, unless it is the most recent (promise 4)",
		script:   []string{"list ]10", "watch 410", "list +a@5 ]9", "list +a@5 ]9", "watch hang"},
		applied:  "[ ]10 [ +a@5 [ +a@5 ]9",
		requests: "stream,list 0,watch 10,list >=10,list,watch 9",
	}, {
		name:     "nor is an older streaming list (promise 4)",
		script:   []string{"stream ]10 410", "stream +a@5 ]9", "stream +a@5 ]9 hang"},
		applied:  "[ ]10 [ ~a@5 [ ~a@5 ]9",
		requests: "stream,stream >=10,stream",
	}, {
		name:     "a watch whose version is too large",
		script:   []string{"list ]10", "watch large", "list ]7", "watch hang"},
		applied:  "[ ]10 [ ]7",
		requests: "stream,list 0,watch 10,list,watch 7",
	}, {
		name:     "a watch whose version means nothing to the server",
		script:   []string{"list ]10", "watch 400", "list ]7", "watch hang"},
		applied:  "[ ]10 [ ]7",
		requests: "stream,list 0,watch 10,list,watch 7",
		failures: "watch 1",
	}, {
		name:     "events of lower version are dropped, equal ones are not (promise 4)",
		script:   []string{"stream ]10 -a@12 -b@12 +c@11 *11 !d@11 +c@13 hang"},
		applied:  "[ ]10 -a@12 -b@12 +c@13",
		requests: "stream",
	}, {
		name:     "versions that cannot be compared: the last to arrive wins (promise 4)",
		script:   []string{"stream ]x9 +a@x7 +b@x8 410", "stream ]x1 hang"},
		applied:  "[ ]x9 +a@x7 +b@x8 [ ]x1",
		requests: "stream,stream >=x8",
	}, {
		name:     "without any version there is nothing to resume from",
		script:   []string{"stream ] +a@ 2s", "stream ] hang"},
		applied:  "[ ] +a@ [ ]",
		requests: "stream,stream",
	}, {
		name:     "bad objects of which little is told (promise 12)",
		script:   []string{"list %a@5 $b $ +c@6 ]10"},
		applied:  "[ !a@5 !b@ +c@6 ]10",
		requests: "stream,list 0,watch 10",
		failures: "decode 0,decode 0,decode 0",
	}, {
		name:     "a watch resumes from the last event or bookmark",
		script:   []string{"list ]10", "watch +a@11 2s", "watch *15 decode", "watch hang"},
		applied:  "[ ]10 +a@11 *15",
		requests: "stream,list 0,watch 10,watch 11,watch 15",
		failures: "watch 1",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := runReflector(t, tt.script, tt.opts, 4*time.Minute)
			if run.err != nil {
				t.Errorf("Run() = %v, want nil", run.err)
			}
			wantEqual(t, "applied", run.applied, tt.applied, " ")
			wantEqual(t, "requests", run.texts(), tt.requests, ",")
			wantEqual(t, "failures", run.failures, tt.failures, ",")
		})
	}
}

// An event whose version cannot be compared to what the stream has reached does
// not say how far it has come (promise 4): a watch from "0" would begin
// anywhere.
func TestReflectorVersionWithoutMeaning(t *testing.T) {
	for _, version := range []string{"0", "new", ""} {
		run := runReflector(t, []string{"list ]10", "watch +a@11 !b@" + version, "watch ~a@" + version + " *" + version, "watch hang"},
			informer.Options{}, 4*time.Minute)
		if last := run.requests[len(run.requests)-1].text; last != "watch 11" || run.status.Version != "11" {
			t.Errorf("after an event of version %q came %q, want a watch from 11; the status says %q", version, last, run.status.Version)
		}
	}
	// Where none can be compared, the last to arrive counts.
	run := runReflector(t, []string{"list ]x", "watch +a@y", "watch hang"}, informer.Options{}, 4*time.Minute)
	if last := run.requests[len(run.requests)-1].text; last != "watch y" {
		t.Errorf("the last request is %q, want a watch from y", last)
	}
}
