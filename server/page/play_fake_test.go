package page

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/record"
)

// fakeSessions are sessions without a cluster: actions are answered by canned texts, and the answer decides.
type fakeSessions struct {
	t    testing.TB
	dir  string        // of the records; empty for none
	gate chan struct{} // if set, a session is set up when it is closed
	full int           // place in the line, if all places are taken
	only string        // id of the problem that can be run, if it is one alone

	mu   sync.Mutex
	list map[string]*fakeSession
	last *fakeSession
}

type fakeSession struct {
	Wish
	problem  *problem.Problem
	steps    atomic.Int64
	answered int
	halt     chan struct{} // of the command under way
	done     chan struct{}
	ended    Ended
}

func (f *fakeSessions) Lacks(p *problem.Problem) string {
	if f.only != "" && p.ID != f.only {
		return "it is another one"
	}
	return ""
}

func (f *fakeSessions) Begin(_ context.Context, w Wish) (string, error) {
	p, err := problemtest.Library(f.t).Find(w.Problem)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list == nil {
		f.list = map[string]*fakeSession{}
	}
	id := fmt.Sprintf("20261118-101500-%012x", 0x5eed00+len(f.list))
	f.last = &fakeSession{Wish: w, problem: p, done: make(chan struct{}), halt: make(chan struct{}, 1)}
	f.list[id] = f.last
	return id, nil
}

func (f *fakeSessions) find(id string) *fakeSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list[id]
}

func (f *fakeSessions) State(context.Context, string) (State, error) {
	return State{Place: f.full}, nil
}

func (f *fakeSessions) Told(ctx context.Context, id string) (Told, error) {
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return Told{}, context.Cause(ctx)
		}
	}
	p := f.find(id).problem
	return Told{string(p.Task), p.App.Namespace, aci.Description(string(p.Task), p.App, p.Asked())}, nil
}

// fakeSeries is an answer of Prometheus as the lens for metrics has it made.
func fakeSeries() string {
	var lines []string
	for _, pod := range []string{"geo-7c8d9f6b5-4kq9z", "mongodb-geo-5f7b8c9d4-p8rmt"} {
		var points [][2]any
		for i := range 60 {
			v := 0.02 + 0.002*float64(i%5)
			if i > 40 && strings.HasPrefix(pod, "geo") {
				v += 0.01 * float64(i-40)
			}
			points = append(points, [2]any{1794996000 + 10*i, fmt.Sprint(v)})
		}
		b, _ := json.Marshal([]any{map[string]string{"pod": pod}, points}) // Numbers and strings can be.
		lines = append(lines, string(b))
	}
	return "[" + strings.Join(lines, ",") + "]\n"
}

const fakeTopology = `SERVICE      KIND     READY PODS  PORTS  DEPENDS ON
frontend     service  1/1         5000   search, profile
geo          service  1/1         8083   mongodb-geo
mongodb-geo  mongodb  0/1         27017  -

Calls in the traces of the last 10 minutes:
  frontend -> search: 812
`

const fakeAlerts = `STATE   ALERT          SEVERITY  ABOUT             FOR   SUMMARY
firing  RequestErrors  critical  service=frontend  1m3s  41 % of requests of frontend fail
`

// observe is what a call comes to.
func (s *fakeSession) observe(c *aci.Call) string {
	text := fmt.Sprint(c.Args, c.Kwargs)
	switch {
	case c.Name == "get_alerts":
		return fakeAlerts
	case c.Name == "get_topology":
		return fakeTopology
	case c.Name == "get_logs":
		return "2026-11-18T10:15:01Z INFO geo: started\n2026-11-18T10:15:09Z ERROR geo: auth error: Authentication failed\n"
	case strings.Contains(text, "query_range"):
		return fakeSeries()
	case strings.Contains(text, "api/traces"):
		return `{"bad":true,"long":900,"spans":[["a","","frontend","GET /hotels",1794996000000000,900000,true],["b","a","search","Nearby",1794996000100000,700000,true]]}` + "\n"
	case strings.Contains(text, "kubectl get pods"):
		return "NAME                        READY   STATUS    RESTARTS   AGE\nfrontend-6d9c7f5b4d-x2x7k   1/1     Running   0          21d\ngeo-7c8d9f6b5-4kq9z         1/1     Running   0          21d\n"
	case strings.Contains(text, "evil"):
		return "\x1b]0;owned\x07\x1b[6n<script>window.owned = 1</script>\x1b[31mred\x1b[0m"
	}
	return "did " + c.Name + "\n"
}

func (f *fakeSessions) Act(ctx context.Context, id, response string) (t Turn, err error) {
	s := f.find(id)
	t.Step = int(s.steps.Add(1))
	c, err := aci.Parse(response)
	if err != nil {
		t.Failed, t.Observation = true, err.Error()
		return t, nil
	}
	t.Action = c.Name
	if c.Name == "submit" {
		questions := s.problem.Questions()
		if s.answered++; s.answered < len(questions) {
			t.Question, t.Observation = string(questions[s.answered]), aci.Ask(string(questions[s.answered]))
			return t, nil
		}
		t.Over, t.Observation = true, "SubmissionStatus.VALID_SUBMISSION"
		right := s.problem.Task != problem.Detection || len(c.Args) == 1 && c.Args[0] == s.problem.Anomaly()
		go s.end(f, id, right, "the answer is right")
		return t, nil
	}
	if strings.Contains(fmt.Sprint(c.Args, c.Kwargs), "sleep") {
		select {
		case <-s.halt:
			t.Failed, t.Observation = true, "[The command was ended: it was interrupted.]\n"
			return t, nil
		case <-ctx.Done():
			return t, context.Cause(ctx)
		}
	}
	t.Observation = s.observe(c)
	return t, nil
}

// end is the verdict.
func (s *fakeSession) end(f *fakeSessions, id string, right bool, why string) {
	class := "agent"
	if right {
		class = "solved"
	} else if strings.HasPrefix(why, "the answer") {
		why = "the answer is wrong"
	}
	s.ended = Ended{s.Problem, class, why, map[string]any{"TTD": 42.5, "steps": s.steps.Load(), "success": right}}
	if f.dir != "" {
		m := newMade(id, s.Name)
		m.event(30, record.StepEvent, record.Step{Number: 1, Response: "```\nexec_shell(\"kubectl get pods\")\n```"})
		m.ended(s.Problem, class, why, s.ended.Results).save(f.t, f.dir)
	}
	close(s.done)
}

func (f *fakeSessions) Interrupt(_ context.Context, id string) error {
	f.find(id).halt <- struct{}{}
	return nil
}

func (f *fakeSessions) GiveUp(_ context.Context, id string) error {
	f.find(id).end(f, id, false, "the person gave up")
	return nil
}

func (f *fakeSessions) Outcome(ctx context.Context, id string) (Ended, error) {
	s := f.find(id)
	select {
	case <-s.done:
		return s.ended, nil
	case <-ctx.Done():
		return Ended{}, context.Cause(ctx)
	}
}

// eventually waits for something to hold.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
