package a2a

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCheckToken(t *testing.T) {
	for _, tt := range []struct{ address, token, want string }{
		{"https://host/a", "", ""},
		{"http://host/a", "", ""},
		{"https://host/a", "abc.DEF-123~+/==", ""},
		{"http://127.0.0.1:8080/a", "abcdefgh", ""},
		{"http://[::1]/a", "abcdefgh", ""},
		{"http://localhost/a", "abcdefgh", ""},
		{"http://host/a", "abcdefgh", "unencrypted"},
		{"http://localhost.evil.example/a", "abcdefgh", "unencrypted"},
		{"https://host/a", "short", "no bearer token"},
		{"https://host/a", "abcdefgh\r\nX-Evil: 1", "no bearer token"},
		{"https://host/a", "two words1", "no bearer token"},
	} {
		err := CheckToken(tt.address, tt.token)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %q: %v", tt.address, tt.token, err)
		}
		if err != nil && strings.Contains(err.Error(), tt.token) {
			t.Errorf("the error has the token: %v", err)
		}
	}
}

// The token goes with each request, and nothing that an agent says brings it back: what it says is recorded.
func TestToken(t *testing.T) {
	const token = "s3cret-of-the-catalogue"
	for name, tt := range map[string]struct{ card, answer, want string }{
		"a message":    {oldCard, `{"id": "ID", "result": {"kind": "message", "parts": [{"kind": "text", "text": "you said \u0073TOKEN, TOKEN"}]}}`, "you said s[hidden], [hidden]"},
		"cut":          {oldCard, `{"id": "ID", "error": {"code": 1, "message": "` + strings.Repeat("x", 190) + `TOKEN"}}`, "[hidden]"},
		"an error":     {oldCard, `{"id": "ID", "error": {"code": 1, "message": "TOKEN"}}`, "error 1: [hidden]"},
		"a task":       {oldCard, `{"id": "ID", "result": {"kind": "task", "id": "t", "status": {"state": "TOKEN"}}}`, "[hidden]"},
		"elsewhere":    {strings.Replace(oldCard, "%s/rpc", "https://elsewhere/TOKEN", 1), "", "[hidden]"},
		"no JSON card": {"TOKEN", "", "no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			fill := func(s string) string { return strings.ReplaceAll(s, "TOKEN", token) }
			shown := 0
			var url string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token {
					http.Error(w, "who are you?", http.StatusUnauthorized)
					return
				}
				shown++
				if r.URL.Path == CardPath {
					_, _ = w.Write([]byte(fill(strings.ReplaceAll(tt.card, "%s", url))))
					return
				}
				var q struct{ ID string }
				_ = json.NewDecoder(r.Body).Decode(&q) // A test's client sends what can be read.
				_, _ = w.Write([]byte(fill(strings.ReplaceAll(tt.answer, "ID", q.ID))))
			}))
			defer s.Close()
			url = s.URL
			c, err := Open(t.Context(), url, token)
			said := ""
			if err == nil {
				said, err = c.Say(t.Context(), "hello")
			}
			if err != nil {
				said += err.Error()
			}
			if shown == 0 || !strings.Contains(said, tt.want) || strings.Contains(strings.ToLower(said), token[:6]) {
				t.Errorf("after %d requests with the token: %q, want %q", shown, said, tt.want)
			}
			if _, err := Open(t.Context(), url, ""); err == nil || !strings.Contains(err.Error(), "401") {
				t.Errorf("without the token: %v", err)
			}
		})
	}
}
