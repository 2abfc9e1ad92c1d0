// Package agenttest takes an agent with a chat model through a problem without a cloud: the model is
// played by an endpoint of llmtest, and what the actions return by a function.
package agenttest

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/connect"
	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/problem"
)

// Case is an agent with a problem.
type Case struct {
	Entry agent.Entry
	Task  problem.Task // Detection if empty
	Play  llmtest.Play
	// World is what an action returns; what cannot be read as a call does not get there.
	World  func(c *aci.Call) string
	Window int    // of the model; 0 for the default
	Steps  int    // that it has; 0 for maxSteps
	Model  string // "test" if empty; "anthropic/test" is asked in Anthropic's protocol
}

// Run is how it went.
type Run struct {
	Responses []string
	Submitted bool
	Answer    any // the first argument of the submission
	Err       error
	Notes     []Note // what the agent recorded
}

// Note is an event that an agent recorded.
type Note struct {
	Kind string
	Data any
}

// maxSteps is how many steps an agent has.
const maxSteps = 12

// Go runs a case.
func (c Case) Go(t testing.TB) *Run {
	t.Helper()
	url := llmtest.Start(t, c.Play)
	name := c.Model
	if name == "" {
		name = "test"
	}
	m, err := connect.Open(connect.Config{
		Model: name, Window: c.Window, Patience: llm.Patience{Attempts: 3, First: time.Millisecond},
		Env: func(name string) string {
			return map[string]string{"OPENAI_BASE_URL": url + "/v1", "ANTHROPIC_BASE_URL": url}[name]
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Task == "" {
		c.Task = problem.Detection
	}
	r := &Run{}
	a, err := c.Entry.New(agent.Briefing{
		Task: c.Task, Namespace: "test-shop", Model: m, Steps: c.Steps, Actions: aci.Actions(string(c.Task)),
		Description:  "You are an engineer who looks after the service test-shop.",
		Instructions: aci.Instructions(string(c.Task)),
		Note:         func(kind string, data any) { r.Notes = append(r.Notes, Note{kind, data}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	observation := aci.NextAction
	for range cmp.Or(c.Steps, maxSteps) {
		response, err := a.Act(context.Background(), observation)
		if err != nil {
			r.Err = err
			return r
		}
		r.Responses = append(r.Responses, response)
		call, err := aci.Parse(response)
		if err != nil {
			observation = err.Error()
			continue
		}
		if call.Name == "submit" && c.Task != problem.OnCall { // Who is on call submits on and on.
			r.Submitted = true
			if len(call.Args) > 0 {
				r.Answer = call.Args[0]
			}
			for _, v := range call.Kwargs {
				r.Answer = v
			}
			return r
		}
		observation = c.World(call) + "\n" + aci.NextAction
	}
	return r
}

// Shop is a world in which a pod crashes, or not.
func Shop(broken bool) func(*aci.Call) string {
	return func(c *aci.Call) string {
		command := ""
		if len(c.Args) > 0 {
			command, _ = c.Args[0].(string)
		}
		if s, ok := c.Kwargs["command"].(string); ok {
			command = s
		}
		switch {
		case c.Name == "exec_shell" && strings.Contains(command, "get pods"):
			if broken {
				return "NAME READY STATUS RESTARTS\ngeo-1 0/1 CrashLoopBackOff 7\nrate-1 1/1 Running 0"
			}
			return "NAME READY STATUS RESTARTS\ngeo-1 1/1 Running 0\nrate-1 1/1 Running 0"
		case c.Name == "exec_shell":
			return "(no output)"
		}
		return "nothing to see in " + c.Name
	}
}

// Detective is a model that looks at the pods and events, and detects a crash.
var Detective = llmtest.Engineer{
	Looks: []string{`exec_shell("kubectl get pods -n test-shop")`, `exec_shell("kubectl get events -n test-shop")`},
	Answer: func(seen string) string {
		if strings.Contains(seen, "CrashLoopBackOff") {
			return `submit("Yes")`
		}
		return `submit("No")`
	},
}
