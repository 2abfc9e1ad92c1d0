package classic

import (
	"context"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

const (
	// baseline is how long the healthy system is watched: exports have a sample of each metric every
	// 15 seconds.
	baseline = 60 * time.Second
	// recent is the part of the past that is compared with it, up to now. A fault shows before the agent
	// has its turn, but the effect on what is counted over time follows.
	recent = 30 * time.Second
	// rest is how long the system is left alone after the exports. They are work for the services that
	// keep the telemetry, and on a small machine all others notice.
	rest = 10 * time.Second
)

// method compares the telemetry of now with that of the healthy system. It returns the suspects, the
// most likely first. None means that all is well.
type method func(healthy, now *telemetry) []string

// Entries are the agents.
func Entries() []agent.Entry {
	entry := func(name, doc string, m method) agent.Entry {
		return agent.Entry{
			Name: name, Doc: doc, Baseline: baseline,
			New: func(b agent.Briefing) (agent.Agent, error) { return &analyst{b: b, method: m}, nil },
		}
	}
	return []agent.Entry{
		entry("mksmc", "detects by a multivariate K-sigma score of the telemetry; no model, names suspects "+
			"and mends nothing", mksmc),
		entry("pdiagnose", "localizes by votes of metrics, logs and traces; no model, names suspects "+
			"and mends nothing", pdiagnose),
		entry("rmlad", "localizes by the metric that goes with the anomaly of the logs; no model, names suspects "+
			"and mends nothing", rmlad),
	}
}

// analyst is an agent with one of the methods.
type analyst struct {
	b      agent.Briefing
	method method
	// looked says that there are suspects, or none. An incident asks for them twice, and is looked at once.
	looked   bool
	suspects []string
	healthy  *telemetry // once it was looked at
}

// Act answers the question at hand, for which it looks at the telemetry if need be.
func (a *analyst) Act(ctx context.Context, observation string) (string, error) {
	if a.b.Task == problem.OnCall {
		return a.answerPage(ctx, observation)
	}
	return agent.Answers(a.b.Task, func(question problem.Task) (string, error) {
		switch question {
		case problem.Analysis:
			return agent.Call("submit", map[string]any{}), nil
		case problem.Mitigation, problem.Operation:
			return agent.Call("submit"), nil
		}
		if !a.looked {
			if err := a.look(ctx); err != nil {
				return "", err
			}
		}
		return answer(question, a.suspects), nil
	}).Act(ctx, observation)
}

// maxNamed is how many services the answer to a page names at most.
const maxNamed = 3

// answerPage names the suspects when the pager has called, or waits until it does. It mends nothing.
func (a *analyst) answerPage(ctx context.Context, observation string) (string, error) {
	if aci.Paged(observation) == "" {
		return agent.Call("submit"), nil
	}
	if err := a.look(ctx); err != nil {
		return "", err
	}
	return agent.Call("submit", append([]string{}, a.suspects[:min(maxNamed, len(a.suspects))]...)), nil
}

// look compares the telemetry of now with that of the healthy system.
func (a *analyst) look(ctx context.Context) error {
	end := a.b.Now
	lives := end.IsZero()
	if lives {
		if err := wait(ctx, time.Until(a.b.Healthy.To.Add(recent))); err != nil {
			return err
		}
		end = time.Now() // Before the exports: what they do to the system is no anomaly.
	}
	if a.healthy == nil {
		healthy, err := a.export(ctx, a.b.Healthy)
		if err != nil {
			return err
		}
		a.healthy = healthy
	}
	now, err := a.export(ctx, agent.Interval{From: end.Add(-recent), To: end})
	if err != nil {
		return err
	}
	a.suspects, a.looked = a.method(a.healthy, now), true
	if !lives {
		return nil
	}
	return wait(ctx, rest)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer is what to submit when these are the suspects. Only the first is named: a longer list is
// wrong unless all of it is right.
func answer(task problem.Task, suspects []string) string {
	if task == problem.Detection {
		return agent.Call("submit", map[bool]string{true: "Yes", false: "No"}[len(suspects) > 0])
	}
	return agent.Call("submit", append([]string{}, suspects[:min(1, len(suspects))]...))
}

// export gets the telemetry of an interval. That it cannot be had is not the agent's fault.
func (a *analyst) export(ctx context.Context, i agent.Interval) (*telemetry, error) {
	dir, err := a.b.Export(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("%w: export the telemetry: %w", agent.ErrUnavailable, err)
	}
	t, err := load(dir, i)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", agent.ErrUnavailable, err)
	}
	return t, nil
}
