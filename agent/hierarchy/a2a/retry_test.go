package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An agent that cannot be reached for a while is asked again, with the same message, until it is there or was asked
// often enough. What is no matter of a moment is not asked again.
func TestInsist(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not now", code) }
	}
	cut := func(w http.ResponseWriter, _ *http.Request) { // The answer breaks off.
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"id":`)
	}
	drop := func(w http.ResponseWriter, _ *http.Request) { // There is none.
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	for _, tt := range []struct {
		name  string
		wrong http.HandlerFunc
		times int // that it goes wrong
		asked int // how often it was asked in the end
		err   string
	}{
		{"busy", status(503), 3, 4, ""},
		{"too many requests", status(429), 1, 2, ""},
		{"a gateway", status(502), 6, 7, ""},
		{"dropped", drop, 2, 3, ""},
		{"broken off", cut, 2, 3, ""},
		{"busy for ever", status(503), 100, attempts, "it answers 503"},
		{"dropped for ever", drop, 100, attempts, "EOF"},
		{"forbidden", status(403), 100, 1, "it answers 403"},
		{"not there", status(404), 100, 1, "it answers 404"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }, 100, 1, "elsewhere"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var ids []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == CardPath {
					fmt.Fprint(w, `{"url": "/rpc"}`)
					return
				}
				var q struct {
					ID     string
					Params struct{ Message struct{ MessageID string } }
				}
				if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
					t.Error(err)
				}
				mu.Lock()
				ids = append(ids, q.Params.Message.MessageID)
				n := len(ids)
				mu.Unlock()
				if n <= tt.times {
					tt.wrong(w, r)
					return
				}
				fmt.Fprintf(w, `{"id": %q, "result": {"kind": "message", "parts": [{"text": "here I am"}]}}`, q.ID)
			}))
			defer s.Close()
			c, err := open(t.Context(), s.URL, "", time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			said, err := c.Say(t.Context(), "how are you?")
			if tt.err == "" && (err != nil || said != "here I am") || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%q, %v", said, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(ids) != tt.asked || ids[0] == "" || len(slices.Compact(ids)) != 1 {
				t.Errorf("asked by the messages %v, want %d times the same", ids, tt.asked)
			}
		})
	}
}

// The card is asked for again as well, and nobody is asked any more when the time is over.
func TestInsistInTime(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 2 {
			fmt.Fprint(w, `{"url": "/rpc"}`)
			return
		}
		w.Header().Set("Retry-After", "7")
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel) // Long before the seven seconds that it asks for.
	if _, err := open(ctx, s.URL, "", time.Millisecond); err == nil || !strings.Contains(err.Error(), "503") || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	if _, err := open(t.Context(), s.URL, "", time.Millisecond); err != nil {
		t.Error(err)
	}
}
