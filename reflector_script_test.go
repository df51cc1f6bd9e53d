package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-99a027e8/informer"
)

// reflObj is the object of the reflector's tests.
type reflObj struct{ name, version string }

func (o reflObj) GetNamespace() string       { return "" }
func (o reflObj) GetName() string            { return o.name }
func (o reflObj) GetUID() types.UID          { return types.UID("uid-" + o.name) }
func (o reflObj) GetResourceVersion() string { return o.version }

// reflScript is a scripted source. Each line answers one request of the kind
// that it begins with: "stream" (a watch with initial events), "list", "probe"
// (a list of one object) or "watch". The last line of a kind answers all further
// requests of that kind; without any line, streams are refused and others hang.
//
// The rest of a line is what the server does, in order:
//
//	+a@5 ~a@5 -a@5 !a@5  added, modified, deleted, bad object of version 5
//	%a@5 $a              bad without a reason; a reason and no more
//	*9 ]9 ]9/tok         bookmark; end; end of a page with continue token
//	3s hang              wait; wait until the context ends
//	?                    note the status
//	410 large 500 …      end with that error; see reflError
//
// A line without an error ends without one.
type reflScript struct {
	t     *testing.T
	lines map[string][]string
	start time.Time
	look  func() informer.Status

	last     context.Context // of the last request
	requests []reflRequest
	statuses []string // at each "?" and each failure
}

// reflTooMany is a number of requests that no script leads to in an hour, unless
// they come without a pause.
const reflTooMany = 5000

// reflRequest is a request as the source saw it.
type reflRequest struct {
	at   time.Duration // since the start
	text string        // such as "list >=10", "watch 10"
	opts metav1.ListOptions
}

// timeout returns how long a watch is asked for, 0 if it does not say.
func (q reflRequest) timeout() time.Duration {
	if q.opts.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*q.opts.TimeoutSeconds) * time.Second
}

// String returns the time and the text.
func (q reflRequest) String() string { return fmt.Sprintf("%v %s", q.at, q.text) }

func newReflScript(t *testing.T, lines []string) *reflScript {
	s := &reflScript{t: t, lines: map[string][]string{}, start: time.Now()}
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		s.lines[kind] = append(s.lines[kind], rest)
	}
	return s
}

func (s *reflScript) List(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[reflObj], error] {
	if opts.Limit == 1 {
		return s.answer(ctx, "probe", opts)
	}
	return s.answer(ctx, "list", opts)
}

func (s *reflScript) Watch(ctx context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[reflObj], error] {
	if opts.SendInitialEvents != nil {
		return s.answer(ctx, "stream", opts)
	}
	return s.answer(ctx, "watch", opts)
}

// answer runs the next line of kind.
func (s *reflScript) answer(ctx context.Context, kind string, opts metav1.ListOptions) iter.Seq2[informer.Event[reflObj], error] {
	return func(yield func(informer.Event[reflObj], error) bool) {
		version := opts.ResourceVersion + opts.Continue
		if opts.ResourceVersionMatch != "" && opts.ResourceVersion != "" {
			version = ">=" + version
		}
		text := strings.TrimSpace(kind + " " + version)
		s.requests = append(s.requests, reflRequest{time.Since(s.start), text, opts})
		if s.last != nil && s.last.Err() == nil {
			s.t.Error("the context of a request has not ended with it (promise 29)")
		}
		s.last = ctx
		tooMany := reflTooMany * (1 + int(time.Since(s.start)/time.Hour))
		if len(s.requests) == tooMany {
			s.t.Errorf("%d requests in %v (promise 9)", len(s.requests), time.Since(s.start))
		}
		if len(s.requests) >= tooMany { // lets the time go by
			<-ctx.Done()
			return
		}

		line := map[string]string{"stream": "invalid"}[kind]
		if line == "" {
			line = "hang"
		}
		if lines := s.lines[kind]; len(lines) > 0 {
			line = lines[0]
			s.lines[kind] = lines[min(1, len(lines)-1):]
		}
		for _, step := range strings.Fields(line) {
			if !s.do(ctx, step, yield) {
				return
			}
		}
	}
}

// do runs one step, and reports whether the line goes on.
func (s *reflScript) do(ctx context.Context, step string, yield func(informer.Event[reflObj], error) bool) bool {
	if step == "?" {
		s.statuses = append(s.statuses, reflStatus(s.look()))
		return true
	}
	if ev, err, ok := reflEvent(step); ok {
		return yield(ev, err)
	}
	var wait <-chan time.Time // hangs
	if d, err := time.ParseDuration(step); err == nil {
		wait = time.After(d)
	} else if step != "hang" {
		yield(informer.Event[reflObj]{}, reflError(step))
		return false
	}
	select {
	case <-wait:
		return true
	case <-ctx.Done():
		yield(informer.Event[reflObj]{}, fmt.Errorf("reading: %w", ctx.Err()))
		return false
	}
}

// reflEvent returns the event that step describes.
func reflEvent(step string) (ev informer.Event[reflObj], err error, ok bool) {
	body := step[1:]
	name, version, _ := strings.Cut(body, "@")
	obj := reflObj{name, version}
	switch step[0] {
	case '+':
		return informer.EventOf(informer.EventAdded, obj), nil, true
	case '~':
		return informer.EventOf(informer.EventModified, obj), nil, true
	case '-':
		return informer.EventOf(informer.EventDeleted, obj), nil, true
	case '!':
		ev = informer.Event[reflObj]{Type: informer.EventBad, Key: informer.KeyOf(obj), UID: obj.GetUID(), Version: version}
		return ev, &informer.ObjectError{Key: ev.Key, Err: errors.New("bad bytes")}, true
	case '%':
		return informer.Event[reflObj]{Type: informer.EventBad, Key: informer.KeyOf(obj), Version: version}, nil, true
	case '$':
		return ev, fmt.Errorf("reading: %w", &informer.ObjectError{Key: informer.KeyOf(obj), Err: errors.New("bad bytes")}), true
	case '*':
		return informer.Event[reflObj]{Type: informer.EventBookmark, Version: body}, nil, true
	case ']':
		version, token, _ := strings.Cut(body, "/")
		return informer.Event[reflObj]{Type: informer.EventEnd, Version: version, Continue: token}, nil, true
	case '[':
		return informer.Event[reflObj]{Type: informer.EventBegin}, nil, true
	}
	return ev, nil, false
}

// reflText returns ev as a script has it.
func reflText(ev informer.Event[reflObj]) string {
	switch ev.Type {
	case informer.EventBegin:
		return "["
	case informer.EventEnd:
		return "]" + ev.Version + strings.TrimSuffix("/"+ev.Continue, "/")
	case informer.EventBookmark:
		return "*" + ev.Version
	}
	signs := map[informer.EventType]string{
		informer.EventAdded: "+", informer.EventModified: "~", informer.EventDeleted: "-", informer.EventBad: "!",
	}
	return signs[ev.Type] + ev.Key.Name + "@" + ev.Version
}

// reflStatus returns what can be told exactly of a status.
func reflStatus(s informer.Status) string {
	text := fmt.Sprintf("%v v%s n%d", s.State, s.Version, s.Objects)
	if s.Err != nil {
		text += " err"
	}
	for _, bad := range s.Bad {
		text += " !" + bad.Key.Name
	}
	return text
}

// reflError returns the error that a script calls name.
func reflError(name string) error {
	pods := schema.GroupResource{Resource: "pods"}
	name, seconds, _ := strings.Cut(name, "/")
	delay, _ := strconv.Atoi(seconds)
	errs := map[string]error{
		"400":     apierrors.NewBadRequest("no"),
		"401":     apierrors.NewUnauthorized("no token"),
		"403":     apierrors.NewForbidden(pods, "", errors.New("no rule")),
		"404":     apierrors.NewNotFound(pods, ""),
		"405":     apierrors.NewMethodNotSupported(pods, "watch"),
		"410":     apierrors.NewResourceExpired("too old resource version"),
		"429":     apierrors.NewTooManyRequests("slow down", delay),
		"500":     apierrors.NewInternalError(errors.New("boom")),
		"503":     apierrors.NewServiceUnavailable("starting"),
		"gone":    &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonGone}},
		"nomatch": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Thing"}},
		"invalid": apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil),
		"long":    errors.New(strings.Repeat("body ", 1000)),
		"decode":  errors.New("unexpected end of JSON input"),
		"refused": &url.Error{Op: "Get", URL: "https://host/pods?continue=secret", Err: syscall.ECONNREFUSED},
		"type":    &informer.WrongTypeError{Want: "*v1.Pod", Got: "*v1.Node"},
	}
	large := apierrors.NewTimeoutError("Too large resource version", 1)
	large.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	errs["large"] = large
	err, ok := errs[name]
	if !ok {
		panic(fmt.Sprintf("script: no step is called %q", name))
	}
	return err
}

// reflRun is what came of a script.
type reflRun struct {
	*reflScript
	applied  []string
	failures []string // "OP ATTEMPT"
	failed   []informer.Failure
	status   informer.Status
	err      error
}

// runReflector runs a reflector on a script until d has passed, in virtual time.
// A second Added of one object in one list is an *ObjectError, as with the FIFO.
func runReflector(t *testing.T, lines []string, opts informer.Options, d time.Duration) *reflRun {
	t.Helper()
	run := new(reflRun)
	synctest.Test(t, func(t *testing.T) {
		run.reflScript = newReflScript(t, lines)
		var listed map[informer.Key]bool // nil outside a list
		hook := opts.OnFailure
		opts.OnFailure = func(f informer.Failure) error {
			run.failures = append(run.failures, fmt.Sprintf("%s %d", f.Op, f.Attempt))
			run.failed = append(run.failed, f)
			run.statuses = append(run.statuses, reflStatus(run.look()))
			if hook != nil {
				return hook(f)
			}
			return nil
		}
		reflector, err := informer.NewReflector(run, func(ev informer.Event[reflObj]) error {
			run.applied = append(run.applied, reflText(ev))
			switch {
			case ev.Type == informer.EventBegin:
				listed = map[informer.Key]bool{}
			case ev.Type == informer.EventAdded && listed[ev.Key]:
				return &informer.ObjectError{Key: ev.Key, Err: errors.New("twice in the list")}
			case ev.Type == informer.EventAdded && listed != nil:
				listed[ev.Key] = true
			case ev.Type == informer.EventEnd:
				listed = nil
			}
			return nil
		}, opts)
		if err != nil {
			t.Fatal(err)
		}
		run.look = reflector.Status
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		run.err = reflector.Run(ctx)
		run.status = reflector.Status()
		if over := time.Since(run.start) - d; over > 100*time.Millisecond {
			t.Errorf("Run returned %v after its context ended, want at most 100ms (promise 19)", over)
		}
	})
	return run
}

// texts returns the requests without their times.
func (run *reflRun) texts() []string {
	var texts []string
	for _, q := range run.requests {
		texts = append(texts, q.text)
	}
	return texts
}

// count returns how many requests of kind began before the time.
func (run *reflRun) count(kind string, before time.Duration) int {
	n := 0
	for _, q := range run.requests {
		if first, _, _ := strings.Cut(q.text, " "); first == kind && q.at < before {
			n++
		}
	}
	return n
}

// wantEqual compares two words lists, given as text.
func wantEqual(t *testing.T, what string, got []string, want string, sep string) {
	t.Helper()
	if !slices.Equal(got, splitNonEmpty(want, sep)) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, sep), want)
	}
}

func splitNonEmpty(s, sep string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, sep)
}

// contextFor returns a context that ends after d.
func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
