package informer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listSilence is how long a plain list may send nothing. The server's own limit
// for such a request is a minute; the rest is for a slow line and a slow
// decoder.
const listSilence = 5 * time.Minute

// list asks for one page.
func (r *Reflector[T]) list(ctx context.Context, at *listing) result {
	r.health.update(func(s *Status) { s.Lists++ })
	dog := newWatchdog(ctx)
	defer dog.stop()
	dog.neverSilent(listSilence)

	for ev, err := range r.events(ctx, r.source.List(dog.ctx, r.listOptions(at))) {
		dog.hold()
		if err == nil {
			err = r.listed(at, ev)
		}
		if err != nil {
			return r.listFailed(at, dog.reason(err))
		}
		if ev.Type == EventEnd {
			return r.pageEnded(ctx, at, ev.Event)
		}
		dog.listen()
	}
	return r.listFailed(at, dog.reason(errIncomplete))
}

// listOptions returns the options for one page.
func (r *Reflector[T]) listOptions(at *listing) metav1.ListOptions {
	opts := r.options()
	opts.Limit = int64(orElse(r.opts.PageSize, defaultPageSize))
	switch {
	case at.token != "":
		opts.Continue = at.token
	case at.recent:
	case at.reached.text == "":
		opts.ResourceVersion = "0"
	default:
		opts.ResourceVersion = at.reached.text
		opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return opts
}

// listed passes on an event of a page, but for its end.
func (r *Reflector[T]) listed(at *listing, ev *received[T]) error {
	switch ev.Type {
	case EventEnd:
		return nil
	case EventAdded, EventBad:
		return r.item(&at.list, ev)
	}
	return unexpected(ev.Type)
}

// pageEnded returns what follows the page that end has ended.
func (r *Reflector[T]) pageEnded(ctx context.Context, at *listing, end Event[T]) result {
	switch {
	case end.Version == "":
		return r.listFailed(at, errNoVersion)
	case at.outdated(end.Version):
		return result{next: &listing{list: list{reached: at.reached, recent: true}}}
	case end.Continue != "" && end.Continue == at.token:
		return r.listFailed(at, errSameToken)
	case end.Continue != "":
		r.succeeded(ctx, StateListing)
		return result{next: &listing{list: at.list, token: end.Continue}}
	}
	if err := r.end(ctx, &at.list, end.Version); err != nil {
		return r.listFailed(at, err)
	}
	return result{next: &watching{version: versionOf(end.Version)}}
}

// listFailed returns what follows a list that failed with err. The most recent
// version is what a server has that has not the one asked for, and what a server
// understands that understands no other.
func (r *Reflector[T]) listFailed(at *listing, err error) result {
	recent := at.recent || expired(err) || refuses(err)
	return result{next: r.listAgain(list{reached: at.reached, recent: recent}), op: opList, err: err}
}

// probe asks for one object that is not older than the version, which a server
// answers from memory. To ask for one at the most recent version would be
// answered sooner by a server that is behind; but every informer at rest asks
// this now and then, and for a selector that matches little it would make the
// server read through all objects in etcd.
func (r *Reflector[T]) probe(ctx context.Context, at *probing) result {
	r.health.update(func(s *Status) { s.Lists++ })
	dog := newWatchdog(ctx)
	defer dog.stop()
	dog.neverSilent(listSilence)

	opts := r.options()
	opts.Limit = 1
	opts.ResourceVersion = at.version.text
	opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	recent := list{reached: at.version, recent: true}
	for ev, err := range r.events(ctx, r.source.List(dog.ctx, opts)) {
		switch {
		case err != nil && (expired(err) || refuses(err)):
			return result{next: r.listAgain(recent), op: opList, err: err}
		case err != nil:
			return result{next: at, op: opList, err: dog.reason(err)}
		case ev.Type == EventEnd && ev.Version == "":
			return result{next: at, op: opList, err: errNoVersion}
		case ev.Type == EventEnd && versionOf(ev.Version).isOlder(at.version):
			return result{next: r.listAgain(recent)}
		case ev.Type == EventEnd:
			return result{next: &watching{version: at.version}}
		}
	}
	return result{next: at, op: opList, err: dog.reason(errIncomplete)}
}
