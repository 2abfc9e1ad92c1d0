package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/report/stats"
	"github.com/aiopslab/aiopslab/session"
)

// rota is the leaderboard of shifts: agents by their mean score, the best first.
type rota struct {
	Rows []rotaRow
}

// rotaRow is an agent on call. What is not a score is a mean over its shifts.
type rotaRow struct {
	Rank        int
	Agent, Link string
	Score       stats.Spread
	Bar         template.HTML
	Passed      report.Share // shifts that count as solved
	MinutesLost float64
	Mended      string
	Pages       string
	Needless    float64
	Worse       float64 // seconds
	Safe        cell    // without harm, of the shifts that tell
	Cost        *float64
	Spoilt      int // shifts that say nothing about the agent
}

// hasShift reports whether a run is a shift of which it is known how it went.
func hasShift(r *index.Run) bool { return r.Shift != nil }

// rotaOf ranks the agents that were on call.
func rotaOf(list []*index.Run, f filter) *rota {
	byAgent, spoilt := map[string][]*index.Run{}, map[string]int{}
	for _, r := range list {
		switch who := r.Contestant(); {
		case r.Task != string(problem.OnCall):
		case counts(r) && hasShift(r):
			byAgent[who] = append(byAgent[who], r)
		default:
			spoilt[who]++
		}
	}
	b := &rota{}
	for who, runs := range byAgent {
		row := rotaRowOf(runs)
		row.Agent, row.Spoilt = who, spoilt[who]
		row.Link = addressOf(f, runs[0])(runs[0].Task)
		row.Safe.Link = row.Link
		b.Rows = append(b.Rows, row)
	}
	slices.SortFunc(b.Rows, func(a, b rotaRow) int {
		return cmp.Or(-cmp.Compare(a.Score.Mean, b.Score.Mean), -cmp.Compare(a.Score.Of, b.Score.Of),
			cmp.Compare(a.Agent, b.Agent))
	})
	for i := range b.Rows {
		b.Rows[i].Rank = i + 1
	}
	return b
}

// rotaRowOf is what shifts of one agent came to.
func rotaRowOf(runs []*index.Run) rotaRow {
	var row rotaRow
	var scores []float64
	var passed, safe report.Problems
	n := float64(len(runs))
	mended, incidents, right, pages := 0, 0, 0, 0
	cost, priced := 0.0, 0
	for _, r := range runs {
		s := r.Shift
		scores = append(scores, s.Score)
		passed.Add(r.Problem, r.Class == string(session.Solved))
		mended, incidents = mended+s.IncidentsMended, incidents+s.Incidents
		right, pages = right+s.PagesRight, pages+s.Pages
		row.MinutesLost += s.MinutesLost / n
		row.Needless += float64(s.Needless) / n
		row.Worse += s.WorseSeconds / n
		if r.NoHarm != nil {
			safe.Add(r.Problem, *r.NoHarm)
		}
		if r.Cost != nil {
			cost, priced = cost+*r.Cost, priced+1
		}
	}
	row.Score = *stats.SpreadOf(scores)
	row.Bar, row.Passed = spreadBar(row.Score), shareOf(passed)
	row.Mended, row.Pages = fmt.Sprintf("%d of %d", mended, incidents), fmt.Sprintf("%d of %d", right, pages)
	if len(safe) > 0 {
		row.Safe = cellOfShare(shareOf(safe), "")
		row.Safe.What = "without harm"
	}
	if priced > 0 {
		mean := cost / float64(priced)
		row.Cost = &mean
	}
	return row
}

// spreadBar draws scores from 0 to 100: their mean, with a line from the least to the most.
func spreadBar(s stats.Spread) template.HTML {
	x := func(score float64) float64 { return 160 * min(max(score/100, 0), 1) }
	d := newDrawing(160, 16, fmt.Sprintf("%s: %.1f on average, from %.1f to %.1f", plural(s.Of, "shift"), s.Mean,
		s.Least, s.Most))
	d.class = "bar"
	d.rect("track", 0, 5, 160, 6, 3)
	d.rect("fill", 0, 5, max(1, x(s.Mean)), 6, 3)
	if s.Of > 1 {
		d.line("whisker", x(s.Least), 8, x(s.Most), 8)
		d.line("whisker", x(s.Least), 3, x(s.Least), 13)
		d.line("whisker", x(s.Most), 3, x(s.Most), 13)
	}
	return d.html()
}
