package connect

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

func TestCheck(t *testing.T) {
	checkPatience.First = time.Millisecond
	for _, tt := range []struct {
		name   string
		answer llmtest.Answer
		status int // of the failure; 0 for none
		asked  int
	}{
		{"well", llmtest.Answer{Text: "OK"}, 0, 1},
		{"thinks until the limit", llmtest.Answer{Stop: llm.Length}, 0, 1},
		{"cannot finish", llmtest.Answer{Status: 400, Message: "Could not finish the message because max_tokens or model output limit was reached."}, 0, 2}, // By either name of the limit.
		{"busy", llmtest.Answer{Status: 429, RetryAfter: "0"}, 0, 3},
		{"loading", llmtest.Answer{Status: 503, RetryAfter: "0"}, 0, 3},
		{"wrong key", llmtest.Answer{Status: 401, Message: "Incorrect API key"}, 401, 1},
		{"no such model", llmtest.Answer{Status: 404, Code: "model_not_found"}, 404, 1},
		{"no money", llmtest.Answer{Status: 429, Code: "insufficient_quota"}, 429, 1},
		{"broken", llmtest.Answer{Status: 500, RetryAfter: "0"}, 500, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			url := llmtest.Start(t, func(_ int, r llmtest.Request) llmtest.Answer {
				asked++
				if r.MaxTokens != checkTokens {
					t.Errorf("a reply may have %d tokens", r.MaxTokens)
				}
				return tt.answer
			})
			env := map[string]string{"OPENAI_BASE_URL": url + "/v1"}
			err := Check(context.Background(), Config{Model: "test", Env: func(n string) string { return env[n] }})
			f, ok := errors.AsType[*llm.Failure](err)
			if ok != (tt.status != 0) || ok && f.Status != tt.status || asked != tt.asked {
				t.Errorf("asked %d times, got %v", asked, err)
			}
		})
	}
	gone := func(n string) string { return map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}[n] }
	if err := Check(context.Background(), Config{Model: "test", Env: gone}); !errors.Is(err, llm.ErrUnavailable) {
		t.Errorf("nobody is there: %v", err)
	}
}
