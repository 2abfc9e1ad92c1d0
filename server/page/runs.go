package page

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/aiopslab/aiopslab/record/index"
)

// perPage is how many runs a page of the table has.
const perPage = 100

// runsPage is the first page: runs as a table, as a matrix of problems and agents, or as a leaderboard of all or of
// those on call.
type runsPage struct {
	Dir     string
	Name    string // of the directory
	All     int
	Found   int
	Filter  filter
	Choices []choice
	Tabs    []tab
	Show    string

	Columns []column
	Rows    []*index.Run
	Page    int
	Pages   int
	Before  string // the address of the page before
	After   string

	Matrix *matrix
	Board  *board
	Rota   *rota
	Scored bool // there are shifts

	Unreadable []index.Unreadable
}

// tab is one of several ways to show the same.
type tab struct {
	Label, Link string
	Current     bool
}

// listRuns answers with the first page.
func (s *Site) listRuns(w http.ResponseWriter, r *http.Request) error {
	x, err := s.shelf.index()
	if err != nil {
		return err
	}
	f := newFilter(r.URL.Query())
	list := f.choose(x)
	p := &runsPage{
		Dir: s.Dir, Name: s.name(), All: len(x.Runs), Found: len(list), Filter: f, Choices: f.choices(x),
		Unreadable: x.Unreadable, Show: f.Get("show"),
	}
	p.Scored = slices.ContainsFunc(x.Runs, func(r index.Run) bool { return hasShift(&r) })
	tabs := [][2]string{{"", "Table"}, {"matrix", "Matrix"}, {"board", "Leaderboard"}}
	if p.Scored {
		tabs = append(tabs, [2]string{"oncall", "On call"})
	}
	for _, t := range tabs {
		p.Tabs = append(p.Tabs, tab{t[1], f.with("show", t[0]), p.Show == t[0]})
	}
	switch p.Show {
	case "matrix":
		p.Matrix = matrixOf(list, f)
	case "board":
		p.Board = boardOf(list, f)
	case "oncall":
		p.Rota = rotaOf(list, f)
	default:
		p.Show = ""
		p.cut(list, pageOf(r.URL.Query()))
	}
	render(w, r, http.StatusOK, "runs", view{Title: "Runs", Place: "runs", Data: p})
	return nil
}

// name is the last part of the directory's.
func (s *Site) name() string {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return s.Dir
	}
	return filepath.Base(dir)
}

// cut takes the rows of a page of the table.
func (p *runsPage) cut(list []*index.Run, page int) {
	p.Columns = p.Filter.columns(p.Scored)
	p.Pages = max(1, (len(list)+perPage-1)/perPage)
	p.Page = min(page, p.Pages)
	first := (p.Page - 1) * perPage
	p.Rows = list[first:min(first+perPage, len(list))]
	if p.Page > 1 {
		p.Before = p.Filter.with("page", fmt.Sprint(p.Page-1))
	}
	if p.Page < p.Pages {
		p.After = p.Filter.with("page", fmt.Sprint(p.Page+1))
	}
}
