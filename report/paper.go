package report

import (
	_ "embed" // for the numbers of the paper
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
)

// paperNumbers are the numbers of the tables of AIOpsLab's paper.
//
//go:embed paper.tsv
var paperNumbers string

// paperTable is a table of the paper with our agents in it.
type paperTable struct {
	Title, Note string
	Columns     []string
	Rows        []paperRow
}

// paperRow is what the paper has of an agent, what the records have of one, or nothing but how to get it.
type paperRow struct {
	Agent string
	Paper bool
	Cells []string // one for each column
	Fill  *fill    // how to fill the row, if it is empty
}

// fill is runs that are missing: of a counterpart, for a task, or for all.
type fill struct {
	counterpart
	task problem.Task
}

// counterpart is what an agent of the paper is here.
type counterpart struct {
	paper, agent, model string
}

// The models of the paper, which says GPT-4-TURBO and GPT-3.5-TURBO of them.
const (
	newerModel = "gpt-4-turbo"
	olderModel = "gpt-3.5-turbo"
)

// counterparts are in the paper's order.
var counterparts = []counterpart{
	{"GPT-4-W-SHELL", "shell", newerModel},
	{"GPT-3.5-W-SHELL", "shell", olderModel},
	{"REACT", "react", newerModel},
	{"FLASH", "flash", newerModel},
	{"MKSMC", "mksmc", ""},
	{"PDIAGNOSE", "pdiagnose", ""},
	{"RMLAD", "rmlad", ""},
}

// is reports whether a contestant is the counterpart, with whatever model. The paper has one agent with two models:
// of ours, those of the older kind are beside the older one.
func (c counterpart) is(contestant string) bool {
	agent, model, _ := strings.Cut(contestant, " (")
	const older = "3.5"
	return agent == c.agent && (agent != "shell" || strings.Contains(model, older) == strings.Contains(c.model, older))
}

// command is what one types for the runs of an agent that needs no model.
func (f fill) command() string {
	c := "aiopslab bench --agent " + f.agent + " --suite aiopslab"
	if f.task != "" {
		c += " --task " + string(f.task)
	}
	return c
}

// paperSteps is how many steps agents have in the paper.
const paperSteps = 20

// modelCommands fill the empty rows of all agents that need a model: a campaign for each model, in which the agents
// without runs try every problem.
func modelCommands(tables []paperTable) (commands []string) {
	missing := map[string]bool{} // by model and agent
	for _, t := range tables {
		for _, row := range t.Rows {
			if row.Fill != nil {
				missing[row.Fill.model+"/"+row.Fill.agent] = true
			}
		}
	}
	for _, model := range []string{newerModel, olderModel} {
		var agents []string
		for _, c := range counterparts {
			if c.model == model && missing[model+"/"+c.agent] {
				agents = append(agents, c.agent)
			}
		}
		if len(agents) > 0 {
			commands = append(commands, fmt.Sprintf("aiopslab bench --agent %s --model openai/%s "+
				"--suite aiopslab --max-steps %d", strings.Join(agents, ","), model, paperSteps))
		}
	}
	return commands
}

// paperRows returns what the paper has in a table: its columns, and the values of each agent.
func paperRows(table string) (columns []string, values map[string]map[string]string) {
	values = map[string]map[string]string{}
	for line := range strings.Lines(paperNumbers) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(f) != 4 || f[0] != table {
			continue
		}
		if values[f[1]] == nil {
			values[f[1]] = map[string]string{}
		}
		values[f[1]][f[2]] = f[3]
		if !slices.Contains(columns, f[2]) {
			columns = append(columns, f[2])
		}
	}
	return columns, values
}

// beside makes a table of the paper: each agent of it, below it those of ours that are its counterpart or how to get
// them, and then all others of ours. ours are the cells of our agents by their names, for the same columns.
func beside(t paperTable, table string, task problem.Task, names []string, ours func(name string) []string) paperTable {
	columns, values := paperRows(table)
	if t.Columns == nil {
		t.Columns = columns
	}
	done := map[string]bool{}
	for _, c := range counterparts {
		if values[c.paper] == nil {
			continue
		}
		row := paperRow{Agent: c.paper, Paper: true}
		for _, column := range t.Columns {
			row.Cells = append(row.Cells, paperCell(column, values[c.paper][column]))
		}
		t.Rows = append(t.Rows, row)
		found := false
		for _, n := range names {
			if c.is(n) {
				t.Rows = append(t.Rows, paperRow{Agent: n, Cells: ours(n)})
				done[n], found = true, true
			}
		}
		if !found {
			t.Rows = append(t.Rows, paperRow{Agent: c.agent, Fill: &fill{c, task}})
		}
	}
	for _, n := range names {
		if !done[n] {
			t.Rows = append(t.Rows, paperRow{Agent: n, Cells: ours(n)})
		}
	}
	return t
}

// paperCell is a number of the paper as ours are written.
func paperCell(column, value string) string {
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		return "-"
	case strings.HasPrefix(column, "Acc"):
		return fmt.Sprintf("%.2f %%", n)
	case column == "LoC" || !strings.Contains(value, "."):
		return value
	}
	return fmt.Sprintf("%.2f", n)
}

// The columns that only records have.
const (
	runsColumn     = "Runs"
	intervalColumn = "95 % interval"
)

// paperTables are the tables of the paper's evaluation, with the agents of the report.
func (r *Report) paperTables() []paperTable {
	tables := []paperTable{r.paperTable("3", "", "Table 3. Overall performance", `LoC are the lines that it takes to
register an agent in AIOpsLab; no record has them. Tokens are those in and out.`, r.Overall)}
	for _, t := range []struct {
		table, title string
		task         problem.Task
	}{
		{"4a", "Table 4 (a). Detection", problem.Detection},
		{"4b", "Table 4 (b). Localization", problem.Localization},
		{"4c", "Table 4 (c). Root cause analysis", problem.Analysis},
		{"4d", "Table 4 (d). Mitigation", problem.Mitigation},
	} {
		var rows []Row
		if i := slices.IndexFunc(r.Tasks, func(o Task) bool { return o.Task == t.task }); i >= 0 {
			rows = r.Tasks[i].Rows
		}
		note := ""
		if t.task == problem.Localization {
			note = `Acc.@3 and Acc.@1 ask whether a faulty component is among the first three of the answer, or the first.
Accuracy, which the paper does not have, is of those that name exactly the faulty ones.`
		}
		tables = append(tables, r.paperTable(t.table, t.task, t.title, note, rows))
	}
	return append(tables, r.commandTable(), r.falseAlarmTable())
}

// paperTable is one of those of accuracy and effort.
func (r *Report) paperTable(table string, task problem.Task, title, note string, rows []Row) paperTable {
	columns, _ := paperRows(table)
	columns = append([]string{runsColumn}, columns...)
	if task == problem.Localization {
		columns = slices.Insert(columns, 1, "Accuracy")
	}
	columns = slices.Insert(columns, slices.Index(columns, "Accuracy")+1, intervalColumn)
	var names []string
	byName := map[string]Row{}
	for _, row := range rows {
		if row.Accuracy.Of > 0 {
			names = append(names, row.Agent)
			byName[row.Agent] = row
		}
	}
	slices.Sort(names)
	t := paperTable{Title: title, Note: note, Columns: columns}
	return beside(t, table, task, names, func(name string) (cells []string) {
		for _, c := range columns {
			cells = append(cells, byName[name].paperCell(c))
		}
		return cells
	})
}

// paperCell is what a row has for a column of the paper.
func (r Row) paperCell(column string) string {
	tokens := func(n float64) string {
		if !strings.HasSuffix(r.Agent, ")") { // No model: what it was told and said is counted all the same.
			return "-"
		}
		return fmt.Sprintf("%.2f", n)
	}
	share := func(s *Share) string {
		if s == nil {
			return "-"
		}
		return fmt.Sprintf("%.2f %%", 100*s.Value)
	}
	switch column {
	case runsColumn:
		return fmt.Sprint(r.Accuracy.Of)
	case intervalColumn:
		return fmt.Sprintf("%.1f - %.1f", 100*r.Accuracy.Low, 100*r.Accuracy.High)
	case "Accuracy":
		return share(&r.Accuracy)
	case "Acc.@3":
		return share(r.Top3)
	case "Acc.@1":
		return share(r.Top1)
	case "Time (s)":
		return fmt.Sprintf("%.2f", r.Seconds)
	case "Steps":
		return fmt.Sprintf("%.2f", r.Steps)
	case "Tokens":
		return tokens(r.InTokens + r.OutTokens)
	case "Input":
		return tokens(r.InTokens)
	case "Output":
		return tokens(r.OutTokens)
	}
	return "-"
}

// commandTable is Table 5: how often agents ran some programs.
func (r *Report) commandTable() paperTable {
	also := map[string]string{"python": "py", "python3": "py", "mongosh": "mongo"}
	counts := map[string]map[string]int{}
	var names []string
	for _, m := range r.Commands {
		agent := m.Agent
		if agent == "" {
			continue
		}
		names = append(names, agent)
		counts[agent] = map[string]int{}
		for _, u := range m.Uses {
			name := u.Name
			if short, ok := also[name]; ok {
				name = short
			}
			counts[agent][name] += u.All()
		}
	}
	columns, values := paperRows("5")
	asked := func(agent string) bool {
		return slices.ContainsFunc(counterparts, func(c counterpart) bool {
			return values[c.paper] != nil && c.is(agent)
		})
	}
	for _, row := range r.Overall { // Who has runs and used no program has none, which is not the same as no runs.
		if row.Accuracy.Of > 0 && counts[row.Agent] == nil && asked(row.Agent) {
			names = append(names, row.Agent)
		}
	}
	t := paperTable{
		Title: "Table 5. Occurrences of system commands",
		Note:  "How often a command line of exec_shell names the program. py is Python, mongo is any of its shells.",
	}
	return beside(t, "5", "", names, func(name string) (cells []string) {
		for _, c := range columns {
			cells = append(cells, fmt.Sprint(counts[name][c]))
		}
		return cells
	})
}

// falseAlarmTable is section 3.6.4: what agents say of systems that are well.
func (r *Report) falseAlarmTable() paperTable {
	t := paperTable{
		Title: "Section 3.6.4. False positives",
		Note: `Detections where nothing is wrong. The paper has two, and tells that of its agents only GPT-4-W-SHELL had them
right.`,
		Columns: []string{"No fault", "Said to be well", "False alarms"},
	}
	alarms := map[string]Share{}
	var names []string
	for _, task := range r.Tasks {
		for _, row := range task.Rows {
			if row.FalseAlarms != nil {
				alarms[row.Agent] = *row.FalseAlarms
				names = append(names, row.Agent)
			}
		}
	}
	slices.Sort(names)
	t = beside(t, "false positives", problem.Detection, names, func(name string) []string {
		a := alarms[name]
		return []string{fmt.Sprint(a.Of), fmt.Sprint(a.Of - a.N), fmt.Sprintf("%d (%.1f %%)", a.N, 100*a.Value)}
	})
	_, values := paperRows("false positives")
	for i, row := range t.Rows {
		if row.Paper {
			right := values[row.Agent]["Noop problems right"]
			t.Rows[i].Cells = []string{right, right, "0 (0.0 %)"}
		}
	}
	return t
}

// paperMarks are the points of Figure 5 that the paper's text tells.
func paperMarks() (marks []mark) {
	_, values := paperRows("figure 5")
	for _, c := range counterparts {
		for steps, percent := range values[c.paper] {
			n, err := strconv.Atoi(steps)
			p, err2 := strconv.ParseFloat(percent, 64)
			if err == nil && err2 == nil {
				marks = append(marks, mark{c.paper + " in the paper", n, p / 100})
			}
		}
	}
	return marks
}
