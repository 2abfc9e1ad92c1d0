package session

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// A round is right if somebody gets a task who is at fault, or who depends on whoever is.
func TestGroupResults(t *testing.T) {
	members := []record.Member{
		{Name: "manager", Role: "manager"},
		{Name: "front", Role: "maintainer", Calls: []string{"cart", "front"}},
		{Name: "cart", Role: "maintainer", Calls: []string{"db"}},
		{Name: "pay", Role: "maintainer"},
		{Name: "db", Role: "maintainer", Calls: []string{"front"}},
	}
	task := func(round int, to string) record.Message {
		return record.Message{From: "manager", To: to, Kind: record.TaskMessage, Round: round}
	}
	for _, tt := range []struct {
		name     string
		messages []record.Message
		at       []problem.Component
		want     any
	}{
		{"all right", []record.Message{task(1, "front"), task(2, "pay"), task(2, "db")}, []problem.Component{{Name: "db"}}, 1.0},
		{"by another name", []record.Message{task(1, "db")}, []problem.Component{{Name: "x", Aliases: []string{"db"}}}, 1.0},
		{"half", []record.Message{task(1, "pay"), task(2, "cart")}, []problem.Component{{Name: "db"}}, 0.5},
		{"nothing is wrong", []record.Message{task(1, "pay")}, nil, nil},
		{"nobody gets tasks", nil, []problem.Component{{Name: "db"}}, nil},
	} {
		u := &groupUse{}
		add := func(kind string, v any) {
			b, err := json.Marshal(v)
			if err == nil {
				err = u.add(record.Event{Kind: kind, Data: b})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		add(record.GroupEvent, record.Group{Mode: "manager", Planner: "rules", Members: members})
		for _, m := range tt.messages {
			add(record.MessageEvent, m)
		}
		add(record.TurnEvent, record.Turn{Who: "db", Does: "exec_shell"})
		add(record.TurnEvent, record.Turn{Who: "db", Does: "report_result"})
		res := grade.Result{}
		u.addTo(res, problem.Answer{Components: tt.at})
		if diff := cmp.Diff(tt.want, res["assignment_accuracy"]); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if res["messages"] != len(tt.messages) || res["members"] != 5 || res["mode"] != "manager" ||
			!cmp.Equal(res["turns"], map[string]int{"db": 2}) {
			t.Errorf("%s: %v", tt.name, res)
		}
	}
	res := grade.Result{}
	(&groupUse{}).addTo(res, problem.Answer{})
	if len(res) > 0 {
		t.Errorf("a single agent has %v", res)
	}
}

// In an operation, who gets a task rightly is who looks after one of the services that it is about.
func TestGroupOfOperation(t *testing.T) {
	a := truth{Goal: &problem.Goal{Services: []string{"a", "b"}}}.about()
	if diff := cmp.Diff([]problem.Component{{Name: "a"}, {Name: "b"}}, a.Components); diff != "" {
		t.Error(diff)
	}
	if a := (truth{}).about(); len(a.Components) > 0 {
		t.Errorf("nothing is about %v", a)
	}
}
