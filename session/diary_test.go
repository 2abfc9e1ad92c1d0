package session

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/record"
)

// told is what a diary logs, without the time of day.
func told(level slog.Level, f func(d *diary)) string {
	var b bytes.Buffer
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	d := &diary{log: slog.New(slog.NewTextHandler(&b, o))}
	f(d)
	d.end()
	return b.String()
}

// The diary tells each phase and how long it took, and what a run waits for within the agent's turn.
func TestDiary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(slog.LevelDebug, func(d *diary) {
			d.note(record.Phase{Name: "deploying"}, 0)
			time.Sleep(3 * time.Second)
			d.note(record.Phase{Name: "injecting"}, 0)
			time.Sleep(time.Second)
			d.note(record.Phase{Name: "agent"}, 0)
			d.note(record.Briefing{}, 0)
			time.Sleep(2 * time.Second)
			d.note(record.Action{Action: "exec_shell", Response: "rm -rf /"}, 0)
			time.Sleep(time.Second)
			d.note(record.Step{Number: 1, Action: "exec_shell", Response: "rm -rf /", Observation: "done", Thought: 2, Took: 1}, 0)
			d.note(record.Submission{Submitted: true}, 0)
			d.note(record.Fault{Kind: "revoke_auth"}, 0)
		})
		want := `level=DEBUG msg="phase begun" phase=deploying
level=DEBUG msg="phase ended" phase=deploying took=3s
level=DEBUG msg="phase begun" phase=injecting
level=DEBUG msg="phase ended" phase=injecting took=1s
level=DEBUG msg="phase begun" phase="waiting for the agent"
level=DEBUG msg="phase ended" phase="waiting for the agent" took=2s
level=DEBUG msg="phase begun" phase="action exec_shell"
level=DEBUG msg=step step=1 action=exec_shell failed=false thought=2s took=1s
level=DEBUG msg="phase ended" phase="action exec_shell" took=1s
level=DEBUG msg="phase begun" phase="waiting for the agent"
level=DEBUG msg="phase ended" phase="waiting for the agent" took=0s
level=DEBUG msg="phase begun" phase="taking leave of the agent"
level=DEBUG msg="phase ended" phase="taking leave of the agent" took=0s
`
		if got != want {
			t.Errorf("got:\n%s", got)
		}
	})
}

// Who hangs is named, again and again at growing intervals, and not after it went on.
func TestDiaryWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := told(slog.LevelInfo, func(d *diary) {
			d.note(record.Phase{Name: "watching the healthy system"}, 10*time.Minute)
			time.Sleep(10 * time.Minute)
			d.note(record.Phase{Name: "waiting until its users are served"}, 0)
			time.Sleep(3 * time.Minute)
			d.note(record.Action{Action: strings.Repeat("x", 1<<20) + "\n"}, 0)
			time.Sleep(slowStep + time.Second)
			d.end()
			time.Sleep(time.Hour)
		})
		want := `level=WARN msg="phase takes long" phase="waiting until its users are served" so_far=1m0s
level=WARN msg="phase takes long" phase="waiting until its users are served" so_far=2m0s
level=WARN msg="phase takes long" phase="action ` + strings.Repeat("x", maxNamed) + `..." so_far=5m0s
`
		if got != want {
			t.Errorf("got:\n%s", got)
		}
	})
}
