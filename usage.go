package informer

import "sync/atomic"

// A usage says who reads a state and who may write it:
//
//	       enter ▲▼ leave             claim
//	  read by a few gets ◀──▶ free ─────────────▶ written in place
//	      │                    │ ◀───────────────    by its writer
//	      ▼                    ▼     release
//	kept: never written again
//
// A get that enters is over soon, so it need not keep the state: a writer that
// comes meanwhile waits a moment for it. Only when a state has answered many
// gets is it kept, which makes further ones cheaper.
//
// Everybody may keep, enter and leave, without a lock. Only who holds Indexer.mu
// may claim and release.
type usage struct {
	// word holds, from the top: kept, claimed, how many gets entered since the
	// last write, and how many of them are inside.
	word atomic.Uint64
}

const (
	useKept    = 1 << 63
	useClaimed = 1 << 62
	useGet     = 1<<32 + 1 // what enter adds
	useInside  = 1<<32 - 1 // the bits that count gets inside
	// maxGets is how many gets a state that is not kept answers.
	maxGets = 256
	// maxTries is how often a get and its writer look for each other to end
	// before they choose the slow way.
	maxTries = 200
)

// An entry is what enter found.
type entry int

const (
	entryKept    entry = iota // the state is kept: there is nothing to leave
	entryCounted              // leave must follow
	entryClaimed              // the state must not be read
)

// kept reports that the state never changes again.
func (u *usage) kept() bool { return u.word.Load()&useKept != 0 }

// keep makes the state one that never changes again, and reports whether that
// is so: it is not while the state is claimed.
func (u *usage) keep() bool {
	for {
		w := u.word.Load()
		if w&useKept != 0 {
			return true
		}
		if w&useClaimed != 0 {
			return false
		}
		if u.word.CompareAndSwap(w, w|useKept) {
			return true
		}
	}
}

// enter lets one get in.
func (u *usage) enter() entry {
	for {
		w := u.word.Load()
		switch {
		case w&useKept != 0:
			return entryKept
		case w&useClaimed != 0:
			return entryClaimed
		case w >= maxGets<<32:
			u.word.CompareAndSwap(w, w|useKept)
		case u.word.CompareAndSwap(w, w+useGet):
			return entryCounted
		}
	}
}

func (u *usage) leave() { u.word.Add(^uint64(0)) }

// claim makes the state the caller's own if it is not kept, and all gets that
// are inside leave soon.
func (u *usage) claim() bool {
	for {
		w := u.word.Load()
		if w&useKept != 0 {
			return false
		}
		if u.word.CompareAndSwap(w, w|useClaimed) {
			break
		}
	}
	for range maxTries {
		if u.word.Load()&useInside == 0 {
			return true
		}
	}
	u.word.And(^uint64(useClaimed))
	return false
}

// release ends a claim.
func (u *usage) release() { u.word.Store(0) }
