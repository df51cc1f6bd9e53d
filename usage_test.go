package informer_test

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-99a027e8/informer"
)

// TestUsageModel is for promise 1: a state is not written while somebody reads
// it, nor ever once it is kept.
func TestUsageModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u informer.TestUsage
		var kept, claimed bool
		var gets, inside int
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"enter", "leave", "claim", "keep"}).Draw(t, "op") {
			case "enter":
				for range rapid.SampledFrom([]int{1, 1, informer.MaxGets}).Draw(t, "n") {
					kept = kept || !claimed && gets == informer.MaxGets
					in, counted := u.Enter()
					if in == claimed || counted != (in && !kept) {
						t.Fatalf("enter() = %v, counted %v, of a state claimed: %v, kept: %v, after %d", in, counted, claimed, kept, gets)
					}
					if counted {
						gets, inside = gets+1, inside+1
					}
				}
			case "leave":
				for range rapid.SampledFrom([]int{1, inside}).Draw(t, "n") {
					if inside > 0 {
						u.Leave()
						inside--
					}
				}
			case "claim":
				if claimed {
					u.Release()
					claimed, gets = false, 0
				} else if claimed = u.Claim(); claimed != (!kept && inside == 0) {
					t.Fatalf("claim() = %v of a state kept: %v, with %d inside", claimed, kept, inside)
				}
			case "keep":
				if is := u.Keep(); is == claimed {
					t.Fatalf("keep() = %v of a state claimed: %v", is, claimed)
				}
				kept = !claimed
			}
			if u.Kept() != kept {
				t.Fatalf("kept() = %v, want %v", !kept, kept)
			}
		}
	})
}

// TestUsageBesideItself is for promise 1; the race detector has the last word.
func TestUsageBesideItself(t *testing.T) {
	for range 20 {
		var u informer.TestUsage
		var state [2]int
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range informer.MaxGets / 4 {
					in, counted := u.Enter()
					if in && state[0] != state[1] {
						t.Error("a state was written while it was read")
					}
					if counted {
						u.Leave()
					}
				}
				for !u.Keep() {
				}
				if state[0] != state[1] {
					t.Error("a state that is kept was written")
				}
			})
		}
		for range 1000 {
			if u.Claim() {
				state[0]++
				state[1]++
				u.Release()
			}
		}
		all.Wait()
	}
}
