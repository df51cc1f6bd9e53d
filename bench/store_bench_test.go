package bench

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/seed-99a027e8/informer/bench/fixture"
)

type podT = corev1.Pod

// many is how many objects the store rows are about.
const many = 100_000

func BenchmarkS1_Add(b *testing.B) { benchAdd(b, pods, many) }

func benchAdd[T fixture.Object](b *testing.B, fix *made[T], n int) {
	objs := fix.first(n)
	compare(b, func(b *testing.B) {
		var x ourStore[T]
		passes(b, n, func() { x = newOurStore(b, fix.kind) }, func() {
			for _, obj := range objs {
				must(b, x.Add(obj))
			}
		})
	}, func(b *testing.B) {
		var x cache.Indexer
		passes(b, n, func() { x = newTheirStore(fix.kind) }, func() {
			for _, obj := range objs {
				must(b, x.Add(obj))
			}
		})
	})
}

func BenchmarkS2_Held(b *testing.B) { benchHeld(b, pods, many) }

func benchHeld[T fixture.Object](b *testing.B, fix *made[T], n int) {
	objs := fix.first(n)
	compare(b, func(b *testing.B) {
		reportHeld(b, n, func() any {
			x := newOurStore(b, fix.kind)
			for _, obj := range objs {
				must(b, x.Add(obj))
			}
			return x
		})
	}, func(b *testing.B) {
		reportHeld(b, n, func() any {
			x := newTheirStore(fix.kind)
			for _, obj := range objs {
				must(b, x.Add(obj))
			}
			return x
		})
	})
}

func reportHeld(b *testing.B, n int, make func() any) {
	b.StopTimer()
	b.ReportMetric(heldBy(make)/float64(n), "held-B/object")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkS3_UpdateSame(b *testing.B) { benchUpdate(b, pods, many, pods.kind.TouchAll) }

func BenchmarkS4_UpdateMove(b *testing.B) { benchMove(b, pods, many) }

func benchMove[T fixture.Object](b *testing.B, fix *made[T], n int) {
	benchUpdate(b, fix, n, func(objs []T, first uint64) []T { return moveAll(fix.kind, objs, first) })
}

// moveAll moves each object to another group and label.
func moveAll[T fixture.Object](kind fixture.Kind[T], objs []T, first uint64) []T {
	next := make([]T, len(objs))
	for i, obj := range objs {
		group := kind.Group(objs[(i+fixture.PerGroup)%len(objs)])
		next[i] = kind.Move(obj, first+uint64(i), group, fmt.Sprintf("v1.43.%d", i%50))
	}
	return next
}

// benchUpdate goes from one version of every object to another and back, in
// random order.
func benchUpdate[T fixture.Object](b *testing.B, fix *made[T], n int, change func([]T, uint64) []T) {
	objs := fix.first(n)
	turns := [2][]T{change(objs, 1_000_000), objs}
	order := fixture.Order(n)
	compare(b, func(b *testing.B) {
		x, turn := newOurStore(b, fix.kind), 0
		must(b, x.Replace(objs, "1"))
		passes(b, n, nil, func() {
			next := turns[turn%2]
			for _, i := range order {
				must(b, x.Update(next[i]))
			}
			turn++
		})
	}, func(b *testing.B) {
		x, turn := newTheirStore(fix.kind), 0
		fillTheirs(b, x, objs)
		passes(b, n, nil, func() {
			next := turns[turn%2]
			for _, i := range order {
				must(b, x.Update(next[i]))
			}
			turn++
		})
	})
}

func BenchmarkS5_Delete(b *testing.B) { benchDelete(b, pods, many) }

func benchDelete[T fixture.Object](b *testing.B, fix *made[T], n int) {
	objs, order := fix.first(n), fixture.Order(n)
	compare(b, func(b *testing.B) {
		x := newOurStore(b, fix.kind)
		passes(b, n, func() { must(b, x.Replace(objs, "1")) }, func() {
			for _, i := range order {
				must(b, x.Delete(objs[i]))
			}
		})
	}, func(b *testing.B) {
		x := newTheirStore(fix.kind)
		passes(b, n, func() { fillTheirs(b, x, objs) }, func() {
			for _, i := range order {
				must(b, x.Delete(objs[i]))
			}
		})
	})
}

func BenchmarkS6_Get(b *testing.B) {
	for _, n := range []int{10_000, many} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) { benchGet(b, pods, n) })
	}
}

// benchGet looks all objects up in random order, by keys that are at hand in the
// form that either side wants.
func benchGet[T fixture.Object](b *testing.B, fix *made[T], n int) {
	objs, order := fix.first(n), fixture.Order(n)
	compare(b, func(b *testing.B) {
		x, keys := newOurStore(b, fix.kind), fixture.KeysOf(objs)
		must(b, x.Replace(objs, "1"))
		passes(b, n, nil, func() {
			for _, i := range order {
				if _, ok := x.Get(keys[i]); !ok {
					b.Fatal("lost")
				}
			}
		})
	}, func(b *testing.B) {
		x, keys := newTheirStore(fix.kind), stringKeys(objs)
		fillTheirs(b, x, objs)
		passes(b, n, nil, func() {
			for _, i := range order {
				found, ok, _ := x.GetByKey(keys[i])
				if _, right := found.(T); !ok || !right {
					b.Fatal("lost")
				}
			}
		})
	})
}

// stringKeys are the keys of client-go.
func stringKeys[T fixture.Object](objs []T) []string {
	keys := make([]string, len(objs))
	for i, obj := range objs {
		keys[i] = cache.MetaObjectToName(obj).String()
	}
	return keys
}

func BenchmarkS8_ByIndex(b *testing.B) {
	b.Run("matches=1", func(b *testing.B) {
		benchByLabel(b, pods, many, func(obj *podT) fixture.Label { return fixture.Label{Name: "uniq", Value: obj.Labels["uniq"]} })
	})
	b.Run("matches=100", func(b *testing.B) { benchByGroup(b, pods, many) })
	b.Run("matches=10000", func(b *testing.B) { benchByNamespace(b) })
}

// lookups is how many values a pass asks for.
const lookups = 1000

func benchByLabel[T fixture.Object](b *testing.B, fix *made[T], n int, of func(T) fixture.Label) {
	objs, order := fix.first(n), fixture.Order(n)
	compare(b, func(b *testing.B) {
		x := newOurStore(b, fix.kind)
		must(b, x.Replace(objs, "1"))
		values := make([]fixture.Label, lookups)
		for i := range values {
			values[i] = of(objs[order[i]])
		}
		passes(b, lookups, nil, func() {
			found := 0
			for _, value := range values {
				for range x.label.Get(value) {
					found++
				}
			}
			expect(b, found, lookups)
		})
	}, func(b *testing.B) {
		x := newTheirStore(fix.kind)
		fillTheirs(b, x, objs)
		values := make([]string, lookups)
		for i := range values {
			values[i] = of(objs[order[i]]).String()
		}
		passes(b, lookups, nil, func() {
			found := 0
			for _, value := range values {
				found += countTheirs[T](b, x, byLabel, value)
			}
			expect(b, found, lookups)
		})
	})
}

// countTheirs asks client-go, and makes its objects what they were.
func countTheirs[T any](b *testing.B, x cache.Indexer, index, value string) int {
	objs, err := x.ByIndex(index, value)
	must(b, err)
	found := 0
	for _, obj := range objs {
		if _, ok := obj.(T); ok {
			found++
		}
	}
	return found
}

func expect(b *testing.B, got, want int) {
	if got != want {
		b.Helper()
		b.Fatalf("found %d, want %d", got, want)
	}
}

func benchByGroup[T fixture.Object](b *testing.B, fix *made[T], n int) {
	objs := fix.first(n)
	order := fixture.Order(n / fixture.PerGroup)
	groups := make([]string, len(order))
	for i, j := range order {
		groups[i] = fix.kind.Group(objs[j*fixture.PerGroup])
	}
	compare(b, func(b *testing.B) {
		x := newOurStore(b, fix.kind)
		must(b, x.Replace(objs, "1"))
		passes(b, len(groups), nil, func() {
			found := 0
			for _, group := range groups {
				for range x.group.Get(group) {
					found++
				}
			}
			expect(b, found, n)
		})
	}, func(b *testing.B) {
		x := newTheirStore(fix.kind)
		fillTheirs(b, x, objs)
		passes(b, len(groups), nil, func() {
			found := 0
			for _, group := range groups {
				found += countTheirs[T](b, x, byGroup, group)
			}
			expect(b, found, n)
		})
	})
}

// benchByNamespace uses the index that both have built in.
func benchByNamespace(b *testing.B) {
	objs := pods.first(many)
	compare(b, func(b *testing.B) {
		x := newOurStore(b, pods.kind)
		must(b, x.Replace(objs, "1"))
		passes(b, fixture.Namespaces, nil, func() {
			found := 0
			for i := range fixture.Namespaces {
				for range x.In(objs[i].Namespace) {
					found++
				}
			}
			expect(b, found, many)
		})
	}, func(b *testing.B) {
		x := newTheirStore(pods.kind)
		fillTheirs(b, x, objs)
		passes(b, fixture.Namespaces, nil, func() {
			found := 0
			for i := range fixture.Namespaces {
				found += countTheirs[*podT](b, x, cache.NamespaceIndex, objs[i].Namespace)
			}
			expect(b, found, many)
		})
	})
}

// listCycles is how many cycles of the garbage collector a list is measured
// over: a slice of all objects is mostly work for it.
const listCycles = 2

func BenchmarkS9_List(b *testing.B) {
	objs := pods.first(many)
	theirs := func(cycles uint32) func(b *testing.B) {
		return func(b *testing.B) {
			x := newTheirStore(pods.kind)
			fillTheirs(b, x, objs)
			passesOver(b, cycles, 1, nil, func() {
				found := 0
				for _, obj := range x.List() {
					if obj.(*podT) != nil {
						found++
					}
				}
				expect(b, found, many)
			})
		}
	}
	ours := func(cycles uint32, run func(x ourStore[*podT]) int) func(b *testing.B) {
		return func(b *testing.B) {
			x := newOurStore(b, pods.kind)
			must(b, x.Replace(objs, "1"))
			passesOver(b, cycles, 1, nil, func() { expect(b, run(x), many) })
		}
	}
	b.Run("list", func(b *testing.B) {
		compare(b, ours(listCycles, func(x ourStore[*podT]) int {
			found := 0
			for _, obj := range x.List() {
				if obj != nil {
					found++
				}
			}
			return found
		}), theirs(listCycles))
	})
	b.Run("snapshot", func(b *testing.B) {
		compare(b, ours(0, func(x ourStore[*podT]) int { return x.Snapshot().Len() }), theirs(0))
	})
	b.Run("iterate", func(b *testing.B) {
		compare(b, ours(0, func(x ourStore[*podT]) int {
			found := 0
			for obj := range x.All() {
				if obj != nil {
					found++
				}
			}
			return found
		}), theirs(0))
	})
}
