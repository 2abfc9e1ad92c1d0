package report

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const (
	top        = 44.0  // where a figure begins, below its title
	plotHeight = 260.0 // of those with a vertical axis
	plotLeft   = 52.0
	plotRight  = figureWidth - margin
	barHeight  = 24.0 // of horizontal bars
)

// Figures are the figures of the report as SVG, by the name of their file: accuracy.svg by task, cost.svg,
// severity.svg, steps.svg as Figure 5, actions.svg as Figure 6 and actions-by-outcome.svg as Figure 7. One that
// there are no runs for is left out.
func (r *Report) Figures() map[string][]byte {
	all := map[string][]byte{
		"accuracy.svg":           r.accuracyFigure(),
		"cost.svg":               r.costFigure(),
		"severity.svg":           r.severityFigure(),
		"steps.svg":              r.stepsFigure(nil),
		"actions.svg":            r.actionsFigure("Actions by agent", false),
		"actions-by-outcome.svg": r.actionsFigure("Actions in solved and failed runs", true),
	}
	for name, figure := range all {
		if figure == nil {
			delete(all, name)
		}
	}
	return all
}

// WriteFigures writes the figures into a directory, which it makes if need be.
func (r *Report) WriteFigures(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, figure := range r.Figures() {
		if err := os.WriteFile(filepath.Join(dir, name), figure, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// percentAxis draws the vertical axis from 0 to 100 %, and returns where a share is on it.
func (d *drawing) percentAxis(y float64) func(share float64) float64 {
	at := func(share float64) float64 { return y + plotHeight*(1-share) }
	for p := 0; p <= 100; p += 20 {
		h := at(float64(p) / 100)
		d.line("grid", plotLeft, h, plotRight, h)
		d.text("end", plotLeft-6, h+4, fmt.Sprintf("%d %%", p))
	}
	return at
}

// counting are the agents with runs that count, by name.
func (r *Report) counting() []string {
	var names []string
	for _, row := range r.Overall {
		if row.Accuracy.Of > 0 {
			names = append(names, row.Agent)
		}
	}
	slices.Sort(names)
	return names
}

// accuracyFigure has a group of bars for each task, a bar for each agent, and the interval on it.
func (r *Report) accuracyFigure() []byte {
	agents := r.counting()
	if len(agents) == 0 {
		return nil
	}
	d := &drawing{}
	y := d.legend(top, agents)
	at := d.percentAxis(y)
	groups := append([]Task{{"all tasks", r.Overall}}, r.Tasks...)
	groupWidth := (plotRight - plotLeft) / float64(len(groups))
	barWidth := min(40, groupWidth*0.8/float64(len(agents)))
	for g, task := range groups {
		middle := plotLeft + groupWidth*(float64(g)+0.5)
		left := middle - barWidth*float64(len(agents))/2
		for _, row := range task.Rows {
			i := slices.Index(agents, row.Agent)
			if i < 0 || row.Accuracy.Of == 0 {
				continue
			}
			x, a := left+barWidth*float64(i), row.Accuracy
			d.rect(x+1, at(a.Value), barWidth-2, at(0)-at(a.Value), colour(i))
			for _, class := range []string{"halo", "whisker"} { // The halo sets it off from the bar.
				d.line(class, x+barWidth/2, at(a.Low), x+barWidth/2, at(a.High))
				for _, end := range []float64{a.Low, a.High} {
					d.line(class, x+barWidth/2-3, at(end), x+barWidth/2+3, at(end))
				}
			}
		}
		d.text("middle", middle, at(0)+18, string(task.Task))
	}
	d.line("axis", plotLeft, at(0), plotRight, at(0))
	return d.figure("Accuracy by task, with 95 % intervals", at(0)+32)
}

// mark is a point that somebody else reports: an accuracy with a limit of steps.
type mark struct {
	name  string
	steps int
	share float64
}

// stepsFigure has a line for each agent: its accuracy against the limit of steps. Marks are put in, with their names.
func (r *Report) stepsFigure(marks []mark) []byte {
	curves := slices.Clone(r.StepLimits)
	slices.SortFunc(curves, func(a, b Curve) int { return cmp.Compare(a.Agent, b.Agent) })
	if len(curves) == 0 || len(curves[0].Within) == 0 {
		return nil
	}
	var agents []string
	for _, c := range curves {
		agents = append(agents, c.Agent)
	}
	d := &drawing{}
	y := d.legend(top, agents)
	at := d.percentAxis(y)
	longest := len(curves[0].Within)
	for _, m := range marks {
		longest = max(longest, m.steps)
	}
	x := func(k int) float64 { return plotLeft + (plotRight-plotLeft-8)*float64(k)/float64(longest) }
	every := 1
	for _, e := range []int{2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if longest/every > 15 {
			every = e
		}
	}
	for k := 0; k <= longest; k += every {
		d.line("axis", x(k), at(0), x(k), at(0)+4)
		d.text("middle", x(k), at(0)+18, fmt.Sprint(k))
	}
	d.text("middle", (plotLeft+plotRight)/2, at(0)+36, "limit of steps")
	for i, c := range curves {
		points := []string{num(x(0)) + "," + num(at(0))}
		before := 0.0
		for k, s := range c.Within { // A limit of k and a half is one of k: the line has steps.
			points = append(points, num(x(k+1))+","+num(at(before)), num(x(k+1))+","+num(at(s.Value)))
			before = s.Value
		}
		if len(c.Within) < longest {
			points = append(points, num(x(longest))+","+num(at(before)))
		}
		d.polyline(i, points)
	}
	for _, m := range marks {
		d.dot(x(m.steps), at(m.share))
		d.text("end", x(m.steps)-8, at(m.share)+4, fmt.Sprintf("%s, %.1f %%", m.name, 100*m.share))
	}
	d.line("axis", plotLeft, at(0), plotRight, at(0))
	return d.figure("Accuracy within so many steps", at(0)+50)
}

// actionsFigure has a horizontal bar for each agent, or two for its solved and its failed runs,
// made of the shares of its actions.
func (r *Report) actionsFigure(title string, byOutcome bool) []byte {
	type bar struct {
		label  string
		counts map[string]int
		total  int
	}
	var bars []bar
	add := func(label string, uses []Use, n func(Use) int) {
		b := bar{label, map[string]int{}, 0}
		for _, u := range uses {
			b.counts[u.Name] += n(u)
			b.total += n(u)
		}
		if b.total > 0 {
			bars = append(bars, b)
		}
	}
	names, known := []string{}, map[string]int{}
	for _, m := range r.Actions {
		if m.Agent == "" {
			continue
		}
		for _, u := range m.Uses {
			known[u.Name] += u.All()
		}
		if !byOutcome {
			add(m.Agent, m.Uses, Use.All)
			continue
		}
		add(m.Agent+", solved", m.Uses, func(u Use) int { return u.Solved })
		add(m.Agent+", failed", m.Uses, func(u Use) int { return u.Failed })
	}
	if len(bars) == 0 {
		return nil
	}
	for n := range known {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(known[b]-known[a], cmp.Compare(a, b)) })
	shown := names
	if len(names) > len(palette) { // The rest is one, in the last colour.
		shown = append(slices.Clone(names[:len(palette)-1]), fmt.Sprintf("%d others", len(names)-len(palette)+1))
	}

	d := &drawing{}
	y := d.legend(top, shown)
	left := margin
	for _, b := range bars {
		left = max(left, margin+letter*float64(len([]rune(cell(b.label))))+10)
	}
	for _, b := range bars {
		d.text("end", left-8, y+barHeight/2+4, cell(b.label))
		x := left
		for i := range shown {
			n := b.counts[names[i]]
			if i == len(shown)-1 {
				for _, rest := range names[i+1:] {
					n += b.counts[rest]
				}
			}
			share := float64(n) / float64(b.total)
			w := share * (plotRight - left)
			if n > 0 {
				d.rect(x, y, w, barHeight, colour(i))
			}
			if w > 34 {
				d.inside(x+w/2, y+barHeight/2+4, i, fmt.Sprintf("%.0f %%", 100*share))
			}
			x += w
		}
		y += barHeight + 8
	}
	return d.figure(title, y+margin-8)
}
