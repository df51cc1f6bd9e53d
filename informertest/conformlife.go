package informertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-99a027e8/informer"
)

func (t *trial[T]) badObject() error {
	version, err := t.begin("+a=red +b=red +c=red")
	if err != nil {
		return err
	}
	writes, err := t.write("!b ~c=blue")
	if err != nil {
		return err
	}
	if err := t.lists(metav1.ListOptions{}, t.state()); err != nil {
		return err
	}
	f := t.watchFrom(metav1.ListOptions{}, version)
	defer f.stop()
	if err := t.expect(f, writes); err != nil {
		return err
	}
	if err := t.wrote(f, "~b=blue !b -b +end=red"); err != nil {
		return fmt.Errorf("when it is repaired, or deleted while it is bad: %w", err)
	}
	return nil
}

// request is a list, or a watch from a version.
type request[T informer.Object] struct {
	name string
	run  func(context.Context) iter.Seq2[informer.Event[T], error]
}

// requests returns a request of each kind. Both tell of all objects made after
// a version.
func (t *trial[T]) requests(version string) []request[T] {
	return []request[T]{
		{"list", func(ctx context.Context) iter.Seq2[informer.Event[T], error] {
			return t.rig.Source.List(ctx, metav1.ListOptions{})
		}},
		{"watch", func(ctx context.Context) iter.Seq2[informer.Event[T], error] {
			return t.rig.Source.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		}},
	}
}

func (t *trial[T]) cancelled() error {
	version, err := t.begin("+old=red")
	if err != nil {
		return err
	}
	if _, err := t.write("+a=red +b=red +c=red"); err != nil {
		return err
	}
	for _, r := range t.requests(version) {
		if err := t.cancelBefore(r); err != nil {
			return fmt.Errorf("%s, cancelled before: %w", r.name, err)
		}
		if err := t.cancelInside(r, 1); err != nil {
			return fmt.Errorf("%s, cancelled in the loop's body: %w", r.name, err)
		}
	}
	// The last event is followed by silence.
	if err := t.cancelInside(t.requests(version)[1], 3); err != nil {
		return fmt.Errorf("watch, cancelled while nothing happens: %w", err)
	}
	return nil
}

func (t *trial[T]) cancelBefore(r request[T]) error {
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	return wasCancelled(rangeOver(r.run(ctx), nil), prompt)
}

// cancelInside cancels a request in the loop's body, at the event of its nth
// own object.
func (t *trial[T]) cancelInside(r request[T], nth int) error {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	at := make(chan struct{})
	ended := rangeOver(r.run(ctx), func(ev informer.Event[T]) bool {
		if ev.Type == informer.EventAdded && t.owns(ev.Key) {
			if nth--; nth == 0 {
				cancel()
				close(at)
			}
		}
		return true
	})
	timer := time.NewTimer(t.rig.Timeout)
	defer timer.Stop()
	select {
	case <-at:
		return wasCancelled(ended, prompt)
	case err := <-ended:
		select {
		case <-at: // both at once
			return cancelError(err)
		default:
			return fmt.Errorf("before it was cancelled, it ended: %w", orAnswer(err))
		}
	case <-timer.C:
		return errSilent
	}
}

// rangeOver runs a loop over a sequence, which is left when body returns false.
// The channel gets the last error when the loop has ended.
func rangeOver[T informer.Object](
	seq iter.Seq2[informer.Event[T], error], body func(informer.Event[T]) bool,
) <-chan error {
	ended := make(chan error, 1)
	go func() { // ends with the sequence
		var last error
		for ev, err := range seq {
			last = err
			if body != nil && !body(ev) {
				break
			}
		}
		ended <- last
	}()
	return ended
}

// wasCancelled checks that a loop ends soon, with the context's error.
func wasCancelled(ended <-chan error, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case err := <-ended:
		return cancelError(err)
	case <-timer.C:
		return fmt.Errorf("it has not ended after %v", most)
	}
}

// cancelError checks that the last error of a loop is the context's.
func cancelError(last error) error {
	if !errors.Is(last, context.Canceled) {
		return fmt.Errorf("the last error is not the context's: %w", orAnswer(last))
	}
	return nil
}

// broken leaves many loops at their first event. What a client keeps for the
// next request, such as a connection, is not left behind by each of them.
func (t *trial[T]) broken() error {
	const rounds, most = 20, 10
	version, err := t.begin("+old=red")
	if err != nil {
		return err
	}
	if _, err := t.write("+a=red +b=red +c=red"); err != nil {
		return err
	}
	for _, r := range t.requests(version) {
		var left error
		label := t.prefix + r.name
		// Goroutines inherit the label from the one that starts them.
		pprof.Do(t.ctx, pprof.Labels("informertest", label), func(context.Context) {
			for range rounds {
				left = errors.Join(left, t.breakOff(r))
			}
		})
		if left != nil {
			return fmt.Errorf("%s: %w", r.name, left)
		}
		if err := t.fewGoroutines(label, most); err != nil {
			return fmt.Errorf("%d times a %s that was left: %w", rounds, r.name, err)
		}
	}
	return nil
}

// breakOff leaves a loop at its first event.
func (t *trial[T]) breakOff(r request[T]) error {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	left := make(chan struct{})
	ended := rangeOver(r.run(ctx), func(ev informer.Event[T]) bool {
		if ev.Type != 0 {
			close(left)
		}
		return false
	})
	timer := time.NewTimer(t.rig.Timeout)
	defer timer.Stop()
	select {
	case <-left:
		return soon(ended)
	case err := <-ended:
		// The loop may have ended before anybody looked.
		return err
	case <-timer.C:
		return errSilent
	}
}

// soon waits for the end of a loop that was left.
func soon(ended <-chan error) error {
	timer := time.NewTimer(prompt)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return fmt.Errorf("%v after the break the sequence still runs", prompt)
	}
}

// fewGoroutines waits until at most so many goroutines with a label are left.
func (t *trial[T]) fewGoroutines(label string, most int) error {
	began := time.Now()
	for {
		n, err := goroutines(label)
		if err != nil || n <= most {
			return err
		}
		if time.Since(began) > t.rig.Timeout {
			return fmt.Errorf("%d goroutines are left behind", n)
		}
		if err := t.pause(poll); err != nil {
			return err
		}
	}
}

// goroutines returns how many goroutines have a label. The profile is in
// groups: a line "N @ ...", and one with the labels.
func goroutines(label string) (total int, err error) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return 0, fmt.Errorf("goroutine profile: %w", err)
	}
	group := 0
	for line := range strings.Lines(profile.String()) {
		if n, _, found := strings.Cut(line, " @ "); found {
			if group, err = strconv.Atoi(n); err != nil {
				return 0, fmt.Errorf("goroutine profile: %w", err)
			}
		}
		if strings.HasPrefix(line, "# labels:") && strings.Contains(line, strconv.Quote(label)) {
			total += group
		}
	}
	return total, nil
}

func (t *trial[T]) concurrent() error {
	const requests = 3
	version, err := t.begin("+old=red")
	if err != nil {
		return err
	}
	var feeds [requests]*feed[T]
	for i := range feeds {
		feeds[i] = t.watchFrom(metav1.ListOptions{}, version)
		defer feeds[i].stop()
	}
	var all sync.WaitGroup
	var errs [2 * requests]error
	start := make(chan struct{})
	wants, err := t.write("+a=red ~a=blue +b=red")
	if err != nil {
		return err
	}
	for i, f := range feeds {
		all.Go(func() {
			<-start
			errs[i] = t.expect(f, wants)
		})
		all.Go(func() {
			<-start
			errs[requests+i] = t.lists(metav1.ListOptions{}, t.state())
		})
	}
	close(start)
	all.Wait()
	return errors.Join(errs[:]...)
}
