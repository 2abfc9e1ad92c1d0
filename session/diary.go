package session

import (
	"log/slog"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// slowPhase is longer than a phase of a run takes, on a machine that is not too busy; slowStep longer
	// than an agent thinks, or an action takes.
	slowPhase = time.Minute
	slowStep  = 5 * time.Minute
)

// diary tells the log what a run does and how long that takes, and warns when it takes long: who asks why
// a run hangs finds what it waits for. It tells nothing that the record does not tell by then, since an
// agent that is a program on this machine could read the log.
type diary struct {
	log *slog.Logger // may be nil

	mu    sync.Mutex
	doing string
	since time.Time
	late  *time.Timer
}

func (d *diary) logger() *slog.Logger { return logs.Or(d.log) }

// end notes that the run does nothing any more.
func (d *diary) end() { d.begin("", 0) }

// begin notes what the run does from now on, and how long that may take; empty for nothing.
func (d *diary) begin(what string, expected time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.late != nil {
		d.late.Stop()
	}
	if d.doing != "" {
		d.logger().Debug("phase ended", "phase", d.doing, "took", now.Sub(d.since).Round(time.Millisecond))
	}
	if d.doing, d.since = what, now; what == "" {
		return
	}
	d.logger().Debug("phase begun", "phase", what)
	d.late = time.AfterFunc(expected, func() { d.warn(now, expected) })
}

// warn tells of something that takes longer than it should, and will do so again.
func (d *diary) warn(begun time.Time, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.since.Equal(begun) || d.doing == "" {
		return
	}
	d.logger().Warn("phase takes long", "phase", d.doing, "so_far", after)
	d.late = time.AfterFunc(after, func() { d.warn(begun, 2*after) })
}

// note takes an event of the record.
func (d *diary) note(data any, baseline time.Duration) {
	switch e := data.(type) {
	case record.Phase:
		expected := slowPhase
		switch e.Name {
		case "agent":
			return // It is told step by step.
		case "grading":
			expected = slowStep
		}
		d.begin(e.Name, expected+baseline)
	case record.Action:
		d.begin("action "+actionName(e.Action), slowStep)
	case record.Step:
		d.logger().Debug("step", "step", e.Number, "action", actionName(e.Action), "failed", e.Failed, "thought",
			seconds(e.Thought), "took", seconds(e.Took))
		d.begin(waitingForAgent, slowStep)
	case record.Briefing:
		d.begin(waitingForAgent, slowStep)
	case record.Submission:
		d.begin("taking leave of the agent", slowPhase)
	}
}

const waitingForAgent = "waiting for the agent"

// maxNamed is how much of the name of an action is logged, which is the agent's to choose.
const maxNamed = 64

func actionName(action string) string {
	if len(action) > maxNamed {
		return action[:maxNamed] + "..."
	}
	return action
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}
