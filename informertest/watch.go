package informertest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// minWatch is the shortest a watch lasts for which no timeout was asked.
	minWatch = 30 * time.Minute
	// lastBookmark is how long before the end of a watch a bookmark is due.
	lastBookmark = 2 * time.Second
	// watchBatch is how many changes are looked at under the lock at a time.
	watchBatch = 512
)

// watcher sends changes to one client, on the goroutine of the request.
type watcher struct {
	selection
	store     *store
	view      view
	w         http.ResponseWriter
	version   int64         // up to which everything has been sent
	from      int64         // where it started
	bookmarks time.Duration // between two of them; 0 for none
	end       time.Time
	epoch     int // of the store
}

// watchQuery says where a watch starts.
type watchQuery struct {
	initial   bool  // with the current objects
	endMark   bool  // and a bookmark after them
	notBefore int64 // the version that must have been reached for initial
	from      int64 // the version after which changes are told; 0 for now
	stale     int64 // an older version that initial shows; 0 for the current one
}

func newWatchQuery(opts internalversion.ListOptions, current int64) (watchQuery, error) {
	version, bad := parseVersion(opts.ResourceVersion)
	if bad != nil {
		return watchQuery{}, bad
	}
	if opts.SendInitialEvents == nil || !*opts.SendInitialEvents {
		return watchQuery{from: version}, nil
	}
	if opts.ResourceVersion == "" {
		version = current
	}
	return watchQuery{initial: true, endMark: opts.AllowWatchBookmarks, notBefore: version}, nil
}

func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, t target, opts internalversion.ListOptions, sel selection) {
	v, err := viewOf(r, t.resource, false)
	if err != nil {
		writeError(w, err)
		return
	}
	q, err := newWatchQuery(opts, s.store.current())
	if err != nil {
		writeError(w, err)
		return
	}
	q.stale, _ = r.Context().Value(staleKey{}).(int64)
	timeout := minWatch + rand.N(minWatch)
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		timeout = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	watching := &watcher{selection: sel, store: s.store, view: v, w: w, end: time.Now().Add(timeout), epoch: s.store.epochNow()}
	if opts.AllowWatchBookmarks {
		watching.bookmarks = s.opts.BookmarkInterval
	}
	watching.serve(ctx, q)
}

// serve runs the watch until it ends. An error that is found after the options
// were understood comes in the stream, as from a real server.
func (w *watcher) serve(ctx context.Context, q watchQuery) {
	w.w.Header().Set("Content-Type", "application/json")
	w.w.WriteHeader(http.StatusOK)
	err := w.start(ctx, q)
	if err == nil {
		err = w.follow(ctx)
	}
	if err != nil && ctx.Err() == nil {
		// Where the client has gone away, there is nobody to tell.
		_ = w.sendStatus(err)
	}
}

// start sends what comes before the changes, and says where those begin.
func (w *watcher) start(ctx context.Context, q watchQuery) error {
	if !q.initial {
		if err := w.startAt(q.from); err != nil {
			return err
		}
		return w.flush()
	}
	if err := w.store.waitFor(ctx, q.notBefore); err != nil {
		return err
	}
	p, err := w.store.list(ctx, listQuery{selection: w.selection, exact: q.stale})
	if err != nil {
		return err
	}
	w.version, w.from = p.version, p.version
	for _, r := range p.records {
		if err := w.send(watch.Added, r); err != nil {
			return err
		}
	}
	if q.endMark {
		return w.sendBookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return w.flush()
}

// startAt starts after a version, which may be one that is not reached yet.
func (w *watcher) startAt(version int64) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if version == 0 {
		version = w.store.version
	}
	if version < w.store.floor {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, w.store.floor))
	}
	w.version, w.from = version, version
	return nil
}

// follow sends changes and bookmarks until the context ends. A client so slow
// that history has passed it by is left: the stream ends.
func (w *watcher) follow(ctx context.Context) error {
	due := time.NewTimer(w.untilBookmark())
	defer due.Stop()
	for {
		changes, upTo, changed := w.next()
		if changes == nil && changed == nil {
			return nil
		}
		if err := w.sendChanges(changes, upTo); err != nil {
			return err
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-due.C:
			if err := w.bookmarkIfNew(); err != nil {
				return err
			}
			due.Reset(w.untilBookmark())
		case <-ctx.Done():
			return nil
		}
	}
}

// next returns the next changes of the resource and the version they lead to.
// If those are all, changed tells of the next one. If the history does not go
// back far enough, or is another one than it was, there is neither.
func (w *watcher) next() (changes []change, upTo int64, changed <-chan struct{}) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.version < w.store.floor || w.epoch != w.store.epoch {
		return nil, 0, nil
	}
	pending := w.store.sinceLocked(w.version)
	if len(pending) > watchBatch {
		pending = pending[:watchBatch]
	} else {
		changed = w.store.changedLocked()
	}
	upTo = w.version
	changes = make([]change, 0, len(pending))
	for _, c := range pending {
		upTo = c.version
		if c.resource() == w.resource.groupResource() {
			changes = append(changes, c)
		}
	}
	return changes, upTo, changed
}

// sendChanges sends what concerns the selection, out of all up to a version.
func (w *watcher) sendChanges(changes []change, upTo int64) error {
	sent := false
	for _, c := range changes {
		was, is := w.matches(c.old), w.matches(c.new)
		var err error
		switch {
		case is && !was:
			err = w.send(watch.Added, c.new)
		case is && was:
			err = w.send(watch.Modified, c.new)
		case was:
			err = w.sendDeleted(c)
		default:
			continue
		}
		if err != nil {
			return err
		}
		sent = true
	}
	w.version = upTo
	if !sent {
		return nil
	}
	return w.flush()
}

// sendDeleted sends the last state that matched, at the version of the change.
func (w *watcher) sendDeleted(c change) error {
	last, err := c.old.at(c.version)
	if err != nil {
		return err
	}
	return w.send(watch.Deleted, last)
}

func (w *watcher) send(event watch.EventType, r *record) error {
	body, err := w.view.object(r)
	if err != nil {
		return err
	}
	return w.write(event, body)
}

func (w *watcher) write(event watch.EventType, body []byte) error {
	_, err := w.w.Write(encodeFrame(event, body))
	return err
}

func (w *watcher) flush() error { return http.NewResponseController(w.w).Flush() }

func (w *watcher) sendStatus(err error) error {
	body, encodeErr := json.Marshal(statusOf(err))
	if encodeErr != nil {
		return encodeErr
	}
	if err := w.write(watch.Error, body); err != nil {
		return err
	}
	return w.flush()
}

// untilBookmark returns how long it is to the next bookmark: the interval, but
// one comes shortly before the end.
func (w *watcher) untilBookmark() time.Duration {
	left := time.Until(w.end)
	if w.bookmarks == 0 || left < lastBookmark {
		return left + time.Hour // never
	}
	if last := left - lastBookmark; last < w.bookmarks && last > 0 {
		return last
	}
	return w.bookmarks
}

// bookmarkIfNew sends a bookmark, unless nothing was written since the watch
// started. As from a real server, it may say the same as the one before.
func (w *watcher) bookmarkIfNew() error {
	if w.version <= w.from {
		return nil
	}
	return w.sendBookmark(nil)
}

func (w *watcher) sendBookmark(annotations map[string]string) error {
	mark := metav1.PartialObjectMetadata{TypeMeta: w.view.kind()}
	mark.ResourceVersion = formatVersion(w.version)
	mark.Annotations = annotations
	body, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	if err := w.write(watch.Bookmark, body); err != nil {
		return err
	}
	return w.flush()
}
