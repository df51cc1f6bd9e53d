package informer_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// The three structures under the store are tried against the naive one, with
// every snapshot kept for ever and written to as well.

// TestVecModel is for promise 1.
func TestVecModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epochs := 0
		vecs, models := []*informer.TestVec{{}}, [][]int{nil}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(vecs)-1).Draw(t, "which")
			v, m := vecs[i], models[i]
			n := rapid.IntRange(1, 100).Draw(t, "n")
			switch op := rapid.SampledFrom([]string{"push", "pop", "set", "fork"}).Draw(t, "op"); op {
			case "push":
				for range n {
					v.Push(n)
					m = append(m, n)
				}
			case "pop":
				for range min(n, len(m)) {
					if got, want := v.Pop(), m[len(m)-1]; got != want {
						t.Fatalf("Pop() = %d, want %d", got, want)
					}
					m = m[:len(m)-1]
				}
			case "set":
				if len(m) > 0 {
					at := rapid.IntRange(0, len(m)-1).Draw(t, "at")
					v.Set(at, -n)
					m[at] = -n
				}
			case "fork":
				vecs, models = append(vecs, v.Fork(&epochs)), append(models, slices.Clone(m))
			}
			models[i] = m
			for i, v := range vecs {
				if err := v.Validate(); err != nil {
					t.Fatal(err)
				}
				if got := v.List(); !slices.Equal(got, models[i]) {
					t.Fatalf("snapshot %d = %v, want %v", i, got, models[i])
				}
			}
		}
	})
}

// TestTableModel is for promise 1.
func TestTableModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epochs := 0
		tables, models := []*informer.TestTable{{}}, []map[int]int{{}}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(tables)-1).Draw(t, "which")
			table, m := tables[i], models[i]
			from := rapid.IntRange(0, 300).Draw(t, "from")
			to := from + rapid.IntRange(1, 100).Draw(t, "n")
			switch rapid.SampledFrom([]string{"put", "remove", "fork", "renew"}).Draw(t, "op") {
			case "renew":
				twice := maps.Clone(m)
				for k := range twice {
					twice[k] *= 2
				}
				tables, models = append(tables, table.Renew(&epochs)), append(models, twice)
			case "put":
				for k := from; k < to; k++ {
					_, want := m[k]
					if had := table.Put(k, step); had != want {
						t.Fatalf("put(%d) = had %v, want %v", k, had, want)
					}
					m[k] = step
				}
			case "remove":
				for k := from; k < to; k++ {
					table.Remove(k)
					delete(m, k)
				}
			case "fork":
				tables, models = append(tables, table.Fork(&epochs)), append(models, maps.Clone(m))
			}
			for i, table := range tables {
				if err := table.Validate(); err != nil {
					t.Fatal(err)
				}
				if got := table.Map(); !maps.Equal(got, models[i]) {
					t.Fatalf("snapshot %d = %v, want %v", i, got, models[i])
				}
			}
			for k := from; k < to; k++ {
				got, had := table.Get(k)
				if want, ok := m[k]; got != want || had != ok {
					t.Fatalf("find(%d) = %d, %v, want %d, %v", k, got, had, want, ok)
				}
			}
		}
	})
}

// TestPostingModel is for promises 1 and 6.
func TestPostingModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epochs := 0
		sets, models := []*informer.TestPosting{{}}, []map[uint32]bool{{0: true}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(sets)-1).Draw(t, "which")
			p, m := sets[i], models[i]
			from := rapid.Uint32Range(0, 300).Draw(t, "from")
			to, step := from+rapid.Uint32Range(1, 400).Draw(t, "n"), rapid.Uint32Range(1, 30).Draw(t, "step")
			switch rapid.SampledFrom([]string{"add", "add", "remove", "move", "fork"}).Draw(t, "op") {
			case "add":
				for s := from; s < to; s++ {
					p.Add(s * step)
					m[s*step] = true
				}
			case "remove":
				for s := from; s < to && len(m) > 1; s++ {
					p.Remove(s * step)
					delete(m, s*step)
				}
			case "move": // to a third of the distance; those between go
				moved, now := make([]uint32, 30*700+1), map[uint32]bool{}
				for s := range m {
					if s%3 == 0 {
						moved[s], now[s/3] = s/3+1, true
					}
				}
				if fork := p.Fork(&epochs); fork.Move(moved) != (len(now) > 0) {
					t.Fatalf("move says that any are left of %v", now)
				} else if len(now) > 0 {
					sets, models = append(sets, fork), append(models, now)
				}
			case "fork":
				sets, models = append(sets, p.Fork(&epochs)), append(models, maps.Clone(m))
			}
			for i, p := range sets {
				if err := p.Validate(); err != nil {
					t.Fatal(err)
				}
				want := slices.Sorted(maps.Keys(models[i]))
				if got := p.List(); !slices.Equal(got, want) || p.Len() != len(want) {
					t.Fatalf("snapshot %d = %v, of len() %d, want %v", i, got, p.Len(), want)
				}
				if got := p.Only(want[0]); got != (len(want) == 1) {
					t.Fatalf("only(%d) = %v in %v", want[0], got, want)
				}
			}
		}
	})
}
