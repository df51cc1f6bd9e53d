package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Pager reads a whole collection once, page by page: for programs that do not
// need to follow what changes. All is the method that most callers want.
//
// It asks for pages of at most opts.Limit objects, 500 if that is zero, and
// holds one page (All through [FromREST]: one object). The first request
// carries the options as given; the others leave out resource version and
// match, as the API demands. All pages together are the state of the server
// at one moment.
//
// An error that is an *[ObjectError] concerns one object, and the sequence goes
// on. So it does after an error that wraps [ErrRestarted]: the server forgot
// the list before its last page was read, and the pager starts over, once: all
// that was yielded before is to be thrown away. If the server forgets the
// second list too, that is the end. Any other error is the last thing that a
// sequence yields; when the context ends, that is its error.
//
// A Pager has no state of its own: its methods may be called at any time, and
// concurrently if its source allows that. Those of [FromClient] and [FromREST]
// do.
type Pager[T Object] struct {
	source ListerWatcher[T]
}

// NewPager returns a pager over source. It returns an error if the source is
// nil, or was made of a nil client or function.
func NewPager[T Object](source ListerWatcher[T]) (*Pager[T], error) {
	if err := sourceError(source); err != nil {
		return nil, err
	}
	return &Pager[T]{source: source}, nil
}

// All yields the objects one by one, as they come. With an error comes no
// object. Besides the errors that [Pager] tells of, it yields one if opts has a
// negative limit, a continue token, or asks for a watch.
func (p *Pager[T]) All(ctx context.Context, opts metav1.ListOptions) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		p.walk(ctx, opts, yield, func() bool { return true })
	}
}

// Pages yields the pages, which may be empty, as the server has cut them. Each
// is the caller's own. With an error comes no page; the objects that a page
// cannot show are told of before it. Errors are those of All.
func (p *Pager[T]) Pages(ctx context.Context, opts metav1.ListOptions) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var page []T
		room := 0 // the next page is as long as the last one, if that was not the end
		object := func(obj T, err error) bool {
			switch {
			case err == nil:
				if page == nil {
					page = make([]T, 0, room)
				}
				page = append(page, obj)
				return true
			case errors.Is(err, ErrRestarted):
				page = nil
			}
			return yield(nil, err)
		}
		p.walk(ctx, opts, object, func() bool {
			full := page
			page, room = nil, len(full)
			return yield(full, nil)
		})
	}
}

// walk lists all pages. It calls object with each object or error, and end at
// the end of each page, until one of them returns false.
func (p *Pager[T]) walk(
	ctx context.Context, opts metav1.ListOptions, object func(T, error) bool, end func() bool,
) {
	var none T
	if err := checkPagerOptions(opts); err != nil {
		object(none, err)
		return
	}
	opts.Limit = orElse(opts.Limit, defaultPageSize)
	request := opts
	restarted := false
	for {
		next, err := p.page(ctx, request, object, end)
		switch {
		case errors.Is(err, errLeft):
			return
		case err != nil && request.Continue != "" && !restarted && apierrors.IsResourceExpired(err):
			restarted = true
			if !object(none, fmt.Errorf("%w: %w", ErrRestarted, err)) {
				return
			}
			request = opts
			continue
		case err == nil && next != "" && next == request.Continue:
			err = errors.New("informer: pager: the server sent the same continue token twice")
		}
		if err != nil {
			object(none, err)
			return
		}
		if next == "" {
			return
		}
		request.Continue = next
		request.ResourceVersion, request.ResourceVersionMatch = "", ""
	}
}

// page lists one page, and returns the token of the next. The error is errLeft
// if object or end has returned false.
func (p *Pager[T]) page(
	ctx context.Context, opts metav1.ListOptions, object func(T, error) bool, end func() bool,
) (next string, err error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	complete := false
	// Not a range loop: its body costs as much again as all the rest.
	p.source.List(ctx, opts)(func(ev Event[T], bad error) bool {
		if bad != nil {
			if _, one := errors.AsType[*ObjectError](bad); !one {
				err = bad
				return false
			}
		}
		if ended := ctx.Err(); ended != nil {
			err = ended
			return false
		}
		more := false
		if bad == nil && ev.Type == EventEnd {
			next, complete = ev.Continue, true
			more = end()
		} else {
			more = object(ev.Object, bad)
		}
		if !more {
			err = errLeft
		}
		return more
	})
	if err != nil {
		return "", err
	}
	if !complete {
		return "", errors.New("informer: pager: the source ended a list without an end or an error")
	}
	return next, nil
}

// checkPagerOptions returns every mistake in opts.
func checkPagerOptions(opts metav1.ListOptions) error {
	var errs []error
	if opts.Limit < 0 {
		errs = append(errs, fmt.Errorf("limit is %d: must not be negative", opts.Limit))
	}
	if opts.Continue != "" {
		errs = append(errs, fmt.Errorf("continue is %q: must be empty, a pager reads whole lists", opts.Continue))
	}
	if opts.Watch || opts.SendInitialEvents != nil {
		errs = append(errs, errors.New("watch and sendInitialEvents must not be set: a pager lists"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("informer: pager: %w", err)
	}
	return nil
}
