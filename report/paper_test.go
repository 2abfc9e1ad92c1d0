package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// ofThePaper are runs of agents that the paper has, too, and of one that it has not.
var ofThePaper = append([]aRun{
	{id: "p1", agent: "mksmc", task: problem.Detection, class: session.Solved, steps: steps(1, agent.Call("submit", "Yes")), results: grade.Result{"TTD": 40.0, "in_tokens": 17, "out_tokens": 7}},
	{id: "p2", agent: "mksmc", task: problem.Detection, class: session.AgentFailed, steps: steps(1, agent.Call("submit", "Yes")), results: grade.Result{"TTD": 42.0}, healthy: true},
	{id: "p3", agent: "mksmc", task: problem.Detection, class: session.Solved, steps: steps(1, agent.Call("submit", "No")), results: grade.Result{"TTD": 42.0}, healthy: true},
	{id: "p4", agent: "shell", task: problem.Mitigation, class: session.Solved, steps: steps(3, agent.Call("exec_shell", "ls | python3 -c x; mongosh"), agent.Call("submit")), results: grade.Result{"TTM": 9.0, "model": "gpt-3.5-turbo", "in_tokens": 10, "out_tokens": 5}},
	{id: "p5", agent: "runbook", task: problem.Mitigation, class: session.Solved, steps: steps(2, agent.Call("submit")), results: grade.Result{"TTM": 7.0}},
}, some...)

func TestPaper(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var files []string
	for _, a := range ofThePaper {
		files = append(files, a.write(t))
	}
	r, _ := build(files)
	var page bytes.Buffer
	if err := r.WritePaper(&page); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(testdata, "paper.html.golden"), page.Bytes())
	d := xml.NewDecoder(bytes.NewReader(page.Bytes()))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	rows := map[string][]string{} // by table and agent
	for _, table := range r.paperTables() {
		for _, row := range table.Rows {
			if len(row.Cells) != len(table.Columns) && row.Fill == nil {
				t.Errorf("%s, %s: %d cells for %d columns", table.Title, row.Agent, len(row.Cells), len(table.Columns))
			}
			if row.Fill != nil {
				row.Cells = []string{row.Fill.model, row.Fill.command()}
			}
			rows[table.Title+"/"+row.Agent] = row.Cells
		}
	}
	for where, want := range map[string]string{
		"Table 3. Overall performance/FLASH":                     "- 60 99.64 8.48 6484.25 59.32 % -",
		"Table 3. Overall performance/runbook":                   "1 - 7.00 2.00 - 100.00 % 20.7 - 100.0",
		"Table 4 (a). Detection/MKSMC":                           "- 15.38 % - 1.00 - - -",
		"Table 4 (a). Detection/mksmc":                           "3 66.67 % 9.4 - 97.5 41.33 1.00 - -",
		"Table 4 (b). Localization/rmlad":                        " aiopslab bench --agent rmlad --suite aiopslab --task localization",
		"Table 4 (b). Localization/react (gpt-4o)":               "1 0.00 % 0.0 - 79.3 100.00 % 0.00 % 5.00 2.00 0.00 0.00",
		"Table 4 (d). Mitigation/shell (gpt-3.5-turbo)":          "1 100.00 % 20.7 - 100.0 9.00 3.00 10.00 5.00",
		"Table 5. Occurrences of system commands/REACT":          "0 0 0 3 0 1 26 30 0",
		"Table 5. Occurrences of system commands/react (gpt-4o)": "0 0 0 0 0 1 0 0 0",
		"Section 3.6.4. False positives/mksmc":                   "2 1 1 (50.0 %)",
	} {
		if got := strings.Join(rows[where], " "); got != want {
			t.Errorf("%s: %s, want %s", where, got, want)
		}
	}
	// Of the two shells of the paper only one has runs; the other says how to get them.
	if got := rows["Table 4 (d). Mitigation/shell"]; !slices.Contains(got, newerModel) {
		t.Errorf("the shell with the newer model: %v", got)
	}
	// One command for each model makes all that is missing, and names no agent that has all of its runs.
	want := []string{
		"aiopslab bench --agent shell,react,flash --model openai/gpt-4-turbo --suite aiopslab --max-steps 20",
		"aiopslab bench --agent shell --model openai/gpt-3.5-turbo --suite aiopslab --max-steps 20",
	}
	if d := cmp.Diff(want, modelCommands(r.paperTables())); d != "" {
		t.Error(d)
	}
	row := func(agent string) paperRow { return paperRow{Agent: agent, Cells: []string{"1"}} }
	full := paperTable{Rows: []paperRow{row("react"), {Agent: "flash", Fill: &fill{counterpart: counterparts[3]}}}}
	if got := modelCommands([]paperTable{full}); len(got) != 1 || !strings.Contains(got[0], "--agent flash --model") {
		t.Errorf("flash alone is missing: %v", got)
	}
	if got := modelCommands(nil); got != nil {
		t.Errorf("nothing is missing: %v", got)
	}
	// The same records give the same page, whatever their order.
	slices.Reverse(files)
	again, _ := build(files)
	var second bytes.Buffer
	if err := again.WritePaper(&second); err != nil || !bytes.Equal(page.Bytes(), second.Bytes()) {
		t.Errorf("%v, %s", err, cmp.Diff(page.String(), second.String()))
	}
}

// Every value of the paper is in its table, as a number or as none.
func TestPaperNumbers(t *testing.T) {
	agents := map[string]int{"3": 4, "4a": 5, "4b": 6, "4c": 4, "4d": 4, "5": 2, "figure 5": 1, "false positives": 1}
	for table, n := range agents {
		columns, values := paperRows(table)
		if len(values) != n {
			t.Errorf("table %s has %d agents, want %d", table, len(values), n)
		}
		for name, cells := range values {
			if !slices.ContainsFunc(counterparts, func(c counterpart) bool { return c.paper == name }) {
				t.Errorf("table %s: who is %s here?", table, name)
			}
			for _, c := range columns {
				if _, err := strconv.ParseFloat(cells[c], 64); err != nil && cells[c] != "-" {
					t.Errorf("table %s, %s, %s: %q", table, name, c, cells[c])
				}
			}
		}
	}
	if n := strings.Count(paperNumbers, "\n"); n != 4+1+4*5+5*5+6*6+4*5+4*5+2*9+2 {
		t.Errorf("%d lines", n)
	}
}

// Who has used no program has used none: that is no reason to have all of its runs made.
func TestPaperWithoutPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	file := aRun{id: "1", agent: "react", task: problem.Detection, class: session.Solved, results: grade.Result{"model": "gpt-4-turbo"}}.write(t)
	r, _ := build([]string{file})
	for _, row := range r.commandTable().Rows {
		if row.Fill != nil && row.Agent == "react" {
			t.Error("its runs are to be made")
		}
		if !row.Paper && row.Fill == nil && (len(row.Cells) == 0 || strings.Trim(strings.Join(row.Cells, ""), "0") != "") {
			t.Errorf("%s: %q", row.Agent, row.Cells)
		}
	}
}

// What agents name themselves is text, and a report of nothing is a page all the same.
func TestPaperHostile(t *testing.T) {
	t.Chdir(t.TempDir())
	file := aRun{id: "1", agent: "<script>alert(1)</script>", task: problem.Detection, class: session.Solved, results: grade.Result{"model": "</td>\"&"}}.write(t)
	for _, files := range [][]string{{file}, nil} {
		r, _ := build(files)
		var page bytes.Buffer
		if err := r.WritePaper(&page); err != nil || strings.Contains(page.String(), "<script") || strings.Contains(page.String(), "NaN") {
			t.Errorf("%v: %s", err, page.String())
		}
		if !strings.Contains(page.String(), "--agent shell,react,flash --model openai/gpt-4-turbo") {
			t.Error("it does not say how rows are filled")
		}
	}
}
