package informer

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	logLines     = 10 // allowed in each logPeriod
	failureLines = 5  // after so many lines in it, none tells of a failure
	logPeriod    = time.Hour
	logText      = 256 // bytes of an error, at most
)

// A sparseLog writes a line for each change of state, and for each failure of
// one object, up to a number in any hour. What is beyond that is counted, and
// the next line tells how many there were. Failures leave room for changes of
// state.
type sparseLog struct {
	logger *slog.Logger
	name   string

	mu sync.Mutex // guards the fields below; the logger runs without it

	written    [logLines]time.Time // of the last lines, a ring
	oldest     int                 // index in written
	suppressed int
}

// changed logs a change of state, because of err if that is not nil.
func (l *sparseLog) changed(ctx context.Context, change stateChange, err error) {
	if change == (stateChange{}) {
		return
	}
	suppressed, ok := l.admit(logLines)
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

// admit reports whether a line may be written now, which is so if there were
// fewer than that many in the last hour, and how many others were not.
func (l *sparseLog) admit(lines int) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	last := l.written[(l.oldest+logLines-lines)%logLines]
	if !last.IsZero() && now.Sub(last) < logPeriod {
		l.suppressed++
		return 0, false
	}
	l.written[l.oldest] = now
	l.oldest = (l.oldest + 1) % logLines
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
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
