package agenttest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/agent/stratus"
	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// promptVersions are the prompts as they were published. A record names a prompt by its version, so a
// changed text needs a new one: raise it in the file, and note the beginning of the hash here.
var promptVersions = map[string]string{
	"flash/prompt":       "1 ebd2dd34d038",
	"flash/supervise":    "1 439b0d77af9a",
	"react/prompt":       "1 3b09e49c42a0",
	"shell/prompt":       "1 0c1d1ed4618b",
	"stratus/diagnosis":  "1 2930ecf140ee",
	"stratus/mitigation": "1 86828835947c",
	"stratus/reflection": "1 e0061cc8b5cd",
	"tools/prompt":       "2 278c42bb4355",
}

func TestPromptVersions(t *testing.T) {
	got := map[string]string{}
	note := func(notes []agenttest.Note) {
		for _, n := range notes {
			if p, ok := n.Data.(record.Prompt); ok {
				got[p.Name] = p.Version + " " + p.SHA256[:12]
			}
		}
	}
	for _, e := range baselines {
		r := agenttest.Case{Entry: e, Play: llmtest.Engineer{Answer: func(string) string { return `submit("No")` }}.Play}.Go(t)
		note(r.Notes)
	}
	note(tryInVain(t).Notes)
	if d := cmp.Diff(promptVersions, got); d != "" {
		t.Errorf("prompts (-published +now):\n%s", d)
	}
}

// tryInVain has stratus try what does not help, so that it reflects.
func tryInVain(t *testing.T) *agenttest.Run {
	return agenttest.Case{
		Entry: stratus.Entries()[0], Task: problem.Mitigation, Steps: 40,
		World: func(c *aci.Call) string {
			if len(c.Args) > 0 && strings.Contains(fmt.Sprint(c.Args[0]), "-o wide") {
				return "NAME  READY  STATUS  RESTARTS  AGE  IP  NODE\ngeo-1-2  0/1  Running  0  5s  10.0.0.1  node-1"
			}
			return "done"
		},
		Play: func(_ int, r llmtest.Request) llmtest.Answer {
			if strings.Contains(r.Messages[0].Text, "You diagnose") || strings.Contains(r.Messages[0].Text, "You look back") {
				return llmtest.Answer{Text: "It is geo."}
			}
			return llmtest.Answer{Text: "```\nsubmit()\n```"}
		},
	}.Go(t)
}
