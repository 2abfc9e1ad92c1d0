package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/record"
)

// page tells that the pager calls.
func (t *transcript) page(p record.Page) {
	for _, line := range p.Lines {
		t.line("%s", t.paint(yellow, fmt.Sprintf("page %d: %s", p.Number, visible(line))))
	}
}

// incident tells what became of an incident of a shift.
func (t *transcript) incident(i record.Incident) {
	if t.blind {
		return // That there is one says much.
	}
	name := fmt.Sprintf("incident %d", i.Number)
	for _, p := range t.shift.Planned {
		if p.Number == i.Number {
			name += " (" + strings.Join(p.Components, ", ") + ")"
		}
	}
	switch i.Became {
	case record.IncidentShown:
		t.line("%s", t.paint(yellow, name+" shows: "+visible(i.What)))
	case record.IncidentBack:
		t.line("%s", t.paint(yellow, name+" is back: "+visible(i.What)))
	case record.IncidentMended:
		t.line("%s", t.paint(green, name+" is mended"))
	case record.IncidentFailed:
		t.line("%s could not be brought about: %s", name, visible(i.What))
	}
}

// endShift tells how a shift went: a table of its incidents, and what the score is made of.
func (t *transcript) endShift(s *grade.ShiftScore, row func(name, format string, args ...any)) {
	at := func(x time.Time) string {
		if x.IsZero() {
			return "-"
		}
		d := x.Sub(s.From).Round(time.Second)
		return fmt.Sprintf("%d:%02d", d/time.Minute, d%time.Minute/time.Second)
	}
	w := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\n  #\tINCIDENT\tCAME\tPAGED\tMENDED\tAFTER")
	for _, i := range s.Each {
		mended, after := "no", "-"
		if i.Mended && len(i.Open) > 0 {
			mended, after = at(i.Open[len(i.Open)-1].To), fmt.Sprintf("%.0f s", *i.Seconds)
		}
		if i.Shown.IsZero() {
			mended = "did not come"
		}
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\t%s\n", i.Number, i.Problem, at(i.Shown), at(i.Called), mended, after)
	}
	_ = w.Flush() // Who prints the rest is told.
	fmt.Fprintln(t.w)
	mean := func(seconds *float64) string {
		if seconds == nil {
			return ""
		}
		return fmt.Sprintf(", after %.0f s on average", *seconds)
	}
	row("users", "lost %.2f minutes of %.0f", s.MinutesLost, s.To.Sub(s.From).Minutes())
	row("pages", "%d of %d answered, %d rightly%s", s.PagesAnswered, s.Pages, s.PagesRight, mean(s.TimeToAnswer))
	row("mended", "%d of %d%s; they stood open for %.1f of %.1f minutes", s.IncidentsMended, s.Incidents,
		mean(s.TimeToMend), s.OpenMinutes, s.OpenPossible)
	row("harm", "%s; worse than the incidents explain for %.0f s", needless(s.Needless), s.WorseSeconds)
	row("score", "%.1f = 100 x mended %.2f x served %.2f x pages %.2f x care %.2f x thrift %.2f", s.Score, s.Mended,
		s.Served, 0.8+0.2*s.Answered, s.Care, s.Thrift)
}

// needless names some of the writes that were not needed.
func needless(list []string) string {
	n := len(list)
	if n == 0 {
		return "no needless write"
	}
	var names []string
	seen := map[string]bool{}
	for _, o := range list {
		if !seen[o] && len(names) < shownWrites {
			names = append(names, o)
		}
		seen[o] = true
	}
	text := fmt.Sprintf("%d needless %s: %s", n, plural(n, "write"), strings.Join(names, ", "))
	if len(seen) > len(names) {
		text += ", ..."
	}
	return text
}
