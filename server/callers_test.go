package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// with is the lab for a caller who shows a token.
func (l *lab) with(token string) *lab {
	other := *l
	other.header = http.Header{}
	if token != "" {
		other.header.Set("Authorization", "Bearer "+token)
	}
	return &other
}

// The token of a session reaches this session and nothing else.
func TestSessionToken(t *testing.T) {
	operator := newLab(t, Options{Token: "open sesame"}, &fakeBackend{}).with("open sesame")
	mine := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
	other := get[OpenedSession](operator, "POST", "/sessions", detection(healthy))
	env := get[OpenedEnv](operator, "POST", "/envs", detection(faulty))
	if mine.Token == "" || mine.Token == other.Token || len(mine.Token) < 20 {
		t.Fatalf("tokens %q and %q", mine.Token, other.Token)
	}
	agent := operator.with(mine.Token)
	path, theirs := "/sessions/"+mine.ID, "/sessions/"+other.ID
	get[Problem](agent, "GET", path+"/problem", "")
	if turn := get[Turn](agent, "POST", path+"/act", `{"name": "get_logs", "arguments": {"namespace": "a", "service": "b"}}`); turn.Step != 1 {
		t.Errorf("%+v", turn)
	}
	get[[]Action](agent, "GET", "/actions/detection", "")
	for _, part := range []string{"", "/problem", "/observation", "/outcome", "/events", "/record"} {
		agent.refused("GET", theirs+part, "", 404, "there is no session")
	}
	for _, part := range []string{"/act", "/submit", "/give-up"} {
		agent.refused("POST", theirs+part, `{}`, 404, "there is no session")
	}
	// Nobody learns from the answer whether there is such a session.
	_, a := agent.do("GET", theirs, "")
	_, b := agent.do("GET", "/sessions/nope", "")
	if strings.ReplaceAll(a, other.ID, "nope") != b {
		t.Errorf("%s and %s tell apart what there is", a, b)
	}
	for _, tt := range [][2]string{
		{"GET", "/sessions"},
		{"POST", "/sessions"},
		{"POST", "/simulate"},
		{"GET", "/envs"},
		{"POST", "/envs"},
		{"GET", "/problems"},
		{"GET", "/agents"},
		{"DELETE", theirs},
		{"DELETE", path}, // Else who loses could make the run not count.
	} {
		agent.refused(tt[0], tt[1], `{"problem": "`+faulty+`"}`, 403, "needs the server's token")
	}
	agent.refused("POST", "/envs/"+env.ID+"/reset", `{}`, 404, "no environment")
	agent.refused("POST", "/envs/"+env.ID+"/step", `{}`, 404, "no environment")
	agent.refused("DELETE", "/envs/"+env.ID, ``, 404, "no environment")
	// The same the other way round.
	trainer := operator.with(env.Token)
	trainer.refused("GET", path, "", 404, "there is no session")
	get[First](trainer, "POST", "/envs/"+env.ID+"/reset", `{}`)
	if status, _ := trainer.do("DELETE", "/envs/"+env.ID, ""); status != 204 {
		t.Errorf("its own environment cannot be ended: %d", status)
	}
	trainer.refused("POST", "/envs/"+env.ID+"/reset", `{}`, 401, "token")
	// The token is told once.
	for _, path := range []string{"/sessions", path, "/envs"} {
		if _, answer := operator.do("GET", path, ""); strings.Contains(answer, mine.Token) || strings.Contains(answer, "token") {
			t.Errorf("%s tells of tokens: %s", path, answer)
		}
	}
	if o := get[Outcome](agent, "POST", path+"/submit", `{"answer": "Yes"}`); !o.Solved {
		t.Errorf("%+v", o)
	}
}

// Without a token of the server, one that is shown is still good for its session alone, and a wrong one
// for nothing.
func TestTokenWithoutServerToken(t *testing.T) {
	l := newLab(t, Options{Loopback: true}, &fakeBackend{})
	mine := get[OpenedSession](l, "POST", "/sessions", detection(faulty))
	other := get[OpenedSession](l, "POST", "/sessions", detection(faulty))
	l.with(mine.Token).refused("GET", "/sessions/"+other.ID, "", 404, "there is no session")
	l.with(mine.Token).refused("GET", "/sessions", "", 403, "server's token")
	l.with("wrong").refused("GET", "/sessions", "", 401, "token")
	if list := get[[]Session](l, "GET", "/sessions", ""); len(list) != 2 {
		t.Errorf("%+v", list)
	}
}

// Ids are names, not paths.
func TestPathTricks(t *testing.T) {
	operator := newLab(t, Options{Token: "open sesame"}, &fakeBackend{}).with("open sesame")
	mine := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
	other := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
	agent := operator.with(mine.Token)
	client := *agent.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, id := range []string{
		"../sessions/" + other.ID, "%2e%2e/sessions/" + other.ID, mine.ID + "/../" + other.ID, mine.ID + "%2f..%2f" + other.ID, "./" + other.ID,
		other.ID + "%00", "%2f" + other.ID, "..%5c" + other.ID, strings.ToUpper(other.ID) + "?id=" + mine.ID, strings.Repeat("../", 20) + "etc/passwd",
		mine.ID + ";" + other.ID, "archive/../" + other.ID,
	} {
		for _, part := range []string{"", "/problem", "/events", "/record", "/archive"} {
			req, err := http.NewRequest("GET", agent.server.URL+"/sessions/"+id+part, nil)
			if err != nil {
				continue // It cannot even be sent.
			}
			req.Header = agent.header.Clone()
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode < 300 || strings.Contains(string(body), "root:") {
				t.Errorf("%s%s: %d %s", id, part, res.StatusCode, body)
			}
		}
	}
}

// The token of a session is good for a few requests at a time.
func TestFloodByOneToken(t *testing.T) {
	acting, hang := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l := newLab(t, Options{Token: "x"}, &fakeBackend{during: func(ctx context.Context) {
		once.Do(func() { close(acting) })
		select {
		case <-hang:
		case <-ctx.Done():
		}
	}})
	operator := l.with("x")
	mine := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
	agent := operator.with(mine.Token)
	var wg sync.WaitGroup
	for range maxInFlight {
		wg.Go(func() { agent.do("POST", "/sessions/"+mine.ID+"/act", `{"name": "get_alerts"}`) })
	}
	<-acting
	caller := l.front.tokens.find(mine.Token)
	for len(caller.slots) < maxInFlight {
		time.Sleep(time.Millisecond)
	}
	agent.refused("GET", "/sessions/"+mine.ID, "", 429, "requests with this token")
	if s := get[Session](operator, "GET", "/sessions/"+mine.ID, ""); s.State != AgentTurn {
		t.Errorf("%+v", s)
	}
	close(hang)
	wg.Wait()
	get[Session](agent, "GET", "/sessions/"+mine.ID, "")
}

// A body that comes by drops is cut, whoever sends it and wherever it goes.
func TestSlowBodies(t *testing.T) {
	l := newLab(t, Options{Token: "open sesame"}, &fakeBackend{})
	path := l.with("open sesame").open(detection(faulty))
	l.front.bodyTimeout = 50 * time.Millisecond
	for _, tt := range []struct {
		path, token, want string
	}{
		{"/sessions", "open sesame", "408"},
		{path + "/act", "open sesame", "408"},
		{path + "/submit", "open sesame", "408"},
		{path + "/outcome", "open sesame", "408"},
		{path + "/act", "wrong", "401"},
		{"/health", "", "405"},
	} {
		conn, err := net.Dial("tcp", l.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{", tt.path, tt.token)
		answer, err := io.ReadAll(conn) // It ends because the server ends it.
		conn.Close()
		if status := strings.Fields(string(answer)); err != nil || len(status) < 2 || status[1] != tt.want {
			t.Errorf("%+v: %v %s", tt, err, answer)
		}
	}
	l.front.bodyTimeout = bodyTimeout
	if s := get[Session](l.with("open sesame"), "GET", path, ""); s.Steps != 0 {
		t.Errorf("a step was taken: %+v", s)
	}
}

// What is nested deep is an error, and no more.
func TestDeepJSON(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	path := l.open(detection(faulty))
	deep := strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000)
	l.refused("POST", path+"/act", `{"name": "get_logs", "arguments": {"namespace": `+deep+`}}`, 422, "cannot be read")
	l.refused("POST", path+"/submit", `{"answer": `+deep+`}`, 422, "cannot be read")
	deep = strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if turn := get[Turn](l, "POST", path+"/act", `{"name": "get_logs", "arguments": {"namespace": `+deep+`}}`); !strings.Contains(turn.Observation, "nested too deep") {
		t.Errorf("%+v", turn)
	}
	l.refused("POST", "/sessions", `{"document": "`+strings.Repeat("[", 100_000)+`"}`, 422, "document")
	l.refused("POST", "/sessions", `{"document": "`+strings.Repeat("- ", 100_000)+`"}`, 422, "document")
	l.refused("POST", "/sessions", `{"document": "`+strings.Repeat("x", maxDocument+1)+`"}`, 422, "longer than")
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// opensSoonAs waits until a caller finds room for a session.
func (l *lab) opensSoonAs(who *lab) {
	l.t.Helper()
	who.opensSoon()
}

// Pages of this machine may use a server on it, others only with its token, and none if it is elsewhere.
func TestCORS(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		origin  string
		welcome bool
	}{
		{"local page", Options{Loopback: true}, "http://localhost:3000", true},
		{"local page by address", Options{Loopback: true}, "http://127.0.0.1:3000", true},
		{"foreign page", Options{Loopback: true}, "https://evil.example", false},
		{"foreign page with a local name", Options{Loopback: true}, "http://localhost.evil.example", false},
		{"file", Options{Loopback: true}, "null", false},
		{"extension", Options{Loopback: true}, "chrome-extension://localhost", false},
		{"foreign page with a token", Options{Loopback: true, Token: "t"}, "https://dashboard.example", true},
		{"server elsewhere", Options{Token: "t"}, "http://localhost:3000", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, tt.options, &fakeBackend{})
			send := func(method, path, body string, header ...string) *http.Response {
				t.Helper()
				req, _ := http.NewRequest(method, l.server.URL+path, strings.NewReader(body))
				req.Header.Set("Origin", tt.origin)
				req.Header.Set("Sec-Fetch-Site", "cross-site")
				for i := 0; i < len(header); i += 2 {
					req.Header.Set(header[i], header[i+1])
				}
				res, err := l.server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				return res
			}
			pre := send("OPTIONS", "/sessions", "", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
			if ok := pre.StatusCode == 204 && pre.Header.Get("Access-Control-Allow-Origin") == tt.origin; ok != tt.welcome {
				t.Errorf("the preflight is answered with %s %v", pre.Status, pre.Header)
			}
			auth := []string{}
			if tt.options.Token != "" {
				auth = []string{"Authorization", "Bearer t"}
				if res := send("POST", "/sessions", detection(faulty)); res.StatusCode < 400 {
					t.Errorf("without the token: %s", res.Status)
				}
			}
			res := send("POST", "/sessions", detection(faulty), auth...)
			if ok := res.StatusCode == 201 && res.Header.Get("Access-Control-Allow-Origin") == tt.origin; ok != tt.welcome {
				t.Errorf("a session: %s %v", res.Status, res.Header)
			}
			if res.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials are allowed")
			}
			if res := send("GET", "/problems", "", auth...); (res.Header.Get("Access-Control-Allow-Origin") != "") != tt.welcome {
				t.Errorf("reading: %v", res.Header)
			}
		})
	}
	// By a name that leads here, a page gets nowhere: not even a preflight is answered.
	l := newLab(t, Options{Loopback: true}, &fakeBackend{})
	req, _ := http.NewRequest("OPTIONS", l.server.URL+"/sessions", nil)
	req.Host = "evil.example"
	req.Header.Set("Origin", "http://localhost:3000")
	req.Header.Set("Access-Control-Request-Method", "POST")
	res, err := l.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("a preflight for another host: %s", res.Status)
	}
}

// Ten thousand sessions are as many as there may be, and as many refusals.
func TestManySessionsAsked(t *testing.T) {
	l := newLab(t, Options{MaxSessions: 2}, &fakeBackend{})
	made := 0
	for range 10_000 {
		rec := httptest.NewRecorder()
		l.front.ServeHTTP(rec, httptest.NewRequest("POST", "/sessions", strings.NewReader(detection(faulty))))
		switch rec.Code {
		case 201:
			made++
		case 503:
		default:
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
	if made != 2 || len(l.workers.list()) != 2 {
		t.Errorf("%d sessions, %d workers", made, len(l.workers.list()))
	}
}

func TestLanguage(t *testing.T) {
	l := newLab(t, Options{}, &fakeBackend{})
	p := get[Parsed](l, "POST", "/parse", `{"response": "Look.\n`+"```\\nget_logs(\\\"ns\\\", service='geo')\\n```"+`\nThen more."}`)
	if p.Name != "get_logs" || fmt.Sprint(p.Args, p.Kwargs, p.Context) != "[ns] map[service:geo] [Look. Then more.]" {
		t.Errorf("%+v", p)
	}
	if _, answer := l.do("POST", "/parse", `{"response": "submit()"}`); !strings.Contains(answer, `"args":[],"kwargs":{},"context":[]`) {
		t.Error(answer)
	}
	l.refused("POST", "/parse", `{"response": "hm"}`, 422, "Error parsing response: No API call found!")
	for _, a := range get[[]Action](l, "GET", "/actions/mitigation", "") {
		if a.Name == "" || a.Kind == "" || !strings.Contains(a.Doc, a.Name+"(") || !json.Valid(a.Schema) {
			t.Errorf("%+v", a)
		}
	}
	l.refused("GET", "/actions/cooking", "", 404, "There are: detection")
}
