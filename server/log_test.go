package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/internal/logs"
)

// The log has a line for every session and every refusal, and no secret.
func TestLog(t *testing.T) {
	var b syncBuffer
	l := newLab(t, Options{Token: "open sesame", MaxSessions: 1, Log: slog.New(slog.NewTextHandler(&b, nil))}, &fakeBackend{})
	operator := l.with("open sesame")
	operator.header.Set(requestID, "build-42")
	s := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
	operator.header.Del(requestID)
	l.with("guessed-token").refused("GET", "/sessions", "", 401, "token")
	l.with(s.Token).refused("GET", "/sessions", "", 403, "token")
	operator.refused("POST", "/sessions", detection(faulty), 503, "as many as there may be")
	operator.refused("POST", "/sessions", `{"problem": "nope\nlevel=INFO msg=\"session ended\""}`, 404, "no problem")
	operator.refused("POST", "/sessions/"+s.ID+"/submit", `{}`, 422, "needs has_anomaly") // By the worker.
	if strings.Contains(b.String(), faulty) {
		t.Errorf("the problem is told while its agent works:\n%s", b.String())
	}
	get[Outcome](operator, "POST", "/sessions/"+s.ID+"/submit", `{"answer": "Yes"}`)
	l.opensSoonAs(operator)
	text := b.String()
	for _, want := range []string{
		`session begun" run=` + s.ID + " request=build-42 agent=", `session ended" run=` + s.ID + " state=done steps=2 class=solved problem=" + faulty,
		"status=401 method=GET path=/sessions", "status=403 method=GET path=/sessions", "token_of=" + s.ID,
		"status=503", "status=404", "status=422 method=POST path=/sessions/" + s.ID + "/submit",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	for _, secret := range []string{"open sesame", s.Token, "guessed-token"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in\n%s", secret, text)
		}
	}
	if strings.Count(text, "\nlevel=INFO") > 0 {
		t.Errorf("a caller wrote a line of its own:\n%s", text)
	}
	if strings.Contains(text, "msg=answered") {
		t.Errorf("every request is told of:\n%s", text)
	}
}

// At level debug there is a line for every request, with its id, and still no secret: wherever a caller
// puts a token, whatever an agent says.
func TestLogEverything(t *testing.T) {
	const token, key, answer = "server-token-0123456789", "sk-key-of-a-model", "I think that the KEYWORD is it"
	for _, format := range logs.Formats {
		var b syncBuffer
		log := logs.Settings{Level: "debug", Format: format}.New(&b)
		l := newLab(t, Options{Token: token, Log: log}, &fakeBackend{})
		operator := l.with(token)
		s := get[OpenedSession](operator, "POST", "/sessions", detection(faulty))
		agent := l.with(s.Token)
		path := "/sessions/" + s.ID
		get[Problem](agent, "GET", path+"/problem", "")
		act, _ := json.Marshal(Act{Response: answer + "\n\x1b[2Jtime=now msg=forged\n" + s.Token})
		get[Turn](agent, "POST", path+"/act", string(act))
		env := get[OpenedEnv](operator, "POST", "/envs", fmt.Sprintf(`{"problems": [%q]}`, healthy))
		for _, secret := range []string{token, s.Token, env.Token} {
			operator.do("GET", "/sessions/"+secret, "")
			operator.do("GET", "/"+strings.Repeat("x", maxDetail-20)+"/"+secret, "") // Where it is cut.
			operator.do("POST", "/sessions", fmt.Sprintf(`{"problem": %q}`, secret))
			operator.do("GET", "/health?key="+key+"&token="+secret, "")
			operator.header.Set(requestID, secret)
			operator.do("GET", "/health", "")
			operator.header.Set(requestID, "x"+secret[:8]+"\tmsg=forged")
			operator.do("GET", "/health", "")
			operator.header.Del(requestID)
		}
		operator.do("GET", "/sessions/%0amsg=forged%1b%5b2J", "")
		operator.do("PROPFIND", "/%0Dlevel=ERROR", "")
		get[Outcome](agent, "POST", path+"/submit", `{"answer": "Yes"}`)
		operator.do("DELETE", "/envs/"+env.ID, "")
		text := b.String()
		for _, secret := range []string{token, s.Token, env.Token, s.Token[:20], key, "KEYWORD", "Bearer", "apiVersion", "\x1b", "\r", "the secret"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q is in\n%s", format, secret, text)
			}
		}
		for line := range strings.Lines(text) {
			forged := strings.HasPrefix(line, "msg=") || strings.HasPrefix(line, "level=") || strings.Contains(line, " msg=forged")
			if format == "json" {
				var fields map[string]any
				forged = json.Unmarshal([]byte(line), &fields) != nil || fields["msg"] == "forged"
				if m := fields["msg"]; (m == "answered" || m == "refused") && !saneID.MatchString(fmt.Sprint(fields["request"])) {
					t.Errorf("a request without an id: %s", line)
				}
			}
			if forged {
				t.Errorf("%s: a caller wrote %s", format, line)
			}
		}
		if n := strings.Count(text, "answered"); n < 12 {
			t.Errorf("%s: %d requests were told of:\n%s", format, n, text)
		}
	}
}

// A caller's id is taken if it can be one, and told in any case.
func TestRequestID(t *testing.T) {
	j := newJournal(nil, func(word string) bool { return word == "server-token" })
	for given, taken := range map[string]bool{
		"build-42": true, "3f2a.b_c": true, "": false, "a b": false, "a\nb": false, "-x": false, strings.Repeat("x", 65): false, "é": false,
		"server-token": false,
	} {
		w := httptest.NewRecorder()
		r := &http.Request{Header: http.Header{requestID: {given}}}
		id := idOf(j.named(w, r).Context())
		if (id == given) != taken || !saneID.MatchString(id) || w.Header().Get(requestID) != id {
			t.Errorf("%q: %q, answered with %q", given, id, w.Header().Get(requestID))
		}
	}
}

// A flood of refusals does not fill a disk.
func TestLogFlood(t *testing.T) {
	var b bytes.Buffer
	j := newJournal(slog.New(slog.NewTextHandler(&b, nil)), func(string) bool { return false })
	r := httptest.NewRequest("GET", "/"+strings.Repeat("x", 5000), nil)
	for range 10_000 {
		j.answered(r, &caller{}, &observed{status: 401, detail: strings.Repeat("y", 5000)})
	}
	if b.Len() > 1<<20 || b.Len() == 0 {
		t.Errorf("%d bytes", b.Len())
	}
}
