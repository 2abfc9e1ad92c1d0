package react

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

// The model is shown every action, and reminded of the form with every observation.
func TestPrompt(t *testing.T) {
	prompts := 0
	agenttest.Case{
		Entry: Entry, World: agenttest.Shop(true),
		Play: func(n int, r llmtest.Request) llmtest.Answer {
			prompts++
			for _, a := range aci.Actions(term.Detection) {
				if !strings.Contains(r.Messages[0].Text, a.Signature()) {
					t.Errorf("%s is not in the prompt", a.Name)
				}
			}
			if last := r.Messages[len(r.Messages)-1].Text; !strings.HasSuffix(last, reminder) {
				t.Errorf("the last message is %q", last)
			}
			return agenttest.Detective.Play(n, r)
		},
	}.Go(t)
	if prompts != 3 {
		t.Errorf("%d prompts", prompts)
	}
}
