package session

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/record"
)

// mortal is an environment without a cluster, which dies where it is told to.
type mortal struct {
	dies  string // the phase
	death Death
	tell  Tell
	done  chan struct{}
}

func (m *mortal) die(phase string) error {
	if m.dies != phase {
		return nil
	}
	close(m.done)
	return &m.death
}

func (m *mortal) Prepare(_ context.Context, _ Setting, tell Tell) (Admission, error) {
	m.tell = tell
	tell(record.PhaseEvent, record.Phase{Name: "deploying"})
	tell(record.BaselineEvent, sound(0))
	tell(record.FaultEvent, record.Fault{Kind: "k", Target: "the-secret"})
	return Admission{}, m.die("prepare")
}

func (m *mortal) Act(_ context.Context, response string, begun func(string)) (Reply, error) {
	call, err := aci.Parse(response)
	if err != nil {
		return Reply{}, err
	}
	begun(call.Name)
	if err := m.die("act"); err != nil {
		return Reply{}, err
	}
	if call.Name != "submit" {
		if m.dies == "idle" {
			defer close(m.done)
		}
		return Reply{Action: call.Name, Text: "done"}, nil
	}
	var answer []byte
	if len(call.Args) > 0 {
		answer, err = json.Marshal(call.Args[0])
	}
	return Reply{Action: call.Name, Submitted: true, Answer: answer}, err
}

func (m *mortal) Export(context.Context, agent.Interval) (string, error) { return "", nil }
func (m *mortal) Dismiss(context.Context) error                          { return m.die("dismiss") }

func (m *mortal) Watch(context.Context, bool) error {
	if err := m.die("watch"); err != nil {
		return err
	}
	select {
	case <-m.done:
		return &m.death
	default:
	}
	for i := range 10 {
		m.tell(record.LookEvent, sound(time.Duration(i)*time.Second))
		if i == 8 {
			if err := m.die("late watch"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mortal) Done() <-chan struct{} { return m.done }
func (m *mortal) Err() *Death           { d := m.death; d.Idle = true; return &d }

// Whatever ends an environment, and whenever, the run has a verdict that blames the right one.
func TestDeath(t *testing.T) {
	yes, look := agent.Call("submit", "Yes"), agent.Call("exec_shell", "true")
	wait := func(ctx context.Context, n int) (string, error) {
		if n == 1 {
			return look, nil
		}
		<-ctx.Done() // It thinks for as long as it may.
		return "", context.Cause(ctx)
	}
	killed, full := Death{Why: "signal: killed"}, Death{Why: "it took 4 GB of memory", Exhausted: true}
	for _, c := range []struct {
		name, dies string
		death      Death
		task       problem.Task
		agent      func(ctx context.Context, n int) (string, error)
		want       Class
		why        string
	}{
		{"before the agent", "prepare", killed, problem.Detection, wait, Infra, "the environment died: signal: killed"},
		{"before the agent, of memory", "prepare", full, problem.Detection, wait, Infra, "the environment died: it took 4 GB"},
		{"in an action", "act", killed, problem.Detection, wait, AgentFailed, "the agent's action ended the environment: signal: killed"},
		{"in an action", "act", killed, problem.Mitigation, wait, AgentFailed, "the agent's action ended the environment"},
		{"while the agent thinks", "idle", killed, problem.Detection, wait, Infra, "no action of the agent was under way"},
		{"while the agent thinks", "idle", killed, problem.Mitigation, wait, Infra, "no action of the agent was under way"},
		{"of what the agent left behind", "idle", full, problem.Detection, wait, AgentFailed, "what the agent left running"},
		{"as the agent leaves, the answer right", "dismiss", killed, problem.Detection, nil, Solved, "the answer is right"},
		{"as the agent leaves", "dismiss", killed, problem.Mitigation, nil, Infra, "signal: killed"},
		{"as the agent leaves, of memory", "dismiss", full, problem.Mitigation, nil, AgentFailed, "what the agent left running"},
		{"before a look, the answer right", "watch", killed, problem.Detection, nil, Solved, "the answer is right"},
		{"before a look, the answer wrong", "watch", killed, problem.Localization, nil, AgentFailed, `submitted "Yes"`},
		{"before a look", "watch", killed, problem.Mitigation, nil, Infra, "signal: killed"},
		{"before a look, of memory", "watch", full, problem.Mitigation, nil, AgentFailed, "what the agent left running"},
		{"after it was well for long enough", "late watch", killed, problem.Mitigation, nil, Solved, "well"},
	} {
		t.Run(c.name+"/"+string(c.task), func(t *testing.T) {
			if c.agent == nil {
				c.agent = func(context.Context, int) (string, error) { return yes, nil }
			}
			p := problemtest.Find(t, "revoke_auth_mongodb-"+string(c.task)+"-1")
			n := 0
			entry := agent.Entry{Name: "a", New: func(agent.Briefing) (agent.Agent, error) {
				return agent.Func(func(ctx context.Context, _ string) (string, error) {
					n++
					return c.agent(ctx, n)
				}), nil
			}}
			env := &mortal{dies: c.dies, death: c.death, done: make(chan struct{})}
			s := Session{Problem: p, Agent: entry, Environment: env, Results: t.TempDir()}
			o, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o.Verdict.Class != c.want || !strings.Contains(o.Verdict.Why, c.why) {
				t.Errorf("%s: %s", o.Verdict.Class, o.Verdict.Why)
			}
			if o.Problem != p.ID || o.Record != filepath.Join(s.Results, o.ID+".jsonl") {
				t.Errorf("%s in %s", o.Problem, o.Record)
			}
		})
	}
}

// The record tells of an action before it is done, and of the problem only after the agent is.
func TestRecordWhileTheAgentWorks(t *testing.T) {
	p := problemtest.Find(t, "revoke_auth_mongodb-detection-1")
	env := &mortal{done: make(chan struct{})}
	s := Session{Problem: p, Environment: env, Results: t.TempDir(), ID: "1"}
	file := filepath.Join(s.Results, "1.jsonl")
	var kinds []string
	s.Events = func(e record.Event) { kinds = append(kinds, e.Kind) }
	n := 0
	s.Agent.New = func(agent.Briefing) (agent.Agent, error) {
		return agent.Func(func(context.Context, string) (string, error) {
			rec, err := record.Read(file)
			if err != nil {
				return "", err
			}
			for _, e := range rec.Events {
				if e.Kind == record.ProblemEvent || e.Kind == record.FaultEvent || strings.Contains(string(e.Data), "secret") {
					return "", errors.New("the agent could read " + e.Kind)
				}
			}
			if n++; n == 1 {
				return agent.Call("exec_shell", "true"), nil
			}
			return agent.Call("submit", "Yes"), nil
		}), nil
	}
	o, err := s.Run(t.Context())
	if err != nil || o.Verdict.Class == Infra || !strings.Contains(strings.Join(kinds, " "), "action step action step submission problem") {
		t.Errorf("%+v, %v, %v", o, err, kinds)
	}
}

// Of a response that is a flood, a part is kept, and how much there was more.
func TestFlood(t *testing.T) {
	a := agent.Func(func(context.Context, string) (string, error) { return strings.Repeat("x", 5<<20), nil })
	got, err := ask(t.Context(), a, "")
	if err != nil || len(got) > maxResponse+100 || !strings.HasSuffix(got, "[4194304 more bytes were not read]") {
		t.Errorf("%d bytes, %v: %s", len(got), err, got[max(0, len(got)-100):])
	}
}
