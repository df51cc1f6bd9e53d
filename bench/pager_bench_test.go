package bench

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/seed-99a027e8/informer"
)

// The pager rows read so many pods in pages of so many, which are in memory.
const (
	paged    = 20_000
	pageSize = 500
)

// pageSource yields events that are made already, as pageFunc returns lists that
// are decoded already.
type pageSource struct{ events []informer.Event[*podT] }

func newPageSource(objs []*podT) pageSource {
	events := make([]informer.Event[*podT], len(objs))
	for i, obj := range objs {
		events[i] = informer.EventOf(informer.EventAdded, obj)
	}
	return pageSource{events}
}

func (s pageSource) List(_ context.Context, opts metav1.ListOptions) iter.Seq2[informer.Event[*podT], error] {
	return func(yield func(informer.Event[*podT], error) bool) {
		from, to, next := pageOf(opts, len(s.events))
		for i := from; i < to; i++ {
			if !yield(s.events[i], nil) {
				return
			}
		}
		yield(informer.Event[*podT]{Type: informer.EventEnd, Version: "1", Continue: next}, nil)
	}
}

func (s pageSource) Watch(context.Context, metav1.ListOptions) iter.Seq2[informer.Event[*podT], error] {
	return func(yield func(informer.Event[*podT], error) bool) {
		yield(informer.Event[*podT]{}, errors.New("no watch"))
	}
}

// pageOf returns the limits of a page, and the token of the next.
func pageOf(opts metav1.ListOptions, n int) (from, to int, next string) {
	from, _ = strconv.Atoi(opts.Continue)
	to = min(from+int(opts.Limit), n)
	if to < n {
		next = strconv.Itoa(to)
	}
	return from, to, next
}

// newPageFunc returns lists that are made already.
func newPageFunc(objs []*podT) pager.ListPageFunc {
	pages := make(map[int]*corev1.PodList)
	for from := 0; from < len(objs); from += pageSize {
		_, to, next := pageOf(metav1.ListOptions{Continue: strconv.Itoa(from), Limit: pageSize}, len(objs))
		list := pods.kind.List(objs[from:to], metav1.ListMeta{ResourceVersion: "1", Continue: next})
		pages[from] = list.(*corev1.PodList)
	}
	return func(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		from, _ := strconv.Atoi(opts.Continue)
		return pages[from], nil
	}
}

// BenchmarkP1_PagerKept keeps every object, and with it no page.
func BenchmarkP1_PagerKept(b *testing.B) {
	objs := pods.first(paged)
	compare(b, func(b *testing.B) {
		p, err := informer.NewPager(newPageSource(objs))
		must(b, err)
		kept := make([]*podT, 0, paged)
		passes(b, paged, func() { kept = kept[:0] }, func() {
			for page, err := range p.Pages(b.Context(), metav1.ListOptions{Limit: pageSize}) {
				must(b, err)
				kept = append(kept, page...)
			}
			expect(b, len(kept), paged)
		})
	}, func(b *testing.B) {
		p := pager.New(newPageFunc(objs))
		p.PageSize = pageSize
		kept := make([]*podT, 0, paged)
		passes(b, paged, func() { kept = kept[:0] }, func() {
			must(b, p.EachListItemWithAlloc(b.Context(), metav1.ListOptions{}, func(obj runtime.Object) error {
				kept = append(kept, obj.(*podT))
				return nil
			}))
			expect(b, len(kept), paged)
		})
	})
}

// BenchmarkP2_PagerIterate looks at every object.
func BenchmarkP2_PagerIterate(b *testing.B) {
	objs := pods.first(paged)
	compare(b, func(b *testing.B) {
		p, err := informer.NewPager(newPageSource(objs))
		must(b, err)
		passes(b, paged, nil, func() {
			found := 0
			for obj, err := range p.All(b.Context(), metav1.ListOptions{Limit: pageSize}) {
				if err == nil && obj != nil {
					found++
				}
			}
			expect(b, found, paged)
		})
	}, func(b *testing.B) {
		p := pager.New(newPageFunc(objs))
		p.PageSize = pageSize
		passes(b, paged, nil, func() {
			found := 0
			must(b, p.EachListItem(b.Context(), metav1.ListOptions{}, func(obj runtime.Object) error {
				if obj.(*podT) != nil {
					found++
				}
				return nil
			}))
			expect(b, found, paged)
		})
	})
}
