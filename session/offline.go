package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// Offline is an environment that is over: what was recorded of an incident until somebody was called. The agent reads
// it and answers. There is nothing that it could change.
type Offline struct {
	Archive aci.Archive
	// Tables writes the telemetry of an interval into a directory, in the layout of [observe.Observer.Export].
	Tables func(i agent.Interval, dir string) error
	// Faults are what was wrong.
	Faults  []record.Fault
	Scratch string   // directory for temporary files; empty for the system's
	Self    []string // see [Local]

	way *access
}

var _ Environment = (*Offline)(nil)

// OfflineProblem is what an agent is asked about an incident that is over. Without faults the system was well.
func OfflineProblem(id string, task problem.Task, a *app.App, faults []problem.FaultSpec, answer problem.Answer,
) *problem.Problem {
	return &problem.Problem{
		ID: id, Task: task, Origin: problem.Ours, App: a, Healthy: len(faults) == 0,
		Document: &problem.Document{
			ID: id, Title: "an incident that is over", App: a.Name, Tasks: []problem.Task{task}, Faults: faults,
			Answer: answer,
		},
	}
}

// offlineNotice is what an agent is told of an incident that is over.
const offlineNotice = `

The incident is over, and there is no cluster any more. You have what was recorded of the system until somebody was
called: metrics, logs, traces, and who calls whom. To the APIs, the end of that is the present.`

// Prepare gives the agent what was recorded.
func (o *Offline) Prepare(_ context.Context, set Setting, tell Tell) (_ Admission, err error) {
	from, to := o.Archive.Window()
	healthy := agent.Interval{From: from, To: from.Add(set.Baseline)}
	if set.Baseline > 0 && healthy.To.Add(set.Baseline).After(to) {
		return Admission{}, errors.New("what was recorded is too short to learn from how the system was at first")
	}
	a := &access{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.dir, err = os.MkdirTemp(o.Scratch, "aiopslab-agent-"); err != nil {
		return Admission{}, err
	}
	root := filepath.Join(a.dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return Admission{}, err
	}
	p := set.Problem
	i, err := aci.NewOffline(aci.OfflineOptions{
		Task: string(p.Task), App: p.App, Archive: o.Archive, Dir: root, Self: o.Self,
	})
	if err != nil {
		return Admission{}, err
	}
	a.aci, o.way = i, a
	for _, f := range o.Faults {
		f.Time = time.Now() // It is now that they show to this agent.
		tell(record.FaultEvent, f)
	}
	return Admission{Confinement: i.Confinement(), Healthy: healthy, Now: to}, nil
}

// Act does what a response asks for.
func (o *Offline) Act(ctx context.Context, response string, begun func(action string)) (Reply, error) {
	if o.way == nil {
		return Reply{}, errNoWay
	}
	return o.way.act(ctx, response, begun)
}

// Export writes the telemetry of an interval.
func (o *Offline) Export(_ context.Context, i agent.Interval) (string, error) {
	if o.way == nil {
		return "", errNoWay
	}
	dir, err := os.MkdirTemp(o.way.dir, "telemetry-")
	if err != nil {
		return "", err
	}
	return dir, o.Tables(i, dir)
}

// Dismiss closes the agent's access.
func (o *Offline) Dismiss(context.Context) error {
	if o.way != nil {
		o.way.close()
		o.way = nil
	}
	return nil
}

// Watch does nothing: what was is not changed any more.
func (o *Offline) Watch(context.Context, bool) error { return nil }

// Done returns nil: if the environment died, so would this process.
func (o *Offline) Done() <-chan struct{} { return nil }

// Err is nil.
func (o *Offline) Err() *Death { return nil }

// judgeOffline says whether an answer about an incident that is over is right.
func (h *history) judgeOffline() Verdict {
	s := h.submission
	if c := Class(s.Class); !s.Submitted && c != AgentFailed {
		return Verdict{c, s.Reason, h.metrics(nil)}
	}
	return h.judge()
}
