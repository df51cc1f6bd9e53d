package informertest

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

const (
	// unreached is how long an answer may take to a request for a version that
	// is not reached: a server waits for it first.
	unreached = time.Minute
	// farther makes a version ten thousand times as large.
	farther = "0000"
	// poll is how often a state is asked for that comes sooner or later.
	poll = 20 * time.Millisecond
)

func (t *trial[T]) list() error {
	if _, err := t.write("+a=red +b=blue +c=red ~b=green -c +d=red -a +a=new"); err != nil {
		return err
	}
	return t.lists(metav1.ListOptions{}, t.state())
}

// lists checks that a list is whole, and has these objects.
func (t *trial[T]) lists(opts metav1.ListOptions, want map[string]told) error {
	l, err := t.page(opts)
	if err != nil {
		return err
	}
	if l.end.Continue != "" {
		return errors.New("the list has another page, but no limit was asked for")
	}
	return t.holds(l.mine, want)
}

func (t *trial[T]) listSelected() error {
	if _, err := t.write("+a=red +b=blue +c=red ~c=blue +d=blue ~d=red"); err != nil {
		return err
	}
	byLabel := metav1.ListOptions{LabelSelector: t.rig.Select("red")}
	if err := t.lists(byLabel, valued(t.state(), "red")); err != nil {
		return fmt.Errorf("by label: %w", err)
	}
	byField := metav1.ListOptions{FieldSelector: "metadata.name=" + t.prefix + "b"}
	if err := t.lists(byField, map[string]told{"b": t.state()["b"]}); err != nil {
		return fmt.Errorf("by field: %w", err)
	}
	return nil
}

// pageLimit is small, so that there are pages.
const pageLimit = 2

func (t *trial[T]) listPages() error {
	first, want, err := t.firstPage()
	if err != nil {
		return err
	}
	// The pages that are left do not see what comes now.
	if _, err := t.write("~d=blue -e +f=blue ~a=blue"); err != nil {
		return err
	}
	mine := first.mine
	for l := first; l.end.Continue != ""; mine = append(mine, l.mine...) {
		if l, err = t.nextPage(l); err != nil {
			return err
		}
	}
	if err := t.holds(mine, want); err != nil {
		return fmt.Errorf("all pages together: %w", err)
	}
	return nil
}

// firstPage makes objects and reads the first page of them.
func (t *trial[T]) firstPage() (listed[T], map[string]told, error) {
	if _, err := t.write("+a=red +b=red +c=red +d=red +e=red"); err != nil {
		return listed[T]{}, nil, err
	}
	want := t.state()
	l, err := t.page(metav1.ListOptions{Limit: pageLimit})
	switch {
	case err != nil:
		return l, nil, err
	case l.end.Continue == "":
		return l, nil, fmt.Errorf("a page of at most %d objects has no next one, but there are at least %d", pageLimit, len(want))
	case l.objects > pageLimit:
		return l, nil, fmt.Errorf("a page has %d objects, want at most %d", l.objects, pageLimit)
	}
	return l, want, nil
}

// nextPage reads the page after another.
func (t *trial[T]) nextPage(last listed[T]) (listed[T], error) {
	l, err := t.page(metav1.ListOptions{Limit: pageLimit, Continue: last.end.Continue})
	switch {
	case err != nil:
		return l, fmt.Errorf("next page: %w", err)
	case l.objects > pageLimit:
		return l, fmt.Errorf("a page has %d objects, want at most %d", l.objects, pageLimit)
	case l.end.Continue == last.end.Continue:
		return l, errors.New("the token of a page is that of the page before")
	case l.end.Version != last.end.Version:
		return l, fmt.Errorf("a page is of version %s, but the one before was of %s", l.end.Version, last.end.Version)
	}
	return l, nil
}

func (t *trial[T]) listExpired() error {
	if _, err := t.write("+a=red +b=red +c=red"); err != nil {
		return err
	}
	first, err := t.page(metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if first.end.Continue == "" {
		return errors.New("a page of one object has no next one, but there are at least three")
	}
	if _, err := t.write("~a=blue ~b=blue ~c=blue"); err != nil {
		return err
	}
	if err := t.rig.Compact(t.ctx); err != nil {
		return fmt.Errorf("the rig: compact: %w", err)
	}
	_, err = t.page(metav1.ListOptions{Limit: 1, Continue: first.end.Continue})
	return forgotten(err)
}

// listAny asks again and again: the state may be an old one, but not for ever.
func (t *trial[T]) listAny() error {
	if _, err := t.write("+a=red +b=red ~a=blue -b"); err != nil {
		return err
	}
	began := time.Now()
	for {
		l, err := t.page(metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		for _, ev := range l.mine {
			if less(l.end.Version, ev.Version) {
				return fmt.Errorf("%s in a list of version %s", describe(ev), l.end.Version)
			}
		}
		err = t.holds(l.mine, t.state())
		if err == nil || time.Since(began) > t.rig.Timeout {
			return err
		}
		if err := t.pause(poll); err != nil {
			return err
		}
	}
}

// pause lets time pass.
func (t *trial[T]) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// notOlder are the options for a state that is not older than a version.
func notOlder(version string) metav1.ListOptions {
	return metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
}

func (t *trial[T]) listNotOlder() error {
	writes, err := t.write("+a=red +b=red ~a=blue -b +c=red")
	if err != nil {
		return err
	}
	version := writes[len(writes)-1].version
	l, err := t.page(notOlder(version))
	if err != nil {
		return err
	}
	if less(l.end.Version, version) {
		return fmt.Errorf("the list is of version %s, want at least %s", l.end.Version, version)
	}
	return t.holds(l.mine, t.state())
}

func (t *trial[T]) listExact() error {
	writes, err := t.write("+a=red +b=red +c=red")
	if err != nil {
		return err
	}
	version, want := writes[len(writes)-1].version, t.state()
	if _, err := t.write("~a=blue -b +d=blue"); err != nil {
		return err
	}
	l, err := t.page(metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if err != nil {
		return err
	}
	if l.end.Version != version {
		return fmt.Errorf("the list is of version %s, want %s", l.end.Version, version)
	}
	return t.holds(l.mine, want)
}

func (t *trial[T]) listTooLarge() error {
	version, err := t.begin("+a=red")
	if err != nil {
		return err
	}
	t.patience = unreached
	_, err = t.page(notOlder(version + farther))
	return notReached(err)
}

func (t *trial[T]) missing() error {
	rig := t.rig
	rig.Source = rig.Missing
	other := newTrial(t.ctx, rig, t.prefix)
	_, err := other.page(metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("list: want IsNotFound, got %w", orAnswer(err))
	}
	f := other.openWatch(metav1.ListOptions{ResourceVersion: "1"})
	defer f.stop()
	if _, err := f.next(); !apierrors.IsNotFound(err) {
		return fmt.Errorf("watch: want IsNotFound, got %w", orAnswer(err))
	}
	return nil
}

var errAnswered = errors.New("an answer")

// orAnswer stands for what is no error.
func orAnswer(err error) error {
	if err == nil {
		return errAnswered
	}
	return err
}

// initial collects the initial events of a watch, until it has told of n of the
// trial's objects, or if n is negative, until their end.
func (t *trial[T]) initial(f *feed[T], n int) (listed[T], error) {
	var l listed[T]
	for n < 0 || len(l.mine) < n {
		ev, err := f.next()
		if err != nil {
			return l, err
		}
		switch ev.Type {
		case informer.EventEnd:
			if l.end = ev; n < 0 {
				return l, nil
			}
			return l, errors.New("an End, which was not asked for")
		case informer.EventBookmark:
		default:
			l.mine = append(l.mine, ev)
		}
	}
	return l, nil
}
