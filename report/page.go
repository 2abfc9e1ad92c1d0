package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// pageStyle is that of the page, on light and on dark screens.
const pageStyle = `<style>
:root { color-scheme: light dark; --ink: #1f2328; --page: #ffffff; --line: #d0d7de; --soft: #f6f8fa; --quiet: #57606a }
@media (prefers-color-scheme: dark) {
:root { --ink: #e6edf3; --page: #0d1117; --line: #30363d; --soft: #161b22; --quiet: #8b949e }
}
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink);
  background: var(--page); max-width: 1080px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { font-size: 1.15em; margin: 2em 0 .3em }
p { margin: .3em 0 .6em } .note { color: var(--quiet) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: .25em .7em; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
tr.paper td { background: var(--soft) }
td.fill { text-align: left; white-space: normal; color: var(--quiet) }
code { font: 12.5px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere }
figure { margin: .6em 0 } svg { max-width: 100%; height: auto }
</style>
`

// WritePaper writes an HTML page with the tables and figures of AIOpsLab's paper: what the paper has beside what the
// report has, and by which commands the rows are filled that have no runs. The page needs no other file.
func (r *Report) WritePaper(w io.Writer) error {
	var b bytes.Buffer
	pageHead(&b, "As in the paper")
	fmt.Fprintf(&b, `<p>The evaluation of <a href="https://arxiv.org/abs/2501.06706">AIOpsLab: A Holistic Framework to
Evaluate AI Agents for Enabling Autonomous Clouds</a> (Chen et al., 2025, section 3) beside %s of ours, of
which %d count. Rows with a grey ground are the paper's, over 48 problems of AIOpsLab; the others are
computed from records.</p>
`, plural(r.Runs, "run"), r.Counted)
	tables := r.paperTables()
	if commands := modelCommands(tables); len(commands) > 0 {
		b.WriteString("<p>This makes the runs of the empty rows whose agents need a model. If it is stopped, the " +
			"same again goes on. Then write this page again, of all records.</p>\n")
		for _, c := range commands {
			fmt.Fprintf(&b, "<p><code>%s</code></p>\n", escape(c))
		}
	}
	for _, t := range tables {
		t.html(&b)
	}
	for _, f := range []struct {
		title, note string
		svg         []byte
	}{
		{"Figure 5. Performance and number of steps", `The paper has a picture, and of its numbers only this one: FLASH is at
59.32 % with a limit of 20. Ours are computed from the steps that runs took.`, r.stepsFigure(paperMarks())},
		{"Figure 6. Actions by agent", `The paper has a picture alone. It tells that get_logs is used most, then get_metrics and
get_traces, and that FLASH does not use get_traces at all.`, r.actionsFigure("Actions by agent", false)},
		{"Figure 7. Actions in successful and in failed cases", `The paper has a picture alone. It tells that get_metrics and
get_traces are rare where an agent succeeds.`, r.actionsFigure("Actions in solved and failed runs", true)},
	} {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<p class=\"note\">%s</p>\n", escape(f.title), escape(f.note))
		if f.svg == nil {
			b.WriteString("<p>No run has a step.</p>\n")
			continue
		}
		fmt.Fprintf(&b, "<figure>\n%s</figure>\n", f.svg)
	}
	r.costHTML(&b)
	b.WriteString("</body>\n</html>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// pageHead begins a page.
func pageHead(b *bytes.Buffer, title string) {
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width\">\n")
	fmt.Fprintf(b, "<title>%s</title>\n%s</head>\n<body>\n<h1>%s</h1>\n", escape(title), pageStyle, escape(title))
}

// html writes a table.
func (t paperTable) html(b *bytes.Buffer) {
	fmt.Fprintf(b, "<h2>%s</h2>\n", escape(t.Title))
	if t.Note != "" {
		fmt.Fprintf(b, "<p class=\"note\">%s</p>\n", escape(strings.ReplaceAll(t.Note, "\n", " ")))
	}
	b.WriteString("<div class=\"wide\"><table>\n<tr><th>Agent</th><th></th>")
	for _, c := range t.Columns {
		fmt.Fprintf(b, "<th>%s</th>", escape(c))
	}
	b.WriteString("</tr>\n")
	for _, row := range t.Rows {
		class, from := "", "ours"
		if row.Paper {
			class, from = ` class="paper"`, "paper"
		}
		fmt.Fprintf(b, "<tr%s><td>%s</td><td>%s</td>", class, escape(cell(row.Agent)), from)
		if row.Fill != nil {
			how := "the command for " + escape(row.Fill.model) + " above"
			if row.Fill.model == "" {
				how = "<code>" + escape(row.Fill.command()) + "</code>"
			}
			fmt.Fprintf(b, `<td class="fill" colspan="%d">no runs; %s</td>`, len(t.Columns), how)
		}
		for _, c := range row.Cells {
			fmt.Fprintf(b, "<td>%s</td>", escape(c))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}

// costHTML tells what models were paid, for which the paper has tokens alone.
func (r *Report) costHTML(b *bytes.Buffer) {
	t := paperTable{
		Title: "Cost",
		Note: `The paper takes tokens for cost (Tables 3 and 4). Records have dollars where the price of the model is
known.`,
		Columns: []string{"Runs that tell", "Mean ($)"},
	}
	for _, row := range r.Overall {
		if row.Cost != nil {
			t.Rows = append(t.Rows, paperRow{
				Agent: row.Agent, Cells: []string{fmt.Sprint(row.Cost.Runs), fmt.Sprintf("%.4f", row.Cost.Mean)},
			})
		}
	}
	if len(t.Rows) == 0 {
		t.Note += " No run of these tells."
	}
	t.html(b)
}
