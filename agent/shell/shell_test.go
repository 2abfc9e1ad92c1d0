package shell

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

// The model is shown a shell and the submission, and nothing else.
func TestPrompt(t *testing.T) {
	var system, user string
	agenttest.Case{
		Entry: Entry, World: agenttest.Shop(true),
		Play: func(n int, r llmtest.Request) llmtest.Answer {
			if n == 1 {
				system, user = r.Messages[0].Text, r.Messages[1].Text
			}
			return agenttest.Detective.Play(n, r)
		},
	}.Go(t)
	for _, want := range []string{"test-shop", "exec_shell(command: str", "submit(has_anomaly: str)"} {
		if !strings.Contains(system, want) {
			t.Errorf("%q is not in the prompt: %s", want, system)
		}
	}
	for _, hidden := range []string{"get_logs", "get_traces", "{actions}", "{description}"} {
		if strings.Contains(system+user, hidden) {
			t.Errorf("%q is in the prompt", hidden)
		}
	}
	if !strings.Contains(user, `submit("Yes")`) || !strings.HasSuffix(user, "Please take the next action") {
		t.Errorf("the model is first told %q", user)
	}
}

func TestNoModel(t *testing.T) {
	if _, err := Entry.New(agent.Briefing{}); err == nil || !Entry.NeedsModel {
		t.Error("an agent without a model")
	}
}
