package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/record"
)

// puppet is an environment without a cluster that does as it is told, and nothing goes wrong if it is
// not told anything.
type puppet struct {
	*mortal
	mends               bool // the fault is gone when the agent is
	prepare, act, watch func(context.Context) error
}

func newPuppet() *puppet { return &puppet{mortal: &mortal{done: make(chan struct{})}} }

// first does what was asked for, if anything was, before the rest.
func first(ctx context.Context, do func(context.Context) error) error {
	if do == nil {
		return nil
	}
	return do(ctx)
}

func (p *puppet) Prepare(ctx context.Context, s Setting, tell Tell) (Admission, error) {
	if err := first(ctx, p.prepare); err != nil {
		return Admission{}, err
	}
	return p.mortal.Prepare(ctx, s, tell)
}

func (p *puppet) Act(ctx context.Context, response string, begun func(string)) (Reply, error) {
	if err := first(ctx, p.act); err != nil {
		return Reply{}, err
	}
	return p.mortal.Act(ctx, response, begun)
}

func (p *puppet) Watch(ctx context.Context, interrupted bool) error {
	if err := first(ctx, p.watch); err != nil {
		return err
	}
	if !p.mends {
		p.tell(record.LookEvent, sound(0, "geo does not answer"))
		return nil
	}
	return p.mortal.Watch(ctx, interrupted)
}

// hang waits for as long as it may.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// scripted is an agent that sends responses, one after another, and then the last again and again.
func scripted(responses ...string) agent.Entry {
	return acting(func(_ context.Context, n int) (string, error) { return responses[min(n, len(responses))-1], nil })
}

// acting is an agent that is told which step it takes.
func acting(act func(ctx context.Context, n int) (string, error)) agent.Entry {
	return agent.Entry{Name: "a", New: func(agent.Briefing) (agent.Agent, error) {
		n := 0
		return agent.Func(func(ctx context.Context, _ string) (string, error) {
			n++
			return act(ctx, n)
		}), nil
	}}
}

// Each way in which a run can end has a verdict, and the right one: whose doing it was, and in which
// words. Time is made up, so that limits of minutes cost none.
func TestEnds(t *testing.T) {
	yes, no, look := agent.Call("submit", "Yes"), agent.Call("submit", "No"), agent.Call("exec_shell", "true")
	thinks := acting(func(ctx context.Context, n int) (string, error) {
		if n == 1 {
			return look, nil
		}
		return "", hang(ctx)
	})
	fails := func(err error) agent.Entry {
		return acting(func(context.Context, int) (string, error) { return "", err })
	}
	panics := acting(func(context.Context, int) (string, error) { panic("out of ideas") })
	unmade := agent.Entry{Name: "a", New: func(agent.Briefing) (agent.Agent, error) { return nil, errors.New("no such program") }}
	spends := agent.Entry{Name: "a", NeedsModel: true, New: func(b agent.Briefing) (agent.Agent, error) {
		return agent.Func(func(ctx context.Context, _ string) (string, error) {
			_, err := b.Model.Chat(ctx, say("what now?"))
			return look, err
		}), nil
	}}
	gone := errors.New("it is gone")
	type kit struct {
		env       *puppet
		session   *Session
		interrupt context.CancelFunc
	}
	for _, c := range []struct {
		name  string
		task  problem.Task
		agent agent.Entry
		set   func(kit)
		want  Class
		why   string
	}{
		{"the answer is right", problem.Detection, scripted(look, yes), nil, Solved, "the answer is right"},
		{"the answer is wrong", problem.Detection, scripted(no), nil, AgentFailed, `submitted "No"`},
		{"the system is well", problem.Mitigation, scripted(look, agent.Call("submit")), nil, Solved, "the system has been well"},

		{"the agent fails", problem.Detection, fails(errors.New("no route to my model")), nil, AgentFailed, "no route to my model"},
		{"the agent's model is away", problem.Detection, fails(agent.ErrUnavailable), nil, Infra, "the agent is unavailable"},
		{"the agent panics", problem.Detection, panics, nil, AgentFailed, "the agent panicked: out of ideas"},
		{"the agent cannot be made", problem.Detection, unmade, nil, AgentFailed, "make the agent: no such program"},
		{"its budget is spent", problem.Detection, spends, func(k kit) {
			k.session.Model, k.session.Budget = &parrot{}, Budget{Tokens: 3000}
		}, AgentFailed, "of 3000 tokens"},
		{"its steps are used up", problem.Detection, scripted(look), func(k kit) { k.session.Steps = 3 }, AgentFailed, "no submission within 3 steps"},
		{"its time is up as it thinks", problem.Detection, thinks, nil, AgentFailed, "the agent's time is up: 15m0s"},
		{"its time is up as it acts", problem.Detection, scripted(look), func(k kit) {
			k.session.Time, k.env.act = time.Minute, hang
		}, AgentFailed, "the agent's time is up: 1m0s"},

		{"a fault never shows", problem.Detection, scripted(yes), func(k kit) {
			k.env.prepare = func(context.Context) error { return errors.New("revoke_auth in mongodb-geo does not show") }
		}, Infra, "does not show"},
		{"the environment is never prepared", problem.Detection, scripted(yes), func(k kit) { k.env.prepare = hang }, Infra, "the environment was not prepared within 10m0s"},
		{"the system cannot be looked at", problem.Mitigation, scripted(agent.Call("submit")), func(k kit) {
			k.env.watch = func(context.Context) error { return gone }
		}, GraderFailed, "could not be looked at"},
		{"looking takes for ever", problem.Mitigation, scripted(agent.Call("submit")), func(k kit) { k.env.watch = hang }, GraderFailed, "could not be looked at"},
		{"nobody knows whether there still was a fault", problem.Detection, scripted(yes), func(k kit) {
			k.env.watch = func(context.Context) error { return gone }
		}, GraderFailed, "could not be looked at"},
		{"the time is up, and the system is well", problem.Mitigation, thinks, nil, Solved, "the system has been well"},

		{"interrupted as it is prepared", problem.Detection, scripted(yes), func(k kit) {
			k.env.prepare = func(ctx context.Context) error { k.interrupt(); return hang(ctx) }
		}, Inconclusive, "interrupted before the agent could begin"},
		{"interrupted as the agent thinks", problem.Detection, acting(func(ctx context.Context, _ int) (string, error) { return "", hang(ctx) }), func(k kit) {
			time.AfterFunc(time.Minute, k.interrupt)
		}, Inconclusive, "interrupted"},
		{"interrupted as the agent acts", problem.Detection, scripted(look), func(k kit) {
			k.env.act = func(ctx context.Context) error { k.interrupt(); return hang(ctx) }
		}, Inconclusive, "interrupted"},
		{"interrupted as it is graded", problem.Mitigation, scripted(agent.Call("submit")), func(k kit) {
			k.env.watch = func(context.Context) error { k.interrupt(); return nil }
		}, Solved, "the system has been well"},
		{"the judge fails", problem.Detection, scripted(yes), func(k kit) {
			k.session.Judge = func(context.Context, string, string) (string, error) { return "", errors.New("no judge") }
		}, Solved, "the answer is right"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				p := problemtest.Find(t, "revoke_auth_mongodb-"+string(c.task)+"-1")
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				env := newPuppet()
				env.mends = c.task == problem.Mitigation
				s := &Session{Problem: p, Agent: c.agent, Environment: env, Results: results}
				if c.set != nil {
					c.set(kit{env, s, interrupt})
				}
				o, err := s.Run(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if o.Verdict.Class != c.want || !strings.Contains(o.Verdict.Why, c.why) {
					t.Errorf("%s: %s", o.Verdict.Class, o.Verdict.Why)
				}
				rec, err := record.Read(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				if v, err := Grade(rec); err != nil || v.Class != c.want {
					t.Errorf("graded again it is %+v, %v", v, err)
				}
			})
		})
	}
}

// A run whose record cannot be made does not begin, and one whose record cannot be written ends.
func TestRecordCannotBeWritten(t *testing.T) {
	p := problemtest.Find(t, "revoke_auth_mongodb-detection-1")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	s := &Session{Problem: p, Environment: newPuppet(), Results: file, Agent: acting(func(_ context.Context, n int) (string, error) {
		asked = n
		return agent.Call("exec_shell", "true"), nil
	})}
	if o, err := s.Run(t.Context()); o != nil || err == nil || !strings.HasPrefix(err.Error(), "results: ") || asked > 0 {
		t.Errorf("%+v, %v, %d steps", o, err, asked)
	}
	log, err := record.Create(filepath.Join(t.TempDir(), "1.jsonl"), record.Run{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil { // As if the disk were full from here on.
		t.Fatal(err)
	}
	(&run{Session: s, log: log}).work(t.Context())
	if asked > 1 {
		t.Errorf("the agent took %d steps of which there is no record", asked)
	}
}

// A record that is lost or damaged while the agent works is an error that names it, never a verdict.
func TestRecordIsLost(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(results string) error
		want string
	}{
		{"it is deleted", os.RemoveAll, "no such file"},
		{"it is overwritten", func(results string) error {
			return os.WriteFile(filepath.Join(results, "1.jsonl"), []byte("something else\n"), 0o600)
		}, "1.jsonl: "},
		{"its last line is cut off", func(results string) error {
			return os.Truncate(filepath.Join(results, "1.jsonl"), 10)
		}, "1.jsonl: "},
		{"the session file cannot be written", func(results string) error {
			return os.Mkdir(filepath.Join(results, "1.json"), 0o700)
		}, "1.json: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newPuppet()
			s := &Session{
				Problem: shopProblem(problem.Detection), Environment: env, Results: t.TempDir(), ID: "1",
				Agent: scripted(agent.Call("submit", "Yes")),
			}
			env.watch = func(context.Context) error { return c.harm(s.Results) }
			if o, err := s.Run(t.Context()); o != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

// Of two runs with one id, the second does not begin: it would be told of in the record of the first.
func TestSameID(t *testing.T) {
	s := &Session{
		Problem: shopProblem(problem.Detection), Environment: newPuppet(), Results: t.TempDir(), ID: "1",
		Agent: scripted(agent.Call("submit", "Yes")),
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Run(t.Context()); o != nil || !errors.Is(err, os.ErrExist) {
		t.Errorf("%+v, %v", o, err)
	}
}

// An agent that needs a model and has none does not begin.
func TestNoModel(t *testing.T) {
	dir := t.TempDir()
	s := &Session{
		Problem: shopProblem(problem.Detection), Environment: newPuppet(), Results: dir,
		Agent: agent.Entry{Name: "thinker", NeedsModel: true},
	}
	if o, err := s.Run(t.Context()); o != nil || err == nil || err.Error() != "the agent thinker needs a model" {
		t.Errorf("%+v, %v", o, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
