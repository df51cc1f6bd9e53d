package informertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

// trial is one run of one check. Its objects are known by a prefix of their
// names, which the words below leave out.
type trial[T informer.Object] struct {
	ctx      context.Context
	rig      Rig[T]
	prefix   string
	patience time.Duration // how long the next step of a sequence may take

	mu   sync.Mutex      // guards the field below
	made map[string]told // the objects that there are, by name: their last write
}

func newTrial[T informer.Object](ctx context.Context, rig Rig[T], prefix string) *trial[T] {
	return &trial[T]{ctx: ctx, rig: rig, prefix: prefix, patience: rig.Timeout, made: map[string]told{}}
}

// end deletes what the trial has made.
func (t *trial[T]) end() error {
	var errs []error
	for name := range t.state() {
		if err := t.rig.Delete(t.ctx, t.prefix+name); err != nil {
			errs = append(errs, fmt.Errorf("clean up: delete %s: %w", t.prefix+name, err))
		}
	}
	return errors.Join(errs...)
}

// owns reports that an object is one of the trial's.
func (t *trial[T]) owns(key informer.Key) bool { return strings.HasPrefix(key.Name, t.prefix) }

// told is a write, and the event that is to tell of it. It is also an item of a
// list.
type told struct {
	what    informer.EventType
	name    string
	value   string // of a deletion, the last one
	version string // empty for a deletion: only the source knows
}

// String returns the write as write takes it, with its version.
func (w told) String() string {
	sign := map[informer.EventType]string{
		informer.EventAdded: "+", informer.EventModified: "~", informer.EventDeleted: "-", informer.EventBad: "!",
	}[w.what]
	text := sign + w.name
	if w.value != "" {
		text += "=" + w.value
	}
	if w.version != "" {
		text += "@" + w.version
	}
	return text
}

// write makes, changes, deletes and spoils objects, as in
//
//	+a=red ~a=blue -a !b
//
// and returns what a watch is to tell of it.
func (t *trial[T]) write(words string) ([]told, error) {
	var all []told
	for word := range strings.FieldsSeq(words) {
		w, err := t.writeOne(word)
		if err != nil {
			return nil, fmt.Errorf("the rig: write %s: %w", word, err)
		}
		all = append(all, w)
	}
	return all, nil
}

func (t *trial[T]) writeOne(word string) (told, error) {
	name, value, _ := strings.Cut(word[1:], "=")
	w := told{name: name, value: value}
	var err error
	switch word[0] {
	case '+':
		w.what = informer.EventAdded
		w.version, err = t.rig.Create(t.ctx, t.prefix+name, value)
	case '~':
		w.what = informer.EventModified
		w.version, err = t.rig.Update(t.ctx, t.prefix+name, value)
	case '!':
		w.what = informer.EventBad
		w.version, err = t.rig.Spoil(t.ctx, t.prefix+name)
	default:
		w.what = informer.EventDeleted
		w.value = t.state()[name].value
		err = t.rig.Delete(t.ctx, t.prefix+name)
	}
	if err != nil {
		return w, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.what == informer.EventDeleted {
		delete(t.made, name)
	} else {
		t.made[name] = w
	}
	return w, nil
}

// state returns the objects that there are.
func (t *trial[T]) state() map[string]told {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.made)
}

// begin makes what words say, and returns the version of a list after it.
func (t *trial[T]) begin(words string) (version string, err error) {
	if _, err := t.write(words); err != nil {
		return "", err
	}
	l, err := t.page(metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list: %w", err)
	}
	return l.end.Version, nil
}

// seen returns an event as a write.
func (t *trial[T]) seen(ev informer.Event[T]) told {
	w := told{what: ev.Type, name: strings.TrimPrefix(ev.Key.Name, t.prefix), version: ev.Version}
	switch {
	case ev.Type == informer.EventAdded, ev.Type == informer.EventModified, ev.Type == informer.EventDeleted && ev.Exact:
		w.value = t.rig.Value(ev.Object)
	}
	return w
}

// tells checks that an event tells of a write.
func (t *trial[T]) tells(ev informer.Event[T], want told) error {
	got := t.seen(ev)
	if want.version == "" {
		got.version = ""
	}
	if ev.Type == informer.EventDeleted && !ev.Exact {
		want.value = ""
	}
	if got != want {
		return fmt.Errorf("told %v (%s), want %v", got, describe(ev), want)
	}
	return nil
}

// expect checks that the next events of a watch tell of these writes, in order.
// Bookmarks may come between.
func (t *trial[T]) expect(f *feed[T], wants []told) error {
	for i := 0; i < len(wants); {
		ev, err := f.next()
		if err != nil {
			return fmt.Errorf("want %v: %w", wants[i], err)
		}
		if ev.Type == informer.EventBookmark {
			continue
		}
		if err := t.tells(ev, wants[i]); err != nil {
			return err
		}
		i++
	}
	return nil
}

// holds checks that events are the items of a list: these objects, each once.
func (t *trial[T]) holds(events []informer.Event[T], want map[string]told) error {
	left := maps.Clone(want)
	for _, ev := range events {
		got := t.seen(ev)
		item, ok := left[got.name]
		if !ok {
			return fmt.Errorf("the list has %v, which is not there or was listed already; want %v", got, texts(want))
		}
		if item.what != informer.EventBad {
			item.what = informer.EventAdded
		}
		if err := t.tells(ev, item); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		delete(left, got.name)
	}
	if len(left) > 0 {
		return fmt.Errorf("the list lacks %v", texts(left))
	}
	return nil
}

// texts returns objects in order of name.
func texts(state map[string]told) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(state)) {
		list = append(list, state[name].String())
	}
	return list
}

// valued returns the objects of a value.
func valued(state map[string]told, value string) map[string]told {
	maps.DeleteFunc(state, func(_ string, w told) bool { return w.value != value })
	return state
}

// forgotten returns an error unless err says that a version is too old.
func forgotten(err error) error {
	switch {
	case err == nil:
		return errors.New("it is answered, as if nothing had been forgotten")
	case !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
		return fmt.Errorf("neither IsResourceExpired nor IsGone: %w", err)
	}
	return nil
}

// notReached returns an error unless err says that a version is too large.
func notReached(err error) error {
	switch {
	case err == nil:
		return errors.New("it is answered, as if the version had been reached")
	case !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return fmt.Errorf("no cause ResourceVersionTooLarge: %w", err)
	}
	return nil
}
