package page

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// counts reports whether a run says something about its agent.
func counts(r *index.Run) bool {
	return r.Class == string(session.Solved) || r.Class == string(session.AgentFailed)
}

// tally counts runs that count.
type tally struct {
	of, spoilt          int
	solved              report.Problems
	seconds, steps, sum float64
	priced              int
	safe                report.Problems // of runs that tell whether they did harm, those that were solved without
}

func (t *tally) add(r *index.Run) {
	if !counts(r) {
		t.spoilt++
		return
	}
	t.of++
	t.seconds += r.Seconds
	t.steps += float64(r.Steps)
	solved := r.Class == string(session.Solved)
	t.solved.Add(r.Problem, solved)
	if r.NoHarm != nil {
		t.safe.Add(r.Problem, solved && *r.NoHarm)
	}
	if r.Cost != nil {
		t.sum += *r.Cost
		t.priced++
	}
}

// shareOf is the part of runs of which something is so. Its interval is about problems like these, in which tries of
// one are alike; of one problem alone it is about that problem.
func shareOf(p report.Problems) report.Share {
	s := p.Share()
	if len(p) == 1 {
		s = report.NewShare(s.N, s.Of)
	}
	return s
}

// board is the leaderboard: agents, the best first.
type board struct {
	Tasks []string
	Rows  []boardRow
	None  bool // no run counts
}

// boardRow is an agent. Times and costs are means over the runs that count.
type boardRow struct {
	Rank           int
	Agent          string
	Link           string
	Share          report.Share
	Bar            template.HTML
	Tasks          []cell
	Seconds, Steps float64
	Cost           *float64
	Spoilt         int
	Safe           cell // solved without harm, of the runs that tell
}

// cell is a share with where its runs are.
type cell struct {
	Share report.Share
	Link  string
	Kind  string // how good it is, in four steps
	What  string // it counts; solved runs if it is empty
}

func cellOf(t *tally, link string) cell {
	if t == nil || t.of == 0 {
		return cell{}
	}
	return cellOfShare(shareOf(t.solved), link)
}

func cellOfShare(s report.Share, link string) cell {
	kind := []string{"none", "some", "most", "all"}[min(3, int(s.Value*3))]
	if s.N > 0 && kind == "none" {
		kind = "some"
	}
	return cell{Share: s, Link: link, Kind: kind}
}

// Title says what a cell is about, with its interval.
func (c cell) Title() string {
	s := c.Share
	return fmt.Sprintf("%d of %d %s; 95 %%: %.0f to %.0f %%", s.N, s.Of, cmp.Or(c.What, "solved"), 100*s.Low,
		100*s.High)
}

// boardOf ranks the agents of runs.
func boardOf(list []*index.Run, f filter) *board {
	all, byTask, first := map[string]*tally{}, map[[2]string]*tally{}, map[string]*index.Run{}
	tasks := map[string]bool{}
	for _, r := range list {
		who := r.Contestant()
		if all[who] == nil {
			all[who], first[who] = &tally{}, r
		}
		all[who].add(r)
		key := [2]string{who, r.Task}
		if byTask[key] == nil {
			byTask[key] = &tally{}
		}
		byTask[key].add(r)
		tasks[r.Task] = tasks[r.Task] || counts(r)
	}
	b := &board{None: true}
	for _, t := range problem.Tasks {
		if tasks[string(t)] {
			b.Tasks = append(b.Tasks, string(t))
		}
	}
	for who, t := range all {
		link := addressOf(f, first[who])
		row := boardRow{Agent: who, Link: link(""), Share: shareOf(t.solved), Spoilt: t.spoilt}
		row.Bar = bar(row.Share)
		if len(t.safe) > 0 {
			row.Safe = cellOfShare(shareOf(t.safe), row.Link)
			row.Safe.What = "solved without harm"
		}
		if t.of > 0 {
			b.None = false
			row.Seconds, row.Steps = t.seconds/float64(t.of), t.steps/float64(t.of)
		}
		if t.priced > 0 {
			mean := t.sum / float64(t.priced)
			row.Cost = &mean
		}
		for _, task := range b.Tasks {
			row.Tasks = append(row.Tasks, cellOf(byTask[[2]string{who, task}], link(task)))
		}
		b.Rows = append(b.Rows, row)
	}
	slices.SortFunc(b.Rows, func(a, b boardRow) int {
		return cmp.Or(-cmp.Compare(a.Share.Value, b.Share.Value), -cmp.Compare(a.Share.Of, b.Share.Of),
			cmp.Compare(a.Agent, b.Agent))
	})
	for i := range b.Rows {
		b.Rows[i].Rank = i + 1
	}
	return b
}

// addressOf returns the address of the runs of an agent, of all tasks or of one.
func addressOf(f filter, r *index.Run) func(task string) string {
	return func(task string) string {
		q := filter{Values: maps.Clone(f.Values)}
		q.Del("show")
		q.Set("agent", r.Agent)
		if r.Model != "" {
			q.Set("model", r.Model)
		}
		if task != "" {
			q.Set("task", task)
		}
		return q.with("", "")
	}
}

// bar draws a share with its interval.
func bar(s report.Share) template.HTML {
	d := newDrawing(160, 16, fmt.Sprintf("95 %%: %.0f to %.0f %%", 100*s.Low, 100*s.High))
	d.class = "bar"
	d.rect("track", 0, 5, 160, 6, 3)
	if s.Of > 0 {
		d.rect("fill", 0, 5, max(1, 160*s.Value), 6, 3)
		d.line("whisker", 160*s.Low, 8, 160*s.High, 8)
		d.line("whisker", 160*s.Low, 3, 160*s.Low, 13)
		d.line("whisker", 160*s.High, 3, 160*s.High, 13)
	}
	return d.html()
}

// matrix has a row for each problem and a column for each agent.
type matrix struct {
	Agents []string
	Rows   []matrixRow
	Total  []cell
}

type matrixRow struct {
	Problem string
	Link    string
	Cells   []cell
}

// matrixOf is what agents made of problems. What is not known to be of a problem is left out.
func matrixOf(list []*index.Run, f filter) *matrix {
	cells, total := map[[2]string]*tally{}, map[string]*tally{}
	agents, problems := map[string]*index.Run{}, map[string]bool{}
	for _, r := range list {
		if r.Problem == "" {
			continue
		}
		who := r.Contestant()
		key := [2]string{r.Problem, who}
		if cells[key] == nil {
			cells[key] = &tally{}
		}
		if total[who] == nil {
			total[who] = &tally{}
		}
		cells[key].add(r)
		total[who].add(r)
		agents[who], problems[r.Problem] = r, true
	}
	m := &matrix{Agents: slices.Sorted(maps.Keys(agents))}
	for _, who := range m.Agents {
		m.Total = append(m.Total, cellOf(total[who], addressOf(f, agents[who])("")))
	}
	for _, id := range slices.Sorted(maps.Keys(problems)) {
		row := matrixRow{Problem: id, Link: Prefix + "?problem=" + template.URLQueryEscaper(id)}
		for _, who := range m.Agents {
			r := agents[who]
			link := row.Link + "&agent=" + template.URLQueryEscaper(r.Agent)
			if r.Model != "" {
				link += "&model=" + template.URLQueryEscaper(r.Model)
			}
			row.Cells = append(row.Cells, cellOf(cells[[2]string{id, who}], link))
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}
