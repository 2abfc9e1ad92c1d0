package export

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/session"
)

// ATIFVersion is the version of the Agent Trajectory Interchange Format that trajectories have.
const ATIFVersion = "ATIF-v1.7"

// Trajectory is a run in ATIF, the Agent Trajectory Interchange Format of Harbor.
type Trajectory struct {
	SchemaVersion string         `json:"schema_version"`
	SessionID     string         `json:"session_id"`
	TrajectoryID  string         `json:"trajectory_id"`
	Agent         ATIFAgent      `json:"agent"`
	Steps         []ATIFStep     `json:"steps"`
	Final         *ATIFTotals    `json:"final_metrics,omitempty"`
	Extra         map[string]any `json:"extra,omitempty"`
}

// ATIFAgent is who acted.
type ATIFAgent struct {
	Name    string     `json:"name"`
	Version string     `json:"version"`
	Model   string     `json:"model_name,omitempty"`
	Tools   []ATIFTool `json:"tool_definitions,omitempty"`
}

// ATIFTool is an action that the agent had, in the form of function calling.
type ATIFTool struct {
	Type     string       `json:"type"`
	Function ATIFFunction `json:"function"`
}

// ATIFFunction is what an action is called and does.
type ATIFFunction struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ATIFStep is what the lab told the agent, or a response of the agent and what came of it.
type ATIFStep struct {
	ID          int              `json:"step_id"` // from 1
	Time        string           `json:"timestamp"`
	Source      string           `json:"source"` // system, user or agent
	Model       string           `json:"model_name,omitempty"`
	Message     string           `json:"message"`
	Reasoning   string           `json:"reasoning_content,omitempty"`
	Calls       []ATIFCall       `json:"tool_calls,omitempty"`
	Observation *ATIFObservation `json:"observation,omitempty"`
	Metrics     *ATIFMetrics     `json:"metrics,omitempty"`
	// ModelCalls are 0 for an agent without a model, and nil for what the lab says.
	ModelCalls *int           `json:"llm_call_count,omitempty"`
	Extra      map[string]any `json:"extra,omitempty"`
}

// ATIFCall is a call of an action.
type ATIFCall struct {
	ID        string          `json:"tool_call_id"`
	Function  string          `json:"function_name"`
	Arguments json.RawMessage `json:"arguments"` // an object
}

// ATIFObservation is what came of a step.
type ATIFObservation struct {
	Results []ATIFResult `json:"results"`
}

// ATIFResult is what came of a call, or of a response without one.
type ATIFResult struct {
	Call    string `json:"source_call_id,omitempty"`
	Content string `json:"content"`
}

// ATIFMetrics are what a step's exchanges with the model took.
type ATIFMetrics struct {
	Prompt     int      `json:"prompt_tokens"`
	Completion int      `json:"completion_tokens"`
	Cached     int      `json:"cached_tokens,omitempty"`
	Cost       *float64 `json:"cost_usd,omitempty"`
}

// ATIFTotals are what the whole run took.
type ATIFTotals struct {
	Prompt     *int     `json:"total_prompt_tokens,omitempty"`
	Completion *int     `json:"total_completion_tokens,omitempty"`
	Cached     *int     `json:"total_cached_tokens,omitempty"`
	Cost       *float64 `json:"total_cost_usd,omitempty"`
	Steps      int      `json:"total_steps"`
}

// verdictExtra is the verdict as a trajectory has it.
type verdictExtra struct {
	Class   session.Class `json:"class"`
	Why     string        `json:"why"`
	Results grade.Result  `json:"results"`
}

// Trajectory is the run in ATIF.
func (r *Run) Trajectory() Trajectory {
	t := Trajectory{
		SchemaVersion: ATIFVersion, SessionID: r.Record.ID, TrajectoryID: r.Record.ID,
		Agent: ATIFAgent{Name: r.Agent(), Version: r.version(), Model: r.Model(), Tools: r.tools()},
		Steps: r.told(), Extra: map[string]any{},
	}
	for i := range r.Steps {
		s := r.atifStep(&r.Steps[i])
		s.ID = len(t.Steps) + 1
		t.Steps = append(t.Steps, s)
	}
	t.Final = &ATIFTotals{Steps: len(t.Steps)}
	if u, cost := r.Usage(); len(r.Exchanges) > 0 {
		t.Final.Prompt, t.Final.Completion, t.Final.Cached, t.Final.Cost = &u.In, &u.Out, &u.Cached, cost
	}
	if r.Truth.ID != "" {
		t.Extra["problem"], t.Extra["task"], t.Extra["app"] = r.Truth.ID, r.Truth.Task, r.Truth.App
		t.Extra["seed"] = r.Record.Seed
	}
	if v := r.Verdict; v != nil {
		t.Extra["verdict"] = verdictExtra{v.Class, v.Why, v.Results}
	}
	return t
}

// version is that of the prompts that the agent's conversations are made from, if it has any.
func (r *Run) version() string {
	var list []string
	for _, p := range r.Prompts {
		list = append(list, p.Name+"@"+p.Version)
	}
	return cmp.Or(strings.Join(list, ","), "unknown")
}

func (r *Run) tools() (list []ATIFTool) {
	for _, name := range slices.Sorted(maps.Keys(r.Briefing.Actions)) {
		list = append(list, ATIFTool{"function", ATIFFunction{name, r.Briefing.Actions[name]}})
	}
	return list
}

// told is what the lab said first. A trajectory has one step at least, whatever became of its run.
func (r *Run) told() []ATIFStep {
	first := ATIFStep{ID: 1, Time: stamp(r.Began), Source: "system", Message: r.Briefing.Instructions}
	if first.Message == "" {
		first.Message = "The agent was not told anything: " + r.Why()
	}
	if r.Briefing.Description == "" {
		return []ATIFStep{first}
	}
	return []ATIFStep{first, {ID: 2, Time: stamp(r.Began), Source: "user", Message: r.Briefing.Description}}
}

func (r *Run) atifStep(s *Step) ATIFStep {
	a := ATIFStep{
		Time: stamp(s.Began()), Source: "agent", Message: s.Response,
		Observation: &ATIFObservation{[]ATIFResult{{Content: s.Observation}}},
		Extra:       map[string]any{"thought_seconds": s.Thought, "took_seconds": s.Took},
	}
	if s.Action != "" {
		a.Calls = []ATIFCall{{s.Call(), s.Action, r.Arguments(s)}}
		a.Observation.Results[0].Call = s.Call()
	}
	if s.Failed {
		a.Extra["failed"] = true
	}
	calls := 0
	var usage llm.Usage
	var cost float64
	priced := true
	var thoughts []string
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		if x.Step != s.Number {
			continue
		}
		calls++
		usage = usage.Add(x.Reply.Usage)
		if priced = priced && x.Cost != nil; priced {
			cost += *x.Cost
		}
		if x.Reply.Thoughts != "" {
			thoughts = append(thoughts, x.Reply.Thoughts)
		}
		a.Model = x.Model
	}
	a.ModelCalls = &calls
	if calls == 0 {
		return a
	}
	a.Reasoning = strings.Join(thoughts, "\n\n")
	a.Metrics = &ATIFMetrics{Prompt: usage.In, Completion: usage.Out, Cached: usage.Cached}
	if priced {
		a.Metrics.Cost = &cost
	}
	return a
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
