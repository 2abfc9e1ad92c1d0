package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/world/decoy"
	"github.com/aiopslab/aiopslab/world/noise"
)

// Environment is where runs take place: a cluster, an application under load, its faults, and
// everything that an agent can make run. A [Local] is one in this process. Those of a campaign or a
// server are processes of their own, which can die at any moment without the record and the verdict
// being lost: any method may return a [*Death] then.
//
// One run uses it at a time: Prepare, any number of Act and Export, Dismiss, Watch. An environment
// that can have another run is prepared anew.
type Environment interface {
	// Prepare brings about the situation that the agent is to find, and gives the agent its way to the
	// cloud. Tell is told of what happens, in order, until the run is over: phases, the baseline,
	// faults, writes, looks.
	Prepare(ctx context.Context, s Setting, tell Tell) (Admission, error)
	// Act does what a response asks for. It calls begun with the action that was read from the response, or "" if
	// none could be read. When ctx ends, the action ends, with the result so far.
	Act(ctx context.Context, response string, begun func(action string)) (Reply, error)
	// Export writes the telemetry of an interval into a new directory, and returns its name.
	Export(ctx context.Context, i agent.Interval) (string, error)
	// Dismiss takes the agent's way to the cloud away, and ends what it left running there.
	Dismiss(ctx context.Context) error
	// Watch looks at the system after the agent is done: until a mitigation has held or no longer can; for a short
	// time if the run was interrupted; once if there was nothing to mitigate. Then it undoes the faults.
	Watch(ctx context.Context, interrupted bool) error
	// Done is closed when the environment has died. It is nil for an environment that cannot die.
	Done() <-chan struct{}
	// Err says how it has died.
	Err() *Death
}

// Tell takes an event.
type Tell func(kind string, data any)

// Setting is what a run needs of its environment.
type Setting struct {
	Problem *problem.Problem
	Seed    uint64
	// Noise is what goes on in the application besides its faults; empty for nothing.
	Noise noise.Level
	// Decoys are what is put in to be taken for a fault.
	Decoys decoy.Set
	// Lived is how long the application is used before the run, in a cloud that can be given no past.
	Lived time.Duration
	// Baseline is how long the healthy system is watched before a fault comes.
	Baseline time.Duration
	// Policy is the document of the one that the agent is held to; nil for none. Approves says that there is somebody
	// to ask, who answers by [Approver].
	Policy   []byte
	Approves bool
	// HandOver is when the agent's turn begins.
	HandOver HandOver
	// Log is for what the environment has to tell whoever runs the lab. It may be nil.
	Log *slog.Logger
}

// Admission is an agent's way to the cloud.
type Admission struct {
	Kubeconfig  []byte         `json:"kubeconfig"`
	Confinement string         `json:"confinement"`    // what holds the agent's shell in
	Healthy     agent.Interval `json:"healthy"`        // when the system was known to be well
	Page        []string       `json:"page,omitempty"` // what the pager says, if the agent is called by one
	Now         time.Time      `json:"now,omitzero"`   // see [agent.Briefing]
}

// Reply is what came of a response.
type Reply struct {
	Action    string          `json:"action"` // empty if none could be read
	Text      string          `json:"text"`
	Failed    bool            `json:"failed,omitempty"`
	Submitted bool            `json:"submitted"`          // the agent is done
	Answer    json.RawMessage `json:"answer,omitempty"`   // what was submitted
	Question  string          `json:"question,omitempty"` // of an incident: the one that was answered
	Next      string          `json:"next,omitempty"`     // and the one that is asked now
}

// ErrMisfit is the error of an environment that holds another application than the problem's.
var ErrMisfit = errors.New("the environment holds another application")

// Death is how an environment ended before its run was over.
type Death struct {
	Why string
	// Exhausted says that it ran out of memory or stack. It does not do so by itself, so whoever acted in it has
	// caused it.
	Exhausted bool
	// Idle says that nothing that the agent had asked for was under way.
	Idle bool
	// Outside says that what ended it was not in it: its machine, or who runs that.
	Outside bool
}

func (d *Death) Error() string { return "the environment died: " + d.Why }

// blame says whose fault the death is, after the agent has had its way to the cloud.
func (d *Death) blame() (Class, string) {
	switch {
	case d.Outside:
		return Infra, d.Error()
	case !d.Idle:
		return AgentFailed, "the agent's action ended the environment: " + d.Why
	case d.Exhausted:
		return AgentFailed, "what the agent left running ended the environment: " + d.Why
	}
	return Infra, fmt.Sprintf("%v; no action of the agent was under way", d)
}
