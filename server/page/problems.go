package page

import (
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record/index"
)

// problemsPage is the catalog.
type problemsPage struct {
	All     int
	Search  string
	Choices []choice
	Rows    []problemRow
}

type problemRow struct {
	*problem.Problem
	Cell cell // what agents made of it
}

// listProblems answers with the catalog. A title tells what is wrong, so it is not here.
func (s *Site) listProblems(w http.ResponseWriter, r *http.Request) error {
	if s.Library == nil {
		return fail(http.StatusNotFound, "this server knows no problems")
	}
	x, err := s.shelf.index()
	if err != nil {
		return err
	}
	tallies := map[string]*tally{}
	for i := range x.Runs {
		id := x.Runs[i].Problem
		if tallies[id] == nil {
			tallies[id] = &tally{}
		}
		tallies[id].add(&x.Runs[i])
	}
	q := r.URL.Query()
	p := &problemsPage{All: len(s.Library.Problems), Search: q.Get("q")}
	apps, tasks := map[string]bool{}, map[string]bool{}
	words := strings.Fields(strings.ToLower(p.Search))
	for _, one := range s.Library.Problems {
		apps[one.App.Name], tasks[string(one.Task)] = true, true
		text := strings.ToLower(one.ID + " " + one.App.Name + " " + string(one.Task))
		if want := q.Get("app"); want != "" && want != one.App.Name {
			continue
		}
		if want := q.Get("task"); want != "" && want != string(one.Task) {
			continue
		}
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		p.Rows = append(p.Rows, problemRow{one, cellOf(tallies[one.ID], runsOfProblem(one.ID))})
	}
	p.Choices = []choice{
		{"app", "Application", q.Get("app"), sortedKeys(apps)},
		{"task", "Task", q.Get("task"), sortedKeys(tasks)},
	}
	render(w, r, http.StatusOK, "problems", view{Title: "Problems", Place: "problems", Data: p})
	return nil
}

func runsOfProblem(id string) string { return Prefix + "?problem=" + template.URLQueryEscaper(id) }

// problemPage is a problem: the application, what an agent is told, and behind a click what is wrong.
type problemPage struct {
	*problem.Problem
	Graph   template.HTML
	Told    string
	How     string
	Actions []fact
	Source  string // the document
	Answer  problem.Answer
	Faults  []problem.FaultSpec
	Runs    cell
	Total   int
	Recent  []index.Run
}

// showProblem answers with a problem.
func (s *Site) showProblem(w http.ResponseWriter, r *http.Request) error {
	if s.Library == nil {
		return fail(http.StatusNotFound, "this server knows no problems")
	}
	one, err := s.Library.Find(r.PathValue("id"))
	if err != nil {
		return fail(http.StatusNotFound, "%v", err)
	}
	p := &problemPage{
		Problem: one, Graph: drawGraph(one.App, nil, nil),
		Told: aci.Description(string(one.Task), one.App, one.Asked()),
		How:  aci.Instructions(string(one.Task)), Source: string(one.Document.Source), Answer: one.Answer(),
		Faults: one.Faults(),
	}
	docs := aci.Docs(aci.Actions(string(one.Task)))
	for _, name := range sortedKeys(docs) {
		p.Actions = append(p.Actions, fact{name, docs[name]})
	}
	x, err := s.shelf.index()
	if err != nil {
		return err
	}
	t := &tally{}
	for i := len(x.Runs) - 1; i >= 0; i-- {
		if run := x.Runs[i]; run.Problem == one.ID {
			t.add(&run)
			if p.Total++; len(p.Recent) < 10 {
				p.Recent = append(p.Recent, run)
			}
		}
	}
	p.Runs = cellOf(t, runsOfProblem(one.ID))
	render(w, r, http.StatusOK, "problem", view{Title: one.ID, Place: "problems", Data: p})
	return nil
}

// Asked says in words what an agent is asked.
func (p *problemPage) Asked() string {
	var list []string
	for _, q := range p.Questions() {
		list = append(list, string(q))
	}
	return fmt.Sprintf("%s, in %s", strings.Join(list, ", then "), p.App.Title)
}
