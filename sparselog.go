package informer

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How many lines there may be in any logPeriod before a line of some kind is not
// written. The last line of Run, and the sum at the very end, always are.
const (
	failureLines = 5
	stateLines   = 8
	stopLines    = stateLines + 1
	logLines     = stateLines + 2 // in all

	logPeriod = time.Hour
	logText   = 256 // bytes of an error, at most
)

// A sparseLog writes a line for each change of state, and for each failure of
// one object, up to a number in any hour. What is beyond that is counted, and
// the next line tells how many there were; if none follows for an hour, one is
// written for that. Failures leave room for changes of state.
type sparseLog struct {
	logger *slog.Logger
	name   string

	mu sync.Mutex // guards the fields below; the logger runs without it

	written    [logLines]time.Time // of the last lines, a ring
	oldest     int                 // index in written
	suppressed atomic.Int64        // changed under mu
	since      time.Time           // of the first of those
}

// changed logs a change of state, because of err if that is not nil.
func (l *sparseLog) changed(ctx context.Context, change stateChange, err error) {
	lines := stateLines
	switch change.to {
	case 0:
		return
	case StateStopped:
		lines = stopLines
	}
	suppressed, ok := l.admit(lines)
	if !ok {
		return
	}
	attrs := []slog.Attr{
		slog.String("name", l.name),
		slog.String("state", change.to.String()),
		slog.String("version", change.version),
	}
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("err", shortText(err)))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	l.logger.LogAttrs(ctx, level, "informer state", attrs...)
}

// failed logs a failure that changes no state.
func (l *sparseLog) failed(op string, err error) {
	if suppressed, ok := l.admit(failureLines); ok {
		l.logger.Warn("informer failure", slog.String("name", l.name), slog.String("op", op),
			slog.String("err", shortText(err)), slog.Int("suppressed", suppressed))
	}
}

// sumUp tells how many lines were not written, if that has been due for an hour.
// Run calls it whenever it is awake.
func (l *sparseLog) sumUp(ctx context.Context) {
	if l.suppressed.Load() == 0 {
		return
	}
	now := time.Now()
	l.mu.Lock()
	suppressed, ok := 0, false
	if now.Sub(l.since) >= logPeriod {
		suppressed, ok = l.admitLocked(now, stateLines)
	}
	l.mu.Unlock()
	if ok {
		l.sum(ctx, suppressed)
	}
}

// end tells, at the end of Run, how many lines were not written.
func (l *sparseLog) end(ctx context.Context) {
	l.mu.Lock()
	suppressed := int(l.suppressed.Swap(0))
	l.mu.Unlock()
	if suppressed > 0 {
		l.sum(ctx, suppressed)
	}
}

func (l *sparseLog) sum(ctx context.Context, suppressed int) {
	l.logger.LogAttrs(ctx, slog.LevelInfo, "informer log", slog.String("name", l.name), slog.Int("suppressed", suppressed))
}

// admit reports whether a line may be written now, which is so if there were
// fewer than that many in the last hour, and how many others were not.
func (l *sparseLog) admit(lines int) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	suppressed, ok = l.admitLocked(now, lines)
	if !ok {
		if l.suppressed.Add(1) == 1 {
			l.since = now
		}
	}
	return suppressed, ok
}

// admitLocked is admit, but counts no line that it refuses. The caller holds mu.
func (l *sparseLog) admitLocked(now time.Time, lines int) (suppressed int, ok bool) {
	last := l.written[(l.oldest+logLines-lines)%logLines]
	if !last.IsZero() && now.Sub(last) < logPeriod {
		return 0, false
	}
	l.written[l.oldest] = now
	l.oldest = (l.oldest + 1) % logLines
	return int(l.suppressed.Swap(0)), true
}

// shortText returns the text of err without what does not belong in a log: the
// query of a URL, which holds continue tokens, the body of a long answer, and
// the stack of a panic.
func shortText(err error) string {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > logText {
		text = text[:logText] + "..."
	}
	return text
}
