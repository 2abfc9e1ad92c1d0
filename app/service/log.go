package service

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LevelFatal is the level of the line a service writes before it exits.
const LevelFatal = slog.Level(12)

// A logHandler writes lines as console loggers do:
//
//	2026-03-01T12:30:05Z INF geo/server.go:71 > Nearby hotels=5 lat=37.79
type logHandler struct {
	mu    *sync.Mutex
	w     io.Writer
	min   slog.Level
	attrs string // of WithAttrs, rendered
	group string // prefix of keys
}

// NewLog returns a logger that writes lines to w.
func NewLog(w io.Writer, min slog.Level) *slog.Logger {
	return slog.New(&logHandler{mu: new(sync.Mutex), w: w, min: min})
}

func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.min }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	b := make([]byte, 0, 160)
	b = r.Time.UTC().AppendFormat(b, time.RFC3339)
	b = append(b, ' ')
	b = append(b, levelName(r.Level)...)
	if r.PC != 0 {
		f, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
		dir, file := filepath.Split(f.File)
		b = append(b, ' ')
		b = append(b, filepath.Base(dir)...)
		b = append(b, '/')
		b = append(b, file...)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(f.Line), 10)
	}
	b = append(b, " > "...)
	b = append(b, r.Message...)
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, h.group, a)
		return true
	})
	b = append(b, '\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b)
	return err
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	b := []byte(h.attrs)
	for _, a := range attrs {
		b = appendAttr(b, h.group, a)
	}
	c.attrs = string(b)
	return &c
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.group += name + "."
	return &c
}

func levelName(l slog.Level) string {
	switch {
	case l >= LevelFatal:
		return "FTL"
	case l >= slog.LevelError:
		return "ERR"
	case l >= slog.LevelWarn:
		return "WRN"
	case l >= slog.LevelInfo:
		return "INF"
	}
	return "DBG"
}

func appendAttr(b []byte, group string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, m := range v.Group() {
			b = appendAttr(b, group, m)
		}
		return b
	}
	b = append(b, ' ')
	b = append(b, group...)
	b = append(b, a.Key...)
	b = append(b, '=')
	var s string
	if v.Kind() == slog.KindTime {
		s = v.Time().UTC().Format(time.RFC3339Nano)
	} else {
		s = fmt.Sprint(v.Any())
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' }) {
		return strconv.AppendQuote(b, s)
	}
	return append(b, s...)
}

// LogAt logs a line with a time of its own. It tells the place of its caller: so what logs the present and what tells
// of the past are one function, and have one place.
func LogAt(l *slog.Logger, level slog.Level, at time.Time, msg string, args ...any) {
	var place [1]uintptr
	runtime.Callers(2, place[:])
	r := slog.NewRecord(at, level, msg, place[0])
	r.Add(args...)
	_ = l.Handler().Handle(context.Background(), r) // Nobody could be told.
}

// Logged is the line that a function logs.
func Logged(log func(*slog.Logger)) string {
	var line strings.Builder
	log(NewLog(&line, slog.LevelInfo))
	return strings.TrimSuffix(line.String(), "\n")
}
