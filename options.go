package informer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Options tunes an [Informer] or a [Reflector]. The zero value is ready to use.
type Options struct {
	// FieldSelector limits the objects by fields, such as
	// "spec.nodeName=node-1". Which fields are understood is up to the server.
	//
	// Default: all objects.
	FieldSelector string

	// Grace is how long Run waits, after its context has ended, for user code
	// that is still running. It then returns an error that names that code.
	//
	// Default: 5s.
	Grace time.Duration

	// LabelSelector limits the objects by labels, such as "app=web,!canary".
	//
	// Default: all objects.
	LabelSelector string

	// Logger gets one line for each change of state and each failure of one
	// object, and at most ten an hour. Those that are left out are counted: the
	// next line tells how many they are, or else one an hour later, at the next
	// event or the end of a watch, and at the end of Run.
	//
	// Default: no logs.
	Logger *slog.Logger

	// MinBackoff and MaxBackoff bound the pause after a failed request. The
	// pause is random between MinBackoff and a limit that doubles from one to
	// the other.
	//
	// Default: 800ms and 30s.
	MinBackoff, MaxBackoff time.Duration

	// Name is used in errors and logs.
	//
	// Default: the Go type of the objects.
	Name string

	// OnFailure is told of every failure, once, as it happens. Run waits for
	// it. A result that is not nil ends Run, which returns it. The function
	// may be called from several goroutines, one call at a time, and must not
	// add or remove indexes: a change of the cache may be waiting for it.
	//
	// Default: failures are seen in Status and in the logs only.
	OnFailure func(Failure) error

	// PageSize is the most objects that the server is asked to send in one
	// page. Setting it makes the first list go to etcd: a list that the
	// server's own cache may answer comes as one page, whatever was asked.
	//
	// Default: 500, where the server heeds it.
	PageSize int

	// WatchTimeout is how long a watch is asked to stay open: a random time
	// between WatchTimeout and twice that. It is at least a second.
	//
	// Default: 5min.
	WatchTimeout time.Duration
}

// A Failure is something that went wrong and will be tried again, or that
// concerns one object only.
type Failure struct {
	// Op is what was being done: "list", "watch" or "streaming list" for a
	// request; "decode" for an object that a source cannot show, "index" for
	// one that an index cannot file; or the name of a handler that panicked.
	Op string
	// Attempt counts failures in a row, from 1; 0 for a failure of one object.
	Attempt int
	// Next is the time until the next attempt; 0 for a failure of one object.
	Next time.Duration
	// Err is the reason, never nil. For a failure of one object, it wraps an
	// *[ObjectError].
	Err error
}

const (
	defaultPageSize     = 500
	defaultWatchTimeout = 5 * time.Minute
	defaultMinBackoff   = 800 * time.Millisecond
	defaultMaxBackoff   = 30 * time.Second
	defaultGrace        = 5 * time.Second
)

// withDefaults returns a copy of o without zero values (but for PageSize, whose
// zero has a meaning of its own), or every mistake in o.
func (o Options) withDefaults(name string) (Options, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if _, err := labels.Parse(o.LabelSelector); err != nil {
		bad("LabelSelector is %q: %w", o.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(o.FieldSelector); err != nil {
		bad("FieldSelector is %q: %w", o.FieldSelector, err)
	}
	if o.PageSize < 0 {
		bad("PageSize is %d: must not be negative", o.PageSize)
	}
	for _, d := range []struct {
		field   string
		value   *time.Duration
		initial time.Duration
	}{
		{"WatchTimeout", &o.WatchTimeout, defaultWatchTimeout},
		{"MinBackoff", &o.MinBackoff, min(defaultMinBackoff, orElse(o.MaxBackoff, defaultMaxBackoff))},
		{"MaxBackoff", &o.MaxBackoff, max(defaultMaxBackoff, o.MinBackoff)},
		{"Grace", &o.Grace, defaultGrace},
	} {
		if *d.value < 0 {
			bad("%s is %v: must not be negative", d.field, *d.value)
		}
		*d.value = orElse(*d.value, d.initial)
	}
	if o.WatchTimeout > 0 && o.WatchTimeout < time.Second {
		bad("WatchTimeout is %v: must be at least 1s", o.WatchTimeout)
	}
	if o.MinBackoff > 0 && o.MaxBackoff > 0 && o.MinBackoff > o.MaxBackoff {
		bad("MinBackoff is %v: must not be above MaxBackoff, %v", o.MinBackoff, o.MaxBackoff)
	}
	o.Name = orElse(o.Name, name)
	o.Logger = orElse(o.Logger, slog.New(slog.DiscardHandler))
	if err := errors.Join(errs...); err != nil {
		return o, fmt.Errorf("informer: options of %s: %w", o.Name, err)
	}
	return o, nil
}

// orElse returns v, or otherwise if v is zero.
func orElse[V comparable](v, otherwise V) V {
	var zero V
	if v == zero {
		return otherwise
	}
	return v
}
