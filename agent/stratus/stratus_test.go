package stratus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/problem"
)

// world is a system that was recorded before and after its repair.
type world struct {
	before, after map[string]string
	helps         bool // what is tried helps
	refuses       bool // a transaction refuses what is tried
	worse         bool // a commit finds the system worse, and takes it back
	open, fixed   bool
	did           []string
	calls         []string // all of them
	said          string   // last
	steps         int      // 70 if it is 0
	pages         string   // that the pager says beside the next call
	called        func(what string)
}

// looks are the calls that only look, by a part of them, and what they are about.
var looks = [][2]string{
	{"# brief KIND", "helpers"},
	{"get_alerts", "alerts"},
	{"get_topology", "topology"},
	{"-o wide", "pods"},
	{"kubectl get deployments", "deployments"},
	{"kubectl get services", "services"},
	{"kubectl wait", "wait"},
	{"measure ", "metrics"},
	{"kubectl logs", "logs"},
	{"connect ", "connections"},
	{"kubectl get ", "nothing"},
	{"get_logs", "nothing"},
}

func newWorld(t *testing.T) *world {
	t.Helper()
	a, err := txtar.ParseFile("../runbook/testdata/scaled-to-zero.txtar")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{before: map[string]string{}, after: map[string]string{}}
	for _, f := range a.Files {
		if w.before[f.Name] == "" {
			w.before[f.Name] = string(f.Data)
		}
		w.after[f.Name] = string(f.Data)
	}
	return w
}

// do is what a call comes to.
func (w *world) do(c *aci.Call) string {
	text := c.Name
	if len(c.Args) > 0 {
		text += " " + fmt.Sprint(c.Args[0])
	}
	w.calls = append(w.calls, text)
	for _, l := range looks {
		if strings.Contains(text, l[0]) {
			if w.fixed {
				return w.after[l[1]]
			}
			return w.before[l[1]]
		}
	}
	switch c.Name {
	case "begin":
		w.open = true
	case "abort":
		w.open, w.fixed = false, false
	case "commit":
		text = "commit"
		if w.open = false; w.worse {
			w.fixed, w.worse = false, false
			w.did = append(w.did, "commit")
			w.tell("commit")
			return "Transaction 1 is aborted, not committed: the system is worse than when it began."
		}
	case "exec_shell":
		if w.open && w.refuses {
			w.did = append(w.did, "refused")
			return "Error from server (Forbidden): transaction 1 is open, and so on: commit or abort the transaction first"
		}
		w.fixed = w.helps
		text = "scale"
	}
	w.did = append(w.did, text)
	w.tell(text)
	return "done"
}

// tell tells whoever wants to know of a change.
func (w *world) tell(what string) {
	if w.called != nil {
		w.called(what)
	}
}

// play takes an agent through the world.
func (w *world) play(t *testing.T, name string, transacts bool) string {
	t.Helper()
	b := agent.Briefing{Task: problem.Mitigation, Namespace: "n", Steps: cmp.Or(w.steps, 70)}
	if transacts {
		b.Actions = []*aci.Action{{Name: "begin"}}
	}
	for _, e := range Entries() {
		if e.Name != name {
			continue
		}
		a, err := e.New(b)
		if err != nil {
			t.Fatal(err)
		}
		defer a.(interface{ Close() error }).Close()
		observation := ""
		for range b.Steps {
			response, err := a.Act(t.Context(), observation+"\n"+aci.NextAction)
			if err != nil {
				t.Fatal(err)
			}
			call, err := aci.Parse(response)
			if err != nil {
				t.Fatal(err)
			}
			w.said = response
			if observation = w.do(call); call.Name == "submit" {
				return strings.Join(w.did, " ")
			}
		}
	}
	t.Fatal("no submission of " + name)
	return ""
}

// What each mode does with a try that helps, and with tries that do not.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		name      string
		mode      string
		transacts bool
		set       func(*world)
		want      string
	}{
		{"helps", "stratus", true, func(w *world) { w.helps = true }, "begin scale commit submit"},
		{"helps, by the full name", "stratus:validate", true, func(w *world) { w.helps = true }, "begin scale commit submit"},
		{"helps, without transactions", "stratus", false, func(w *world) { w.helps = true }, "scale submit"},
		{"helps, once", "stratus:none", true, func(w *world) { w.helps = true }, "scale submit"},
		{"helps, naively", "stratus:naive", true, func(w *world) { w.helps = true }, "scale submit"},
		// It is taken back, and the same is not tried again, but what it seemed to explain.
		{"does not help", "stratus", true, func(*world) {}, "begin scale abort begin scale abort submit"},
		{"does not help, once", "stratus:none", true, func(*world) {}, "scale submit"},
		{"does not help, naively", "stratus:naive", true, func(*world) {}, "scale scale scale scale submit"},
		{
			"refused in a transaction", "stratus", true, func(w *world) { w.helps, w.refuses = true, true },
			"begin refused abort scale submit",
		},
		{
			// The next try is of what the first seemed to explain.
			"the commit finds it worse", "stratus", true, func(w *world) { w.helps, w.worse = true, true },
			"begin scale commit begin scale commit submit",
		},
	} {
		w := newWorld(t)
		c.set(w)
		if diff := gocmp.Diff(c.want, w.play(t, c.mode, c.transacts)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// What a transaction refuses is done without one at once: nothing that was not done is validated.
func TestRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.helps, w.refuses = true, true
	w.play(t, "stratus", true)
	at := slices.Index(w.calls, "abort")
	if at < 0 || !strings.Contains(w.calls[at-1], "kubectl scale") || w.calls[at+1] != w.calls[at-1] {
		t.Errorf("%q", w.calls)
	}
}

// A repair is kept though the steps are used up before the oracles have looked, if the lab finds the system no worse.
func TestKeptWithoutSteps(t *testing.T) {
	kept := false
	for steps := 12; steps < 40 && !kept; steps++ {
		w := newWorld(t)
		w.helps = true
		w.steps = steps
		did := w.play(t, "stratus", true)
		if strings.Contains(did, "begin scale") {
			kept = true
			if did != "begin scale commit submit" {
				t.Errorf("%d steps: %s", steps, did)
			}
		}
	}
	if !kept {
		t.Error("nothing was tried")
	}
}

// What was taken back is not said to have helped.
func TestSaysThatItFell(t *testing.T) {
	w := newWorld(t)
	w.play(t, "stratus", true)
	if strings.Contains(w.said, "the incident is over") {
		t.Errorf("%s", w.said)
	}
}

// With few steps it submits in time, and leaves no transaction open.
func TestFewSteps(t *testing.T) {
	for steps := range 40 {
		w := newWorld(t)
		a, err := Entries()[0].New(agent.Briefing{
			Task: problem.Mitigation, Namespace: "n", Steps: steps + 5, Actions: []*aci.Action{{Name: "begin"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		observation, submitted := "", false
		for range steps + 5 {
			response, err := a.Act(t.Context(), observation)
			if err != nil {
				t.Fatal(err)
			}
			call, err := aci.Parse(response)
			if err != nil {
				t.Fatal(err)
			}
			observation = w.do(call)
			submitted = submitted || call.Name == "submit"
		}
		if err := a.(interface{ Close() error }).Close(); err != nil || !submitted {
			t.Errorf("%d steps: submitted %v, %v", steps+5, submitted, err)
		}
	}
}

// A model diagnoses without writing, tries, is told why that did not help, reflects, and tries something else.
func TestThinker(t *testing.T) {
	w := newWorld(t)
	var prompts []string
	mitigations := 0
	r := agenttest.Case{
		Entry: Entries()[0], Task: problem.Mitigation, Steps: 60,
		World: func(c *aci.Call) string {
			if len(c.Args) > 0 && strings.Contains(fmt.Sprint(c.Args[0]), "user-service") && c.Name == "exec_shell" {
				w.helps = true
			}
			return w.do(c)
		},
		Play: func(_ int, r llmtest.Request) llmtest.Answer {
			system, last := r.Messages[0].Text, r.Messages[len(r.Messages)-1].Text
			switch {
			case strings.Contains(system, "You diagnose") && strings.Contains(last, "Refused"):
				prompts = append(prompts, "diagnosed")
				return llmtest.Answer{Text: "user-service is scaled to zero."}
			case strings.Contains(system, "You diagnose"):
				return llmtest.Answer{Text: "```\nexec_shell(\"kubectl delete pod x\")\n```"}
			case strings.Contains(system, "You look back"):
				prompts = append(prompts, "reflected")
				return llmtest.Answer{Text: "It was the wrong one."}
			case strings.HasPrefix(last, "done"):
				return llmtest.Answer{Text: "```\nsubmit()\n```"}
			}
			mitigations++
			if !strings.Contains(system, "user-service is scaled to zero.") {
				t.Error("the mitigation does not know the diagnosis")
			}
			if mitigations == 1 {
				return llmtest.Answer{Text: "```\nexec_shell(\"kubectl scale deployment/geo --replicas=1\")\n```"}
			}
			if !strings.Contains(system, "It was the wrong one.") {
				t.Errorf("try %d does not know what was learnt", mitigations)
			}
			return llmtest.Answer{Text: "```\nexec_shell(\"kubectl scale deployment/user-service --replicas=1\")\n```"}
		},
	}.Go(t)
	if r.Err != nil || !r.Submitted || mitigations != 2 || strings.Join(prompts, " ") != "diagnosed reflected" {
		t.Errorf("%+v, %d tries, %v\n%s", r.Err, mitigations, prompts, strings.Join(r.Responses, "\n---\n"))
	}
	for _, response := range r.Responses {
		if strings.Contains(response, "kubectl delete pod x") {
			t.Error("the diagnosis wrote")
		}
	}
}

func TestWrites(t *testing.T) {
	for command, want := range map[string]bool{
		"kubectl get pods -n shop": false, "kubectl -n shop delete pod x": true, "kubectl rollout status deployment/x": false,
		"kubectl rollout undo deployment/x": true, "kubectl logs x | grep delete": false, "helm upgrade x": true,
		"kubectl describe pod x; kubectl scale deployment/x --replicas=1": true, "kubectl exec x -- ls": true,
	} {
		if got := writes(&aci.Call{Name: "exec_shell", Args: []any{command}}); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
