// Package logs makes the loggers of the lab. A log is for whoever runs the lab, and never for an agent:
// it goes to the standard error of the process that supervises runs, and nowhere else.
//
//	settings, err := logs.Parse("debug,json")
//	log := settings.New(os.Stderr, token)
//	web := &http.Server{ErrorLog: logs.ErrorLog(log, slog.LevelWarn, "api")}
//
// Both formats quote whatever could end a line or move a terminal's cursor, so a text of somebody else
// cannot pass for a line of the log. Packages are handed a logger, which may be nil: see [Or]. Lines of a
// request have its id as "request", those of a run as "run", those of an environment for training as "env".
package logs

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"strings"
)

// Off is the level at which nothing is logged.
const Off = "off"

// What settings can be.
var (
	Levels  = []string{"debug", "info", "warn", "error", Off}
	Formats = []string{"text", "json"}
)

// Settings say how much is logged, and how. What is empty is left to others.
type Settings struct {
	Level  string // one of Levels
	Format string // one of Formats; text if nobody says
}

// Parse reads settings as a variable has them: a level, a format, or both.
func Parse(text string) (s Settings, err error) {
	for word := range strings.SplitSeq(text, ",") {
		switch word = strings.TrimSpace(word); {
		case word == "" && text == "":
		case slices.Contains(Levels, word) && s.Level == "":
			s.Level = word
		case slices.Contains(Formats, word) && s.Format == "":
			s.Format = word
		default:
			return s, fmt.Errorf("%q: want one of %s, one of %s, or both as in info,json",
				text, strings.Join(Levels, ", "), strings.Join(Formats, ", "))
		}
	}
	return s, nil
}

// Or returns the settings, with those of other where they are empty.
func (s Settings) Or(other Settings) Settings {
	return Settings{cmp.Or(s.Level, other.Level), cmp.Or(s.Format, other.Format)}
}

// New returns a logger that writes to w. Nobody should log a secret. If somebody does, those given here are not
// written.
func (s Settings) New(w io.Writer, secrets ...string) *slog.Logger {
	var level slog.Level
	if s.Level == Off || level.UnmarshalText([]byte(cmp.Or(s.Level, Off))) != nil {
		return slog.New(slog.DiscardHandler)
	}
	w = clean(w, secrets)
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if s.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// readable has durations say their unit, in JSON as well.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// Or returns the logger, or one that drops everything if it is nil.
func Or(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// ErrorLog returns a logger of package log, for code that takes no other, such as a [net/http.Server]. Part says
// whose errors they are.
func ErrorLog(l *slog.Logger, level slog.Level, part string) *log.Logger {
	return slog.NewLogLogger(Or(l).With("part", part).Handler(), level)
}
