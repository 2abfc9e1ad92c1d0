package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/session"
)

// A group is told of where there is one, and by the runs that count.
func TestGroups(t *testing.T) {
	var b Builder
	half := 0.5
	aims := []Aim{{}, {}, {}, {}, {"L5", low}, {"L3", high}, {"L5", high}}
	for i, g := range []*RunGroup{
		{2, 10, 20, 5, 3, &half},
		{4, 20, 30, 9, 2, nil},
		nil,
		{9, 9, 9, 9, 1, nil},
		{3, 8, 12, 0, 0, &half},
		{5, 9, 20, 0, 0, nil},
		{6, 9, 20, 3, 1, nil},
	} {
		r := &Run{File: string(rune('a' + i)), Class: session.Solved, Group: g, Aim: aims[i]}
		r.ID, r.Agent, r.Problem = r.File, "hierarchy", r.File
		if g == nil {
			r.Agent = "runbook"
		}
		switch i {
		case 1, 5, 6:
			r.Class = session.AgentFailed
		case 3:
			r.Class = session.Infra
		}
		b.Add(r)
	}
	got := b.Report()
	want := []Group{
		{Agent: "hierarchy", Runs: 2, Solved: NewShare(1, 2), Rounds: 3, Messages: 15, Turns: 25, Roles: &Roles{14. / 6, 36. / 14}, Assignment: &half},
		{Agent: "hierarchy", Level: "L5", Scope: low, Runs: 1, Solved: NewShare(1, 1), Rounds: 3, Messages: 8, Turns: 12, Assignment: &half},
		{Agent: "hierarchy", Level: "L3", Scope: high, Runs: 1, Solved: NewShare(0, 1), Rounds: 5, Messages: 9, Turns: 20},
		{Agent: "hierarchy", Level: "L5", Scope: high, Runs: 1, Solved: NewShare(0, 1), Rounds: 6, Messages: 9, Turns: 20, Roles: &Roles{0.5, 17. / 6}},
	}
	if diff := cmp.Diff(want, got.Groups); diff != "" {
		t.Error(diff)
	}
	var text strings.Builder
	if err := got.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "How groups work together") {
		t.Error(text.String())
	}
	read := takeGroup(map[string]any{
		"messages": 3.0, "rounds": 1.0, "assignment_accuracy": 0.5, "manager": "a", "turns": map[string]any{"a": 2.0, "b": 1.0},
	})
	if diff := cmp.Diff(&RunGroup{1, 3, 3, 2, 1, &half}, read); diff != "" {
		t.Error(diff)
	}
	if takeGroup(map[string]any{"steps": 3.0}) != nil {
		t.Error("an agent alone is a group")
	}
}
