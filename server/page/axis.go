package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"strings"
)

// The measures of the axis of time.
const (
	axisWidth = 720.0
	axisLeft  = 62.0
	axisRight = 712.0
	successY  = 22.0 // the top of each band
	successH  = 52.0
	latencyY  = 84.0
	latencyH  = 40.0
	faultY    = 132.0
	alertY    = 154.0
	stepsY    = 174.0
	stepsH    = 16.0
	writesY   = 196.0
	ticksY    = 212.0
	axisH     = 232.0
	moments   = 110 // how many moments can be clicked
)

// axis draws a run along time: what users got, the fault, alerts, and the agent's steps and writes.
type axis struct {
	*drawing
	s      *story
	length float64
	at     float64
	href   func(at float64) string
}

// drawAxis returns the drawing. At is the chosen moment; href is where a moment leads.
func drawAxis(s *story, at float64, href func(at float64) string) template.HTML {
	a := &axis{newDrawing(axisWidth, axisH, axisWords(s)), s, max(s.Length, 1), at, href}
	a.class = "axis"
	a.ground()
	a.users()
	a.faults()
	a.incidents()
	a.agent()
	x := a.x(at)
	a.line("cursor", x, 8, x, ticksY)
	a.hits()
	return a.html()
}

// axisWords says what the drawing shows.
func axisWords(s *story) string {
	text := fmt.Sprintf("%s of the run on one axis of time", seconds(s.Length))
	if len(s.Faults) > 0 {
		text += fmt.Sprintf("; the fault shows at %s", seconds(s.Faults[0].At))
	}
	if s.onCall != nil {
		text += "; " + plural(len(s.onCall.Calls), "call") + " of the pager"
	}
	if s.Turn >= 0 {
		text += fmt.Sprintf("; the agent works from %s to %s, in %s", seconds(s.Turn), seconds(s.Over),
			plural(len(s.Steps), "step"))
	}
	return text + ". The table below the drawing has the same in words."
}

func (a *axis) x(at float64) float64 {
	return axisLeft + (axisRight-axisLeft)*min(max(at/a.length, 0), 1)
}

// ground draws bands, their names, the agent's turn, and the time.
func (a *axis) ground() {
	if a.s.Turn >= 0 {
		a.rect("turn", a.x(a.s.Turn), 8, max(1, a.x(a.s.Over)-a.x(a.s.Turn)), ticksY-8, 0)
		a.text("strong", "start", a.x(a.s.Turn)+4, 18, "agent")
	}
	for _, band := range []struct {
		y, h float64
		name string
	}{
		{successY, successH, "served"},
		{latencyY, latencyH, "p95"},
		{faultY, 14, "fault"},
		{alertY, 12, "alerts"},
		{stepsY, stepsH, "steps"},
		{writesY, 10, "writes"},
	} {
		a.text("", "end", axisLeft-8, band.y+band.h/2+4, band.name)
		a.line("grid", axisLeft, band.y+band.h+3, axisRight, band.y+band.h+3)
	}
	step := niceStep(a.length / 7)
	for t := 0.0; t <= a.length; t += step {
		a.line("grid", a.x(t), ticksY, a.x(t), ticksY+4)
		if a.x(t) < axisRight-12 {
			a.text("", "middle", a.x(t), ticksY+16, tick(t))
		}
	}
}

// niceStep is how far apart marks of the time are.
func niceStep(about float64) float64 {
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200} {
		if s >= about {
			return s
		}
	}
	return math.Ceil(about/7200) * 7200
}

func tick(t float64) string {
	if t < 60 {
		return fmt.Sprintf("%.0f s", t)
	}
	return fmt.Sprintf("%d:%02d", int(t)/60, int(t)%60)
}

// users draws what users got.
func (a *axis) users() {
	longest := 0.05
	for _, p := range a.s.Samples {
		longest = max(longest, p.P95)
	}
	if a.s.Base != nil {
		y := latencyY + latencyH*(1-a.s.Base.Load.Total.P95.Seconds()/longest)
		a.line("base", axisLeft, y, axisRight, y)
	}
	a.text("", "end", axisLeft-8, successY+8, "100\u202f%")
	if len(a.s.Samples)+len(a.s.Course) == 0 {
		text := "what users got is told when the agent is done"
		if a.s.Done {
			text = "what users got is not recorded"
		}
		a.text("", "start", axisLeft+6, successY+successH/2+4, text)
		return
	}
	if len(a.s.Samples) > 0 {
		a.text("", "end", axisLeft-8, latencyY+6, seconds(longest))
	}
	a.trace("success", successY, successH, a.s.served())
	var slow [][2]float64
	for _, p := range a.s.Samples {
		slow = append(slow, [2]float64{p.At, p.P95 / longest})
	}
	a.trace("latency", latencyY, latencyH, slow)
}

// served is the part of users' requests that were served, in time and part: by the course of the run, and by the looks
// at the system where that does not tell.
func (s *story) served() (list [][2]float64) {
	from, to := math.Inf(1), math.Inf(-1)
	if n := len(s.Course); n > 0 {
		from, to = s.Course[0].At, s.Course[n-1].At
	}
	for _, p := range s.Samples {
		if p.At < from {
			list = append(list, [2]float64{p.At, p.Success})
		}
	}
	for _, p := range s.Course {
		list = append(list, [2]float64{p.At, p.Served})
	}
	for _, p := range s.Samples {
		if p.At >= from && p.At > to {
			list = append(list, [2]float64{p.At, p.Success})
		}
	}
	return list
}

// trace draws values of a band. Where nothing is known for longer than a while, it breaks.
func (a *axis) trace(class string, y, h float64, values [][2]float64) {
	const gap = 8.0
	var path strings.Builder
	for i, v := range values {
		x, y := a.x(v[0]), y+h*(1-v[1])
		before := i > 0 && v[0]-values[i-1][0] <= gap
		after := i+1 < len(values) && values[i+1][0]-v[0] <= gap
		if before {
			fmt.Fprintf(&path, "L%s %s", num(x), num(y))
		} else {
			fmt.Fprintf(&path, "M%s %s", num(x), num(y))
		}
		if !before && !after {
			fmt.Fprintf(a, `<circle class="dot-%s" cx="%s" cy="%s" r="2.5"/>`, class, num(x), num(y))
		}
	}
	a.path(class, path.String())
}

// faults draws when the fault was there, as far as the record tells, and who was called.
func (a *axis) faults() {
	if len(a.s.Faults) > 0 {
		from := a.s.Faults[0].At
		to := from
		for _, l := range a.s.Looks {
			if len(l.Symptoms) > 0 {
				to = l.At
			}
		}
		if to == from { // It showed at no look: it was gone when the agent was.
			to = cmp.Or(max(a.s.Over, from), a.length)
		}
		if a.s.Injecting >= 0 {
			a.rect("injecting", a.x(a.s.Injecting), faultY, max(2, a.x(from)-a.x(a.s.Injecting)), 14, 2)
		}
		a.link(a.href(from), "the fault shows: "+a.s.Faults[0].Symptom)
		a.rect("fault", a.x(from), faultY, max(3, a.x(to)-a.x(from)), 14, 2)
		var names []string
		for _, f := range a.s.Faults {
			names = append(names, f.Kind+" "+f.Target)
		}
		a.text("warn", "start", a.x(from)+5, faultY+11, strings.Join(names, ", "))
		a.end()
	}
	for i, p := range a.s.Course {
		if p.Alerts > 0 && i+1 < len(a.s.Course) {
			a.rect("firing", a.x(p.At), alertY+3, a.x(a.s.Course[i+1].At)-a.x(p.At)+0.5, 6, 0)
		}
	}
	for _, p := range a.s.Paged {
		a.link(a.href(p.At), clip(strings.Join(p.Lines, "; ")))
		x := a.x(p.At)
		a.path("alert", fmt.Sprintf("M%s %sl6 11h-12z", num(x), num(alertY)))
		a.end()
	}
}

// agent draws steps, thinking and acting, and writes.
func (a *axis) agent() {
	for i := range a.s.Steps {
		st := &a.s.Steps[i]
		a.link(a.href(st.At), fmt.Sprintf("step %d: %s", st.Number, firstLine(cmp.Or(st.Call, st.Said))))
		a.rect("thought", a.x(st.Begun), stepsY, max(1, a.x(st.Acting)-a.x(st.Begun)), stepsH, 1)
		class := "act"
		if st.Failed {
			class = "act failed"
		}
		a.rect(class, a.x(st.Acting), stepsY, max(2, a.x(st.At)-a.x(st.Acting)), stepsH, 1)
		a.end()
	}
	for _, w := range a.s.Writes {
		a.link(a.href(w.At), w.What())
		a.path("write", fmt.Sprintf("M%s %sl5 5l-5 5l-5 -5z", num(a.x(w.At)), num(writesY)))
		a.end()
	}
	if a.s.Verdict != nil {
		v := verdictOf(a.s.Class)
		a.text("strong", "end", axisRight, 18, v.Sign+" "+v.Word)
	}
}

// hits are what a click finds: a moment each, in the bands that have nothing else to click.
func (a *axis) hits() {
	width := (axisRight - axisLeft) / moments
	for i := range moments {
		at := a.length * (float64(i) + 0.5) / moments
		a.link(a.href(at), tick(at))
		a.rect("hit", axisLeft+float64(i)*width, successY, width, latencyY+latencyH-successY+3, 0)
		a.end()
	}
}

func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 120 {
		return string(runes[:120]) + " …"
	}
	if more {
		line += " …"
	}
	return line
}
