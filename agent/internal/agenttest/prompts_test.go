package agenttest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/record"
)

// promptVersions are the prompts as they were published. A record names a prompt by its version, so a
// changed text needs a new one: raise it in the file, and note the beginning of the hash here.
var promptVersions = map[string]string{
	"flash/prompt":    "1 ebd2dd34d038",
	"flash/supervise": "1 439b0d77af9a",
	"react/prompt":    "1 3b09e49c42a0",
	"shell/prompt":    "1 0c1d1ed4618b",
	"tools/prompt":    "2 278c42bb4355",
}

func TestPromptVersions(t *testing.T) {
	got := map[string]string{}
	for _, e := range baselines {
		r := agenttest.Case{Entry: e, Play: llmtest.Engineer{Answer: func(string) string { return `submit("No")` }}.Play}.Go(t)
		for _, n := range r.Notes {
			if p, ok := n.Data.(record.Prompt); ok {
				got[p.Name] = p.Version + " " + p.SHA256[:12]
			}
		}
	}
	if d := cmp.Diff(promptVersions, got); d != "" {
		t.Errorf("prompts (-published +now):\n%s", d)
	}
}
