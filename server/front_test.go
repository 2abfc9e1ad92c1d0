package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a front with fake workers, and a client of it.
type lab struct {
	t       testing.TB
	front   *Front
	workers *fakeWorkers
	server  *httptest.Server
	header  http.Header
}

// newLab starts a front. Every worker has a backend like the one given.
func newLab(t testing.TB, o Options, b *fakeBackend) *lab {
	dir := t.TempDir()
	if b.library == nil {
		b.library = problemtest.Library(t)
	}
	l := &lab{t: t, header: http.Header{}, workers: &fakeWorkers{t: t, pattern: func() *fakeBackend {
		return &fakeBackend{dir: dir, gate: b.gate, broken: b.broken, during: b.during, class: b.class, users: b.users, desks: b.desks, asks: b.asks, tells: b.tells, library: b.library}
	}}}
	if o.Library == nil {
		o.Library = b.library
	}
	o.Workers = l.workers
	o.Agents = []string{"runbook", "oracle"}
	l.front = NewFront(o)
	l.server = httptest.NewServer(l.front)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l.front.Close(ctx)
		l.server.Close()
		if ctx.Err() != nil {
			t.Error("it took too long to end")
		}
	})
	return l
}

// do sends a request and returns the status and the body.
func (l *lab) do(method, path, body string) (int, string) {
	l.t.Helper()
	req, err := http.NewRequest(method, l.server.URL+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header = l.header.Clone()
	res, err := l.server.Client().Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "" {
		l.t.Errorf("%s %s: there is no room, and nobody says when to ask again", method, path)
	}
	return res.StatusCode, string(b)
}

// get sends a request that must succeed, and reads the answer into a value.
func get[T any](l *lab, method, path, body string) (v T) {
	l.t.Helper()
	status, answer := l.do(method, path, body)
	if status >= 300 {
		l.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		l.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
	}
	return v
}

// refused sends a request that must be answered with a status and a text in the detail.
func (l *lab) refused(method, path, body string, status int, detail string) {
	l.t.Helper()
	got, answer := l.do(method, path, body)
	var m Mistake
	if err := json.Unmarshal([]byte(answer), &m); err != nil || got != status || !strings.Contains(m.Detail, detail) {
		l.t.Errorf("%s %s %s: %d %s, want %d with %q", method, path, cut(body), got, cut(answer), status, detail)
	}
}

func cut(s string) string { return s[:min(len(s), 300)] }

// open begins a session and returns its path.
func (l *lab) open(body string) string {
	l.t.Helper()
	return "/sessions/" + get[Session](l, "POST", "/sessions", body).ID
}

func detection(id string) string { return fmt.Sprintf(`{"problem": %q}`, id) }

func TestSession(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	s := get[Session](l, "POST", "/sessions", `{"problem": "`+faulty+`", "name": "mine", "seed": 7, "max_steps": 5}`)
	if s.State != Preparing || s.ID == "" || s.Agent != "mine" {
		t.Errorf("%+v", s)
	}
	path := "/sessions/" + s.ID
	p := get[Problem](l, "GET", path+"/problem", "")
	if p.Task != "detection" || p.Description == "" || p.Instructions == "" || p.Kubeconfig == "" || p.Namespace != "test-hotel-reservation" {
		t.Errorf("%+v", p)
	}
	if len(p.Tools) != len(p.Actions) || !strings.Contains(p.Actions["get_logs"], "get_logs(namespace: str") || !strings.Contains(string(p.Tools[0].Schema), "properties") {
		t.Errorf("%+v", p.Tools)
	}
	first := get[Turn](l, "GET", path+"/observation", "")
	if d := cmp.Diff(Turn{Observation: aci.NextAction}, first); d != "" {
		t.Error(d)
	}
	turn := get[Turn](l, "POST", path+"/act", `{"response": "Let us see.\n`+"```\\nget_logs(\\\"ns\\\", \\\"geo\\\")\\n```"+`"}`)
	if d := cmp.Diff(Turn{Step: 1, Action: "get_logs", Observation: "did get_logs [ns geo] map[]"}, turn); d != "" {
		t.Error(d)
	}
	turn = get[Turn](l, "POST", path+"/act", `{"name": "get_logs", "arguments": {"namespace": "a \"b\"", "service": "geo"}}`)
	if d := cmp.Diff(Turn{Step: 2, Action: "get_logs", Observation: `did get_logs [] map[namespace:a "b" service:geo]`}, turn); d != "" {
		t.Error(d)
	}
	if again := get[Turn](l, "GET", path+"/observation", ""); again != turn {
		t.Errorf("%+v, then again %+v", turn, again)
	}
	if s := get[Session](l, "GET", path, ""); s.State != AgentTurn || s.Steps != 2 || s.Outcome != nil {
		t.Errorf("%+v", s)
	}
	l.refused("POST", path+"/submit", `{}`, 422, "needs has_anomaly")
	o := get[Outcome](l, "POST", path+"/submit", `{"answer": "Yes"}`)
	if !o.Solved || o.Class != "solved" || o.Problem != faulty || o.Agent != "mine" || o.Results["success"] != true || o.StartTime != 1 {
		t.Errorf("%+v", o)
	}
	l.refused("POST", path+"/act", `{"response": "x"}`, 409, "over")
	// What is told of a session does not change when its worker is gone.
	for _, w := range l.workers.list() {
		<-w.Done()
	}
	if d := cmp.Diff(o, get[Outcome](l, "GET", path+"/outcome", "")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(p, get[Problem](l, "GET", path+"/problem", "")); d != "" {
		t.Error(d)
	}
	if last := get[Turn](l, "GET", path+"/observation", ""); !last.Submitted || !last.Over || last.Step != 4 {
		t.Errorf("%+v", last)
	}
	if s := get[Session](l, "DELETE", path, ""); s.State != Done || s.Outcome.Class != "solved" {
		t.Errorf("%+v", s)
	}
	l.refused("POST", path+"/act", `{"response": "x"}`, 409, "over")
	if list := get[[]Session](l, "GET", "/sessions", ""); len(list) != 1 || list[0].State != Done {
		t.Errorf("%+v", list)
	}
}

func TestSubmitByAct(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.open(detection(healthy))
	turn := get[Turn](l, "POST", path+"/act", `{"name": "submit", "arguments": {"has_anomaly": "Yes"}}`)
	if !turn.Submitted || !turn.Over {
		t.Errorf("%+v", turn)
	}
	if o := get[Outcome](l, "GET", path+"/outcome", ""); o.Solved || o.Class != "agent" {
		t.Errorf("%+v", o)
	}
}

// A limit ends the agent's turn, and is told as such.
func TestLimits(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.open(`{"problem": "` + healthy + `", "max_steps": 1}`)
	turn := get[Turn](l, "POST", path+"/act", `{"response": "nothing"}`)
	if turn.Submitted || !turn.Over || turn.Action != "" || !strings.Contains(turn.Observation, "Error parsing") {
		t.Errorf("%+v", turn)
	}
	if o := get[Outcome](l, "GET", path+"/outcome", ""); o.Why != "no submission within 1 steps" {
		t.Errorf("%+v", o)
	}
	path = l.open(`{"problem": "` + healthy + `", "max_time": 0.001}`)
	if o := get[Outcome](l, "GET", path+"/outcome", ""); o.Class != "agent" || o.Why != "the agent's time is up" {
		t.Errorf("%+v", o)
	}
}

func TestGiveUpAndCancel(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.open(detection(faulty))
	o := get[Outcome](l, "POST", path+"/give-up", `{"reason": "no\nidea"}`)
	if o.Class != "agent" || o.Why != "no idea" {
		t.Errorf("%+v", o)
	}
	path = l.open(detection(faulty))
	get[Problem](l, "GET", path+"/problem", "")
	if s := get[Session](l, "DELETE", path, ""); s.State != Done || s.Outcome.Class != "inconclusive" {
		t.Errorf("%+v", s)
	}
}

func TestCancelWhilePreparing(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{gate: make(chan struct{})})
	path := l.open(detection(faulty))
	if s := get[Session](l, "DELETE", path, ""); s.State != Failed || !strings.Contains(s.Error, "cancelled") {
		t.Errorf("%+v", s)
	}
	l.refused("GET", path+"/problem", "", 502, "cancelled")
	l.refused("GET", path+"/outcome", "", 502, "cancelled")
}

func TestNamedAgent(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{gate: make(chan struct{})})
	path := l.open(`{"problem": "` + faulty + `", "agent": "runbook"}`)
	close(l.workers.list()[0].worker.backend.(*fakeBackend).gate)
	if o := get[Outcome](l, "GET", path+"/outcome", ""); !o.Solved || o.Agent != "runbook" {
		t.Errorf("%+v", o)
	}
	l.refused("POST", path+"/act", `{"response": "x"}`, 409, "over")
}

func TestPreparationFails(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{broken: func(Spec) error { return fmt.Errorf("no space left on device") }})
	path := l.open(detection(faulty))
	l.refused("GET", path+"/problem", "", 502, "no space left")
	l.refused("GET", path+"/outcome", "", 502, "no space left")
	l.refused("GET", path+"/record", "", 502, "no space left")
	if s := get[Session](l, "GET", path, ""); s.State != Failed {
		t.Errorf("%+v", s)
	}
}

// The events of a run that goes on do not tell what is wrong, not even by their numbers.
func TestEventsWithholdTheTruth(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	seen := map[string][]string{}
	for _, id := range []string{faulty, healthy} {
		path := l.open(detection(id))
		get[Turn](l, "POST", path+"/act", `{"name": "get_alerts"}`)
		s := l.stream(path, "")
		for {
			e := s.next()
			seen[id] = append(seen[id], fmt.Sprint(e.id, " ", e.Seq, " ", e.Kind))
			if strings.Contains(string(e.Data), "secret") || e.Kind == "fault" {
				t.Errorf("%+v tells the truth", e)
			}
			if e.Kind == "step" {
				break
			}
		}
		if status, _ := l.do("GET", path+"/record", ""); status != 409 {
			t.Errorf("the record before the verdict: %d", status)
		}
		if s := get[Session](l, "GET", path, ""); s.Outcome != nil {
			t.Errorf("%+v", s)
		}
		get[Outcome](l, "POST", path+"/submit", `{"answer": "Yes"}`)
		late := map[string]bool{}
		for _, e := range s.rest() {
			late[e.Kind] = true
		}
		if !late["problem"] || !late["look"] || !late["verdict"] || !late["baseline"] || late["fault"] != (id == faulty) {
			t.Errorf("after the verdict: %v", late)
		}
	}
	if d := cmp.Diff(seen[faulty], seen[healthy]); d != "" {
		t.Errorf("with a fault (-) and without (+):\n%s", d)
	}
}

// Who comes back gets what it has not got yet, wherever it was cut off, from the worker and from the
// record.
func TestEventsResume(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.open(detection(faulty))
	live := l.stream(path, "")
	get[Outcome](l, "POST", path+"/submit", `{"answer": "No"}`)
	all := live.rest()
	if all[len(all)-1].Kind != "verdict" {
		t.Errorf("the last event is %+v", all[len(all)-1])
	}
	for n := range all {
		if d := cmp.Diff(all[n+1:], append([]sentEvent{}, l.stream(path, all[n].id).rest()...), cmp.AllowUnexported(sentEvent{})); d != "" {
			t.Errorf("after %s:\n%s", all[n].id, d)
		}
	}
	l.header.Set("Last-Event-ID", all[len(all)-1].id)
	if status, _ := l.do("GET", path+"/events", ""); status != http.StatusNoContent {
		t.Errorf("after the end: %d", status)
	}
	l.header.Set("Last-Event-ID", "-3")
	l.refused("GET", path+"/events", "", 422, "not the id of an event")
	l.header.Del("Last-Event-ID")
	_, rec := l.do("GET", path+"/record", "")
	if lines := strings.Count(rec, "\n"); lines != len(all)+1 {
		t.Errorf("%d events and a record of %d lines", len(all), lines)
	}
}

// sentEvent is an event as it came.
type sentEvent struct {
	id string
	Event
}

type eventStream struct {
	l     *lab
	body  io.Closer
	lines *bufio.Scanner
}

func (l *lab) stream(path, last string) *eventStream {
	l.t.Helper()
	req, err := http.NewRequest("GET", l.server.URL+path+"/events", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := l.server.Client().Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { res.Body.Close() })
	return &eventStream{l, res.Body, bufio.NewScanner(res.Body)}
}

// next is the next event; its id is empty at the end.
func (s *eventStream) next() (e sentEvent) {
	for s.lines.Scan() {
		switch key, value, _ := strings.Cut(s.lines.Text(), ": "); key {
		case "id":
			e.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.Event); err != nil {
				s.l.t.Fatal(err)
			}
		case "":
			if e.id != "" {
				return e
			}
		}
	}
	return sentEvent{}
}

func (s *eventStream) rest() (list []sentEvent) {
	defer s.body.Close()
	for {
		e := s.next()
		if e.id == "" {
			return list
		}
		list = append(list, e)
	}
}

func TestManySessionsAtOnce(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 16}, &fakeBackend{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			id, answer := faulty, "Yes"
			if i%2 == 0 {
				id, answer = healthy, "No"
			}
			path := l.open(detection(id))
			for n := range 5 {
				turn := get[Turn](l, "POST", path+"/act", fmt.Sprintf(`{"name": "exec_shell", "arguments": {"command": "%d-%d"}}`, i, n))
				if turn.Step != n+1 || !strings.Contains(turn.Observation, fmt.Sprintf("%d-%d", i, n)) {
					t.Errorf("session %d, step %d: %+v", i, n, turn)
				}
			}
			if o := get[Outcome](l, "POST", path+"/submit", fmt.Sprintf(`{"answer": %q}`, answer)); !o.Solved || o.Problem != id {
				t.Errorf("session %d: %+v", i, o)
			}
		})
	}
	wg.Wait()
	if list := get[[]Session](l, "GET", "/sessions", ""); len(list) != 16 {
		t.Errorf("%d sessions", len(list))
	}
}

func TestNoRoom(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 2}, &fakeBackend{})
	first := l.open(detection(faulty))
	env := "/envs/" + get[Env](l, "POST", "/envs", detection(faulty)).ID
	l.refused("POST", "/sessions", detection(faulty), 503, "there are 2 sessions and environments")
	l.refused("POST", "/envs", detection(faulty), 503, "there are 2")
	l.refused("POST", "/simulate", `{"problem_id": "`+faulty+`"}`, 503, "there are 2")
	get[Outcome](l, "POST", first+"/submit", `{"answer": "Yes"}`)
	l.opensSoon()
	if status, body := l.do("DELETE", env, ""); status != 204 {
		t.Errorf("%d %s", status, body)
	}
	l.opensSoon()
	l.refused("DELETE", env, "", 404, "no environment")
}

// opensSoon waits until there is room for a session.
func (l *lab) opensSoon() {
	l.t.Helper()
	for range 1000 {
		if status, _ := l.do("POST", "/sessions", detection(faulty)); status == 201 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	l.t.Error("there is still no room")
}

// A worker that dies takes its session with it, and nothing else.
func TestCrash(t *testing.T) {
	acting := make(chan struct{})
	hang := make(chan struct{})
	var once sync.Once
	l := newLab(t, Options{}, &fakeBackend{during: func(context.Context) {
		once.Do(func() {
			close(acting)
			<-hang
		})
	}})
	bad := l.open(detection(faulty))
	go func() {
		<-acting
		l.workers.list()[0].Kill()
		close(hang) // The fake can only end when its action does.
	}()
	l.refused("POST", bad+"/act", `{"name": "get_alerts"}`, 502, "the process of the environment has ended: signal: killed")
	if s := get[Session](l, "GET", bad, ""); s.State != Failed || !strings.Contains(s.Error, "killed") {
		t.Errorf("%+v", s)
	}
	l.refused("GET", bad+"/outcome", "", 502, "killed")
	l.refused("POST", bad+"/act", `{"name": "get_alerts"}`, 502, "killed")
	good := l.open(detection(faulty))
	if o := get[Outcome](l, "POST", good+"/submit", `{"answer": "Yes"}`); !o.Solved {
		t.Errorf("%+v", o)
	}
}

// A step is taken to its end though its caller has gone, and what came of it can be asked for.
func TestBrokenConnection(t *testing.T) {
	acting, goOn := make(chan struct{}), make(chan struct{})
	l := newLab(t, Options{}, &fakeBackend{during: func(context.Context) {
		acting <- struct{}{}
		<-goOn
	}})
	path := l.open(detection(faulty))
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", l.server.URL+path+"/act", strings.NewReader(`{"name": "get_alerts"}`))
	gone := make(chan error)
	go func() {
		res, err := l.server.Client().Do(req)
		if err == nil {
			res.Body.Close()
		}
		gone <- err
	}()
	<-acting
	cancel()
	if err := <-gone; err == nil {
		t.Error("the request was answered")
	}
	go func() { goOn <- struct{}{} }()
	if turn := get[Turn](l, "GET", path+"/observation", ""); turn.Step != 1 || turn.Action != "get_alerts" {
		t.Errorf("%+v", turn)
	}
}

func TestRefusals(t *testing.T) {
	l := newLab(t, Options{Check: func(_ context.Context, n NewSession) error {
		if n.Model == "asleep" {
			return fmt.Errorf("%w: connection refused", ErrModel)
		}
		if n.Model != "" {
			return fmt.Errorf("%s has no use for %s", n.Agent, n.Model)
		}
		return nil
	}}, &fakeBackend{})
	path := l.open(detection(faulty))
	for _, tt := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "/sessions", `{"problem": "nope"}`, 404, "There are: "},
		{"POST", "/sessions", `{"problem": "revoke_auth_mongodb-detection-2x"}`, 404, "Did you mean revoke_auth_mongodb-detection-2?"},
		{"POST", "/sessions", `{}`, 422, "which problem?"},
		{"POST", "/sessions", ``, 422, "which problem?"},
		{"POST", "/sessions", `{"problem": 3}`, 422, "cannot unmarshal number"},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "decoys": ["fault", "lure"]}`, 422, `decoys: there is no decoy "lure"; there are fault, telemetry, instruction`},
		{"POST", "/envs", `{"problem": "` + faulty + `", "decoys": ["faults"]}`, 422, `decoys: there is no decoy "faults"; did you mean "fault"?`},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "maxsteps": 3}`, 422, `did you mean "max_steps"?`},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "max_steps": -3}`, 422, "max_steps -3"},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "max_time": 1e300}`, 422, "max_time"},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "agent": "bob"}`, 404, "There are: runbook, oracle"},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "agent": "exec:sh"}`, 404, "There are: runbook, oracle"},
		{"POST", "/sessions", `{"problem": "/etc/mine.yaml"}`, 404, "There are: "},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "agent": "oracle", "name": "bob"}`, 422, "name"},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "model": "m"}`, 422, "for a named agent"},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "agent": "oracle", "model": "asleep"}`, 502, "connection refused"},
		{"POST", "/sessions", `[]`, 422, "cannot be read"},
		{"POST", "/sessions", `{} {}`, 422, "behind the object"},
		{"POST", "/sessions", strings.Repeat(" ", maxBody) + `{}`, 413, "longer than"},
		{"POST", path + "/act", `{"response": "` + strings.Repeat("x", maxBody) + `"}`, 413, "longer than"},
		{"POST", path + "/act", `{"response": "x", "name": "get_logs"}`, 422, "not both"},
		{"POST", path + "/act", `{"arguments": {}}`, 422, "no name"},
		{"POST", path + "/act", `{"respons": "x"}`, 422, `did you mean "response"?`},
		{"GET", "/sessions/x", ``, 404, `no session "x"`},
		{"POST", "/sessions/x/act", `{}`, 404, `no session "x"`},
		{"GET", "/nope", ``, 404, "GET /openapi.json"},
		{"PUT", "/sessions", ``, 405, "only GET, POST"},
		{"GET", "/sessions/x/act", ``, 405, "only POST"},
		{"GET", path + "/archive", ``, 404, "there is no"},
		{"POST", "/envs", `{}`, 422, "which problem?"},
		{"POST", "/envs", `{"problems": ["` + faulty + `", "x"]}`, 404, "There are: "},
		{"POST", "/envs", `{"problem": "` + faulty + `", "reward": {"sovled": 2}}`, 422, "unknown field"},
		{"POST", "/envs/x/reset", `{}`, 404, "no environment"},
		{"POST", "/envs/x/step", `{}`, 404, "no environment"},
		{"POST", "/simulate", `{"agent_name": "runbook"}`, 422, "which problem?"},
		{"POST", "/simulate", `{"problem_id": "nope"}`, 404, "There are: "},
		{"POST", "/simulate", `{"problem_id": "` + faulty + `", "agent_name": "gpt"}`, 404, "There are: runbook, oracle"},
		{"POST", "/simulate", `{"problem_id": "` + faulty + `", "repetition_penalty": -1}`, 422, "repetition_penalty"},
		{"POST", "/simulate", `{"problem_id": "` + faulty + `", "top_p": 7}`, 422, "top_p"},
		{"POST", "/simulate", `{"problem_id": "` + faulty + `", "agent_name": "oracle", "model": "m"}`, 422, "oracle has no use for m"},
		{"POST", "/sessions", `{"problem": "` + faulty + `", "temperature": 1}`, 422, "for a named agent"},
		{"POST", "/simulate", `{"problem_id": "` + faulty + `", "max_steps": 0}`, 422, "max_steps 0"},
		{"POST", "/simulate", `{`, 422, "cannot be read"},
	} {
		l.refused(tt.method, tt.path, tt.body, tt.status, tt.detail)
	}
}

func TestToken(t *testing.T) {
	l := newLab(t, Options{Token: "open sesame"}, &fakeBackend{})
	if h := get[Health](l, "GET", "/health", ""); h != (Health{"healthy", "AIOpsLab"}) {
		t.Errorf("%+v", h)
	}
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer open", "Basic open sesame", "open sesame"} {
		l.header.Set("Authorization", header)
		for _, path := range []string{"/problems", "/openapi.json", "/", "/nope"} {
			l.refused("GET", path, "", 401, "Authorization: Bearer")
		}
	}
	l.header.Set("Authorization", "bearer open sesame")
	path := l.open(detection(faulty)) // The worker knows nothing of the token.
	if o := get[Outcome](l, "POST", path+"/submit", `{"answer": "Yes"}`); !o.Solved {
		t.Errorf("%+v", o)
	}
}

// A page in a browser must not use the server, by its own name or by another that leads there.
func TestBrowsers(t *testing.T) {
	l := newLab(t, Options{Loopback: true}, &fakeBackend{})
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		l.header = http.Header{header[0]: {header[1]}}
		l.refused("POST", "/sessions", detection(faulty), 403, "another origin")
	}
	l.header = http.Header{}
	get[[]string](l, "GET", "/problems", "")
	for host, ok := range map[string]bool{
		"localhost:1818": true, "127.0.0.1": true, "[::1]:80": true, "LOCALHOST": true,
		"evil.example": false, "evil.example:1818": false, "127.0.0.1.evil.example": false, "": false, "10.0.0.1": false,
	} {
		if isLoopback(host) != ok {
			t.Errorf("%q counts as loopback: %v", host, !ok)
		}
	}
	req, _ := http.NewRequest("GET", l.server.URL+"/problems", nil)
	req.Host = "evil.example"
	res, err := l.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("a request for another host: %s", res.Status)
	}
}

func TestSimulate(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	f := get[session.File](l, "POST", "/simulate", `{"problem_id": "`+faulty+`", "agent_name": "oracle", "max_steps": null, "model": null}`)
	var roles []string
	for _, turn := range f.Trace {
		roles = append(roles, turn.Role)
	}
	if d := cmp.Diff([]string{"system", "user", "assistant"}, roles); d != "" {
		t.Error(d)
	}
	if !strings.HasPrefix(f.Trace[0].Content, "You are an expert.") || !strings.Contains(f.Trace[0].Content, "get_logs(") || f.Trace[1].Content != "Answer with a call." {
		t.Errorf("%+v", f.Trace)
	}
	if f.Agent != "oracle" || f.ProblemID != faulty || f.Results["success"] != true || f.SessionID == "" {
		t.Errorf("%+v", f)
	}
}

// AIOpsLab's own request is taken, and its agents' names stand for those that are like them.
func TestTheirSimulation(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	l.front.Agents = append(l.front.Agents, "shell", "react")
	for name, want := range map[string]string{"vllm": "shell", "gpt": "shell", "qwen": "shell", "deepseek": "shell", "generic": "shell", "openrouter": "shell", "react": "react"} {
		f := get[session.File](l, "POST", "/simulate", `{"problem_id": "`+faulty+`", "agent_name": "`+name+`", "max_steps": 10, "model": "Qwen/Qwen2.5-Coder-3B-Instruct",
			"repetition_penalty": 1.0, "temperature": 0.7, "top_p": 0.9, "max_tokens": 1024}`)
		if f.Agent != want || f.Results["success"] != true {
			t.Errorf("%s: %+v", name, f)
		}
	}
	l.refused("POST", "/simulate", `{"problem_id": "`+faulty+`", "agent_name": "Qwen/Qwen2.5-Coder-0.5B-Instruct"}`, 404, "There are: ")
}

func TestSimulationFails(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{class: session.Infra})
	l.refused("POST", "/simulate", `{"problem_id": "`+healthy+`"}`, 500, "Error during simulation: the environment failed: the machine is too busy")
}

// Who goes away from a simulation cancels it.
func TestSimulationLeft(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{gate: make(chan struct{})})
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", l.server.URL+"/simulate", strings.NewReader(`{"problem_id": "`+faulty+`"}`))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if res, err := l.server.Client().Do(req); err == nil {
			res.Body.Close()
		}
	}()
	for len(get[[]Session](l, "GET", "/sessions", "")) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-gone
	<-l.workers.list()[0].Done()
}

func TestLists(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	if ids := get[[]string](l, "GET", "/problems", ""); len(ids) < 100 {
		t.Errorf("%d problems", len(ids))
	}
	if d := cmp.Diff([]string{"runbook", "oracle"}, get[[]string](l, "GET", "/agents", "")); d != "" {
		t.Error(d)
	}
	_, page := l.do("GET", "/", "")
	if !strings.Contains(page, "<code>/sessions/{id}/act</code>") {
		t.Error(page)
	}
}

// Closing a front grades what runs, answers who waits, and leaves no worker.
func TestClose(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.open(detection(faulty))
	get[Env](l, "POST", "/envs", detection(faulty))
	get[Problem](l, "GET", path+"/problem", "")
	events := l.stream(path, "")
	l.front.Close(context.Background())
	for _, w := range l.workers.list() {
		select {
		case <-w.Done():
		default:
			t.Error("a worker is left")
		}
	}
	all := events.rest()
	if last := all[len(all)-1]; last.Kind != "verdict" || !bytes.Contains(last.Data, []byte("inconclusive")) {
		t.Errorf("%+v", last)
	}
	l.refused("POST", "/sessions", detection(faulty), 503, "ending")
}

// An incident's answers are handed in one after another: each but the last is answered with the next question, and
// with nothing about how it was.
func TestIncident(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.open(detection(strings.Replace(faulty, "detection", "incident", 1)))
	if p := get[Problem](l, "GET", path+"/problem", ""); p.Task != "incident" {
		t.Errorf("%+v", p)
	}
	status, body := l.do("POST", path+"/submit", `{"answer": "Yes"}`)
	if status != 202 || !strings.Contains(body, `"question":"localization"`) || strings.Contains(body, "class") {
		t.Errorf("%d: %s", status, body)
	}
	turn := get[Turn](l, "POST", path+"/act", `{"name": "submit", "arguments": {"answer": ["geo"]}}`)
	if turn.Question != "analysis" || turn.Submitted || turn.Over {
		t.Errorf("%+v", turn)
	}
	if again := get[Turn](l, "GET", path+"/observation", ""); again != turn {
		t.Errorf("%+v, then again %+v", turn, again)
	}
	if turn = get[Turn](l, "POST", path+"/act", `{"name": "get_alerts"}`); turn.Question != "" {
		t.Errorf("%+v", turn)
	}
	l.do("POST", path+"/submit", `{}`)
	if o := get[Outcome](l, "POST", path+"/submit", `{}`); o.Class != "agent" {
		t.Errorf("%+v", o)
	}
}
