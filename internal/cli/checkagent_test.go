package cli

import (
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/server"
)

// TestCheckAgent: a server asks the model of a session once before it starts anything for it.
func TestCheckAgent(t *testing.T) {
	var asked atomic.Int32
	endpoint := httptest.NewServer(llmtest.Handler(func(_ int, r llmtest.Request) llmtest.Answer {
		asked.Add(1)
		switch {
		case r.Header.Get("Authorization") != "Bearer right":
			return llmtest.Answer{Status: 401, Message: "Incorrect API key provided"}
		case r.Model != "gpt-4o":
			return llmtest.Answer{Status: 404, Code: "model_not_found", Message: "The model does not exist"}
		}
		return llmtest.Answer{Text: "OK"}
	}))
	defer endpoint.Close()
	absent := httptest.NewServer(nil)
	absent.Close()
	for _, c := range []struct {
		name, agent, model, key, url string
		want                         string // of the error; empty for none
		down                         bool   // the model's fault, not the caller's
		asked                        int32
	}{
		{"right", "shell", "openai/gpt-4o", "right", endpoint.URL, "", false, 1},
		{"wrong key", "shell", "openai/gpt-4o", "wrong", endpoint.URL, "model openai/gpt-4o cannot be asked: ", false, 1},
		{"wrong name", "react", "openai/gtp-4o", "right", endpoint.URL, "Is that the model's name there", false, 1},
		{"no endpoint", "shell", "openai/gpt-4o", "right", absent.URL, "Does the endpoint run", true, 0},
		{"no model", "shell", "", "right", endpoint.URL, "needs a model", false, 0},
		{"an agent without one", "runbook", "", "wrong", endpoint.URL, "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked.Store(0)
			env := map[string]string{"OPENAI_API_KEY": c.key, "OPENAI_BASE_URL": c.url + "/v1"}
			s := &State{Env: func(name string) string { return env[name] }}
			err := checkAgent(t.Context(), s, modelFlags{timeout: 10 * time.Second}, server.NewSession{Agent: c.agent, Model: c.model})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			if errors.Is(err, server.ErrModel) != c.down {
				t.Errorf("the model's fault: %v", !c.down)
			}
			if got := asked.Load(); got != c.asked {
				t.Errorf("it was asked %d times", got)
			}
		})
	}
}
