package informertest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
	"github.com/seed-99a027e8/informer/informertest"
)

// TestConformMemory runs the suite on a source that was written by hand.
func TestConformMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		if err := informertest.Conform(t.Context(), m.rig(m)); err != nil {
			t.Error(err)
		}
	})
}

type (
	memSeq = iter.Seq2[memEvent, error]
	// memMethod is List or Watch.
	memMethod func(context.Context, metav1.ListOptions) memSeq
	// memYield takes a step of a sequence.
	memYield func(memEvent, error) bool
)

// brokenSource is a source of two methods.
type brokenSource struct{ list, watch memMethod }

// List lists.
func (b brokenSource) List(ctx context.Context, opts metav1.ListOptions) memSeq {
	return b.list(ctx, opts)
}

// Watch watches.
func (b brokenSource) Watch(ctx context.Context, opts metav1.ListOptions) memSeq {
	return b.watch(ctx, opts)
}

// edit returns a method whose steps pass through fn.
func (next memMethod) edit(fn func(ev memEvent, err error, yield memYield) bool) memMethod {
	return func(ctx context.Context, opts metav1.ListOptions) memSeq {
		return func(yield func(memEvent, error) bool) {
			for ev, err := range next(ctx, opts) {
				if !fn(ev, err, yield) {
					return
				}
			}
		}
	}
}

// ask returns a method that is asked something else.
func (next memMethod) ask(fn func(*metav1.ListOptions)) memMethod {
	return func(ctx context.Context, opts metav1.ListOptions) memSeq {
		fn(&opts)
		return next(ctx, opts)
	}
}

// TestConformNamesWhatIsBroken runs the suite on sources that each break one
// thing, and wants exactly the checks that are about it. Promises 3 and 13 rely on
// what it breaks.
func TestConformNamesWhatIsBroken(t *testing.T) {
	for _, test := range []struct {
		name string
		want string // names of checks
		// breaks changes a method; ended ends with the test.
		breaks func(b *brokenSource, ended context.Context)
	}{
		{"loses what was written between list and watch (k8s#95897)", "watch",
			func(b *brokenSource, _ context.Context) {
				b.watch = fromNow(b.list, b.watch)
			}},
		{"repeats an item over pages", "list/pages", func(b *brokenSource, _ context.Context) {
			b.list = b.list.ask(func(opts *metav1.ListOptions) {
				if version, after, more := strings.Cut(opts.Continue, "/"); more {
					end := len(after) - 1 // the names end in a, b, c, ...
					opts.Continue = version + "/" + after[:end] + string(after[end]-1) + "z"
				}
			})
		}},
		{"reads the next page from the present", "list/pages list/expired", func(b *brokenSource, _ context.Context) {
			list := b.list
			b.list = list.ask(func(opts *metav1.ListOptions) {
				if _, after, more := strings.Cut(opts.Continue, "/"); more {
					opts.Continue = newestVersion(list) + "/" + after
				}
			})
		}},
		{"ignores the limit", "list/pages list/expired", func(b *brokenSource, _ context.Context) {
			b.list = b.list.ask(func(opts *metav1.ListOptions) { opts.Limit = 0 })
		}},
		{"goes on after the end", "list", func(b *brokenSource, _ context.Context) {
			b.list = b.list.edit(func(ev memEvent, err error, yield memYield) bool {
				return yield(ev, err) && (ev.Type != informer.EventEnd || yield(ev, err))
			})
		}},
		{"ends a list without a version", "list", func(b *brokenSource, _ context.Context) {
			b.list = b.list.edit(func(ev memEvent, err error, yield memYield) bool {
				if ev.Type == informer.EventEnd {
					ev.Version = ""
				}
				return yield(ev, err)
			})
		}},
		{"tells twice", "watch",
			func(b *brokenSource, _ context.Context) {
				b.watch = b.watch.edit(func(ev memEvent, err error, yield memYield) bool {
					return yield(ev, err) && (ev.Type != informer.EventModified || yield(ev, err))
				})
			}},
		{"deletes in the version before", "watch", func(b *brokenSource, _ context.Context) {
			b.watch = b.watch.edit(func(ev memEvent, err error, yield memYield) bool {
				if ev.Type == informer.EventDeleted && ev.Exact {
					last := *ev.Object
					last.Version = "2"
					ev = informer.EventOf(ev.Type, &last)
				}
				return yield(ev, err)
			})
		}},
		{"forgets the last state", "watch/deletion", func(b *brokenSource, _ context.Context) {
			b.watch = b.watch.edit(func(ev memEvent, err error, yield memYield) bool {
				if ev.Type == informer.EventDeleted {
					ev.Exact, ev.Object = false, nil
				}
				return yield(ev, err)
			})
		}},
		{"ignores the selector of a watch", "watch/labels watch/fields", func(b *brokenSource, _ context.Context) {
			b.watch = b.watch.ask(func(opts *metav1.ListOptions) { opts.LabelSelector, opts.FieldSelector = "", "" })
		}},
		{"ends where the version is forgotten", "watch/expired", func(b *brokenSource, _ context.Context) {
			b.watch = b.watch.edit(func(ev memEvent, err error, yield memYield) bool {
				return !apierrors.IsResourceExpired(err) && yield(ev, err)
			})
		}},
		{"never ends", "watch/timeout watch/bookmarks", func(b *brokenSource, _ context.Context) {
			b.watch = b.watch.ask(func(opts *metav1.ListOptions) { opts.TimeoutSeconds = nil })
		}},
		{"ignores cancel", "cancel", func(b *brokenSource, ended context.Context) {
			watch := b.watch
			b.watch = func(_ context.Context, opts metav1.ListOptions) memSeq { return watch(ended, opts) }
		}},
		{"ends without the context's error", "cancel", func(b *brokenSource, _ context.Context) {
			b.watch = b.watch.edit(func(ev memEvent, err error, yield memYield) bool {
				return !errors.Is(err, context.Canceled) && yield(ev, err)
			})
		}},
		{"leaves goroutines behind", "break", func(b *brokenSource, ended context.Context) {
			list := b.list
			b.list = func(ctx context.Context, opts metav1.ListOptions) memSeq {
				go func() { <-ended.Done() }()
				return list(ctx, opts)
			}
		}},
		{"stops at a bad object", "bad-object", func(b *brokenSource, _ context.Context) {
			b.list = b.list.edit(func(ev memEvent, err error, yield memYield) bool { return yield(ev, err) && err == nil })
		}},
		{"one request at a time", "concurrent", func(b *brokenSource, _ context.Context) {
			var one sync.Mutex // guards nothing: that is what is broken
			list, watch := b.list, b.watch
			alone := func(method memMethod) memMethod {
				return func(ctx context.Context, opts metav1.ListOptions) memSeq {
					return func(yield func(memEvent, error) bool) {
						if !one.TryLock() {
							yield(memEvent{}, errors.New("busy"))
							return
						}
						defer one.Unlock()
						method(ctx, opts)(yield)
					}
				}
			}
			b.list, b.watch = alone(list), alone(watch)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended, end := context.WithCancel(t.Context())
				defer end()
				m := newMemory()
				b := &brokenSource{m.List, m.Watch}
				test.breaks(b, ended)
				err := informertest.Conform(t.Context(), m.rig(b))
				got, want := failedChecks(err), strings.Fields(test.want)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("not passed: %v, want %v\n%v", got, want, err)
				}
			})
		})
	}
}

// fromNow is a watch that ignores the version that it is to begin with.
func fromNow(list, watch memMethod) memMethod {
	return func(ctx context.Context, opts metav1.ListOptions) memSeq {
		if opts.ResourceVersion == "" || opts.ResourceVersionMatch != "" {
			return watch(ctx, opts)
		}
		opts.ResourceVersion = newestVersion(list)
		return watch(ctx, opts)
	}
}

// newestVersion returns the version of a list.
func newestVersion(list memMethod) (version string) {
	for ev := range list(context.Background(), metav1.ListOptions{}) {
		version = ev.Version
	}
	return version
}

// failedChecks returns the names of the checks that an error of Conform is
// about, sorted.
func failedChecks(err error) []string {
	var names []string
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		var check *informertest.CheckError
		if errors.As(err, &check) {
			names = append(names, check.Check)
		}
	}
	slices.Sort(names)
	return names
}
