package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/record"
)

// maxResponse is how much of a response is read. More than this is no answer but a flood.
const maxResponse = 1 << 20

// agentTurn lets the agent act until it submits or meets a limit, and records what came of it.
func (r *run) agentTurn(ctx context.Context) {
	limit := r.Time
	if limit == 0 {
		limit = DefaultTime
	}
	turn, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the agent's time is up: %v", limit))
	defer cancel()
	r.phase("agent")
	r.began = time.Now()
	var err error
	if r.found, err = r.stage.actors(ctx); err != nil {
		r.found = r.healthyActors
	}
	s, leave := r.act(turn)
	defer leave() // The agent may take its time to go, which is none that it needed.
	if !s.Submitted && ctx.Err() != nil {
		s.Class, s.Reason = string(Inconclusive), "interrupted"
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			s.Class, s.Reason = string(Infra), cause.Error()
		}
	}
	r.event(record.SubmissionEvent, s)
}

// act takes the agent's steps. The agent has no way to the cloud afterwards; leave lets it go.
func (r *run) act(ctx context.Context) (s record.Submission, leave func()) {
	leave = func() {}
	way, err := r.newAccess(ctx)
	if err != nil {
		return record.Submission{Class: string(Infra), Reason: err.Error()}, leave
	}
	defer way.close()
	b := r.briefing(way)
	r.event(record.BriefingEvent, record.Briefing{
		Description: b.Description, Instructions: b.Instructions, Actions: aci.Docs(b.Actions), Confinement: way.aci.Confinement(),
	})
	a, err := r.Agent.New(b)
	if err != nil {
		return agentFailure(fmt.Errorf("make the agent: %w", err)), leave
	}
	if c, ok := a.(interface{ Close() error }); ok {
		leave = func() { _ = c.Close() }
	}
	s = r.takeSteps(ctx, a, way.aci)
	r.event(record.DoingEvent, way.monitor.end())
	return s, leave
}

// takeSteps lets the agent act until it submits or meets a limit.
func (r *run) takeSteps(ctx context.Context, a agent.Agent, way performer) record.Submission {
	steps := r.Steps
	if steps == 0 {
		steps = DefaultSteps
	}
	observation := aci.NextAction
	for n := 1; n <= steps; n++ {
		asked := time.Now()
		response, err := ask(ctx, a, observation)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return agentFailure(err)
		}
		s := record.Step{Number: n, Response: response, Thought: time.Since(asked).Seconds()}
		acted := time.Now()
		acting, done := during(ctx, a)
		call, res := way.Perform(acting, response)
		done()
		s.Action, s.Observation, s.Failed, s.Took = call, res.Text, res.Failed, time.Since(acted).Seconds()
		r.event(record.StepEvent, s)
		r.trace = append(r.trace, grade.Turn{Role: "assistant", Content: response}, grade.Turn{Role: "env", Content: res.Text})
		if res.Submitted {
			answer, err := json.Marshal(res.Answer)
			if err != nil {
				answer, _ = json.Marshal(fmt.Sprint(res.Answer))
			}
			return record.Submission{Submitted: true, Answer: answer}
		}
		if ctx.Err() != nil {
			return agentFailure(context.Cause(ctx))
		}
		observation = res.Text + "\n" + aci.NextAction
	}
	return record.Submission{Class: string(AgentFailed), Reason: fmt.Sprintf("no submission within %d steps", steps)}
}

// ask gets the agent's response. A panic of an agent is its failure, not ours.
func ask(ctx context.Context, a agent.Agent, observation string) (response string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the agent panicked: %v", p)
		}
	}()
	response, err = a.Act(ctx, observation)
	if len(response) > maxResponse {
		response = response[:maxResponse]
	}
	return response, err
}

// performer does what responses ask for, such as an [aci.Interface].
type performer interface {
	Perform(ctx context.Context, response string) (action string, r aci.Result)
}

// during is the context of an action. An agent that can cancel what it has asked for says when.
func during(ctx context.Context, a agent.Agent) (context.Context, context.CancelFunc) {
	if c, ok := a.(interface {
		acting(ctx context.Context) (context.Context, context.CancelFunc)
	}); ok {
		return c.acting(ctx)
	}
	return ctx, func() {}
}

// agentFailure says why there is no submission, and whose fault it is.
func agentFailure(err error) record.Submission {
	class := AgentFailed
	if errors.Is(err, agent.ErrUnavailable) {
		class = Infra
	}
	return record.Submission{Class: string(class), Reason: err.Error()}
}
