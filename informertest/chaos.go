package informertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Chaos lets faults strike by chance, which is the same for the same seed: what
// strikes the n-th list or watch depends on nothing but seed and n, and on
// what kind of request it is. Rules that were injected go first; a request that
// they strike does not count. The zero value is no chaos.
type Chaos struct {
	// Seed is what chance depends on.
	Seed uint64

	// Rate is the share of lists and watches that are struck, from 0 to 1.
	//
	// Default: none.
	Rate float64

	// Faults are those that may strike, with or without values. The place where
	// one strikes is random, and so is a value that a fault needs and does not
	// have.
	//
	// Default: ChaosFaults.
	Faults []Fault
}

// ChaosFaults returns the faults that any client of an API server has to live
// with, all of which leave the server's state and each single object alone: a
// client that is told the truth in the end has it then.
func ChaosFaults() []Fault {
	return []Fault{
		FaultDrop, FaultDelay, FaultHalfOpen, FaultCut, FaultEOF, FaultTruncated, FaultSlow, FaultClose, FaultGateway,
		FaultExpired, FaultTooLarge, FaultTooMany, FaultInternal, FaultUnavailable, FaultTimeout,
		FaultUnauthorized, FaultForbidden, FaultNotFound, FaultInvalid,
		FaultIgnored, FaultNoBookmarks, FaultGarbage, FaultUnversioned, FaultDuplicate, FaultCompacted,
	}
}

const (
	chaosAfter   = 4  // objects or events before a fault, at most
	chaosSeconds = 10 // the longest value of a fault
)

// withDefaults returns c without zero values, or every mistake in it.
func (c Chaos) withDefaults() (Chaos, error) {
	var errs []error
	if c.Rate < 0 || c.Rate > 1 {
		errs = append(errs, fmt.Errorf("Chaos.Rate is %v: must be from 0 to 1", c.Rate))
	}
	for _, fault := range c.Faults {
		word, _, err := fault.parse()
		needs := word.value == mustWait && fault == word.fault
		switch {
		case err != nil && !needs:
			errs = append(errs, fmt.Errorf("Chaos.Faults: %w", err))
		case fault.Word() == FaultRefused, word.value == needsKey, word.value == needsPoint, word.fault == FaultStale:
			errs = append(errs, fmt.Errorf("Chaos.Faults: %q cannot strike by chance", fault))
		}
	}
	if len(c.Faults) == 0 {
		c.Faults = ChaosFaults()
	}
	c.Faults = slices.Clone(c.Faults)
	return c, errors.Join(errs...)
}

// drawLocked returns what strikes a request by chance, if anything does. The
// caller holds mu.
func (f *faults) drawLocked(q asked) (strike, bool) {
	if f.chaos.Rate == 0 || verbsOf(q.verb)&onRead == 0 {
		return strike{}, false
	}
	f.drawn++
	chance := rand.New(rand.NewPCG(f.chaos.Seed, f.drawn))
	if chance.Float64() >= f.chaos.Rate {
		return strike{}, false
	}
	var able []Fault
	for _, fault := range f.chaos.Faults {
		if word, _, _ := fault.parse(); word.on&verbsOf(q.verb) != 0 {
			able = append(able, fault)
		}
	}
	if len(able) == 0 {
		return strike{}, false
	}
	fault := able[chance.IntN(len(able))]
	after, inStream := chance.IntN(chaosAfter+1), chance.IntN(2) == 0
	if word, _, err := fault.parse(); err != nil || word.value == mayWait && fault == word.fault {
		fault = fault.For(time.Duration(1+chance.IntN(chaosSeconds)) * time.Second)
	}
	word, wait, err := fault.parse()
	if err != nil {
		panic(fmt.Sprintf("informertest: bug: chaos drew %q: %v", fault, err))
	}
	return strike{Rule: Rule{Fault: fault, After: after, InStream: inStream}, word: word, wait: wait}, true
}
