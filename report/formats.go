package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/report/stats"
)

// WriteMarkdown writes the tables of the report as GitHub shows them, for a pull request.
func (r *Report) WriteMarkdown(w io.Writer) error { return r.print().writeMarkdown(w) }

// WriteMarkdown writes the comparison as GitHub shows it, for a pull request: what it comes to, and the tables.
func (c *Comparison) WriteMarkdown(w io.Writer) error { return c.print().writeMarkdown(w) }

// writeMarkdown writes what was printed.
func (p *printer) writeMarkdown(w io.Writer) error {
	var b bytes.Buffer
	if p.sentence != "" {
		fmt.Fprintf(&b, "**%s**\n\n", markdown(p.sentence))
	}
	fmt.Fprintf(&b, "%s\n", markdown(p.summary))
	for _, t := range p.tables {
		fmt.Fprintf(&b, "\n### %s\n\n", markdown(t.title))
		for i, row := range t.rows {
			for _, c := range row {
				b.WriteString("| " + markdown(c) + " ")
			}
			b.WriteString("|\n")
			if i == 0 {
				b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// markdown is a text that is shown as it is: names are an agent's to choose, and are no links, tags or mentions.
func markdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`,
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;").Replace(s)
}

// csvHead are the columns of the report as CSV.
var csvHead = []string{
	"by", "name", "agent", "runs", "solved", "accuracy", "low", "high", "not_counted", "seconds", "seconds_p10",
	"seconds_median", "seconds_p90", "steps", "steps_median", "in_tokens", "out_tokens", "cost_usd", "cost_usd_median",
	"safety_runs", "solved_no_harm", "harmed", "worse_seconds", "peak_regression", "budget_seconds", "outside",
	"irreversible", "refused", "tnr_violations", "scope", "level", "trials", "rounds", "messages", "turns",
	"manager_turns_a_round", "maintainer_turns_a_round", "assignment_accuracy", "study_trials", "study_solved",
	"study_rounds", "study_steps", "study_assignment_accuracy",
}

// WriteCSV writes a line for each agent, over all runs, by task and by each [Cut], with a head line. Those of groups
// and of operations have only what is told of these.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(csvHead) // Flush tells.
	write := func(by, name string, rows []Row) {
		for _, row := range rows {
			_ = out.Write(filled(row.csv(by, name)))
		}
	}
	write("all", "", r.Overall)
	for _, t := range r.Tasks {
		write("task", string(t.Task), t.Rows)
	}
	for _, c := range r.Cuts {
		write(c.By, c.Name, c.Rows)
	}
	for _, g := range r.Groups {
		_ = out.Write(g.csv())
	}
	for _, o := range r.Operations {
		_ = out.Write(o.csv())
	}
	out.Flush()
	return out.Error()
}

// filled is a line with empty cells for the columns that it does not have.
func filled(line []string) []string {
	return append(line, slices.Repeat([]string{""}, len(csvHead)-len(line))...)
}

// csvBefore is how many columns there are before those of groups and operations, csvOurs before those of the study.
var (
	csvBefore = slices.Index(csvHead, "scope")
	csvOurs   = slices.Index(csvHead, "study_trials")
)

// csv is the line of a group.
func (g Group) csv() []string {
	line := filled(Row{Agent: g.Agent, Accuracy: g.Solved}.csv("group", Aim{g.Level, g.Scope}.name()))
	var manager, maintainer *float64
	if g.Roles != nil {
		manager, maintainer = &g.Roles.Manager, &g.Roles.Maintainer
	}
	copy(line[csvBefore:], []string{
		g.Scope, unquoted(g.Level), "", csvNumber(&g.Rounds), csvNumber(&g.Messages), csvNumber(&g.Turns),
		csvNumber(manager), csvNumber(maintainer), csvNumber(g.Assignment),
	})
	copy(line[csvOurs:], csvStudy(g.Study))
	return line
}

// csv is the line of an operation. Its interval is about this operation.
func (o Operation) csv() []string {
	line := filled(Row{Agent: o.Agent, Accuracy: NewShare(o.solved(), len(o.Trials))}.csv("operation", o.Problem))
	var trials []string
	for _, yes := range o.Trials {
		trials = append(trials, strconv.Itoa(bit(yes)))
	}
	line[slices.Index(csvHead, "steps")] = csvNumber(&o.Steps)
	copy(line[csvBefore:], []string{
		o.Scope, unquoted(o.Level), strings.Join(trials, " "), csvNumber(o.Rounds), "", "", "", "",
		csvNumber(o.Assignment),
	})
	copy(line[csvOurs:], csvStudy(o.Study))
	return line
}

// csvNumber is a number that may not be known.
func csvNumber(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', 6, 64)
}

// csv are the cells of a row.
func (r Row) csv(by, name string) []string {
	number := func(v float64) string { return csvNumber(&v) }
	of := func(s *stats.Spread, value func(*stats.Spread) float64) string {
		if s == nil {
			return ""
		}
		return number(value(s))
	}
	mean := func(s *stats.Spread) float64 { return s.Mean }
	median := func(s *stats.Spread) float64 { return s.Median }
	a, s := r.Accuracy, r.Spreads
	line := []string{
		by, unquoted(name), unquoted(r.Agent), strconv.Itoa(a.Of), strconv.Itoa(a.N), number(a.Value), number(a.Low),
		number(a.High), strconv.Itoa(r.NotCounted), of(s.Seconds, mean),
		of(s.Seconds, func(s *stats.Spread) float64 { return s.P10 }), of(s.Seconds, median),
		of(s.Seconds, func(s *stats.Spread) float64 { return s.P90 }), of(s.Steps, mean), of(s.Steps, median),
		of(s.InTokens, mean), of(s.OutTokens, mean), of(s.Cost, mean), of(s.Cost, median),
	}
	f := r.Safety
	if f == nil {
		return line
	}
	return append(line, strconv.Itoa(f.Runs), strconv.Itoa(f.Safe.N), strconv.Itoa(f.Harmed.N), number(f.Worse),
		number(f.Peak), number(f.Budget), strconv.Itoa(f.Outside), strconv.Itoa(f.Irreversible),
		strconv.Itoa(f.Refused), strconv.Itoa(f.Violations))
}

// unquoted is a name that no spreadsheet takes for a formula.
func unquoted(s string) string {
	s = cell(s)
	if strings.ContainsAny(s[:min(len(s), 1)], "=+-@") {
		return "'" + s
	}
	return s
}

// WriteHTML writes the report as one page, with its figures, that needs no other file.
func (r *Report) WriteHTML(w io.Writer) error {
	return r.print().writePage(w, "How agents did", r.Figures())
}

// WriteHTML writes the comparison as one page that needs no other file.
func (c *Comparison) WriteHTML(w io.Writer) error {
	return c.print().writePage(w, cell(c.First.Name)+" and "+cell(c.Second.Name), nil)
}

// writePage writes what was printed as a page, with figures.
func (p *printer) writePage(w io.Writer, title string, figures map[string][]byte) error {
	var b bytes.Buffer
	pageHead(&b, title)
	if p.sentence != "" {
		fmt.Fprintf(&b, "<p><strong>%s</strong></p>\n", escape(p.sentence))
	}
	fmt.Fprintf(&b, "<p>%s</p>\n", escape(p.summary))
	for _, name := range sortedKeys(figures) {
		fmt.Fprintf(&b, "<figure>\n%s</figure>\n", figures[name])
	}
	for _, t := range p.tables {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<div class=\"wide\"><table>\n", escape(t.title))
		for i, row := range t.rows {
			tag := "td"
			if i == 0 {
				tag = "th"
			}
			b.WriteString("<tr>")
			for _, c := range row {
				fmt.Fprintf(&b, "<%s>%s</%s>", tag, escape(c), tag)
			}
			b.WriteString("</tr>\n")
		}
		b.WriteString("</table></div>\n")
	}
	b.WriteString("</body>\n</html>\n")
	_, err := w.Write(b.Bytes())
	return err
}
