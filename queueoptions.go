package informer

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"
)

// QueueOptions tunes a [WorkQueue]. The zero value is ready to use.
type QueueOptions[K comparable] struct {
	// Ageing is how long a key that is ready waits before it rises by one
	// priority, in steps of 1.05 ms, rounded up. What is above 6 days counts as
	// that.
	//
	// Default: 1 minute.
	Ageing time.Duration

	// Debounce is how long a key has to be quiet before it is ready: each Add
	// of it begins that time anew, also one by AddWith without a wait, and
	// whenever the key was to be ready before. Adds that name a time, or ask the
	// limiter, and retries are not held up, if no Add follows. What is above
	// 50 days counts as that.
	//
	// Default: a key that is added is ready at once.
	Debounce time.Duration

	// DebounceAtMost is how long a key waits at most that is never quiet,
	// counted as Lease.Age is. So an add of a key that has been retried for
	// longer makes it ready at once. It may not be above 50 days.
	//
	// Default: ten times Debounce, 50 days at most.
	DebounceAtMost time.Duration

	// Group returns the name of the group that a key belongs to: its namespace,
	// say, or a tenant. Groups with keys that are ready take turns: each lease
	// is one of the next group, and only within that group by priority. So a
	// key waits for a turn of each other group, and however many keys another
	// one has, for no more.
	//
	// The function is called by each add, before anything else happens; that of
	// a key which is in the queue already is ignored. If it panics, so does the
	// add.
	//
	// Default: all keys are of one group.
	Group func(key K) string

	// Limiter says how long a key waits that is added by AddLimited, or whose
	// lease ends in Retry. The queue calls it from several goroutines.
	//
	// Default: what DefaultLimiter returns.
	Limiter RateLimiter[K]

	// MaxAttempts is how many attempts there are at most, 65,535 at most: when
	// so many in a row have failed, the key is parked.
	//
	// Default: any number.
	MaxAttempts int

	// MaxAge is for how long there are attempts: when one fails and the key was
	// added that long ago, it is parked. A delay with which it was added is part
	// of that. It may not be above 50 days.
	//
	// Default: for ever.
	MaxAge time.Duration

	// Timeout is when the context ends that Run gives its function, counted
	// from its call. An error that this led to is a failure like others.
	//
	// Default: that context ends only with that of Run.
	Timeout time.Duration

	// Name is used in errors and logs.
	//
	// Default: the type of the keys.
	Name string

	// Logger is told by Run of each attempt that failed: key, attempt, what
	// follows, and the error; and of each key that was to be leased again, but
	// not taken back, as the queue had ended. Of a lease that the function has
	// finished itself it is told only if the function panics then.
	//
	// Default: nothing is logged.
	Logger *slog.Logger

	// OnAdd is told of each key that has become pending by an add. It runs on
	// the goroutine of the adder, after the fact: the key may be leased already.
	//
	// Default: nobody is told.
	OnAdd func(key K)

	// OnLease is told of each lease before it is handed out; see [Lease.Waited].
	// If it panics, the key is ready again.
	//
	// Default: nobody is told.
	OnLease func(lease Lease[K])

	// OnEnd is told how each lease ended. It runs on the goroutine that ended
	// it, after the fact.
	//
	// Default: nobody is told.
	OnEnd func(lease Lease[K], end Ending)

	// OnError is told of every error that a lease ends in, once, before the key
	// is leased again. The function may be called from several goroutines at
	// once, but not for the same key. With PanicReport it is also told of a
	// panic of the function that Run calls after that has finished its lease;
	// then another one may have the key.
	//
	// Default: errors are not reported. The key is retried all the same.
	OnError func(key K, err error)

	// OnPanic says what happens when the function that Run calls panics: with
	// PanicReport that is an error like any other, with the stack in its text,
	// and the key is retried. PanicDetach has no meaning here.
	//
	// Default: PanicCrash, with the name of the queue and the key in the
	// message.
	OnPanic PanicPolicy
}

// The limits of what can be counted.
const (
	mostAgeing = 6 * 24 * time.Hour
	mostAge    = 50 * 24 * time.Hour
)

// withDefaults returns a copy of o without zero values, or every mistake in o.
func (o QueueOptions[K]) withDefaults() (QueueOptions[K], error) {
	o.Limiter = orDefault(o.Limiter)
	o.Name = orElse(o.Name, strings.TrimPrefix(fmt.Sprintf("%T", new(K)), "*"))
	if err := o.check(); err != nil {
		return o, fmt.Errorf("informer: queue %s: %w", o.Name, err)
	}
	o.Ageing = orElse(o.Ageing, time.Minute)
	o.Debounce = min(o.Debounce, mostAge)
	o.DebounceAtMost = orElse(o.DebounceAtMost, min(10*o.Debounce, mostAge))
	return o, nil
}

// check returns every mistake in o.
func (o QueueOptions[K]) check() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Ageing", o.Ageing}, {"Debounce", o.Debounce}, {"DebounceAtMost", o.DebounceAtMost},
		{"MaxAge", o.MaxAge}, {"Timeout", o.Timeout},
	} {
		wrong(d.value < 0, "%s is %v: must not be negative", d.name, d.value)
	}
	wrong(o.DebounceAtMost > 0 && o.DebounceAtMost < o.Debounce,
		"DebounceAtMost is %v: must not be below Debounce, %v", o.DebounceAtMost, o.Debounce)
	wrong(o.DebounceAtMost > 0 && o.Debounce == 0, "DebounceAtMost is %v, but Debounce is not set", o.DebounceAtMost)
	wrong(o.DebounceAtMost > mostAge, "DebounceAtMost is %v: must not be above %v", o.DebounceAtMost, mostAge)
	wrong(o.MaxAge > mostAge, "MaxAge is %v: must not be above %v", o.MaxAge, mostAge)
	wrong(o.MaxAttempts < 0 || o.MaxAttempts > math.MaxUint16,
		"MaxAttempts is %d: must be from 0 to %d", o.MaxAttempts, math.MaxUint16)
	wrong(o.OnPanic != PanicCrash && o.OnPanic != PanicReport,
		"OnPanic is %d: must be PanicCrash or PanicReport", o.OnPanic)
	return errors.Join(errs...)
}
