package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// OpenEnv's reset, step and state over HTTP.
func TestOpenEnv(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	id := strings.TrimPrefix(l.env(`{"problem": "`+faulty+`", "max_steps": 7, "reward": {"step": -0.25}}`), "/envs/")
	path := "/openenv/" + id
	if d := cmp.Diff(OpenState{MaxSteps: 7, Done: true}, get[OpenState](l, "GET", path+"/state", "")); d != "" {
		t.Error(d)
	}
	l.refused("POST", path+"/step", `{"action": {"text": "x"}}`, 409, "reset")
	first := get[OpenResult](l, "POST", path+"/reset", `{"seed": 3, "episode_id": "mine"}`)
	if first.Reward != nil || first.Done || !strings.HasSuffix(first.Observation.Text, aci.NextAction) || first.Metadata["task"] != "detection" {
		t.Errorf("%+v", first)
	}
	look := get[OpenResult](l, "POST", path+"/step", `{"action": {"name": "get_alerts", "metadata": {}}, "timeout_s": 60, "request_id": "x"}`)
	if *look.Reward != -0.25 || look.Done || look.Metadata["action"] != "get_alerts" || look.Metadata["truncated"] != false {
		t.Errorf("%+v", look)
	}
	mine := "mine"
	if d := cmp.Diff(OpenState{&mine, 1, 7, false}, get[OpenState](l, "GET", path+"/state", "")); d != "" {
		t.Error(d)
	}
	last := get[OpenResult](l, "POST", path+"/step", `{"action": {"text": "submit(\"Yes\")"}}`)
	if *last.Reward != 0.75 || !last.Done || last.Metadata["terminated"] != true || last.Metadata["class"] != "solved" {
		t.Errorf("%+v", last)
	}
	if s := get[OpenState](l, "GET", path+"/state", ""); !s.Done || s.StepCount != 2 {
		t.Errorf("%+v", s)
	}
	again := get[OpenResult](l, "POST", path+"/reset", "")
	if s := get[OpenState](l, "GET", path+"/state", ""); s.Done || s.StepCount != 0 || *s.EpisodeID != again.Metadata["episode"] {
		t.Errorf("%+v", s)
	}
	for body, want := range map[string]string{
		`{}`: "a text, or a name", `{"action": {"text": "x", "name": "y"}}`: "not both", `{"action": "x"}`: "cannot be read",
		`{"action": {"txt": "x"}}`: `did you mean "text"?`, `{"action": {"text": "x"}, "timeout_s": 0}`: "timeout_s is 0",
	} {
		l.refused("POST", path+"/step", body, 422, want)
	}
	l.refused("POST", path+"/reset", `{"episode_id": "`+strings.Repeat("x", 256)+`"}`, 422, "longer than 255")
	l.refused("POST", path+"/reset", `{"problem": "x"}`, 404, "there is no problem")
	l.refused("POST", "/openenv/nobody/reset", "", 404, "no environment")
	l.refused("POST", "/openenv/nobody/step", `{"action": {"text": "x"}}`, 404, "no environment")
	l.refused("GET", "/openenv/nobody/state", "", 404, "no environment")
	l.refused("GET", "/openenv/nobody/ws", "", 404, "no environment")
	if s := get[OpenSchema](l, "GET", "/openenv/schema", ""); s.Action["properties"].(map[string]any)["text"] == nil || s.State["type"] != "object" {
		t.Errorf("%+v", s)
	}
}

// Who does not want to wait for a step is not kept, and the step is taken to its end.
func TestOpenEnvTimeout(t *testing.T) {
	goOn := make(chan struct{})
	l := newLab(t, Options{}, &fakeBackend{during: func(context.Context) { <-goOn }})
	path := "/openenv/" + strings.TrimPrefix(l.env(detection(faulty)), "/envs/")
	get[OpenResult](l, "POST", path+"/reset", "")
	l.refused("POST", path+"/step", `{"action": {"text": "x"}, "timeout_s": 0.001}`, 504, "timeout_s")
	close(goOn)
	if r := get[OpenResult](l, "POST", path+"/step", `{"action": {"text": "submit(\"Yes\")"}}`); r.Metadata["step"] != 2.0 {
		t.Errorf("%+v", r)
	}
}

// socket is a client of OpenEnv's.
type socket struct {
	t testing.TB
	*websocket.Conn
}

func (l *lab) dial(path string, header http.Header) (*websocket.Conn, *http.Response, error) {
	return websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(l.server.URL, "http")+path, header)
}

func (l *lab) socket(path string) *socket {
	l.t.Helper()
	conn, _, err := l.dial(path, l.header)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	return &socket{l.t, conn}
}

// say sends a message and returns the type and the data of the answer.
func (s *socket) say(message string) (string, map[string]any) {
	s.t.Helper()
	if err := s.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		s.t.Fatal(err)
	}
	var answer struct {
		Type string
		Data map[string]any
	}
	if err := s.ReadJSON(&answer); err != nil {
		s.t.Fatal(err)
	}
	return answer.Type, answer.Data
}

// fails sends a message that must be answered with a code.
func (s *socket) fails(message, code, text string) {
	s.t.Helper()
	if kind, data := s.say(message); kind != "error" || data["code"] != code || !strings.Contains(data["message"].(string), text) {
		s.t.Errorf("%s: %s %v, want %s with %q", message, kind, data, code, text)
	}
}

// A connection has an environment, which the first reset makes, and which ends with it.
func TestOpenEnvSocket(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 1}, &fakeBackend{})
	s := l.socket("/openenv/ws")
	if kind, data := s.say(`{"type": "state"}`); kind != "state" || data["episode_id"] != nil || data["done"] != true {
		t.Errorf("%s %v", kind, data)
	}
	s.fails(`{"type": "step", "data": {"text": "x"}}`, "SESSION_ERROR", "reset")
	s.fails(`{"type": "reset", "data": {"suite": "hotels"}}`, "VALIDATION_ERROR", "no suite")
	s.fails(`{"type": "reset", "data": {"suit": "hotel"}}`, "VALIDATION_ERROR", `did you mean "suite"?`)
	s.fails(`{"type": "reset", "data": {"n": 2, "problem": "`+faulty+`"}}`, "VALIDATION_ERROR", "one environment")
	s.fails(`{"type": "dance"}`, "UNKNOWN_TYPE", "dance")
	s.fails(`{"type": "reset", "more": 1}`, "VALIDATION_ERROR", "more")
	s.fails(`{`, "INVALID_JSON", "JSON")
	reset := `{"type": "reset", "data": {"problem": "` + faulty + `", "seed": 3, "episode_id": "mine", "reward": {"step": -0.25}}}`
	for range 2 { // The second is in the same environment.
		kind, data := s.say(reset)
		if kind != "observation" || data["reward"] != nil || data["done"] != false {
			t.Errorf("%s %v", kind, data)
		}
		if _, data := s.say(`{"type": "step", "data": {"name": "get_alerts"}}`); data["reward"] != -0.25 {
			t.Errorf("%v", data)
		}
		if _, data := s.say(`{"type": "state"}`); data["episode_id"] != "mine" || data["step_count"] != 1.0 || data["done"] != false {
			t.Errorf("%v", data)
		}
		if _, data := s.say(`{"type": "step", "data": {"text": "submit(\"Yes\")"}}`); data["reward"] != 0.75 || data["done"] != true {
			t.Errorf("%v", data)
		}
		s.fails(`{"type": "step", "data": {"text": "x"}}`, "SESSION_ERROR", "reset")
	}
	s.say(`{"type": "reset", "data": {"seed": 4}}`)
	if n := len(l.workers.list()); n != 1 {
		t.Errorf("%d workers", n)
	}
	// Only a problem is another: there is room for one environment, which goes on.
	s.say(`{"type": "reset", "data": {"problem": "` + healthy + `"}}`)
	if _, data := s.say(`{"type": "step", "data": {"text": "submit(\"No\")"}}`); data["metadata"].(map[string]any)["problem"] != healthy {
		t.Errorf("%v", data)
	}
	// With other settings it is another environment.
	if kind, data := s.say(`{"type": "reset", "data": {"suite": "hotel", "task": "detection", "max_steps": 2}}`); kind != "observation" {
		t.Errorf("%v", data)
	}
	if n := len(l.workers.list()); n != 2 {
		t.Errorf("%d workers", n)
	}
	if err := s.WriteMessage(websocket.TextMessage, []byte(`{"type": "close"}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("%v", err)
	}
	l.opensSoon()
}

// An environment that was made before can be used over a socket, and stays when that closes.
func TestOpenEnvGiven(t *testing.T) {
	l := newLab(t, Options{Token: "sesame"}, &fakeBackend{})
	l.header.Set("Authorization", "Bearer sesame")
	e := get[OpenedEnv](l, "POST", "/envs", detection(faulty))
	other := get[OpenedEnv](l, "POST", "/envs", detection(faulty))
	l.header = http.Header{"Authorization": {"Bearer " + e.Token}}
	s := l.socket("/openenv/" + e.ID + "/ws")
	if kind, _ := s.say(`{"type": "reset"}`); kind != "observation" {
		t.Error(kind)
	}
	s.fails(`{"type": "reset", "data": {"suite": "hotel"}}`, "VALIDATION_ERROR", "suite")
	if _, data := s.say(`{"type": "step", "data": {"text": "submit(\"Yes\")"}}`); data["reward"] != 1.0 {
		t.Errorf("%v", data)
	}
	s.Close()
	get[OpenState](l, "GET", "/openenv/"+e.ID+"/state", "")
	for path, want := range map[string]int{"/openenv/ws": 403, "/openenv/" + other.ID + "/ws": 404} {
		if _, res, err := l.dial(path, l.header); err == nil || res.StatusCode != want {
			t.Errorf("%s: %v %v, want %d", path, err, res, want)
		}
	}
}

// A token may be the password of the URL, which is all that OpenEnv's clients can show; pages cannot use that.
func TestOpenEnvPassword(t *testing.T) {
	l := newLab(t, Options{Token: "sesame", Loopback: true}, &fakeBackend{})
	basic := func(password, origin string) http.Header {
		r, _ := http.NewRequest("GET", "/", nil)
		r.SetBasicAuth("lab", password)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		return r.Header
	}
	for _, c := range []struct {
		path, password, origin string
		want                   int
	}{
		{"/openenv/health", "sesame", "", 200},
		{"/openenv/health", "x", "", 401},
		{"/openenv/health", "", "", 401},
		{"/openenv/health", "sesame", "http://evil.example", 401},
		{"/problems", "sesame", "", 401},
	} {
		l.header = basic(c.password, c.origin)
		if status, answer := l.do("GET", c.path, ""); status != c.want {
			t.Errorf("%+v: %d %s", c, status, answer)
		}
	}
	l.header = basic("sesame", "")
	l.socket("/openenv/ws").say(`{"type": "state"}`)
}

// A page of somebody else's does not get in, though a browser asks nobody before it opens a socket.
func TestOpenEnvOrigin(t *testing.T) {
	for origin, want := range map[string]map[bool]bool{ // by whether the server listens on a loopback address alone
		"":                                   {true: true, false: true},
		"http://localhost:3000":              {true: true, false: false},
		"http://evil.example":                {true: false, false: false},
		"http://localhost.evil.example":      {true: false, false: false},
		"null":                               {true: false, false: false},
		"http://127.0.0.1.evil.example:1818": {true: false, false: false},
	} {
		for loopback, in := range want {
			l := newLab(t, Options{Token: "sesame", Loopback: loopback}, &fakeBackend{})
			header := http.Header{"Authorization": {"Bearer sesame"}}
			if origin != "" {
				header.Set("Origin", origin)
			}
			conn, res, err := l.dial("/openenv/ws", header)
			if (err == nil) != in || !in && res.StatusCode != 403 {
				t.Errorf("%q, loopback %v: %v %+v", origin, loopback, err, res)
			}
			if err == nil {
				conn.Close()
			}
		}
	}
	l := newLab(t, Options{}, &fakeBackend{})
	l.refused("GET", "/openenv/ws", "", 400, "WebSocket")
}

// Who floods a connection, or says too much, loses it, and its environment is gone.
func TestOpenEnvFlood(t *testing.T) {
	goOn := make(chan struct{})
	l := newLab(t, Options{MaxSessions: 1}, &fakeBackend{during: func(context.Context) { <-goOn }})
	s := l.socket("/openenv/ws")
	s.say(`{"type": "reset", "data": {"problem": "` + faulty + `"}}`)
	for range maxWaiting + 2 { // One may be in work.
		if err := s.WriteMessage(websocket.TextMessage, []byte(`{"type": "step", "data": {"text": "x"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("%v", err)
	}
	close(goOn)
	l.opensSoon()
	long := l.socket("/openenv/ws")
	if err := long.WriteMessage(websocket.TextMessage, make([]byte, maxBody+1)); err == nil {
		if _, _, err := long.ReadMessage(); err == nil {
			t.Error("a message that is too long was answered")
		}
	}
}

// The server ends, though somebody is connected.
func TestOpenEnvEnd(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	s := l.socket("/openenv/ws")
	s.say(`{"type": "reset", "data": {"problem": "` + faulty + `"}}`)
	l.front.Close(t.Context())
	if _, _, err := s.ReadMessage(); err == nil {
		t.Error("it goes on")
	}
}

// FuzzOpenMessage says what nobody has thought of: it is answered.
func FuzzOpenMessage(f *testing.F) {
	for _, s := range []string{
		`{"type": "reset", "data": {"seed": 1, "episode_id": "x", "suite": "hotel"}}`, `{"type": "step", "data": {"text": "x"}}`,
		`{"type": "step", "data": {"name": "x", "arguments": {}}}`, `{"type": "state"}`, `{"type": "close"}`, `{"type": 3}`, `[]`, ``,
		`{"type": "reset", "data": null}`, `{"type": "reset", "data": {"reward": "shaped", "n": 0}}`,
	} {
		f.Add(s)
	}
	front := NewFront(Options{Library: problemtest.Library(f), NoEnvs: "not here"})
	f.Fuzz(func(t *testing.T, message string) {
		for _, own := range []bool{true, false} {
			d := &dialogue{front: front, who: &caller{}, own: own, id: map[bool]string{false: "nobody"}[own]}
			answer, last := d.answer(t.Context(), []byte(message))
			b, err := json.Marshal(answer)
			if err != nil || !last && answer.Type != "error" && answer.Type != "state" {
				t.Errorf("%s: %s, %v", message, b, err)
			}
		}
	})
}
