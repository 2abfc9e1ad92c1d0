package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// topUses is how many actions or commands of an agent are printed; the rest is summed up.
	topUses = 12
	// maxCell is the longest name that is printed in full, in characters; maxWhy is the longest reason.
	maxCell, maxWhy = 40, 100
)

// limits are the limits of steps that are printed. JSON has all.
var limits = []int{1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 75, 100}

var taskTitles = map[problem.Task]string{
	problem.Detection:    "Detection (Table 4a)",
	problem.Localization: "Localization (Table 4b)",
	problem.Analysis:     "Root cause analysis (Table 4c)",
	problem.Mitigation:   "Mitigation (Table 4d)",
	problem.Incident:     "Incidents, all questions",
	problem.Operation:    "Operations",
	problem.OnCall:       "Shifts, by whether they pass",
}

// WriteText writes the report for people to read.
func (r *Report) WriteText(w io.Writer) error {
	_, err := w.Write(r.print().Bytes())
	return err
}

// print prints the report.
func (r *Report) print() *printer {
	p := &printer{}
	p.head(r)
	p.summary = strings.TrimSpace(p.String())
	p.overall(r)
	p.tasks(r)
	p.spreads(r)
	p.values(r)
	p.incidents(r)
	p.conducts(r)
	p.safety(r)
	p.groups(r)
	p.operations(r)
	p.shifts(r)
	p.tries(r)
	p.cuts(r)
	p.stepLimits(r)
	p.mixes("Actions, % (Figures 6 and 7)", "ACTION", r.Actions)
	p.mixes("Commands in exec_shell, % (Table 5)", "COMMAND", r.Commands)
	p.notCounted(r)
	return p
}

// printer prints a report as text, and keeps its parts for who writes them otherwise.
type printer struct {
	bytes.Buffer
	summary  string
	tables   []printed
	sentence string // what it comes to, if there is one
}

// printed is a table: the first row is its head.
type printed struct {
	title string
	rows  [][]string
}

// table writes rows under a title.
func (p *printer) table(title string, rows [][]string) {
	p.tables = append(p.tables, printed{title, rows})
	fmt.Fprintf(p, "\n%s\n", title)
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // A buffer takes all.
}

func (p *printer) head(r *Report) {
	fmt.Fprintf(p, "%s, %d of them count.", plural(r.Runs, "run"), r.Counted)
	if n := len(r.NotCounted) - r.Unfinished; n > 0 {
		classes := map[session.Class]int{}
		for _, c := range r.NotCounted {
			classes[c.Class]++
		}
		var parts []string
		for _, c := range []session.Class{session.Infra, session.GraderFailed, session.Inconclusive, session.Searched} {
			if classes[c] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", classes[c], c))
				n -= classes[c]
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d other", n))
		}
		fmt.Fprintf(p, " Not counted: %s.", strings.Join(parts, ", "))
	}
	switch n := r.Unfinished; {
	case n == 1:
		p.WriteString(" 1 run is not finished or was cut off; not counted.")
	case n > 1:
		fmt.Fprintf(p, " %d runs are not finished or were cut off; not counted.", n)
	}
	p.WriteByte('\n')
}

func (p *printer) overall(r *Report) {
	rows := [][]string{{
		"AGENT", "RUNS", "ACCURACY", "95 % INTERVAL", "SOLVED, NO HARM", "TIME (s)", "STEPS", "TOKENS IN", "TOKENS OUT",
		"COST ($)", "NOT COUNTED",
	}}
	for _, row := range r.Overall {
		line := append(append(row.begin(), row.safe()), row.efforts()...)
		rows = append(rows, append(line, row.cost(), fmt.Sprint(row.NotCounted)))
	}
	p.table("Overall (Table 3)", rows)
}

func (p *printer) tasks(r *Report) {
	for _, t := range r.Tasks {
		extra := map[problem.Task][]string{
			problem.Localization: {"ACC.@3", "ACC.@1"},
			problem.Analysis:     {"LEVEL", "TYPE"},
		}[t.Task]
		head := append([]string{"AGENT", "RUNS", "ACCURACY", "95 % INTERVAL"}, extra...)
		rows := [][]string{append(head, "TIME (s)", "STEPS", "TOKENS IN", "TOKENS OUT")}
		for _, row := range t.Rows {
			line := row.begin()
			for _, s := range []*Share{row.Top3, row.Top1, row.Level, row.Type} {
				if s != nil {
					line = append(line, s.percent())
				}
			}
			rows = append(rows, append(line, row.efforts()...))
		}
		p.table(taskTitles[t.Task], rows)
	}
}

func (p *printer) stepLimits(r *Report) {
	if len(r.StepLimits) == 0 {
		return
	}
	longest := len(r.StepLimits[0].Within)
	head := []string{"AGENT"}
	var at []int
	for _, l := range limits {
		if l < longest {
			at = append(at, l)
			head = append(head, fmt.Sprint(l))
		}
	}
	if longest > 0 {
		at, head = append(at, longest), append(head, fmt.Sprint(longest))
	}
	rows := [][]string{head}
	for _, c := range r.StepLimits {
		line := []string{cell(c.Agent)}
		for _, k := range at {
			line = append(line, fmt.Sprintf("%.1f", 100*c.Within[k-1].Value))
		}
		rows = append(rows, line)
	}
	p.table("Accuracy within so many steps, % (Figure 5)", rows)
}

func (p *printer) mixes(title, what string, mixes []Mix) {
	if len(mixes) == 0 {
		return
	}
	rows := [][]string{{"AGENT", what, "ALL", "IN SOLVED", "IN FAILED", "COUNT"}}
	for _, m := range mixes {
		agent := cell(m.Agent)
		if m.Agent == "" {
			agent = "(all)"
		}
		solved, failed := m.totals()
		for _, u := range m.top() {
			rows = append(rows, []string{
				agent, cell(u.Name), portion(u.All(), solved+failed), portion(u.Solved, solved),
				portion(u.Failed, failed), fmt.Sprint(u.All()),
			})
		}
	}
	p.table(title, rows)
}

// totals are how often anything was done.
func (m Mix) totals() (solved, failed int) {
	for _, u := range m.Uses {
		solved += u.Solved
		failed += u.Failed
	}
	return solved, failed
}

// top are the most frequent uses, and the rest as one.
func (m Mix) top() []Use {
	if len(m.Uses) <= topUses+1 {
		return m.Uses
	}
	list := append([]Use(nil), m.Uses[:topUses]...)
	rest := Use{Name: fmt.Sprintf("(%d others)", len(m.Uses)-topUses)}
	for _, u := range m.Uses[topUses:] {
		rest.Solved += u.Solved
		rest.Failed += u.Failed
	}
	return append(list, rest)
}

func (p *printer) notCounted(r *Report) {
	if len(r.NotCounted) == 0 {
		return
	}
	rows := [][]string{{"CLASS", "AGENT", "PROBLEM", "WHY", "RECORD"}}
	for _, n := range r.NotCounted {
		rows = append(rows, []string{
			cell(string(n.Class)), cell(n.Agent), plain(n.Problem, maxWhy),
			plain(n.Why, maxWhy), n.File,
		})
	}
	p.table("Not counted", rows)
}

// begin are the columns that every table has.
func (r Row) begin() []string {
	interval := "-"
	if r.Accuracy.Of > 0 {
		interval = fmt.Sprintf("%.1f - %.1f", 100*r.Accuracy.Low, 100*r.Accuracy.High)
	}
	return []string{cell(r.Agent), fmt.Sprint(r.Accuracy.Of), r.Accuracy.percent(), interval}
}

// efforts are what a run took, in the mean.
func (r Row) efforts() []string {
	if r.Accuracy.Of == 0 {
		return []string{"-", "-", "-", "-"}
	}
	return []string{
		fmt.Sprintf("%.2f", r.Seconds), fmt.Sprintf("%.2f", r.Steps), fmt.Sprintf("%.1f", r.InTokens),
		fmt.Sprintf("%.1f", r.OutTokens),
	}
}

func (r Row) cost() string {
	if r.Cost == nil {
		return "-"
	}
	s := fmt.Sprintf("%.4f", r.Cost.Mean)
	if r.Cost.Runs < r.Accuracy.Of {
		s += fmt.Sprintf(" (%s)", plural(r.Cost.Runs, "run"))
	}
	return s
}

func (s Share) percent() string {
	if s.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*s.Value)
}

// Figure is a number with four digits that matter, as people write it: without an exponent.
func Figure(v float64) string {
	digits := 3
	if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		digits -= int(math.Floor(math.Log10(math.Abs(v))))
	}
	text := strconv.FormatFloat(v, 'f', min(max(digits, 0), 8), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Signed is a [Figure] with its sign.
func Signed(v float64) string {
	if v < 0 {
		return Figure(v)
	}
	return "+" + Figure(v)
}

// portion is n of so many, in percent.
func portion(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*float64(n)/float64(of))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cell is a name as a table shows it.
func cell(s string) string { return plain(s, maxCell) }

// plain is a text that may come from an agent, on one line and without what moves a cursor.
func plain(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit-1]) + "…"
	}
	return s
}
