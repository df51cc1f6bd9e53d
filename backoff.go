package informer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A backoff says how long to pause after failures in a row. The pause is random
// between min and a limit that doubles with each failure, so that many clients
// which failed together do not come back together.
type backoff struct {
	min, max time.Duration
	// random returns a time from 0 up to, and without, its argument.
	random func(time.Duration) time.Duration

	attempt int           // failures in a row, counted by the user of the backoff
	limit   time.Duration // of the last pause; 0 before the first
}

// next returns the pause after err. A delay that the server asks for by
// Retry-After is kept, and spread like any other.
func (b *backoff) next(err error) time.Duration {
	b.limit = double(max(b.limit, b.min), b.max)
	return b.between(atLeast(err, b.min, b.limit))
}

// gone returns the pause after an answer of 404, which is long from the first
// on: what is not installed rarely comes within seconds.
func (b *backoff) gone(err error) time.Duration {
	return b.between(atLeast(err, b.max/2, b.max))
}

// reset starts over.
func (b *backoff) reset() { b.attempt, b.limit = 0, 0 }

// double returns twice d, but at most limit.
func double(d, limit time.Duration) time.Duration {
	if d > limit/2 {
		return limit
	}
	return 2 * d
}

// atLeast moves the bounds of a pause up to the delay that err asks for, and
// keeps them apart.
func atLeast(err error, low, high time.Duration) (time.Duration, time.Duration) {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	asked := time.Duration(seconds) * time.Second
	if !ok || asked <= low {
		return low, high
	}
	return asked, max(high, asked+low)
}

// between returns a random time, low and high included.
func (b *backoff) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + b.random(high-low+1)
}

// pause waits for d, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
