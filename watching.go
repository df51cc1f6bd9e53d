package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// streamSilence is how long a streaming list may send nothing.
	streamSilence = 30 * time.Second
	// watchPace is the least time from the start of a watch that ended well to
	// the next request.
	watchPace = time.Second
	// silentWatches is how many watches in a row may bring nothing before the
	// server is asked whether it has the version at all.
	silentWatches = 2
)

// A watchRequest is one watch, plain or as a streaming list.
type watchRequest struct {
	*watchdog
	asked time.Duration // that the server is to keep it open
}

// deadline is the time after which a watch that has not ended is abandoned. It
// is later than asked, so that the server, which knows better, ends it first.
func (q *watchRequest) deadline() time.Duration {
	return q.asked + min(q.asked/20, 10*time.Second)
}

// lasted reports that the watch has been open for so long that whatever ended
// it is no sign of trouble. The answered says that the server has said anything.
// If not, the time may have gone by while a connection was tried, and it must
// have been longer.
func (q *watchRequest) lasted(answered bool) bool {
	enough := quietSettled
	if answered {
		enough = settled
	}
	return q.age() >= min(enough, q.asked)
}

// watch runs a request that watches, from the phase *streaming or *watching.
func (r *Reflector[T]) watch(ctx context.Context, at phase) result {
	r.health.update(func(s *Status) { s.Watches++ })
	q, opts := r.newWatch(ctx, at)
	defer q.stop()

	var err error
	for ev, failure := range r.events(ctx, r.source.Watch(q.ctx, opts)) {
		q.hold()
		if err = failure; err == nil {
			at, err = r.watched(ctx, q, at, ev)
		}
		if err != nil {
			break
		}
		q.listen()
	}
	r.health.watching(time.Time{})
	switch at := at.(type) {
	case *streaming:
		return r.streamEnded(q, at, err)
	case *watching:
		return r.watchEnded(ctx, q, at, err)
	default:
		panic(fmt.Sprintf("informer: bug: a watch in phase %T", at))
	}
}

// newWatch returns the request for a phase, and its options. The time that it
// asks for is random, or all watches that began together would end together.
func (r *Reflector[T]) newWatch(ctx context.Context, at phase) (*watchRequest, metav1.ListOptions) {
	asked := (r.opts.WatchTimeout + r.backoff.random(r.opts.WatchTimeout)).Truncate(time.Second)
	q := &watchRequest{watchdog: newWatchdog(ctx), asked: asked}

	opts := r.options()
	opts.AllowWatchBookmarks = true
	opts.TimeoutSeconds = new(int64(asked / time.Second))
	switch at := at.(type) {
	case *streaming:
		opts.SendInitialEvents = new(true)
		opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		if !at.recent {
			opts.ResourceVersion = at.reached.text
		}
		q.neverSilent(streamSilence)
		q.within(r.opts.WatchTimeout)
	case *watching:
		opts.ResourceVersion = at.version.text
		q.within(q.deadline())
		r.health.watching(q.start)
	}
	return q, opts
}

// watched passes on one event of a watch, and returns the phase after it.
func (r *Reflector[T]) watched(ctx context.Context, q *watchRequest, at phase, ev *received[T]) (phase, error) {
	switch at := at.(type) {
	case *streaming:
		return r.streamed(ctx, q, at, ev)
	case *watching:
		return at, r.followed(ctx, at, ev)
	default:
		panic(fmt.Sprintf("informer: bug: an event in phase %T", at))
	}
}

// streamed passes on one event of a streaming list.
func (r *Reflector[T]) streamed(ctx context.Context, q *watchRequest, at *streaming, ev *received[T]) (phase, error) {
	switch ev.Type {
	case EventBookmark: // says nothing that the end would not
		return at, nil
	case EventAdded:
		// The object may be in the list and appear again before its end.
		ev.Type = EventModified
		return at, r.item(&at.list, ev)
	case EventModified, EventDeleted, EventBad:
		return at, r.item(&at.list, ev)
	case EventEnd:
	default:
		return at, unexpected(ev.Type)
	}
	if at.outdated(ev.Version) {
		return at, errOutdated
	}
	q.silenceAllowed()
	q.within(q.deadline())
	r.health.watching(q.start)
	return &watching{version: versionOf(ev.Version), heard: true}, r.end(ctx, &at.list, ev.Version)
}

// followed passes on one event of a watch, unless it is older than what the
// stream has reached.
func (r *Reflector[T]) followed(ctx context.Context, at *watching, ev *received[T]) error {
	switch ev.Type {
	case EventAdded, EventModified, EventDeleted, EventBad, EventBookmark:
	default:
		return unexpected(ev.Type)
	}
	version, old := at.version.advance(versionOf(ev.Version))
	if old {
		r.health.update(func(s *Status) { s.Dropped++ })
		return nil
	}
	taken, err := r.deliver(ev)
	if err != nil {
		return err
	}
	at.heard, at.silent, at.version = true, 0, version
	r.log.changed(ctx, r.health.follow(version.text, taken, ev.Key), nil)
	return nil
}

// streamEnded returns what follows a streaming list that was not completed.
func (r *Reflector[T]) streamEnded(q *watchRequest, at *streaming, err error) result {
	err = q.reason(err)
	plain := &listing{list: list{reached: at.reached, recent: at.recent}}
	switch {
	case errors.Is(err, errOutdated):
		return result{next: r.listAgain(list{reached: at.reached, recent: true})}
	case err == nil && q.age() < q.asked:
		err = errIncomplete
	case err == nil:
		err = fmt.Errorf("%w: closed after %v", errOverdue, q.age())
	case refuses(err):
		// The server's age is no failure.
		r.refused = true
		return result{next: plain}
	}
	ignored := errors.Is(err, errOverdue)
	r.refused = r.refused || ignored
	plain.recent = plain.recent || expired(err)
	return result{next: plain, op: opStream, err: err, atOnce: ignored}
}

// watchEnded returns what follows a watch.
func (r *Reflector[T]) watchEnded(ctx context.Context, q *watchRequest, at *watching, err error) result {
	err = q.reason(err)
	ended := err == nil || errors.Is(err, errOverdue)
	lasted := q.lasted(ended || at.heard)
	if lasted {
		r.backoff.reset()
	}
	if lasted || ended {
		r.succeeded(ctx, StateWatching)
	}
	if ended {
		return result{next: r.afterWatch(at), pause: watchPace - q.age()}
	}
	failed := result{op: opWatch, err: err}
	switch {
	case apierrors.IsMethodNotSupported(err):
		failed.err = fmt.Errorf("%w: %w", ErrWatchNotSupported, err)
	case expired(err):
		failed.next = r.listAgain(list{reached: at.version, recent: tooLarge(err)})
	case refuses(err):
		// The version means nothing to the server.
		failed.next = r.listAgain(list{reached: at.version, recent: true})
	case at.version.text == "":
		failed.next = r.listAgain(list{})
	default:
		// Broken off is neither silence nor an answer.
		failed.next = &watching{version: at.version, silent: at.silent}
	}
	return failed
}

// afterWatch returns what follows a watch that ended as it should.
func (r *Reflector[T]) afterWatch(at *watching) phase {
	silent := at.silent
	if !at.heard {
		silent++
	}
	switch {
	case at.version.text == "":
		// There is nothing to resume from.
		return r.listAgain(list{})
	case silent >= silentWatches:
		return &probing{version: at.version}
	}
	return &watching{version: at.version, silent: silent}
}
