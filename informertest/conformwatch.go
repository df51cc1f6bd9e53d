package informertest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

// watchFrom starts a watch from a version, whose events are to be of it or
// later.
func (t *trial[T]) watchFrom(opts metav1.ListOptions, version string) *feed[T] {
	opts.ResourceVersion = version
	f := t.openWatch(opts)
	f.reached = version
	return f
}

// wrote checks that a watch tells of what words say, which is written now.
func (t *trial[T]) wrote(f *feed[T], words string) error {
	wants, err := t.write(words)
	if err != nil {
		return err
	}
	return t.expect(f, wants)
}

func (t *trial[T]) watch() error {
	version, err := t.begin("+old=red")
	if err != nil {
		return err
	}
	before, err := t.write("+a=red ~a=blue +b=red ~old=blue")
	if err != nil {
		return err
	}
	f := t.watchFrom(metav1.ListOptions{}, version)
	defer f.stop()
	after, err := t.write("-a +a=green ~b=blue -b -old +end=red")
	if err != nil {
		return err
	}
	all := slices.Concat(before, after)
	if err := t.expect(f, all); err != nil {
		return err
	}
	f.stop()
	middle := t.watchFrom(metav1.ListOptions{}, before[1].version)
	defer middle.stop()
	if err := t.expect(middle, all[2:]); err != nil {
		return fmt.Errorf("another one, from version %s: %w", before[1].version, err)
	}
	return nil
}

func (t *trial[T]) watchNow() error {
	if _, err := t.write("+a=red ~a=blue +b=red +c=red -c"); err != nil {
		return err
	}
	f := t.openWatch(metav1.ListOptions{})
	defer f.stop()
	l, err := t.initial(f, len(t.state()))
	if err != nil {
		return err
	}
	if err := t.holds(l.mine, t.state()); err != nil {
		return err
	}
	return t.wrote(f, "~b=blue -a +a=green")
}

func (t *trial[T]) watchPages() error {
	last, _, err := t.firstPage()
	if err != nil {
		return err
	}
	writes, err := t.write("~d=blue -e +f=blue ~a=blue")
	if err != nil {
		return err
	}
	for last.end.Continue != "" {
		if last, err = t.nextPage(last); err != nil {
			return err
		}
	}
	f := t.watchFrom(metav1.ListOptions{}, last.end.Version)
	defer f.stop()
	return t.expect(f, writes)
}

func (t *trial[T]) watchRace() error {
	const rounds = 25
	for i := range rounds {
		if err := t.race("x" + strconv.Itoa(i)); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return nil
}

// race makes an object while a list and a watch from its version are asked
// for.
func (t *trial[T]) race(name string) error {
	type result struct {
		writes []told
		err    error
	}
	made := make(chan result, 1)
	go func() { // ends when the rig's function does
		writes, err := t.write("+" + name + "=red")
		made <- result{writes, err}
	}()
	l, err := t.page(metav1.ListOptions{})
	var writes result
	if err != nil {
		<-made
		return err
	}
	f := t.watchFrom(metav1.ListOptions{}, l.end.Version)
	defer f.stop()
	if writes = <-made; writes.err != nil {
		return writes.err
	}
	listed := slices.ContainsFunc(l.mine, func(ev informer.Event[T]) bool { return t.seen(ev).name == name })
	// The update shows that nothing else is to come.
	updated, err := t.write("~" + name + "=blue")
	if err != nil {
		return err
	}
	wants := slices.Concat(writes.writes, updated)
	if listed {
		wants = updated
	}
	if err := t.expect(f, wants); err != nil {
		return fmt.Errorf("in the list %v, watch from %s: %w", listed, l.end.Version, err)
	}
	return nil
}

func (t *trial[T]) watchDeletion() error {
	writes, err := t.write("+a=red ~a=blue")
	if err != nil {
		return err
	}
	last := writes[1]
	f := t.watchFrom(metav1.ListOptions{}, writes[0].version)
	defer f.stop()
	updated, err := f.next()
	if err != nil {
		return err
	}
	if _, err := t.write("-a"); err != nil {
		return err
	}
	deleted, err := f.next()
	if err != nil {
		return err
	}
	next, err := t.write("+b=red")
	if err != nil {
		return err
	}
	switch {
	case deleted.Type != informer.EventDeleted:
		return fmt.Errorf("%s, want a deletion", describe(deleted))
	case !deleted.Exact || t.rig.Value(deleted.Object) != last.value:
		return fmt.Errorf("the last state is %v, exact %v, want value %q", t.seen(deleted), deleted.Exact, last.value)
	case deleted.UID != updated.UID:
		return fmt.Errorf("the UID is %q, want %q", deleted.UID, updated.UID)
	case !less(last.version, deleted.Version) || !less(deleted.Version, next[0].version):
		return fmt.Errorf("the version is %s, want one between that of the writes before and after: %s and %s",
			deleted.Version, last.version, next[0].version)
	}
	return nil
}

func (t *trial[T]) watchLabels() error {
	version, err := t.begin("+old=blue")
	if err != nil {
		return err
	}
	f := t.watchFrom(metav1.ListOptions{LabelSelector: t.rig.Select("red")}, version)
	defer f.stop()
	w, err := t.write("+a=blue +b=red ~a=red ~b=blue ~a=red -b ~old=red -old ~a=blue -a +end=red")
	if err != nil {
		return err
	}
	left := func(w told) told {
		return told{what: informer.EventDeleted, name: w.name, value: "red", version: w.version}
	}
	came := func(w told) told {
		w.what = informer.EventAdded
		return w
	}
	wants := []told{w[1], came(w[2]), left(w[3])}
	// An update that changes nothing is none, to some servers.
	if w[4].version != w[2].version {
		wants = append(wants, w[4])
	}
	wants = append(wants, came(w[6]), left(w[7]), left(w[8]), w[10])
	return t.expect(f, wants)
}

func (t *trial[T]) watchFields() error {
	version, err := t.begin("+old=red")
	if err != nil {
		return err
	}
	f := t.watchFrom(metav1.ListOptions{FieldSelector: "metadata.name=" + t.prefix + "a"}, version)
	defer f.stop()
	writes, err := t.write("+a=red +b=red ~b=blue ~a=blue -b -old -a +c=red +a=green")
	if err != nil {
		return err
	}
	return t.expect(f, slices.DeleteFunc(writes, func(w told) bool { return w.name != "a" }))
}

func (t *trial[T]) watchExpired() error {
	writes, err := t.write("+a=red ~a=blue ~a=green ~a=red")
	if err != nil {
		return err
	}
	if err := t.rig.Compact(t.ctx); err != nil {
		return fmt.Errorf("the rig: compact: %w", err)
	}
	f := t.watchFrom(metav1.ListOptions{}, writes[0].version)
	defer f.stop()
	ev, err := f.next()
	if err == nil {
		return fmt.Errorf("it told %s", describe(ev))
	}
	if err := forgotten(err); err != nil {
		return err
	}
	return f.nothingMore()
}

func (t *trial[T]) watchTimeout() error {
	const asked = 4 // long enough for a bookmark before its end
	version, err := t.begin("+old=red")
	if err != nil {
		return err
	}
	began := time.Now()
	f := t.watchFrom(metav1.ListOptions{TimeoutSeconds: new(int64(asked))}, version)
	defer f.stop()
	if err := t.wrote(f, "+a=red ~a=blue"); err != nil {
		return err
	}
	t.patience = t.rig.Timeout + asked*time.Second
	ev, err := f.next()
	switch took := time.Since(began); {
	case err == nil:
		return fmt.Errorf("it told %s, though nothing was written", describe(ev))
	case !errors.Is(err, errNoMore):
		return err
	case took < asked*time.Second/2:
		return fmt.Errorf("it ended after %v, want %ds", took, asked)
	}
	return nil
}

func (t *trial[T]) watchBookmarks() error {
	const asked = 5
	version, err := t.begin("+old=red")
	if err != nil {
		return err
	}
	f := t.watchFrom(metav1.ListOptions{TimeoutSeconds: new(int64(asked)), AllowWatchBookmarks: true}, version)
	defer f.stop()
	writes, err := t.write("+a=red ~a=blue")
	if err != nil {
		return err
	}
	if err := t.expect(f, writes); err != nil {
		return err
	}
	t.patience = t.rig.Timeout + asked*time.Second
	ev, err := f.next()
	switch {
	case errors.Is(err, errNoMore):
		return errors.New("it ended without a bookmark")
	case err != nil:
		return err
	case ev.Type != informer.EventBookmark:
		return fmt.Errorf("it told %s, though nothing was written", describe(ev))
	}
	return nil
}

// openStream starts a streaming list. It is nil if the source refuses.
func (t *trial[T]) openStream(version string) (*feed[T], listed[T], error) {
	opts := notOlder(version)
	opts.SendInitialEvents, opts.AllowWatchBookmarks = new(true), true
	f := t.openWatch(opts)
	l, err := t.initial(f, -1)
	switch {
	case err == nil:
		return f, l, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		t.rig.Log("streaming lists are refused: %v", err)
		err = nil
	}
	f.stop()
	return nil, l, err
}

func (t *trial[T]) stream() error {
	if _, err := t.write("+a=red +b=red ~a=blue +c=red -c"); err != nil {
		return err
	}
	f, l, err := t.openStream("")
	if f == nil {
		return err
	}
	defer f.stop()
	if err := t.holds(l.mine, t.state()); err != nil {
		return err
	}
	for _, ev := range l.mine {
		if less(l.end.Version, ev.Version) {
			return fmt.Errorf("%s before the end at version %s", describe(ev), l.end.Version)
		}
	}
	if err := t.wrote(f, "~b=blue -a +a=green +d=red"); err != nil {
		return fmt.Errorf("after the list: %w", err)
	}
	return nil
}

func (t *trial[T]) streamNotOlder() error {
	writes, err := t.write("+a=red +b=red ~a=blue")
	if err != nil {
		return err
	}
	version := writes[2].version
	f, l, err := t.openStream(version)
	if f == nil {
		return err
	}
	defer f.stop()
	if less(l.end.Version, version) {
		return fmt.Errorf("the list is of version %s, want at least %s", l.end.Version, version)
	}
	return t.holds(l.mine, t.state())
}

func (t *trial[T]) streamTooLarge() error {
	version, err := t.begin("+a=red")
	if err != nil {
		return err
	}
	t.patience = unreached
	f, _, err := t.openStream(version + farther)
	switch {
	case f != nil:
		f.stop()
		return notReached(nil)
	case err == nil:
		return nil // streams are refused
	}
	return notReached(err)
}
