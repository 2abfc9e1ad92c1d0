package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/session"
)

// pair is a run on both sides.
type pair struct {
	row
	real, embedded outcome
}

// same reports whether both sides tell the same, and known whether both tell anything.
func (p pair) same() (same, known bool) {
	return p.real.Got == p.embedded.Got, p.real.tells() && p.embedded.tells()
}

// table prints what both sides came to.
func (f folder) table(out io.Writer) error {
	plan, err := lines[row](f.plan())
	if err != nil {
		return err
	}
	if len(plan) == 0 {
		return fmt.Errorf("there is no %s", f.plan())
	}
	var sides [2]map[row]outcome
	for i, side := range []string{realSide, embeddedSide} {
		list, err := lines[outcome](f.side(side))
		if err != nil {
			return err
		}
		sides[i], _ = latest(list)
	}
	var pairs []pair
	for _, r := range plan {
		p := pair{r, sides[0][r], sides[1][r]}
		if p.real.Got != none && p.embedded.Got != none {
			pairs = append(pairs, p)
		}
	}
	join(out, pairs)
	return nil
}

// parts are the tables, in their order, and how they are called.
var parts = []struct{ part, title string }{
	{mitigations, "Mitigations"}, {remedies, "Blunt remedies on mitigations"}, {operations, "Operations"},
}

// join prints pairs as tables of Markdown, with what differs below them. A cell has what came of a run, if it is the
// same on both sides, and how long it took on the real cluster and on the embedded cloud.
func join(out io.Writer, pairs []pair) {
	for _, t := range parts {
		part := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return p.Part != t.part })
		if len(part) == 0 {
			continue
		}
		fmt.Fprintf(out, "## %s\n\n", t.title)
		grid(out, part)
		tally(out, "verdicts", part, func(p pair) (bool, bool) { return p.same() })
		surprises(out, part)
		fmt.Fprintln(out)
	}
	part := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return p.Part != incidents })
	if len(part) == 0 {
		return
	}
	fmt.Fprint(out, "## Incidents, runbook\n\n")
	asked := questions(part)
	fmt.Fprintf(out, "| problem | verdict | %s |\n%s|\n", strings.Join(asked, " | "),
		strings.Repeat("|---", len(asked)+2))
	for _, p := range part {
		cells := []string{p.Problem, p.cell()}
		for _, q := range asked {
			cells = append(cells, versus(said(p.real, q), said(p.embedded, q)))
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintln(out)
	tally(out, "verdicts", part, func(p pair) (bool, bool) { return p.same() })
	for _, q := range asked {
		tally(out, "answers to "+q, part, func(p pair) (bool, bool) {
			_, known := p.same()
			return said(p.real, q) == said(p.embedded, q), known
		})
	}
	tally(out, "incidents with the same answers to all", part, func(p pair) (bool, bool) {
		_, known := p.same()
		return !slices.ContainsFunc(asked, func(q string) bool { return said(p.real, q) != said(p.embedded, q) }), known
	})
	surprises(out, part)
}

// grid prints a line for each problem and a column for each agent.
func grid(out io.Writer, part []pair) {
	var agents, problems []string
	cells := map[[2]string]string{}
	for _, p := range part {
		if !slices.Contains(agents, p.Agent) {
			agents = append(agents, p.Agent)
		}
		if !slices.Contains(problems, p.Problem) {
			problems = append(problems, p.Problem)
		}
		cells[[2]string{p.Problem, p.Agent}] = p.cell()
	}
	fmt.Fprintf(out, "| problem | %s |\n%s|\n", strings.Join(agents, " | "), strings.Repeat("|---", len(agents)+1))
	for _, problem := range problems {
		fmt.Fprintf(out, "| %s", problem)
		for _, agent := range agents {
			fmt.Fprintf(out, " | %s", cells[[2]string{problem, agent}])
		}
		fmt.Fprintln(out, " |")
	}
	fmt.Fprintln(out)
}

// cell is what came of a run, with its times.
func (p pair) cell() string {
	text := versus(verdict(p.real), verdict(p.embedded))
	if p.real.Got == "" && p.embedded.Got == "" {
		return text
	}
	return fmt.Sprintf("%s, %s / %s s", text, seconds(p.real), seconds(p.embedded))
}

func seconds(o outcome) string {
	if o.Got == "" {
		return "-"
	}
	return fmt.Sprintf("%.0f", o.Seconds)
}

// verdict is what came of a run in words.
func verdict(o outcome) string {
	switch o.Got {
	case string(session.Solved):
		return "solved"
	case string(session.AgentFailed):
		return "not solved"
	}
	return cmp.Or(o.Got, "not run")
}

// versus is what both sides have, or both.
func versus(real, embedded string) string {
	if real == embedded {
		return real
	}
	return fmt.Sprintf("**%s / %s**", real, embedded)
}

// questions are those that were answered on any side, in the order in which incidents ask them.
func questions(part []pair) []string {
	order := []string{"detection", "localization", "analysis", "mitigation"}
	var all []string
	for _, p := range part {
		for _, o := range []outcome{p.real, p.embedded} {
			for q := range o.Answers {
				if !slices.Contains(all, q) {
					all = append(all, q)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a), slices.Index(order, b)), strings.Compare(a, b))
	})
	return all
}

// said is an answer as text. The order of several things does not matter.
func said(o outcome, question string) string {
	v, ok := o.Answers[question]
	if !ok {
		return "-"
	}
	if list, ok := v.([]any); ok {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(strings.Trim(string(b), `"`), "|", `\|`)
}

// tally prints how many of the runs that both sides tell something of are the same.
func tally(out io.Writer, what string, part []pair, same func(pair) (same, known bool)) {
	n, agree := 0, 0
	for _, p := range part {
		ok, known := same(p)
		if !known {
			continue
		}
		n++
		if ok {
			agree++
		}
	}
	if n == 0 {
		fmt.Fprintf(out, "%s: none on both sides yet\n\n", what)
		return
	}
	fmt.Fprintf(out, "%s: %d of %d the same, %.0f %%", what, agree, n, 100*float64(agree)/float64(n))
	if open := len(part) - n; open > 0 {
		fmt.Fprintf(out, "; %d not told by both sides", open)
	}
	fmt.Fprint(out, "\n\n")
}

// surprises lists what is not as it must be, and what differs, with the reason that the verdict gives.
func surprises(out io.Writer, part []pair) {
	for _, p := range part {
		same, known := p.same()
		for _, side := range []struct {
			name string
			outcome
		}{{realSide, p.real}, {embeddedSide, p.embedded}} {
			if side.Got == "" || known && same && (side.Want == "" || side.Want == side.Got) {
				continue
			}
			want := ""
			if side.Want != "" {
				want = ", must be " + verdict(outcome{Got: side.Want})
			}
			fmt.Fprintf(out, "- %s, %s, %s: %s%s: %s\n", p.Problem, p.Agent, side.name, verdict(side.outcome), want,
				side.Why)
		}
	}
}
