package informertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-99a027e8/informer"
)

// A Rig is a source to be checked by [Conform], and the means to change what it
// shows. The functions write to whatever is behind the source. They are called
// from several goroutines, with names of Conform's own: lower-case letters,
// digits and dashes. Other objects may be there, and change meanwhile.
//
// Source, Create, Update, Delete and Value are needed; what else is not set
// leaves out the checks that need it.
type Rig[T informer.Object] struct {
	// Source is the source to check.
	Source informer.ListerWatcher[T]

	// Create makes an object of a name and a value, and returns its version.
	// Values are short, of lower-case letters and digits.
	Create func(ctx context.Context, name, value string) (version string, err error)

	// Update gives an object another value, and returns its version.
	Update func(ctx context.Context, name, value string) (version string, err error)

	// Delete deletes an object, at once.
	Delete func(ctx context.Context, name string) error

	// Value returns the value of an object.
	Value func(obj T) string

	// Compact makes the source forget: when it has returned, no version from
	// before the last write can be watched from, and no page that is left of
	// an older list can be read.
	Compact func(ctx context.Context) error

	// Log is told of each check how long it took, or why it was left out; in a
	// test, that is t.Logf.
	//
	// Default: nobody is told.
	Log func(format string, arguments ...any)

	// Missing is a source like Source, but of a resource that does not exist.
	Missing informer.ListerWatcher[T]

	// Only are the names of the checks to run, without the others.
	//
	// Default: all of them.
	Only []string

	// Select returns a label selector for the objects of a value. Field
	// selectors are checked by metadata.name, and only if Select is set.
	Select func(value string) string

	// Skip are the names of checks that the source cannot pass, with the
	// reason.
	//
	// Default: none.
	Skip map[string]string

	// Spoil changes an object so that the source cannot decode it, and returns
	// its version.
	Spoil func(ctx context.Context, name string) (version string, err error)

	// Timeout is how long an answer, or the news of a write, may take.
	//
	// Default: 10s.
	Timeout time.Duration
}

// A CheckError says which check a source did not pass.
type CheckError struct {
	// Check is the name of the check, such as "list/pages".
	Check string
	// Claim is what the check expects of any source.
	Claim string
	// Err is what was found instead.
	Err error
}

// Error returns the name, what was found, and what was expected.
func (e *CheckError) Error() string {
	return fmt.Sprintf("%s: %v (expected: %s)", e.Check, e.Err, e.Claim)
}

// Unwrap returns what was found.
func (e *CheckError) Unwrap() error { return e.Err }

// Conform checks that a source lists and watches as an [informer.ListerWatcher]
// is to, with the meaning that the Kubernetes API gives to versions, pages,
// selectors and bookmarks. An informer on a source that passes keeps its
// promises; each check has a name, and stands for one thing that it relies on.
//
// The error joins a *[CheckError] for each check that was not passed. There is
// one error of another kind: the rig lacks something, or names a check that
// does not exist.
//
// Where the check "list" is not passed, no other runs, and where "watch" is not,
// none that watches: they would only say the same in many ways. The checks run
// one after the other, some seconds in all, as a source may let time pass before
// it answers. When Conform returns, it has deleted the objects
// that it made, and ended the sequences that it began; of a source that does
// not obey its context, they go on.
func Conform[T informer.Object](ctx context.Context, rig Rig[T]) error {
	all := checks[T]()
	if err := rig.validate(all); err != nil {
		return err
	}
	if rig.Timeout == 0 {
		rig.Timeout = defaultTimeout
	}
	if rig.Log == nil {
		rig.Log = func(string, ...any) {}
	}
	run := fmt.Sprintf("conform-%06x", rand.N(1<<24))
	var errs []error
	failed := map[string]bool{}
	for i, c := range all {
		reason := rig.leavesOut(c.name, c.needs)
		for _, before := range c.after {
			if failed[before] {
				failed[c.name], reason = true, before+" was not passed"
			}
		}
		if reason != "" {
			rig.Log("%s: left out: %s", c.name, reason)
			continue
		}
		began := time.Now()
		err := c.try(ctx, rig, fmt.Sprintf("%s-%d-", run, i))
		rig.Log("%s: %v: %v", c.name, time.Since(began).Round(time.Millisecond), orPassed(err))
		if err != nil {
			failed[c.name] = true
			errs = append(errs, &CheckError{Check: c.name, Claim: c.claim, Err: err})
		}
	}
	return errors.Join(errs...)
}

const defaultTimeout = 10 * time.Second

func orPassed(err error) any {
	if err == nil {
		return "passed"
	}
	return err
}

// validate returns what is wrong with the rig.
func (r Rig[T]) validate(all []check[T]) error {
	var errs []error
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Source", r.Source != nil},
		{"Create", r.Create != nil},
		{"Update", r.Update != nil},
		{"Delete", r.Delete != nil},
		{"Value", r.Value != nil},
	} {
		if !field.set {
			errs = append(errs, fmt.Errorf("informertest: the rig has no %s", field.name))
		}
	}
	names := slices.Clone(r.Only)
	for name := range r.Skip {
		names = append(names, name)
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c check[T]) bool { return c.name == name }) {
			errs = append(errs, fmt.Errorf("informertest: the rig names a check %q, which does not exist", name))
		}
	}
	if r.Timeout < 0 {
		errs = append(errs, fmt.Errorf("informertest: the rig's Timeout is %v: must not be negative", r.Timeout))
	}
	return errors.Join(errs...)
}

// leavesOut returns why a check is left out, or "".
func (r Rig[T]) leavesOut(name, needs string) string {
	missing := needs == "Compact" && r.Compact == nil ||
		needs == "Missing" && r.Missing == nil ||
		needs == "Select" && r.Select == nil ||
		needs == "Spoil" && r.Spoil == nil
	reason, skip := r.Skip[name]
	switch {
	case len(r.Only) > 0 && !slices.Contains(r.Only, name):
		return "not asked for"
	case skip:
		return "skipped: " + reason
	case missing:
		return "the rig has no " + needs
	}
	return ""
}

// check is one thing that is expected of a source.
type check[T informer.Object] struct {
	name  string
	claim string
	after []string // checks without which it says nothing new
	needs string   // a field of the rig
	run   func(*trial[T]) error
}

// try runs the check, and cleans up after it.
func (c check[T]) try(ctx context.Context, rig Rig[T], prefix string) error {
	t := newTrial(ctx, rig, prefix)
	err := c.run(t)
	return errors.Join(err, t.end())
}

// checks returns all checks, the fundamental ones first.
func checks[T informer.Object]() []check[T] {
	return slices.Concat(listChecks[T](), watchChecks[T](), lifeChecks[T]())
}

func listChecks[T informer.Object]() []check[T] {
	after := []string{"list"}
	return []check[T]{
		{"list", "a list is each object once, as Added, in its present version, and then End with the version of the list",
			nil, "", (*trial[T]).list},
		{"list/selectors", "a label selector or a field selector leaves only the objects that match",
			after, "Select", (*trial[T]).listSelected},
		{"list/pages", "a page holds at most as many objects as asked for, and all pages together are the list as it was at the first one",
			after, "", (*trial[T]).listPages},
		{"list/expired", "the next page of a list that is forgotten is an error for which apierrors.IsResourceExpired or IsGone is true",
			after, "Compact", (*trial[T]).listExpired},
		{"list/any", `a list at version "0" is a state that the server had, and says which`,
			after, "", (*trial[T]).listAny},
		{"list/not-older", "a list not older than a version shows what was written up to it",
			after, "", (*trial[T]).listNotOlder},
		{"list/exact", "a list at exactly one version shows that one",
			after, "", (*trial[T]).listExact},
		{"list/too-large", "a list not older than a version that is not reached is an error with the cause ResourceVersionTooLarge",
			after, "", (*trial[T]).listTooLarge},
		{"list/missing", "a list, or a watch, of a resource that does not exist is an error for which apierrors.IsNotFound is true",
			after, "Missing", (*trial[T]).missing},
	}
}

func watchChecks[T informer.Object]() []check[T] {
	after := []string{"list", "watch"}
	return []check[T]{
		{"watch", "a watch from a list's version tells every write after it, once, in order, with versions that do not go down",
			after[:1], "", (*trial[T]).watch},
		{"watch/now", "a watch from no version tells the objects that there are as Added, and then the writes",
			after, "", (*trial[T]).watchNow},
		{"watch/pages", "a watch from the version of a list in pages tells what was written since the first one",
			append(after, "list/pages"), "", (*trial[T]).watchPages},
		{"watch/race", "what is written between a list and the watch from its version, or just then, is told by one of them",
			after, "", (*trial[T]).watchRace},
		{"watch/deletion", "a deletion brings the last state of the object, with the version of the deletion",
			after, "", (*trial[T]).watchDeletion},
		{"watch/labels", "through a label selector, an object that comes to match is Added, and one that does not match any more is Deleted, in the last state that did",
			after, "Select", (*trial[T]).watchLabels},
		{"watch/fields", "through a field selector, only what matches is told",
			after, "Select", (*trial[T]).watchFields},
		{"watch/expired", "a watch from a version that is forgotten is an error for which apierrors.IsResourceExpired or IsGone is true, and tells nothing",
			after, "Compact", (*trial[T]).watchExpired},
		{"watch/timeout", "a watch ends without an error when the time is over that it asked for, and has no bookmarks that it did not ask for",
			after, "", (*trial[T]).watchTimeout},
		{"watch/bookmarks", "a watch that asked for bookmarks has one with the version reached, before its time is over",
			after, "", (*trial[T]).watchBookmarks},
		{"stream", "a streaming list is the objects as Added, End with a version, and then each write after it; or an error that says it is not supported",
			after, "", (*trial[T]).stream},
		{"stream/not-older", "a streaming list not older than a version shows what was written up to it",
			after, "", (*trial[T]).streamNotOlder},
		{"stream/too-large", "a streaming list not older than a version that is not reached is an error with the cause ResourceVersionTooLarge",
			after, "", (*trial[T]).streamTooLarge},
	}
}

func lifeChecks[T informer.Object]() []check[T] {
	after := []string{"list", "watch"}
	return []check[T]{
		{"bad-object", "an object that cannot be decoded is Bad, with its key and an *ObjectError, and the sequence goes on",
			after, "Spoil", (*trial[T]).badObject},
		{"cancel", "a sequence ends within a second after its context has, with the context's error, also while the loop's body runs",
			after, "", (*trial[T]).cancelled},
		{"break", "a loop may be left at any time, and leaves nothing behind",
			after, "", (*trial[T]).broken},
		{"concurrent", "several requests may run at a time, and do not disturb each other",
			after, "", (*trial[T]).concurrent},
	}
}
