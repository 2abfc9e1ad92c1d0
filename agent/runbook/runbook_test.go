package runbook

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

var tasks = []problem.Task{problem.Detection, problem.Localization, problem.Analysis, problem.Mitigation, problem.Incident}

// FuzzAct gives the agent whatever observations: it says what can be read as one call, and submits
// before a run's steps are used up.
func FuzzAct(f *testing.F) {
	f.Add(0, "")
	f.Add(1, "NAME  READY  STATUS  RESTARTS  AGE  IP  NODE\ngeo-1-2  0/1  Pending  0  5s  <none>  <none>")
	f.Add(2, `{"kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":0,"selector":null,"template":{"spec":{"containers":[{"ports":[{}]}]}}}}`+"\n"+`{"kind":"Service","metadata":{"name":"a"},"spec":{"selector":{"":""},"ports":[{"targetPort":"x"}]}}`)
	f.Add(3, `{"kind":"Pod","metadata":{"name":"a-b-c"},"status":{"phase":"Pending","containerStatuses":[{}],"conditions":[{"type":"PodScheduled","status":"False"}]}}`)
	f.Add(3, "observe prometheus ClusterIP 1.2.3.4 <none> 80/TCP 1s\na:1 1 1\nhttp-errors a 1\n1 [pod/a-b-c/d] Authentication failed a:27017\na -> b")
	f.Fuzz(func(t *testing.T, task int, observation string) {
		a, err := newRunbook(agent.Briefing{Task: tasks[(task%len(tasks)+len(tasks))%len(tasks)], Namespace: "n"})
		if err != nil {
			t.Fatal(err)
		}
		defer a.(interface{ Close() error }).Close()
		parts := strings.Split(observation, "\x00")
		for n := range 30 {
			response, err := a.Act(t.Context(), parts[n%len(parts)])
			if err != nil {
				t.Fatal(err)
			}
			call, err := aci.Parse(response)
			if err != nil {
				t.Fatalf("%v in %q", err, response)
			}
			if !strings.HasPrefix(response, "Thought: ") {
				t.Errorf("no thought in %q", response)
			}
			if call.Name == "submit" {
				return
			}
		}
		t.Error("no submission within 30 steps")
	})
}

// An agent that is closed early leaves nothing behind.
func TestClose(t *testing.T) {
	a, err := newRunbook(agent.Briefing{Task: problem.Mitigation, Namespace: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Act(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	c := a.(interface{ Close() error })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// The helpers are what a shell can read, and have what the commands call.
func TestHelpers(t *testing.T) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(helpers), "helpers.sh")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range f.Stmts {
		if d, ok := s.Cmd.(*syntax.FuncDecl); ok {
			known[d.Name.Value] = true
		}
	}
	for _, name := range []string{"brief", "of", "recent", "complaints", "ports", "connect", "measure"} {
		if !known[name] {
			t.Errorf("there is no helper %s", name)
		}
		if !lost.MatchString("bash: line 1: " + name + ": command not found") {
			t.Errorf("nobody would miss %s", name)
		}
	}
}
