package informer_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// TestSlab_Model compares a slab with a map, also where all hashes collide.
func TestSlab_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s informer.Slab
		model := map[int]int{}
		hashes := rapid.SampledFrom([]uint32{1, 3, 50, 1 << 31}).Draw(rt, "hashes")
		keys := rapid.SampledFrom([]int{5, 40, 400}).Draw(rt, "keys")
		hash := func(key int) uint32 { return uint32(key) * 2654435761 % hashes }
		for range rapid.IntRange(1, 10).Draw(rt, "rounds") {
			grow := rapid.IntRange(0, 10).Draw(rt, "grow")
			for range rapid.IntRange(0, 2*keys).Draw(rt, "steps") {
				key, value := rapid.IntRange(0, keys).Draw(rt, "key"), rapid.Int().Draw(rt, "value")
				if rapid.IntRange(0, 9).Draw(rt, "op") < grow {
					s.Put(hash(key), key, value)
					model[key] = value
				} else if _, had := model[key]; s.Remove(hash(key), key) != had {
					rt.Fatalf("Remove(%d) = %v, want %v", key, !had, had)
				} else {
					delete(model, key)
				}
			}
			if err := s.Validate(); err != nil {
				rt.Fatal(err)
			}
			for key := range keys {
				got, ok := s.Get(hash(key), key)
				if want, had := model[key]; ok != had || got != want {
					rt.Fatalf("Get(%d) = %d, %v, want %d, %v", key, got, ok, want, had)
				}
			}
		}
		if s.Len() != len(model) {
			rt.Fatalf("Len() = %d, want %d", s.Len(), len(model))
		}
	})
}

// TestSlab_Room (promise 30): at any size on the way down, a slab has at most
// twice the room of one that grew to that size.
func TestSlab_Room(t *testing.T) {
	const most = 5000
	var fresh [most + 1][2]int
	var up, down informer.Slab
	for i := 1; i <= most; i++ {
		up.Put(uint32(i)*2654435761, i, i)
		fresh[i][0], fresh[i][1] = up.Rooms()
		down.Put(uint32(i)*2654435761, i, i)
	}
	for i := most; i > 1; i-- {
		down.Remove(uint32(i)*2654435761, i)
		slots, cells := down.Rooms()
		if slots > 2*max(16, fresh[i-1][0]) || cells > 2*max(16, fresh[i-1][1]) {
			t.Fatalf("%d keys: room for %d and %d, a fresh slab has %v", i-1, slots, cells, fresh[i-1])
		}
	}
}
