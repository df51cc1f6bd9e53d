package informer

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"
)

const (
	logLines  = 10 // allowed in each logPeriod
	logPeriod = time.Hour
	logText   = 256 // bytes of an error, at most
)

// A sparseLog writes a line for each change of state, up to a number in any
// hour. Changes beyond that are counted, and the next line tells how many there
// were. It belongs to one goroutine.
type sparseLog struct {
	logger *slog.Logger
	name   string

	written    [logLines]time.Time // of the last lines, a ring
	oldest     int                 // index in written
	suppressed int
}

// changed logs a change of state, because of err if that is not nil.
func (l *sparseLog) changed(ctx context.Context, change stateChange, err error) {
	if change == (stateChange{}) {
		return
	}
	now := time.Now()
	if last := l.written[l.oldest]; !last.IsZero() && now.Sub(last) < logPeriod {
		l.suppressed++
		return
	}
	l.written[l.oldest] = now
	l.oldest = (l.oldest + 1) % logLines

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
	if l.suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", l.suppressed))
		l.suppressed = 0
	}
	l.logger.LogAttrs(ctx, level, "informer state", attrs...)
}

// shortText returns the text of err without what does not belong in a log: the
// query of a URL, which holds continue tokens, and the body of a long answer.
func shortText(err error) string {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	text := err.Error()
	if len(text) > logText {
		text = text[:logText] + "..."
	}
	return text
}
