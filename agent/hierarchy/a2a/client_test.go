package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve is an agent with a card, which answers methods. %s in the card is its address.
func serve(t *testing.T, cardText string, answer func(method string, params map[string]any) string) string {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == CardPath {
			fmt.Fprint(w, strings.ReplaceAll(cardText, "%s", s.URL))
			return
		}
		var q struct {
			ID     string
			Method string
			Params map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(answer(q.Method, q.Params), "ID", q.ID))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const (
	oldCard = `{"name": "old", "url": "%s/rpc", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}`
	newCard = `{"name": "new", "supportedInterfaces": [{"url": "%s/g", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
		{"url": "%s/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}`
)

func TestSay(t *testing.T) {
	polls := 0
	for _, tt := range []struct {
		name, card string
		answer     func(method string, params map[string]any) string
		want       []string
	}{
		{"a message", oldCard, func(method string, params map[string]any) string {
			m := params["message"].(map[string]any)
			if method != "message/send" || m["role"] != "user" || m["kind"] != "message" {
				return fmt.Sprintf(`{"id": "ID", "error": {"code": 1, "message": %q}}`, method)
			}
			if m["contextId"] == "c1" {
				return `{"id": "ID", "result": {"kind": "message", "contextId": "c1", "parts": [{"kind": "text", "text": "again"}]}}`
			}
			return `{"id": "ID", "result": {"kind": "message", "contextId": "c1", "parts": [{"kind": "text", "text": "well"},
				{"kind": "data", "data": {}}, {"kind": "text", "text": "and fine"}]}}`
		}, []string{"well\n\nand fine", "again"}},
		{"a task", newCard, func(method string, params map[string]any) string {
			if method == "SendMessage" {
				m := params["message"].(map[string]any)
				if m["taskId"] == "t1" {
					return `{"id": "ID", "result": {"task": {"id": "t1", "status": {"state": "TASK_STATE_COMPLETED"},
						"artifacts": [{"parts": [{"text": "all done"}]}]}}}`
				}
				return `{"id": "ID", "result": {"task": {"id": "t1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}}`
			}
			if polls++; method == "GetTask" && params["id"] == "t1" && polls == 2 {
				return `{"id": "ID", "result": {"id": "t1", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED",
					"message": {"parts": [{"text": "which one?"}]}}}}`
			}
			return `{"id": "ID", "result": {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}`
		}, []string{"which one?", "all done"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Open(t.Context(), serve(t, tt.card, tt.answer)+"/some/agent", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if got, err := c.Say(t.Context(), "how are you?"); err != nil || got != want {
					t.Errorf("said %q, %v, want %q", got, err, want)
				}
			}
		})
	}
}

func TestHostile(t *testing.T) {
	say := func(text string) func(string, map[string]any) string {
		return func(string, map[string]any) string { return text }
	}
	for _, tt := range []struct{ name, card, answer, want string }{
		{"no card", "<html>", "", "no JSON"},
		{"a card of nothing", "{}", "", "names no interface"},
		{"another host", `{"url": "http://169.254.169.254/latest"}`, "", "which is not on"},
		{"a huge card", strings.Repeat(" ", maxBody+1), "", "longer than"},
		{"no JSON", oldCard, "hello", "no JSON"},
		{"a huge answer", oldCard, `{"result": "` + strings.Repeat("x", 100*maxBody) + `"}`, "longer than"},
		{"deep", oldCard, strings.Repeat("[", 500_000), "no JSON"},
		{"an error", oldCard, `{"id": "ID", "error": {"code": -32603, "message": "no"}}`, "error -32603: no"},
		{"another id", oldCard, `{"id": "7", "result": {}}`, "another question"},
		{"no result", oldCard, `{"id": "ID", "result": {}}`, "neither a message nor a task"},
		{"a list", oldCard, `{"id": "ID", "result": []}`, "another form"},
		{"no words", oldCard, `{"id": "ID", "result": {"kind": "message"}}`, "nothing in words"},
		{"failed", newCard, `{"id": "ID", "result": {"task": {"status": {"state": "TASK_STATE_FAILED"}}}}`, "task is failed"},
		{"odd", newCard, `{"id": "ID", "result": {"task": {"status": {"state": "x"}}}}`, "task is x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Open(t.Context(), serve(t, tt.card, say(tt.answer)), "")
			if err == nil {
				_, err = c.Say(t.Context(), "how are you?")
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// Whoever never comes to an end is waited for until the context ends.
func TestNeverDone(t *testing.T) {
	c, err := Open(t.Context(), serve(t, newCard, func(method string, _ map[string]any) string {
		if method == "SendMessage" {
			return `{"id": "ID", "result": {"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}}`
		}
		return `{"id": "ID", "result": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}`
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Say(ctx, "how are you?"); err == nil || ctx.Err() == nil {
		t.Errorf("ended with %v", err)
	}
}

func FuzzResult(f *testing.F) {
	f.Add(`{"kind": "message", "parts": [{"kind": "text", "text": "x"}]}`, false)
	f.Add(`{"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING", "message": {"parts": [{}]}}}}`, true)
	f.Fuzz(func(_ *testing.T, text string, v1 bool) {
		c := &Client{v1: v1}
		m, work, err := c.result(json.RawMessage(text))
		if err == nil && work != nil {
			_ = words(work)
		}
		_ = m.text()
	})
}
