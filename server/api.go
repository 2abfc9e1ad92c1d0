package server

import (
	"encoding/json"
	"time"
)

// NewSession asks for a session.
type NewSession struct {
	Problem  string   `json:"problem,omitempty" doc:"id of the problem, one of GET /problems"`
	Document string   `json:"document,omitempty" doc:"YAML text of a problem of one's own; if it has several, problem says which, by id or task"`
	Agent    string   `json:"agent,omitempty" doc:"agent that works by itself, one of GET /agents; without it the caller is the agent"`
	Name     string   `json:"name,omitempty" doc:"what the record calls the caller's agent; http by default"`
	Seed     uint64   `json:"seed,omitempty" doc:"what load and noise are drawn from; a new one by default, which the record has"`
	HandOver string   `json:"hand_over,omitempty" doc:"when the agent's turn begins: fault, as it shows; alert, when somebody would be called; or so long after, as 90s; fault by default, alert for incidents"`
	Noise    string   `json:"noise,omitempty" enum:"none,calm,busy" doc:"how much else changes in the application, in ways that do no harm; calm by default"`
	Decoys   []string `json:"decoys,omitempty" doc:"what is put in to be taken for the fault, or to mislead: fault, telemetry, instruction; none by default"`
	MaxSteps int      `json:"max_steps,omitempty" doc:"how many steps the agent has; 30 by default"`
	MaxTime  float64  `json:"max_time,omitempty" doc:"how many seconds the agent has; 900 by default"`
	Model    string   `json:"model,omitempty" doc:"model of an agent that uses one"`
	Sampling
}

// Sampling is how the model of a named agent replies. What is left out is up to the agent.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty" doc:"of a named agent's model"`
	TopP        *float64 `json:"top_p,omitempty" doc:"of a named agent's model"`
	MaxTokens   int      `json:"max_tokens,omitempty" doc:"how long a reply of a named agent's model may be"`
}

// State is where a session is.
type State string

// The states, in their order. A session that failed could not be run, and has no verdict.
const (
	Queued    State = "queued" // all places are taken
	Preparing State = "preparing"
	AgentTurn State = "agent"
	Grading   State = "grading"
	Done      State = "done"
	Failed    State = "failed"
)

// Session is what is known of a session.
type Session struct {
	ID      string    `json:"id"`
	State   State     `json:"state" enum:"queued,preparing,agent,grading,done,failed"`
	Place   int       `json:"place,omitempty" doc:"in the line, from 1, while the state is queued"`
	Agent   string    `json:"agent"`
	Steps   int       `json:"steps" doc:"how many the agent has taken"`
	Created time.Time `json:"created"`
	Outcome *Outcome  `json:"outcome,omitempty" doc:"there when the state is done"`
	Error   string    `json:"error,omitempty" doc:"why a session failed"`
}

// OpenedSession is a session that was just begun.
type OpenedSession struct {
	Session
	Token string `json:"token" doc:"reaches this session and nothing else; what an agent needs"`
}

// Outcome is how a session ended.
type Outcome struct {
	ID        string         `json:"id"`
	Problem   string         `json:"problem"`
	Agent     string         `json:"agent"`
	Seed      uint64         `json:"seed" doc:"what load and noise were drawn from"`
	Solved    bool           `json:"solved"`
	Class     string         `json:"class" enum:"solved,agent,infra,grader,inconclusive" doc:"solved, or whose fault it is that it is not"`
	Why       string         `json:"why" doc:"one line"`
	Results   map[string]any `json:"results" doc:"AIOpsLab's keys, and more"`
	StartTime float64        `json:"start_time" doc:"Unix seconds"`
	EndTime   float64        `json:"end_time" doc:"Unix seconds"`
	Record    string         `json:"record" doc:"file of the event log, on the server's machine"`
	Session   string         `json:"session" doc:"file in AIOpsLab's format, on the server's machine"`
}

// Problem is what an agent is told.
type Problem struct {
	Task         string            `json:"task" enum:"detection,localization,analysis,mitigation,incident,operation,shift"`
	Namespace    string            `json:"namespace" doc:"of the application"`
	Description  string            `json:"description"`
	Instructions string            `json:"instructions" doc:"how an agent that answers in text writes a call"`
	Actions      map[string]string `json:"actions" doc:"documentation of each action"`
	Tools        []Tool            `json:"tools" doc:"the same actions for function calling"`
	Kubeconfig   string            `json:"kubeconfig" doc:"reaches the cluster with the agent's rights, from the server's machine"`
}

// Tool is an action for function calling.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema" doc:"JSON schema of the arguments"`
}

// Act is a step to take: a text with one call in it, or the call itself.
type Act struct {
	Response  string         `json:"response,omitempty" doc:"what the agent says: text with one call in it"`
	Name      string         `json:"name,omitempty" doc:"name of an action, instead of a response"`
	Arguments map[string]any `json:"arguments,omitempty" doc:"its arguments by name"`
}

// Turn is what a step came to.
type Turn struct {
	Step        int    `json:"step" doc:"number of the step; 0 before the first"`
	Action      string `json:"action" doc:"the action that was taken; empty if none could be read"`
	Observation string `json:"observation"`
	Failed      bool   `json:"failed,omitempty" doc:"the action could not be taken, or was broken off"`
	Submitted   bool   `json:"submitted"`
	Question    string `json:"question,omitempty" doc:"of an incident, after an answer: the question that comes next, which the observation asks"`
	Over        bool   `json:"over" doc:"the agent submitted or met a limit; the verdict is still to come"`
}

// Submission is an answer.
type Submission struct {
	Answer any `json:"answer,omitempty" doc:"as the task's submit action, or an incident's question, takes it; left out for a mitigation"`
}

// Surrender ends an agent's turn without a submission.
type Surrender struct {
	Reason string `json:"reason,omitempty" doc:"one line for the record"`
}

// Event is a line of a session's record, as it is streamed.
type Event struct {
	Seq  int             `json:"seq" doc:"number in the stream, from 1"`
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Simulation asks for a run of an agent, as AIOpsLab's service does.
type Simulation struct {
	Problem           string   `json:"problem_id"`
	Agent             string   `json:"agent_name,omitempty" doc:"runbook by default; AIOpsLab's names stand for the agents that are like theirs"`
	MaxSteps          *int     `json:"max_steps,omitempty" doc:"10 by default"`
	Model             *string  `json:"model,omitempty" doc:"model of an agent that uses one"`
	Temperature       *float64 `json:"temperature,omitempty"`
	MaxTokens         *int     `json:"max_tokens,omitempty" doc:"how long a reply of the model may be"`
	TopP              *float64 `json:"top_p,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty" doc:"taken, and not sent to the model, as in AIOpsLab"`
}

// Health says that the server is there.
type Health struct {
	Status  string `json:"status"`
	Service string `json:"service"`
}

// Mistake is the body of every error.
type Mistake struct {
	Detail string `json:"detail"`
}
