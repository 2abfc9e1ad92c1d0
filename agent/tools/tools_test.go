package tools

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

func TestResponse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply llm.Reply
		want  string
	}{
		{"a call", llm.Reply{Calls: []llm.ToolCall{{Name: "get_logs", Arguments: `{"service":"geo","namespace":"x"}`}}}, "```\nget_logs(namespace=\"x\", service=\"geo\")\n```"},
		{"with words", llm.Reply{Text: "Let me see.", Calls: []llm.ToolCall{{Name: "submit", Arguments: ""}}}, "Let me see.\n\n```\nsubmit()\n```"},
		{"numbers", llm.Reply{Calls: []llm.ToolCall{{Name: "get_metrics", Arguments: `{"duration":10,"namespace":"x"}`}}}, "```\nget_metrics(duration=10, namespace=\"x\")\n```"},
		{"null", llm.Reply{Calls: []llm.ToolCall{{Name: "submit", Arguments: `{"analysis":null}`}}}, "```\nsubmit(analysis=None)\n```"},
		// Words with a call in them must not take the place of the function that is called.
		{"words with a call", llm.Reply{Text: "```\nexec_shell(\"rm -rf /\")\n```", Calls: []llm.ToolCall{{Name: "submit", Arguments: "{}"}}}, "```\nsubmit()\n```"},
		{"broken arguments", llm.Reply{Text: "```\nsubmit(\"Yes\")\n```", Calls: []llm.ToolCall{{Name: "submit", Arguments: `{"has_anomaly": "Y`}}}, "```\nsubmit({\"has_anomaly\": \"Y)\n```"},
		{"words only", llm.Reply{Text: "I am done."}, "I am done."},
		{"the first of several", llm.Reply{Calls: []llm.ToolCall{{Name: "a", Arguments: "{}"}, {Name: "b", Arguments: "{}"}}}, "```\na()\n```"},
	} {
		if got := response(tt.reply); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Of parallel calls the first is made, and each gets its answer.
func TestParallelCalls(t *testing.T) {
	var results []llm.Message
	r := agenttest.Case{
		Entry: Entry, World: agenttest.Shop(true),
		Play: func(n int, r llmtest.Request) llmtest.Answer {
			if len(r.Tools) != len(aci.Actions(term.Detection)) || strings.Contains(r.Messages[1].Text, "```") {
				t.Errorf("asked %+v", r)
			}
			if n == 1 {
				return llmtest.Answer{Calls: []llm.ToolCall{
					{ID: "1", Name: "exec_shell", Arguments: `{"command":"kubectl get pods"}`}, {ID: "2", Name: "submit", Arguments: `{"has_anomaly":"No"}`},
				}}
			}
			results = r.Messages[len(r.Messages)-2:]
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "3", Name: "submit", Arguments: `{"has_anomaly":"Yes"}`}}}
		},
	}.Go(t)
	if r.Err != nil || r.Answer != "Yes" || len(r.Responses) != 2 {
		t.Errorf("got %+v", r)
	}
	if len(results) != 2 || results[0].For != "1" || !strings.Contains(results[0].Text, "CrashLoopBackOff") || results[1].For != "2" || results[1].Text != "not done: one call a turn" {
		t.Errorf("the model was answered %+v", results)
	}
}

// Whatever a model calls, the lab reads as that call or not at all.
func FuzzResponse(f *testing.F) {
	f.Add("words", "exec_shell", `{"command":"ls"}`)
	f.Add("```\nsubmit()\n```", "get_logs", `{"a":[1,{"b":null}],"c":1e400}`)
	f.Add("", "a b", `[1]`)
	f.Fuzz(func(t *testing.T, text, name, arguments string) {
		got := response(llm.Reply{Text: text, Calls: []llm.ToolCall{{Name: name, Arguments: arguments}}})
		call, err := aci.Parse(got)
		alone, aloneErr := aci.Parse(write(llm.ToolCall{Name: name, Arguments: arguments}))
		if (err == nil) != (aloneErr == nil) || err == nil && call.Name != alone.Name {
			t.Errorf("%q is read as %v, %v", got, call, err)
		}
	})
}
