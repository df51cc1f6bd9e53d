package informertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-99a027e8/informer"
)

var (
	errBad     = errors.New("informertest: the script says that the object is bad")
	errGarbage = errors.New("informertest: the script says that the answer cannot be decoded")
)

// line is what a script does at one request.
type line struct {
	text    string
	always  bool
	kind    string
	require url.Values // of the request
	version string     // of a list
	next    string     // token of the next page
	steps   []step
}

// step is one thing that happens: first time passes, then there is an event or
// an error, or neither.
type step struct {
	wait time.Duration // negative: until the context ends
	err  error

	event    informer.EventType
	object   Object
	unsigned bool // added or modified, as it comes
	inexact  bool // deleted, the last state is not known
}

// pass lets the time of the step pass, or less if the context ends.
func (st step) pass(ctx context.Context) {
	switch {
	case st.wait < 0:
		<-ctx.Done()
	case st.wait > 0:
		sleep(ctx, st.wait)
	}
}

// fits reports whether the line is for a call.
func (l *line) fits(c Call) bool {
	if l.kind != c.Kind {
		return false
	}
	query := queryOf(c.Options)
	for name := range l.require {
		if query.Get(name) != l.require.Get(name) {
			return false
		}
	}
	return true
}

// queryOf returns the options as they would stand in a URL.
func queryOf(opts metav1.ListOptions) url.Values {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("labelSelector", opts.LabelSelector)
	set("fieldSelector", opts.FieldSelector)
	set("resourceVersion", opts.ResourceVersion)
	set("resourceVersionMatch", string(opts.ResourceVersionMatch))
	set("continue", opts.Continue)
	if opts.Limit != 0 {
		set("limit", strconv.FormatInt(opts.Limit, 10))
	}
	if opts.TimeoutSeconds != nil {
		set("timeoutSeconds", strconv.FormatInt(*opts.TimeoutSeconds, 10))
	}
	if opts.AllowWatchBookmarks {
		set("allowWatchBookmarks", "true")
	}
	if opts.SendInitialEvents != nil {
		set("sendInitialEvents", strconv.FormatBool(*opts.SendInitialEvents))
	}
	return query
}

func parameters() []string {
	return []string{"labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "continue",
		"limit", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents"}
}

func parseLine(text string) (*line, error) {
	l := &line{text: text}
	words := strings.Fields(text)
	if len(words) > 0 && words[0] == "always" {
		l.always, words = true, words[1:]
	}
	if len(words) == 0 {
		return nil, errors.New("it says nothing")
	}
	if err := l.parseKind(words[0]); err != nil {
		return nil, err
	}
	words = words[1:]
	if l.kind == "list" && len(words) > 0 && isDigit(words[0][0]) {
		l.version, words = words[0], words[1:]
	}
	for len(words) > 0 {
		used, err := l.parseStep(words)
		if err != nil {
			return nil, err
		}
		words = words[used:]
		if last := len(l.steps) - 1; last >= 0 && len(words) > 0 && (l.steps[last].err != nil || l.steps[last].wait < 0) {
			return nil, fmt.Errorf("nothing can follow before %q", words[0])
		}
	}
	return l, nil
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func (l *line) parseKind(word string) error {
	kind, query, _ := strings.Cut(word, "?")
	if kind != "list" && kind != "watch" && kind != "stream" {
		return fmt.Errorf("%q is not list, watch or stream", kind)
	}
	require, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for name := range require {
		if !slices.Contains(parameters(), name) {
			return fmt.Errorf("%q is not a parameter of a request", name)
		}
	}
	l.kind, l.require = kind, require
	return nil
}

// parseStep parses what the words begin with, and returns how many they were.
func (l *line) parseStep(words []string) (used int, err error) {
	word, value, _ := strings.Cut(words[0], "=")
	switch word {
	case "end", "bookmark":
		return l.parseMark(words)
	case "gateway":
		wait, err := mustWait.parse(value, true)
		if l.kind == "list" || len(words) > 1 {
			err = errors.New("gateway ends a stream, and nothing follows it")
		}
		l.steps = append(l.steps, step{wait: wait})
		return 1, err
	case "close":
		if l.kind == "list" || len(words) > 1 {
			return 0, errors.New("close ends a stream, and nothing follows it")
		}
		return 1, nil
	case "continue":
		if l.kind != "list" || value == "" {
			return 0, errors.New("continue needs a token, and a list")
		}
		l.next = value
		return 1, nil
	}
	st, err := stepOf(word, value)
	if err == nil && st == (step{}) {
		st, err = l.parseObject(words[0])
	}
	l.steps = append(l.steps, st)
	return 1, err
}

// stepOf returns the step that a word stands for, if it is not an object.
func stepOf(word, value string) (step, error) {
	switch word {
	case "sleep", "delay":
		wait, err := mustWait.parse(value, true)
		return step{wait: wait}, err
	case "hang":
		return step{wait: -1}, nil
	}
	fault, err := faultOf(word, value)
	return step{err: fault}, err
}

func (l *line) parseMark(words []string) (used int, err error) {
	event := informer.EventBookmark
	if words[0] == "end" {
		event = informer.EventEnd
	}
	if len(words) < 2 || l.kind == "list" || event == informer.EventEnd && l.kind != "stream" {
		return 0, fmt.Errorf("%s needs a version, and a stream", words[0])
	}
	l.steps = append(l.steps, step{event: event, object: Object{Version: words[1]}})
	return 2, nil
}

// parseObject parses a sign and an object, in its place in the line.
func (l *line) parseObject(word string) (step, error) {
	st, err := parseObject(word)
	if err == nil && l.kind == "list" && !st.unsigned && st.event != informer.EventBad {
		err = fmt.Errorf("a list cannot say %q", word)
	}
	ended := slices.ContainsFunc(l.steps, func(st step) bool { return st.event == informer.EventEnd })
	if l.kind == "list" || l.kind == "stream" && !ended {
		st.unsigned = false // an item: added, whatever has been there
	}
	return st, err
}

// parseObject parses a sign and an object.
func parseObject(word string) (step, error) {
	st := step{event: informer.EventAdded}
	rest := strings.TrimLeft(word, "+~-!")
	switch sign := word[:len(word)-len(rest)]; sign {
	case "":
		st.unsigned = true
	case "+":
	case "~":
		st.event = informer.EventModified
	case "-", "--":
		st.event, st.inexact = informer.EventDeleted, sign == "--"
	case "!":
		st.event = informer.EventBad
	default:
		return st, fmt.Errorf("%q is not a sign", sign)
	}
	rest, st.object.Version, _ = strings.Cut(rest, "@")
	rest, st.object.Value, _ = strings.Cut(rest, "=")
	rest, uid, _ := strings.Cut(rest, "#")
	st.object.UID = types.UID(uid)
	if namespace, name, found := strings.Cut(rest, "/"); found {
		st.object.Namespace, st.object.Name = namespace, name
	} else {
		st.object.Name = rest
	}
	if st.object.Name == "" && st.event != informer.EventBad {
		return st, fmt.Errorf("%q names no object", word)
	}
	return st, nil
}

// faultOf returns the error that a word stands for, or nil if it is none.
func faultOf(word, value string) (fault, err error) {
	switch Fault(word) {
	case "error":
		return errFault, nil
	case FaultEOF, FaultDrop:
		return io.ErrUnexpectedEOF, nil
	case FaultRefused:
		return &url.Error{Op: "Get", URL: "http://script", Err: syscall.ECONNREFUSED}, nil
	case FaultGarbage:
		return errGarbage, nil
	case FaultTable, FaultWrongKind:
		return &informer.WrongTypeError{Want: "the objects of the script", Got: word}, nil
	case FaultCut, FaultTruncated, FaultSlow, FaultHalfOpen:
		return nil, fmt.Errorf("%q is about bytes, of which a script has none", word)
	}
	var wait time.Duration
	if Fault(word) == FaultTooMany {
		if wait, err = mayWait.parse(value, value != ""); err != nil {
			return nil, err
		}
	}
	return statusOfFault(Fault(word), wait, asked{verb: "watch"}), nil
}
