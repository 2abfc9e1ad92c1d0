package process

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aiopslab/aiopslab/internal/logs"
)

// What an environment logs comes over the line, with everything else that it says. Its standard error
// would do for that as well, but whatever panics there writes to it; and the line is out of reach for all
// that an agent makes run.

const (
	// logRate is how many lines a second an environment logs, after the first. An agent can have the
	// control plane complain without end.
	logRate  = 200
	logBurst = 2000
	// maxLogValue is how much of a value is logged.
	maxLogValue = 2 << 10
)

// logLine is a line of the environment's log.
type logLine struct {
	Time    time.Time   `json:"time"`
	Level   slog.Level  `json:"level"`
	Message string      `json:"message"`
	Attrs   [][2]string `json:"attrs,omitempty"`
}

// remote has the supervisor log.
type remote struct {
	out    *writer
	level  slog.Level
	limit  *rate.Limiter
	missed *atomic.Int64

	attrs  [][2]string
	prefix string // of the keys, by their groups
}

// newRemote is the log of an environment whose supervisor wants lines from a level on, or none.
func newRemote(out *writer, level *slog.Level) *slog.Logger {
	if level == nil {
		return logs.Or(nil)
	}
	return slog.New(&remote{
		out: out, level: *level, limit: rate.NewLimiter(logRate, logBurst),
		missed: &atomic.Int64{},
	})
}

func (h *remote) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *remote) Handle(_ context.Context, r slog.Record) error {
	if !h.limit.Allow() {
		h.missed.Add(1)
		return nil
	}
	line := &logLine{Time: r.Time, Level: r.Level, Message: shorten(r.Message), Attrs: slices.Clip(h.attrs)}
	r.Attrs(func(a slog.Attr) bool {
		line.Attrs = flatten(line.Attrs, h.prefix, a)
		return true
	})
	if n := h.missed.Swap(0); n > 0 {
		line.Attrs = flatten(line.Attrs, "", slog.Int64("not_logged_before", n))
	}
	return h.out.write(message{Log: line})
}

func (h *remote) WithAttrs(list []slog.Attr) slog.Handler {
	c := *h
	c.attrs = slices.Clip(h.attrs)
	for _, a := range list {
		c.attrs = flatten(c.attrs, h.prefix, a)
	}
	return &c
}

func (h *remote) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.prefix += name + "."
	return &c
}

// flatten appends an attribute, and those of a group as the text has them.
func flatten(list [][2]string, prefix string, a slog.Attr) [][2]string {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		return append(list, [2]string{prefix + a.Key, shorten(v.String())})
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, inner := range v.Group() {
		list = flatten(list, prefix, inner)
	}
	return list
}

func shorten(text string) string {
	if len(text) > maxLogValue {
		return text[:maxLogValue] + "..."
	}
	return text
}

// wanted is the lowest level that a logger takes, or nil for none.
func wanted(l *slog.Logger) *slog.Level {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if l.Enabled(context.Background(), level) {
			return &level
		}
	}
	return nil
}

// heard logs a line of the environment, with the ids that the supervisor knows.
func heard(l *slog.Logger, line *logLine) {
	ctx := context.Background()
	if !l.Enabled(ctx, line.Level) {
		return
	}
	r := slog.NewRecord(line.Time, line.Level, line.Message, 0)
	for _, a := range line.Attrs {
		r.AddAttrs(slog.String(a[0], a[1]))
	}
	_ = l.Handler().Handle(ctx, r)
}
