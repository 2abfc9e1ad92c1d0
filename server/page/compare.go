package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// comparePage is two sides: two agents or two directories by pairs of their runs, or two runs step by step.
type comparePage struct {
	Groups []sideGroup
	A, B   string
	Wrong  string
	Result *comparison
	Runs   *twoRuns
}

// sideGroup is sides of one kind that can be chosen.
type sideGroup struct {
	Label string
	Sides []side
}

// side is what can be compared: Value is how the address says it.
type side struct{ Value, Label string }

// comparison is what came of two sides.
type comparison struct {
	*report.Comparison
	Sentence string
	Rows     []comparedRow
	Differ   []differing
	More     int // pairs that differ and are not listed
}

type comparedRow struct {
	Name          string
	Pairs         int
	First, Second string
	Difference    string
	Interval      string
}

// differing is a pair of which one side solved the problem and the other did not.
type differing struct {
	Problem       string
	First, Second *index.Run
	Link          string
}

// maxDiffering is how many of them are listed.
const maxDiffering = 100

// compare answers with two sides side by side.
func (s *Site) compare(w http.ResponseWriter, r *http.Request) error {
	x, err := s.shelf.index()
	if err != nil {
		return err
	}
	q := r.URL.Query()
	p := &comparePage{A: q.Get("a"), B: q.Get("b"), Groups: sidesOf(x)}
	title := "Compare"
	switch runs := q["run"]; {
	case len(runs) == 2:
		if p.Runs, err = s.twoRuns(runs[0], runs[1]); err != nil {
			return err
		}
		title = "Two runs"
	case len(runs) > 0:
		p.Wrong = fmt.Sprintf("%s ticked; tick two in the table of runs, and they are shown side by side.",
			plural(len(runs), "run"))
	case p.A != "" && p.B != "":
		p.fill(x)
	}
	render(w, r, http.StatusOK, "compare", view{Title: title, Place: "compare", Data: p})
	return nil
}

// sidesOf are the agents and directories that runs have.
func sidesOf(x *index.Index) []sideGroup {
	agents, folders := map[string]bool{}, map[string]bool{}
	for i := range x.Runs {
		r := &x.Runs[i]
		agents[r.Contestant()] = true
		if f := folderOf(r, x.Dir); f != "" {
			folders[f] = true
		}
	}
	list := func(kind string, names map[string]bool) (sides []side) {
		for _, name := range sortedKeys(names) {
			sides = append(sides, side{kind + ":" + name, visible(name)})
		}
		return sides
	}
	groups := []sideGroup{{"Agents", list("agent", agents)}}
	if len(folders) > 1 {
		groups = append(groups, sideGroup{"Directories", list("folder", folders)})
	}
	return groups
}

// runsOf are the runs of a side, and how it is called.
func runsOf(x *index.Index, side string) (name string, list []*index.Run) {
	kind, name, _ := strings.Cut(side, ":")
	for i := range x.Runs {
		r := &x.Runs[i]
		if kind == "agent" && r.Contestant() == name || kind == "folder" && folderOf(r, x.Dir) == name {
			list = append(list, r)
		}
	}
	return name, list
}

func (p *comparePage) fill(x *index.Index) {
	first, a := runsOf(x, p.A)
	second, b := runsOf(x, p.B)
	switch {
	case p.A == p.B:
		p.Wrong = "Choose two that differ."
		return
	case len(a) == 0 || len(b) == 0:
		p.Wrong = "One of them has no runs."
		return
	}
	c := &comparison{Comparison: report.Compare(first, second, reported(a), reported(b))}
	if c.Paired.Of() == 0 {
		p.Wrong = "They have no runs of the same problem with the same seed that count. Run both with the same " +
			"problems and the same --seed."
		return
	}
	c.Sentence = visible(c.Comparison.Sentence())
	for _, t := range c.Tasks {
		c.Rows = append(c.Rows, comparedOf(string(t.Task), t.Paired))
	}
	c.Rows = append(c.Rows, comparedOf("all", c.Paired))
	c.differ(a, b)
	p.Result = c
}

// reported are runs as reports have them.
func reported(runs []*index.Run) (list []*report.Run) {
	for _, r := range runs {
		list = append(list, &report.Run{
			Run: record.Run{ID: r.ID, Problem: r.Problem, Agent: r.Agent, Seed: r.Seed}, Model: r.Model,
			Task: problem.Task(r.Task), Class: session.Class(r.Class), Seconds: r.Seconds, Steps: r.Steps,
			InTokens: r.In, OutTokens: r.Out, Cost: r.Cost,
		})
	}
	return list
}

func comparedOf(name string, p report.Paired) comparedRow {
	n := p.Of()
	share := func(k int) string { return fmt.Sprintf("%d (%s)", k, percent(float64(k)/float64(max(n, 1)))) }
	return comparedRow{
		name, n, share(p.Both + p.First), share(p.Both + p.Second), fmt.Sprintf("%+.0f", 100*p.Difference),
		fmt.Sprintf("%+.0f to %+.0f", 100*p.Low, 100*p.High),
	}
}

// differ lists the pairs that one side alone solved.
func (c *comparison) differ(a, b []*index.Run) {
	key := func(r *index.Run) string { return fmt.Sprintf("%s\x00%d", r.Problem, r.Seed) }
	partners := map[string][]*index.Run{}
	for _, r := range b {
		if counts(r) {
			partners[key(r)] = append(partners[key(r)], r)
		}
	}
	for _, r := range a {
		list := partners[key(r)]
		if !counts(r) || len(list) == 0 {
			continue
		}
		partners[key(r)] = list[1:]
		if r.Class == list[0].Class {
			continue
		}
		if len(c.Differ) == maxDiffering {
			c.More++
			continue
		}
		link := Prefix + "compare?" + url.Values{"run": {r.ID, list[0].ID}}.Encode()
		c.Differ = append(c.Differ, differing{r.Problem, r, list[0], link})
	}
	slices.SortStableFunc(c.Differ, func(x, y differing) int { return cmp.Compare(x.Problem, y.Problem) })
}

// twoRuns is two runs, step against step.
type twoRuns struct {
	First, Second *runPage
	Pairs         []stepPair
	Part          string // where they part
}

type stepPair struct {
	Number        int
	First, Second *shownStep
	Same          bool // both did the same
}

func (s *Site) twoRuns(a, b string) (*twoRuns, error) {
	first, err := s.storyOf(a)
	if err != nil {
		return nil, err
	}
	second, err := s.storyOf(b)
	if err != nil {
		return nil, err
	}
	t := &twoRuns{First: &runPage{story: first}, Second: &runPage{story: second}}
	for _, p := range []*runPage{t.First, t.Second} {
		p.fill()
		p.Axis = drawAxis(p.story, p.moment(""), func(at float64) string {
			return Prefix + "runs/" + p.ID + p.href(at)
		})
	}
	take := func(p *runPage, i int) *shownStep {
		if i >= len(p.story.Steps) {
			return nil
		}
		v := p.shown(&p.story.Steps[i])
		v.Link = Prefix + "runs/" + p.ID + v.Link
		return &v
	}
	for i := range max(len(first.Steps), len(second.Steps)) {
		pair := stepPair{Number: i + 1, First: take(t.First, i), Second: take(t.Second, i)}
		pair.Same = pair.First != nil && pair.Second != nil && first.Steps[i].Call == second.Steps[i].Call
		if !pair.Same && t.Part == "" {
			t.Part = fmt.Sprintf("They part at step %d.", i+1)
		}
		t.Pairs = append(t.Pairs, pair)
	}
	if t.Part == "" {
		t.Part = "Both took the same steps."
	}
	return t, nil
}
