package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// over is an incident of ten minutes, of which nothing was recorded but the time.
type over struct{}

var overEnd = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (over) Window() (from, to time.Time)                           { return overEnd.Add(-10 * time.Minute), overEnd }
func (over) Services() []aci.ArchivedService                        { return nil }
func (over) Tables() []string                                       { return nil }
func (over) Logs(func(string, observe.LogLine)) error               { return nil }
func (over) Spans(func(aci.ArchivedSpan)) error                     { return nil }
func (over) Samples(func(time.Time, string, string, float64)) error { return nil }
func (over) export(i agent.Interval, dir string) error {
	return os.WriteFile(filepath.Join(dir, "interval"), []byte(i.From.Format(time.TimeOnly)), 0o644)
}

// An agent that learns from telemetry works on an incident that is over: it is told when that ended, gets the first of
// it as the healthy part, and is judged by its answer.
func TestOfflineRun(t *testing.T) {
	shop := &app.App{Name: "shop", Title: "Shop", Namespace: "shop", Description: "A shop."}
	for name, tt := range map[string]struct {
		faults []problem.FaultSpec
		answer string
		want   Class
	}{
		"right":                   {[]problem.FaultSpec{{Kind: "pod_kill", Target: "geo"}}, `["geo"]`, Solved},
		"wrong":                   {[]problem.FaultSpec{{Kind: "pod_kill", Target: "geo"}}, `["rate"]`, AgentFailed},
		"nothing wrong":           {nil, `[]`, Solved},
		"nothing wrong, but said": {nil, `["geo"]`, AgentFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var told agent.Briefing
			var read []byte
			entry := agent.Entry{Name: "reader", Baseline: time.Minute, New: func(b agent.Briefing) (agent.Agent, error) {
				told = b
				return agent.Func(func(ctx context.Context, _ string) (string, error) {
					dir, err := b.Export(ctx, b.Healthy)
					if err == nil {
						read, err = os.ReadFile(filepath.Join(dir, "interval"))
					}
					return "```\nsubmit(" + tt.answer + ")\n```", err
				}), nil
			}}
			p := OfflineProblem("offline-x-localization-1", problem.Localization, shop, tt.faults,
				problem.Answer{Components: []problem.Component{{Name: "geo"}}})
			var faults []record.Fault
			for _, f := range tt.faults {
				faults = append(faults, record.Fault{Kind: f.Kind, Target: f.Target, Time: overEnd})
			}
			env := &Offline{Archive: over{}, Tables: over{}.export, Faults: faults, Scratch: t.TempDir(), Self: []string{os.Args[0], "tool"}}
			s := Session{Problem: p, Agent: entry, Environment: env, Offline: true, Results: t.TempDir(), Seed: 1}
			o, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o.Verdict.Class != tt.want {
				t.Errorf("%+v", o.Verdict)
			}
			if string(read) != "11:50:00" || !told.Now.Equal(overEnd) || !told.Healthy.To.Equal(overEnd.Add(-9*time.Minute)) {
				t.Errorf("it read %q, and was told %v, %v", read, told.Now, told.Healthy)
			}
			if !strings.Contains(told.Description, "The incident is over") || len(told.Actions) != len(aci.OfflineActions("localization")) {
				t.Errorf("%d actions, and it was told\n%s", len(told.Actions), told.Description)
			}
			if took, _ := o.Verdict.Results["TTL"].(float64); took > 600 {
				t.Errorf("it took %v s: the time since the incident is none of the agent's", took)
			}
		})
	}
}
