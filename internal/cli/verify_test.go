package cli

import (
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/session"
)

// TestCells holds what must come of whom: of an operation that asks for a report no remedy may come a success, and each
// is tried, also where it would set the fault right.
func TestCells(t *testing.T) {
	var reports, all []*problem.Problem
	for _, p := range problemtest.Library(t).Problems {
		if p.Task != problem.Operation {
			continue
		}
		all = append(all, p)
		if len(p.Goal().Report) > 0 && p.Faulty() {
			reports = append(reports, p)
		}
	}
	var f verifyFlags
	tried := map[string]int{}
	for _, c := range f.cells(reports) {
		if slices.Contains(fault.Remedies, c.Agent) {
			tried[c.Problem]++
			if c.Want != string(session.AgentFailed) {
				t.Errorf("%s by %s: want %s", c.Problem, c.Agent, c.Want)
			}
		}
	}
	for _, p := range reports {
		if tried[p.ID] != len(fault.Remedies) {
			t.Errorf("%s: %d remedies are tried", p.ID, tried[p.ID])
		}
	}
	for _, c := range f.cells(all) {
		if c.Agent == "oracle" && c.Want != string(session.Solved) || c.Agent == "noop" && c.Want != string(session.AgentFailed) {
			t.Errorf("%s by %s: want %s", c.Problem, c.Agent, c.Want)
		}
	}
}

// TestTurns: on a cluster that is there, runs of an application that has something in no namespace take turns.
func TestTurns(t *testing.T) {
	p := &pool{by: map[string]*problem.Problem{}}
	for _, x := range problemtest.Library(t).Problems {
		p.by[x.ID] = x
	}
	turns := p.turns()
	for id, x := range p.by {
		want := ""
		if x.App.Name == "tidb-cluster" {
			want = "tidb-cluster"
		}
		if got := turns(local.Run{Problem: id}); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
