package hierarchy

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
)

var lookedAfter = regexp.MustCompile(`look after the service ([a-z]+),`)

// operationOf is the briefing of a group that is asked for something.
func operationOf(ask string, report []problem.Item) agent.Briefing {
	g := &problem.Goal{Ask: ask, Report: report}
	return agent.Briefing{
		Task: problem.Operation, Description: aci.Description(string(problem.Operation), &app.App{}, g.Told()),
	}
}

// workman is an agent that finds its service ill if it is, until it has scaled it, which it does where it is told that
// it may change something.
type workman struct {
	mu     sync.Mutex
	ill    map[string]bool
	scales bool // helps
	tasks  map[problem.Task]bool
}

func (w *workman) entry() *agent.Entry {
	return &agent.Entry{Name: "workman", New: func(b agent.Briefing) (agent.Agent, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tasks[b.Task] = strings.Contains(b.Instructions, `submit({"key": value`) == (b.Task == problem.Operation)
		me := lookedAfter.FindStringSubmatch(b.Description)[1]
		if b.Task == problem.Localization {
			found := []string{}
			if w.ill[me] {
				found = append(found, me)
			}
			return agent.Script(agent.Call("submit", found)), nil
		}
		w.ill[me] = w.ill[me] && !w.scales
		well := map[bool]string{true: "no", false: "yes"}[w.ill[me]]
		return agent.Script(agent.Call("exec_shell", "kubectl scale deployment/"+me+" --replicas=3 -n n"),
			agent.Call("submit", map[string]any{"well": well, "report": "I have 3 pods."})), nil
	}}
}

// Any agent of the lab can be the maintainer of a service that something is asked of: it may do that, and the manager
// goes by what it says.
func TestAgentsInOperations(t *testing.T) {
	for _, tt := range []struct {
		name, level, ask string
		ill, helps       bool
		submit           string
		report           []problem.Item
		talk             string
		tasks            map[problem.Task]bool
	}{
		{
			name: "a step", ask: "Scale the Deployment back to 3 replicas.", submit: "submit()",
			talk:  "back -> manager (response): I have 3 pods.",
			tasks: map[problem.Task]bool{problem.Operation: true},
		},
		{
			name: "well", level: "L3", submit: `submit({"slo":"met"})`,
			tasks: map[problem.Task]bool{problem.Localization: true},
		},
		{
			name: "ill", level: "L3", ill: true, submit: `submit({"slo":"broken"})`,
			tasks: map[problem.Task]bool{problem.Localization: true},
		},
		{
			name: "put right", level: "L5", ill: true, helps: true, submit: "submit()",
			talk:  "back -> manager (response): I have 3 pods.",
			tasks: map[problem.Task]bool{problem.Localization: true, problem.Operation: true},
		},
		{
			name: "in vain", level: "L5", ill: true, submit: "submit()",
			tasks: map[problem.Task]bool{problem.Localization: true, problem.Operation: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ask, report := tt.ask, tt.report
			if tt.level != "" {
				ask, report = asked(tt.level, "back and front")
			}
			w := &workman{ill: map[string]bool{"back": tt.ill}, scales: tt.helps, tasks: map[problem.Task]bool{}}
			r := play(t, options{mode: manager, maintainer: w.entry()}, operationOf(ask, report),
				newMarket(func(_, _ *stall) {}).answer)
			if r.err != nil || !cmp.Equal(r.answers, []string{tt.submit}) || !strings.Contains(r.talk(), tt.talk) {
				t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
			}
			if diff := cmp.Diff(tt.tasks, w.tasks); diff != "" {
				t.Error(diff)
			}
			last := r.steps[len(r.steps)-1]
			if missed := strings.Contains(last, "missed by back"); missed != (tt.ill && !tt.helps) {
				t.Errorf("at last: %s", last)
			}
		})
	}
}

// A manager that is a model says in words what is to be done, so agents may do it where the run is about doing.
func TestAgentsUnderModel(t *testing.T) {
	for task, want := range map[problem.Task]problem.Task{
		problem.Operation: problem.Operation, problem.Mitigation: problem.Operation,
		problem.Detection: problem.Localization,
	} {
		var got problem.Task
		entry := agent.Entry{Name: "doer", New: func(b agent.Briefing) (agent.Agent, error) {
			got = b.Task
			return agent.Func(func(context.Context, string) (string, error) { return agent.Call("submit"), nil }), nil
		}}
		b := agent.Briefing{Task: task, Model: model(t, cast{managerName: func(said string) string {
			if strings.Contains(said, "RESPONSE from db:") {
				return `submit("Yes")`
			}
			return `assign_tasks(["db"], ["Scale to 3."])`
		}})}
		r := play(t, options{mode: manager, maintainer: &entry}, b, shop)
		if r.err != nil || got != want {
			t.Errorf("%s: %v: was told to do a %s\n%s", task, r.err, got, r.talk())
		}
	}
}
