package llm

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// endpoint plays an OpenAI-compatible server; handle writes the answer to the nth request.
func endpoint(t *testing.T, handle func(n int, w http.ResponseWriter, body map[string]any)) *Model {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		n++
		w.Header().Set("Content-Type", "application/json")
		handle(n, w, body)
	}))
	t.Cleanup(s.Close)
	m, err := New(Config{Model: "tiny", BaseURL: s.URL + "/v1", Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const answer = `{"id":"1","object":"chat.completion","model":"tiny","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Rating: [[5]]"}}]}`

func TestChat(t *testing.T) {
	m := endpoint(t, func(n int, w http.ResponseWriter, body map[string]any) {
		if n == 1 { // Busy: asked again by itself.
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		if body["model"] != "tiny" || len(body["messages"].([]any)) != 2 {
			t.Errorf("asked with %v", body)
		}
		io.WriteString(w, answer)
	})
	got, err := m.Chat(context.Background(), "be a judge", "judge this")
	if err != nil || got != "Rating: [[5]]" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestChatErrors(t *testing.T) {
	m := endpoint(t, func(_ int, w http.ResponseWriter, _ map[string]any) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error"}}`)
	})
	if _, err := m.Chat(context.Background(), "a", "b"); err == nil || !strings.Contains(err.Error(), "Incorrect API key") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	m = endpoint(t, func(_ int, w http.ResponseWriter, _ map[string]any) { io.WriteString(w, `{"choices":[]}`) })
	if _, err := m.Chat(context.Background(), "a", "b"); err == nil || !strings.Contains(err.Error(), "no reply") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{Model: "tiny"}); err == nil || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("got %v", err)
	}
}
