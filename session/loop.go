package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/record"
)

// maxResponse is how much of a response is read. More than this is no answer but a flood.
const maxResponse = 1 << 20

// agentTurn lets the agent act until it submits or meets a limit, and records what came of it.
func (r *run) agentTurn(ctx context.Context, way Admission) {
	limit := r.Time
	if limit == 0 {
		limit = DefaultTime
	}
	if length := r.Problem.Length(); length > 0 { // Its end is the environment's to tell.
		limit = length + shiftSlack
	}
	turn, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the agent's time is up: %v", limit))
	defer cancel()
	turn, end := context.WithCancelCause(turn)
	defer end(nil)
	go func() { // Who waits for an agent in vain would wait for long.
		select {
		case <-r.Environment.Done():
			end(r.Environment.Err())
		case <-turn.Done():
		}
	}()
	r.phase("agent")
	s, leave := r.act(turn, way)
	defer leave() // The agent may take its time to go. It did not need that to solve the problem.
	if !s.Submitted && ctx.Err() != nil {
		s.Class, s.Reason = string(Inconclusive), "interrupted"
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			s.Class, s.Reason = string(Infra), cause.Error()
		}
	}
	r.event(record.SubmissionEvent, s)
}

// act takes the agent's steps. The agent has no way to the cloud afterwards; leave lets it go.
func (r *run) act(ctx context.Context, way Admission) (s record.Submission, leave func()) {
	leave = func() {}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), dismissTimeout)
		defer cancel()
		if death, ok := errors.AsType[*Death](r.Environment.Dismiss(after)); ok {
			d := *death
			d.Idle = true
			r.died(&d)
		}
	}()
	b := r.briefing(way)
	r.event(record.BriefingEvent, record.Briefing{
		Description: b.Description, Instructions: b.Instructions, Actions: aci.Docs(b.Actions),
		Confinement: way.Confinement, Program: r.Agent.Held, Unconfined: r.Agent.Gap, Policy: r.policyName(),
	})
	a, err := r.Agent.New(b)
	if err != nil {
		return r.failure(fmt.Errorf("make the agent: %w", err)), leave
	}
	if c, ok := a.(interface{ Close() error }); ok {
		leave = func() { _ = c.Close() }
	}
	return r.takeSteps(ctx, a), leave
}

// takeSteps lets the agent act until it submits or meets a limit.
func (r *run) takeSteps(ctx context.Context, a agent.Agent) record.Submission {
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
			return r.failure(err)
		}
		s := record.Step{Number: n, Response: response, Thought: time.Since(asked).Seconds()}
		acted := time.Now()
		acting, done := during(ctx, a)
		reply, err := r.Environment.Act(acting, response, func(action string) {
			r.event(record.ActionEvent, record.Action{Number: n, Response: response, Action: action})
		})
		done()
		if err != nil {
			return r.failure(err)
		}
		if reply.Question != "" {
			r.event(record.AnswerEvent, record.Answer{
				Question: reply.Question, Answer: reply.Answer, Step: n, Next: reply.Next,
			})
			steps++ // To answer costs no step, so that an incident has as many looks as its last question alone.
		}
		if reply.Question == term.Page {
			steps = n + cmp.Or(r.Steps, DefaultSteps) // The limit is from one answer to the next.
		}
		s.Action, s.Observation, s.Failed, s.Took = reply.Action, reply.Text, reply.Failed, time.Since(acted).Seconds()
		r.event(record.StepEvent, s)
		r.trace = append(r.trace, grade.Turn{Role: "assistant", Content: response},
			grade.Turn{Role: "env", Content: reply.Text})
		if reply.Submitted {
			return record.Submission{Submitted: true, Answer: reply.Answer}
		}
		if ctx.Err() != nil {
			return r.failure(context.Cause(ctx))
		}
		observation = reply.Text + "\n" + aci.NextAction
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
	if more := len(response) - maxResponse; more > 0 {
		response = fmt.Sprintf("%s\n[%d more bytes were not read]", response[:maxResponse], more)
	}
	return response, err
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

// perform does what a response asks for. Begun is told of the action before it is taken.
func perform(ctx context.Context, h hands, response string, begun func(action string)) (action string, res aci.Result) {
	call, err := aci.Parse(response)
	if err != nil {
		begun("")
		return "", aci.Result{Failed: true, Text: err.Error()}
	}
	begun(call.Name)
	return call.Name, h.Do(ctx, call)
}

// failure says why there is no submission, and whose fault it is.
func (r *run) failure(err error) record.Submission {
	class := AgentFailed
	if errors.Is(err, agent.ErrUnavailable) || errors.Is(err, errNoWay) {
		class = Infra
	}
	reason := err.Error()
	if death, ok := errors.AsType[*Death](err); ok {
		class, reason = r.died(death)
	}
	return record.Submission{Class: string(class), Reason: reason}
}
