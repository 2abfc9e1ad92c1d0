package service

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What tells of the past and what logs the present are one function, and have its place.
func TestLogAt(t *testing.T) {
	at := time.Date(2026, time.March, 9, 12, 30, 0, 0, time.UTC)
	log := func(l *slog.Logger) { LogAt(l, slog.LevelInfo, at, "Booked", "seat", 7) }
	var now strings.Builder
	log(NewLog(&now, slog.LevelInfo))
	past := Logged(log)
	if past+"\n" != now.String() || !strings.Contains(past, "2026-03-09T12:30:00Z") || !strings.Contains(past, "/log_test.go:") {
		t.Errorf("%q and %q", past, now.String())
	}
}
