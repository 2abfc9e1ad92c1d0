package hierarchy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/hierarchy/a2a"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
)

// elsewhere is an agent of somebody else: what it answers to what it is told. "" is no answer at all.
func elsewhere(t *testing.T, answer func(said string) string) string {
	t.Helper()
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == a2a.CardPath {
			_, _ = io.WriteString(w, `{"name": "guest", "url": "/rpc"}`)
			return
		}
		var q struct {
			ID     string
			Params struct {
				Message struct{ Parts []struct{ Text string } }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		text := answer(q.Params.Message.Parts[0].Text)
		if text == "" {
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": q.ID, "result": map[string]any{
			"kind": "message", "parts": []any{map[string]any{"kind": "text", "text": text}},
		}})
	}))
	t.Cleanup(func() {
		close(over)
		s.Close()
	})
	return s.URL
}

// An agent of somebody else has its service's calls, is told what came of them, and what it reports is heard.
func TestGuest(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	url := elsewhere(t, func(said string) string {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, said)
		if strings.Contains(said, "(no output)") {
			return "```\nreport_result(\"My disk is full.\", \"ISSUE\")\n```"
		}
		return "I look.\n```\nexec_shell(\"df\")\n```"
	})
	r := play(t, options{mode: manager, guests: map[string]string{"db": url}},
		agent.Briefing{Task: problem.Localization, Steps: 40}, shop)
	if r.err != nil || len(r.answers) != 1 || r.answers[0] != `submit(["db"])` {
		t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
	}
	if len(heard) < 2 || !strings.Contains(heard[0], "after that one alone: db") || !strings.Contains(heard[0], "exec_shell(") ||
		strings.Contains(heard[1], "after that one alone") {
		t.Errorf("it heard %q", heard)
	}
	if !strings.Contains(r.talk(), "db -> manager (response): My disk is full.") {
		t.Error(r.talk())
	}
	for _, m := range r.group.Members {
		if (m.At == url) != (m.Name == "db") {
			t.Errorf("the record has %+v", m)
		}
	}
}

// Guests in an operation: the manager goes by what they say, as they give no numbers.
func TestGuestInOperation(t *testing.T) {
	for kind, want := range map[string]string{"ISSUE": `submit({"slo":"broken"})`, "RESPONSE": `submit({"slo":"met"})`} {
		url := elsewhere(t, func(string) string { return "```\nreport_result(\"So it is.\", \"" + kind + "\")\n```" })
		ask, report := asked("L3", "back and front")
		g := &problem.Goal{Ask: ask, Report: report}
		r := play(t, options{mode: manager, guests: map[string]string{"back": url}}, agent.Briefing{
			Task: problem.Operation, Description: aci.Description(string(problem.Operation), &app.App{}, g.Told()),
		}, newMarket(func(_, _ *stall) {}).answer)
		if r.err != nil || len(r.answers) != 1 || r.answers[0] != want {
			t.Errorf("%s: %v: %v\n%s", kind, r.err, r.answers, r.talk())
		}
	}
}

// A guest that is away for a moment, in the middle of its work, is asked again and goes on.
func TestGuestComesBack(t *testing.T) {
	var mu sync.Mutex
	asked, away := map[string]int{}, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == a2a.CardPath {
			_, _ = io.WriteString(w, `{"name": "guest", "url": "/rpc"}`)
			return
		}
		var q struct {
			ID     string
			Params struct {
				Message struct {
					MessageID string
					Parts     []struct{ Text string }
				}
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&q) // The group sends what can be read.
		mu.Lock()
		asked[q.Params.Message.MessageID]++
		again := asked[q.Params.Message.MessageID] > 1
		mu.Unlock()
		text := "```\nexec_shell(\"kubectl get pods\")\n```"
		if strings.Contains(q.Params.Message.Parts[0].Text, "(no output)") {
			if text = "```\nreport_result(\"I was away, and all is well.\")\n```"; !again {
				mu.Lock()
				away++
				mu.Unlock()
				http.Error(w, "starting", http.StatusServiceUnavailable)
				return
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": q.ID, "result": map[string]any{
			"kind": "message", "parts": []any{map[string]any{"kind": "text", "text": text}},
		}})
	}))
	defer s.Close()
	r := play(t, options{mode: manager, guests: map[string]string{"db": s.URL}},
		agent.Briefing{Task: problem.Detection, Steps: 40}, shop)
	if r.err != nil || away == 0 || !strings.Contains(r.talk(), "I was away, and all is well.") ||
		strings.Contains(r.talk(), "does not do its part") {
		t.Errorf("away %d times: %v\n%s", away, r.err, r.talk())
	}
}

// A guest that does not do its part is lost, and the others go on.
func TestBadGuests(t *testing.T) {
	for name, answer := range map[string]func(string) string{
		"says nothing": func(string) string { return "" },
		"goes on and on": func(string) string {
			return "```\nhack()\n```"
		},
		"floods": func(string) string { return strings.Repeat("x", 100<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			o := options{mode: manager, patience: 2 * time.Second, guests: map[string]string{"db": elsewhere(t, answer)}}
			r := play(t, o, agent.Briefing{Task: problem.Detection, Steps: 40}, shop)
			if r.err != nil || len(r.answers) != 1 {
				t.Errorf("%v: %v\n%s", r.err, r.answers, r.talk())
			}
			if !strings.Contains(r.talk(), "db -> manager (issue): the maintainer does not work any more: it does not do its part") {
				t.Error(r.talk())
			}
		})
	}
}

// A member is shown the token of its service and no other, and neither the options nor the record have it.
func TestGuestToken(t *testing.T) {
	const token = "s3cret-of-the-db"
	variables := map[string]string{"AIOPSLAB_MEMBER_TOKEN_DB": token, "AIOPSLAB_MEMBER_TOKEN_BACK_END": "another-token"}
	o := options{mode: manager, patience: DefaultPatience, env: func(name string) string { return variables[name] }}
	var mu sync.Mutex
	shown := map[string]bool{}
	over := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		shown[r.Header.Get("Authorization")] = true
		mu.Unlock()
		if r.URL.Path == a2a.CardPath {
			_, _ = io.WriteString(w, `{"name": "guest", "url": "/rpc"}`)
			return
		}
		var q struct{ ID string }
		_ = json.NewDecoder(r.Body).Decode(&q) // The group sends what can be read.
		_ = json.NewEncoder(w).Encode(map[string]any{"id": q.ID, "result": map[string]any{
			"kind": "message", "parts": []any{map[string]any{"kind": "text", "text": "All is well. My token is " + token}},
		}})
	}))
	defer over.Close()
	with, err := o.read("member=db@"+over.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := play(t, with, agent.Briefing{Task: problem.Detection, Steps: 40}, shop)
	if r.err != nil || len(shown) != 1 || !shown["Bearer "+token] {
		t.Errorf("%v: it was shown %v", r.err, shown)
	}
	if !strings.Contains(r.talk(), "My token is [hidden]") || strings.Contains(r.talk(), token) {
		t.Error(r.talk())
	}
	text, err := json.Marshal(r.group)
	if err != nil || strings.Contains(string(text), token) {
		t.Errorf("%v: the record has %s", err, text)
	}
	for _, at := range []string{"back-end@http://elsewhere/a", "db@http://elsewhere/a"} {
		_, err := o.read("member="+at, nil)
		if err == nil || !strings.Contains(err.Error(), "unencrypted") || strings.Contains(err.Error(), "another") ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if _, err := o.read("member=cache@http://elsewhere/a", nil); err != nil {
		t.Errorf("without a token: %v", err)
	}
}
