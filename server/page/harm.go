package page

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/aiopslab/aiopslab/grade"
)

// harm is what a run did to the system, as its page has it.
type harm struct {
	*grade.Safety
	Sign  string
	Kind  string
	Word  string
	Curve template.HTML
	Facts []fact
	Lists []harmList
}

// harmList is things of one kind that the agent did.
type harmList struct {
	Title string
	Items []string
}

// shownHarm is how many things of a kind are listed.
const shownHarm = 20

// harmOf says what a run did to the system; nil if its verdict does not tell.
func harmOf(res grade.Result) *harm {
	s := grade.ReadSafety(res)
	if s == nil {
		return nil
	}
	h := &harm{Safety: s, Sign: "?", Kind: "odd", Word: "harm not known"}
	if s.NoHarm != nil {
		h.Sign, h.Kind, h.Word = "✓", "good", "no harm"
		if !*s.NoHarm {
			h.Sign, h.Kind, h.Word = "!", "bad", "did harm"
		}
	}
	add := func(name, format string, args ...any) {
		h.Facts = append(h.Facts, fact{name, fmt.Sprintf(format, args...)})
	}
	if r := s.Severity; r != nil {
		add("Severity found", "%.2f", r.Found)
		add("Left", "%.2f", r.End)
		add("Worse for", "%s", seconds(r.Worse))
		add("Peak regression", "%.2f", r.Peak)
		add("Users' budget burnt", "%s", seconds(r.Budget))
		h.Curve = drawSeverity(r)
	}
	if s.Outside != nil {
		add("Blast radius", "%s", plural(len(s.Outside), "object"))
	}
	add("Irreversible", "%d", len(s.Irreversible))
	add("Refused", "%d", len(s.Refused))
	add("TNR violations", "%d", len(s.Violations))
	for _, l := range []harmList{
		{"Why it is harm", s.Harm},
		{"Written beside the fault and what depends on it", s.Outside},
		{"Cannot be taken back", s.Irreversible},
		{"Refused", s.Refused},
	} {
		if len(l.Items) == 0 {
			continue
		}
		shown := harmList{Title: l.Title}
		for _, item := range l.Items[:min(len(l.Items), shownHarm)] {
			shown.Items = append(shown.Items, clip(item))
		}
		if more := len(l.Items) - shownHarm; more > 0 {
			shown.Items = append(shown.Items, fmt.Sprintf("and %d more", more))
		}
		h.Lists = append(h.Lists, shown)
	}
	return h
}

// drawSeverity draws mu over the time since the agent's turn began, with a line where it was found.
func drawSeverity(r *grade.Regression) template.HTML {
	const width, height, left = 720.0, 110.0, 62.0
	if len(r.Curve) < 2 {
		return ""
	}
	long := max(r.Curve[len(r.Curve)-1][0], 1)
	x := func(at float64) float64 { return left + (width-left-8)*min(max(at/long, 0), 1) }
	y := func(mu float64) float64 { return 8 + (height-30)*(1-min(max(mu, 0), 1)) }
	words := fmt.Sprintf("Severity since the agent's turn began: found %.2f, left %.2f, worse than found by up to %.2f",
		r.Found, r.End, r.Peak)
	d := newDrawing(width, height, words)
	d.class = "chart severity"
	for _, mu := range []float64{0, 0.5, 1} {
		d.line("grid", left, y(mu), width-8, y(mu))
		d.text("", "end", left-6, y(mu)+4, fmt.Sprintf("%g", mu))
	}
	var path strings.Builder
	for i, p := range r.Curve {
		fmt.Fprintf(&path, "%s%s %s", map[bool]string{true: "M", false: "L"}[i == 0], num(x(p[0])), num(y(p[1])))
	}
	d.line("found", left, y(r.Found), width-8, y(r.Found))
	d.path("mu", path.String())
	d.text("", "start", left, height-6, "the agent's turn begins")
	d.text("", "end", width-8, height-6, "+"+tick(long))
	return d.html()
}
