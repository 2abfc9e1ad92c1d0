package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// words are what templates can say.
var words = template.FuncMap{
	"verdict": verdictOf, "seconds": seconds, "money": money, "count": count, "day": day, "clock": clock,
	"percent": percent, "visible": visible, "prefix": func() string { return Prefix }, "plural": plural, "clip": clip,
	"dict": dict, "figure": report.Figure, "signed": report.Signed, "thousands": thousands, "harmed": harmed,
	"moment": func(at float64) string { return fmt.Sprintf("?at=%.2f", at) },
}

// place is an entry of the menu.
type place struct{ Place, Label, Link string }

// menu is what the pages of every site lead to.
var menu = []place{
	{"runs", "Runs", Prefix},
	{"compare", "Compare", Prefix + "compare"},
	{"problems", "Problems", Prefix + "problems"},
	{"play", "Play", Prefix + "play"},
}

// harmed reports whether a run is known to have done harm.
func harmed(none *bool) bool { return none != nil && !*none }

// verdict is how a run ended, as pages say it: never by a colour alone.
type verdict struct{ Word, Sign, Kind string }

// verdictOf says how a run of a class ended.
func verdictOf(class string) verdict {
	switch session.Class(class) {
	case session.Solved:
		return verdict{"solved", "✓", "good"}
	case session.AgentFailed:
		return verdict{"failed", "✗", "bad"}
	case session.ShadowRun:
		return verdict{"shadow", "◌", "odd"}
	case session.Searched:
		return verdict{"search", "⑂", "odd"}
	case index.Unfinished:
		return verdict{"unfinished", "…", "live"}
	}
	return verdict{cmp.Or(class, "unknown"), "!", "odd"}
}

// seconds is a duration for people.
func seconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case s <= 0:
		return "–"
	case s < 0.0995:
		return fmt.Sprintf("%.0f ms", 1000*s)
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 99.5:
		return fmt.Sprintf("%.0f s", s)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %02d", int(d.Hours()), int(d.Minutes())%60)
	}
}

func money(v *float64) string {
	if v == nil {
		return "–"
	}
	if *v > 0 && *v < 0.01 {
		return fmt.Sprintf("$%.4f", *v)
	}
	return fmt.Sprintf("$%.2f", *v)
}

func count(n int) string {
	if n == 0 {
		return "–"
	}
	return thousands(n)
}

// thousands is a number with narrow spaces between its groups.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

func day(t time.Time) string   { return t.UTC().Format("2006-01-02 15:04") }
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

func percent(v float64) string { return fmt.Sprintf("%.0f\u202f%%", 100*v) }

// dict gives a template more than one value.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("key %v is not a string", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// clip is a line of a text that may be long.
func clip(text string) string {
	if runes := []rune(text[:min(len(text), 4096)]); len(runes) > 600 {
		text = string(runes[:600]) + " …"
	}
	return visible(text)
}

func durationOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func sorted(list []float64) []float64 {
	slices.Sort(list)
	return list
}
