package informertest_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

var updateFaults = flag.Bool("update-faults", false, "write the table of FAULTS.md")

type rule = informertest.Rule

// faultRow is one row of FAULTS.md. Each begins with the objects a and b, and an
// informer. After a minute a is updated, b deleted and c created; after another
// one it is over.
type faultRow struct {
	fault   informertest.Fault
	strikes string // in words
	does    string // in words

	rules []rule // but for the fault, where there is none
	plain bool   // streaming lists are refused
	page  int    // Options.PageSize

	after  time.Duration // the writes, if it is not a minute
	writes func(*testing.T, *informertest.Server)
	lasts  time.Duration // after them, if it is not a minute
	shown  int           // requests that the table shows, if not all
}

// faultResult is what a row has led to.
type faultResult struct{ requests, changes, reports, cache string }

// Promises 3, 4, 5, 8, 9, 10, 11, 12 and 20, fault by fault: what package informer
// does. FAULTS.md says what is expected.
func TestFaultTable(t *testing.T) {
	rows := faultRows()
	var table []string
	for _, row := range rows {
		t.Run(string(row.fault)+" "+row.strikes, func(t *testing.T) {
			viaREST, viaClient := row.run(t, fromREST), row.run(t, fromClient)
			viaProto := row.run(t, fromProto)
			if row.fault == "garbage" {
				viaProto.reports = viaREST.reports // what is wrong with it depends on what is wanted
			}
			if viaProto != viaREST {
				t.Errorf("over protobuf it is\n%v\nnot\n%v", viaProto, viaREST)
			}
			if viaREST == viaClient {
				table = append(table, row.line("both", viaREST))
				return
			}
			table = append(table, row.line("REST", viaREST), row.line("client", viaClient))
		})
	}
	met := map[informertest.Fault]bool{}
	for _, row := range rows {
		met[row.fault.Word()] = true
	}
	for _, fault := range informertest.Faults() {
		if !met[fault] {
			t.Errorf("no row for %q", fault)
		}
	}
	if t.Failed() && !*updateFaults {
		return
	}
	compareTable(t, "FAULTS.md", table)
}

// compareTable compares the rows of the table in a file.
func compareTable(t *testing.T, name string, rows []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var others, old []string
	begin := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "| `") {
			old = append(old, line)
			continue
		}
		others = append(others, line)
		if strings.HasPrefix(line, "|---") {
			begin = len(others)
		}
	}
	if *updateFaults {
		others = slices.Insert(others, begin, rows...)
		if err := os.WriteFile(name, []byte(strings.Join(others, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i := range max(len(old), len(rows)) {
		switch {
		case i >= len(old):
			t.Errorf("%s lacks\n%s", name, rows[i])
		case i >= len(rows):
			t.Errorf("%s has a row without a test:\n%s", name, old[i])
		case old[i] != rows[i]:
			t.Errorf("%s says\n%s\nbut it is\n%s", name, old[i], rows[i])
		}
	}
}

func (row faultRow) line(through string, got faultResult) string {
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s | %s |",
		row.fault, row.strikes, row.does, through, got.requests, got.changes, got.reports, got.cache)
}

func fromREST(config *rest.Config) informer.ListerWatcher[*corev1.ConfigMap] {
	return informer.FromREST[corev1.ConfigMap](kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient(),
		corev1.SchemeGroupVersion.WithResource("configmaps"), informer.RESTOptions{})
}

func fromProto(config *rest.Config) informer.ListerWatcher[*corev1.ConfigMap] {
	return fromREST(inProto(config))
}

func fromClient(config *rest.Config) informer.ListerWatcher[*corev1.ConfigMap] {
	return informer.FromClient[*corev1.ConfigMap](kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(""))
}

// run does what the row says, and returns what has happened.
func (row faultRow) run(t *testing.T, from func(*rest.Config) informer.ListerWatcher[*corev1.ConfigMap]) (got faultResult) {
	synctest.Test(t, func(t *testing.T) {
		srv := informertest.Start(t, informertest.Options{Record: 10_000})
		client := clientsetFor(t, srv)
		write(t, srv, configMap("a"), configMap("b"))
		if row.plain {
			inject(t, srv, rule{Fault: "invalid", Verb: "stream", Times: 1})
		}
		for _, rule := range row.rules {
			if rule.Fault == "" {
				rule.Fault = row.fault
			}
			inject(t, srv, rule)
		}
		var changes faultChanges
		var reports []string
		cache, err := informer.New(from(srv.Config()), informer.Options{
			PageSize: row.page,
			OnFailure: func(f informer.Failure) error {
				reports = append(reports, f.Op+": "+reasonOf(f.Err))
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]string{}
		_, err = cache.AddHandler(func(c informer.Change[*corev1.ConfigMap]) {
			changes.add(changeOf(c))
			if told[c.Key.Name] = contentOf(c.New); c.Type == informer.Deleted {
				delete(told, c.Key.Name)
			}
		}, informer.HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cache.Run(ctx) }()

		pass(cmp.Or(row.after, time.Minute))
		if row.writes == nil {
			row.writes = writeAll
		}
		row.writes(t, srv)
		pass(cmp.Or(row.lasts, time.Minute))
		synctest.Wait()
		var has []string
		for obj := range cache.All() {
			has = append(has, contentOf(obj))
		}
		requests := srv.Requests()
		cancel()
		if err := <-done; err != nil {
			reports = append(reports, "Run ends: "+reasonOf(err))
		}
		srv.Calm()
		var is []string
		list, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range list.Items {
			is = append(is, contentOf(&obj))
		}
		sorted := func(all []string) string { return fmt.Sprint(slices.Sorted(slices.Values(all))) }
		if sorted(has) != sorted(slices.Collect(maps.Values(told))) {
			t.Errorf("the cache has %v, the handler was told of %v", has, told)
		}
		checkPace(t, requests)
		for i, pause := range requests.Pauses() {
			if pause >= 10*time.Millisecond && pause < 800*time.Millisecond && requests[i].Verb != "watch" {
				t.Errorf("after %v a request came in %v", requests[i].Fault, pause)
			}
		}
		got = faultResult{row.requestsOf(requests), changes.String(), joined(reports), "equal"}
		if sorted(has) != sorted(is) {
			got.cache = "behind"
		}
	})
	return got
}

// contentOf returns what is to be equal in the cache and in the server.
func contentOf(obj *corev1.ConfigMap) string { return fmt.Sprint(obj.Name, obj.Labels, obj.UID) }

// writeAll updates a, deletes b and creates c.
func writeAll(t *testing.T, srv *informertest.Server) {
	update(t, srv, configMap("a", "v=2"))
	remove(t, srv, configMap("b"))
	write(t, srv, configMap("c"))
}

// checkPace checks that the server's own delay is kept, that what is not there
// is not asked for often, and how many requests are made within a minute: at
// most one watch a second, and half as many lists (promise 9).
func checkPace(t *testing.T, requests informertest.Requests) {
	t.Helper()
	for i, pause := range requests.Pauses() {
		if requests[i].Fault == "toomany=7s" && requests[i].Status == 429 && pause < 7*time.Second {
			t.Errorf("after %s a request came in %v", requests[i].Fault, pause)
		}
		if requests[i].Status == http.StatusNotFound && pause < 15*time.Second {
			t.Errorf("after a 404 a request came in %v", pause)
		}
	}
	for verb, most := range map[string]int{"watch": 61, "stream": 31, "list": 31} {
		some := requests.Of(verb)
		for i, r := range some {
			if j := i + most; j < len(some) && some[j].Time.Sub(r.Time) < time.Minute {
				t.Errorf("%d requests of kind %s within %v", most+1, verb, some[j].Time.Sub(r.Time))
				break
			}
		}
	}
}

// requestsOf returns requests in short: "!" marks those that were struck,
// ", " stands between those that follow at once, " … " where there is a pause.
func (row faultRow) requestsOf(requests informertest.Requests) string {
	if row.plain {
		requests = requests[1:] // the streaming list
	}
	more := ""
	if row.shown > 0 {
		requests, more = requests[:row.shown], " … and so on"
	}
	var all []string
	last, times := "", 0
	flush := func() {
		switch {
		case times > 1:
			all = append(all, fmt.Sprintf(" ×%d", times))
		}
		times = 0
	}
	pauses := requests.Pauses()
	for i, r := range requests {
		text := r.Verb
		if version := r.Query.Get("resourceVersion"); version != "" {
			text += "@" + version
		}
		if r.Query.Get("continue") != "" {
			text += " next"
		}
		if r.Query.Get("limit") == "1" && row.page != 1 {
			text = strings.Replace(text, "list", "probe", 1)
		}
		switch {
		case r.Fault == row.fault:
			text += "!"
		case r.Fault != "":
			text += fmt.Sprintf(" (%s)", r.Fault)
		}
		if text == last {
			times++
			continue
		}
		flush()
		last, times = text, 1
		switch {
		case i == 0:
		case pauses[i-1] < 10*time.Millisecond:
			text = ", " + text
		default:
			text = " … " + text
		}
		all = append(all, text)
	}
	flush()
	return strings.Join(all, "") + more
}

// changeOf returns a change in short.
func changeOf(c informer.Change[*corev1.ConfigMap]) string {
	text := map[informer.DeltaType]string{informer.Added: "+", informer.Updated: "~", informer.Deleted: "-"}[c.Type] + c.Key.Name
	if c.Type == informer.Deleted && !c.Exact {
		text += "?"
	}
	if c.Cause == informer.CauseRelist {
		text += "*"
	}
	return text
}

// faultChanges are changes in short, in groups by the moment when they came.
type faultChanges struct {
	groups [][]string
	last   time.Time
}

func (f *faultChanges) add(change string) {
	if now := time.Now(); now != f.last {
		f.last, f.groups = now, append(f.groups, nil)
	}
	last := &f.groups[len(f.groups)-1]
	*last = append(*last, change)
}

// String returns all groups, each in order of keys.
func (f *faultChanges) String() string {
	var all []string
	for _, group := range f.groups {
		slices.SortStableFunc(group, func(a, b string) int { return strings.Compare(a[1:2], b[1:2]) })
		all = append(all, strings.Join(group, " "))
	}
	return strings.Join(all, "; ")
}

func joined(all []string) string {
	var text []string
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i+n] == all[i] {
			n++
		}
		one := all[i]
		switch {
		case n > 4:
			one += " and so on"
		case n > 1:
			one += fmt.Sprintf(" ×%d", n)
		}
		text = append(text, one)
		i += n
	}
	return strings.Join(text, ", ")
}

// reasonOf returns the kind of an error, in short.
func reasonOf(err error) string {
	object, isObject := errors.AsType[*informer.ObjectError](err)
	_, isWrong := errors.AsType[*informer.WrongTypeError](err)
	switch {
	case isObject:
		return fmt.Sprintf("%q", object.Key.String())
	case isWrong:
		return "WrongTypeError"
	case errors.Is(err, informer.ErrWatchNotSupported):
		return "ErrWatchNotSupported"
	case errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "unexpected end of JSON"):
		return "broken off"
	case strings.Contains(err.Error(), "invalid character"), strings.Contains(err.Error(), "cannot unmarshal"):
		return "undecodable"
	case runtime.IsNotRegisteredError(err):
		return "unknown kind"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case apierrors.ReasonForError(err) != "":
		return string(apierrors.ReasonForError(err))
	}
	text := err.Error()
	if i := strings.LastIndex(text, "informer: "); i >= 0 {
		text = text[i+len("informer: "):]
	}
	return text
}
