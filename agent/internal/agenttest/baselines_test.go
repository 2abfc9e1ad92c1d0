package agenttest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/flash"
	"github.com/aiopslab/aiopslab/agent/internal/agenttest"
	"github.com/aiopslab/aiopslab/agent/react"
	"github.com/aiopslab/aiopslab/agent/shell"
	"github.com/aiopslab/aiopslab/agent/tools"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/llmtest"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

var baselines = []agent.Entry{shell.Entry, react.Entry, flash.Entry, tools.Entry}

// each runs a test for every agent, with a model of either protocol.
func each(t *testing.T, test func(t *testing.T, c agenttest.Case)) {
	t.Helper()
	for _, e := range baselines {
		for _, model := range []string{"test", "anthropic/test"} {
			t.Run(e.Name+"/"+model, func(t *testing.T) {
				test(t, agenttest.Case{Entry: e, Model: model, World: agenttest.Shop(true), Play: agenttest.Detective.Play})
			})
		}
	}
}

func TestSolve(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		for _, broken := range []bool{true, false} {
			c.World = agenttest.Shop(broken)
			r := c.Go(t)
			want := map[bool]string{true: "Yes", false: "No"}[broken]
			if r.Err != nil || r.Answer != want || len(r.Responses) != 3 {
				t.Errorf("broken %v: submitted %v after %d steps, %v\n%q", broken, r.Answer, len(r.Responses), r.Err, r.Responses)
			}
			prompts := 0
			for _, n := range r.Notes {
				if p, ok := n.Data.(record.Prompt); ok && n.Kind == record.PromptEvent && p.Version != "" && len(p.SHA256) == 64 && strings.HasPrefix(p.Name, c.Entry.Name+"/") {
					prompts++
				}
			}
			if prompts == 0 {
				t.Errorf("the record does not say which prompt it was: %v", r.Notes)
			}
		}
	})
}

func TestFail(t *testing.T) {
	// A model that sees nothing: it answers before it looks.
	blind := llmtest.Engineer{Answer: func(string) string { return `submit("No")` }}
	each(t, func(t *testing.T, c agenttest.Case) {
		c.Play = blind.Play
		if r := c.Go(t); r.Err != nil || r.Answer != "No" || len(r.Responses) != 1 {
			t.Errorf("submitted %v after %d steps, %v", r.Answer, len(r.Responses), r.Err)
		}
	})
}

// Rate limits, a failing endpoint and a stream that is cut do not show.
func TestHardTimes(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		c.Play = llmtest.Flaky(c.Play, map[int]llmtest.Answer{
			1: {Status: 429, RetryAfter: "0", Message: "slow down"},
			3: {Text: "Thought: I was about to say", CutAfter: 2},
			4: {Status: 503},
		})
		if r := c.Go(t); r.Err != nil || r.Answer != "Yes" || len(r.Responses) != 3 {
			t.Errorf("submitted %v after %d steps, %v", r.Answer, len(r.Responses), r.Err)
		}
	})
}

// What cannot be read as a call is told to the model, which then does better.
func TestMalformed(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		bad := []llmtest.Answer{
			{Text: ""},
			{Text: "I am not able to help with that.", Stop: llm.Refused},
			{Text: "```\nexec_shell(\"kubectl get po", Stop: llm.Length},
		}
		if c.Entry.Name == "tools" {
			bad = append(bad, llmtest.Answer{Calls: []llm.ToolCall{{ID: "x", Name: "no_such_tool", Arguments: `{"a": 1}`}}})
			if c.Model == "test" { // In the other protocol, arguments are always JSON.
				bad = append(bad, llmtest.Answer{Calls: []llm.ToolCall{{ID: "x", Name: "exec_shell", Arguments: `{"command": "kubectl`}}, Stop: llm.Length})
			}
		}
		var last llmtest.Request
		c.Play = func(_ int, r llmtest.Request) llmtest.Answer {
			if strings.Contains(r.Messages[0].Text, "Hindsight:") { // The supervisor of flash.
				return llmtest.Answer{Text: "Status: failed\nHindsight: write one call."}
			}
			last = r
			taken := 0
			for _, m := range r.Messages {
				if m.Role == llm.Assistant {
					taken++
				}
			}
			if taken < len(bad) {
				return bad[taken]
			}
			return llmtest.Engineer{Answer: func(string) string { return `submit("Yes")` }}.Play(0, r)
		}
		r := c.Go(t)
		if r.Err != nil || r.Answer != "Yes" || len(r.Responses) != len(bad)+1 {
			t.Fatalf("submitted %v after %d steps, %v\n%q", r.Answer, len(r.Responses), r.Err, r.Responses)
		}
		told := func(text string) bool {
			return slices.ContainsFunc(last.Messages, func(m llm.Message) bool { return strings.Contains(m.Text, text) })
		}
		if !told("No API call found") || !told("cut off at the limit") {
			t.Errorf("the model was not told: %+v", last.Messages)
		}
	})
}

// An agent is not to blame for an endpoint that is down or refuses the key, but for a conversation
// that does not fit.
func TestGiveUp(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		for _, tt := range []struct {
			answer llmtest.Answer
			want   error
		}{
			{llmtest.Answer{Status: 500}, llm.ErrUnavailable},
			{llmtest.Answer{Status: 401, Message: "wrong key"}, llm.ErrUnavailable},
			{llmtest.Answer{Status: 400, Code: "context_length_exceeded", Message: "prompt is too long"}, llm.ErrTooLong},
		} {
			c.Play = func(int, llmtest.Request) llmtest.Answer { return tt.answer }
			if r := c.Go(t); !errors.Is(r.Err, tt.want) || strings.Contains(r.Err.Error(), "\n") {
				t.Errorf("%v: got %v", tt.answer, r.Err)
			}
		}
	})
}

// Long observations are cut, the record says which, and the prompt and the last ones stay.
func TestWindow(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		const window = 12_000
		looks := slices.Repeat([]string{`exec_shell("kubectl get pods -n test-shop")`, `exec_shell("journal")`}, 5)[:9]
		long := strings.Repeat("one line of many in a log that nobody reads\n", 200) // About 2000 tokens.
		world := c.World
		c.World = func(call *aci.Call) string { return world(call) + "\n" + long }
		longest, system := 0, ""
		engineer := llmtest.Engineer{Looks: looks, Answer: func(string) string { return `submit("Yes")` }}
		n := 0
		c.Play = func(_ int, r llmtest.Request) llmtest.Answer {
			if strings.Contains(r.Messages[0].Text, "Hindsight:") {
				return engineer.Play(0, r)
			}
			chars := 0
			for _, m := range r.Messages {
				chars += len(m.Text)
			}
			longest = max(longest, chars)
			if system == "" {
				system = r.Messages[0].Text
			}
			if r.Messages[0].Text != system || !strings.Contains(system, "test-shop") {
				t.Errorf("the prompt has changed")
			}
			if last := r.Messages[len(r.Messages)-1].Text; n > 0 && !strings.Contains(last, "nobody reads") {
				t.Errorf("the last observation is %.200q", last)
			}
			answer := llmtest.Engineer{Looks: looks[min(n, len(looks)):], Answer: engineer.Answer}
			n++
			for i, m := range r.Messages { // The engineer counts from here.
				if m.Role == llm.Assistant {
					r.Messages = append(slices.Clone(r.Messages[:i]), r.Messages[len(r.Messages)-1])
					break
				}
			}
			return answer.Play(0, r)
		}
		c.Window = window
		r := c.Go(t)
		if r.Err != nil || r.Answer != "Yes" || len(r.Responses) != 10 {
			t.Fatalf("submitted %v after %d steps, %v", r.Answer, len(r.Responses), r.Err)
		}
		if longest > 4*window || longest < window {
			t.Errorf("at most %d characters were sent", longest)
		}
		var cuts []record.Cut
		for _, n := range r.Notes {
			if cut, ok := n.Data.(record.Cut); ok && n.Kind == record.CutEvent {
				cuts = append(cuts, cut)
			}
		}
		if len(cuts) == 0 || len(cuts[0].Observations) == 0 || cuts[0].Observations[0] != 1 || cuts[0].Turns != nil || cuts[0].Tokens > cuts[0].Limit {
			t.Errorf("the record says %+v", cuts)
		}
	})
}

// An endpoint whose window is smaller than thought is asked again with less.
func TestSmallerWindow(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		world := c.World
		long := strings.Repeat("one line of many in a log that nobody reads\n", 300)
		c.World = func(call *aci.Call) string { return world(call) + "\n" + long }
		play := c.Play
		refused := 0
		c.Play = func(n int, r llmtest.Request) llmtest.Answer {
			chars := 0
			for _, m := range r.Messages {
				chars += len(m.Text)
			}
			if chars > 24_000 {
				refused++
				return llmtest.Answer{Status: 400, Code: "context_length_exceeded", Message: "prompt is too long"}
			}
			return play(n, r)
		}
		if r := c.Go(t); r.Err != nil || !r.Submitted || refused == 0 {
			t.Errorf("submitted %v after %d steps and %d refusals, %v", r.Answer, len(r.Responses), refused, r.Err)
		}
	})
}

// A window in which the problem itself does not fit is one clear error.
func TestNoWindow(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		c.Window = 200
		if r := c.Go(t); !errors.Is(r.Err, llm.ErrTooLong) || !strings.Contains(r.Err.Error(), "--context-window") {
			t.Errorf("got %v", r.Err)
		}
	})
}

// Every task can be submitted by every agent.
func TestTasks(t *testing.T) {
	for task, submit := range map[problem.Task]string{
		problem.Detection: `submit("Yes")`, problem.Localization: `submit(["geo", "rate"])`,
		problem.Analysis: `submit(analysis={"system_level": "Application", "fault_type": "Misconfiguration"})`, problem.Mitigation: `submit()`,
	} {
		each(t, func(t *testing.T, c agenttest.Case) {
			c.Task, c.Play = task, llmtest.Engineer{Answer: func(string) string { return submit }}.Play
			r := c.Go(t)
			if r.Err != nil || !r.Submitted || (r.Answer == nil) != (task == problem.Mitigation) {
				t.Errorf("%s: %+v", task, r)
			}
		})
	}
}

// What a model thinks is not done: a call in its thoughts is not made, however they are marked. What it
// thinks is kept beside what it says.
func TestThoughts(t *testing.T) {
	const weighed = "I could call\n```\nsubmit(\"No\")\n```\nbut no."
	for name, think := range map[string]func(answer string) llmtest.Answer{
		"tags": func(a string) llmtest.Answer { return llmtest.Answer{Text: "<think>" + weighed + "</think>\n" + a} },
		"other tags": func(a string) llmtest.Answer {
			return llmtest.Answer{Text: "<reasoning>" + weighed + "</reasoning>\n" + a}
		},
		"no opening tag": func(a string) llmtest.Answer { return llmtest.Answer{Text: weighed + "\n</think>\n" + a} },
		"channels": func(a string) llmtest.Answer {
			return llmtest.Answer{Text: "<|channel|>analysis<|message|>" + weighed + "<|end|><|start|>assistant<|channel|>final<|message|>" + a}
		},
		"a field": func(a string) llmtest.Answer { return llmtest.Answer{Thoughts: weighed, Text: a} },
		"parts":   func(a string) llmtest.Answer { return llmtest.Answer{Thoughts: weighed, Text: a, Parts: true} },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, c agenttest.Case) {
				play := c.Play
				c.Play = func(n int, r llmtest.Request) llmtest.Answer {
					for _, m := range r.Messages {
						if m.Role == llm.Assistant && strings.Contains(m.Text, "but no") {
							t.Errorf("a thought is part of what was said: %q", m.Text)
						}
					}
					said := play(n, r)
					a := think(said.Text)
					a.Calls = said.Calls
					return a
				}
				r := c.Go(t)
				if r.Err != nil || r.Answer != "Yes" || len(r.Responses) != 3 {
					t.Errorf("submitted %v after %d steps, %v\n%q", r.Answer, len(r.Responses), r.Err, r.Responses)
				}
			})
		})
	}
}

// A thought that is cut off is one to its end, and the model is told.
func TestThoughtCutOff(t *testing.T) {
	each(t, func(t *testing.T, c agenttest.Case) {
		late := llmtest.Engineer{Looks: append([]string{""}, agenttest.Detective.Looks...), Answer: agenttest.Detective.Answer}
		c.Play = llmtest.Flaky(late.Play, map[int]llmtest.Answer{1: {Text: "<think>So\n```\nsubmit(\"No\")\n```", Stop: llm.Length}})
		if r := c.Go(t); r.Err != nil || r.Answer != "Yes" || r.Responses[0] != "" {
			t.Errorf("submitted %v after %d steps, %v\n%q", r.Answer, len(r.Responses), r.Err, r.Responses)
		}
	})
}

// Calls that an endpoint leaves in the text are made, as is one in the field from before there were tools.
func TestCallsInText(t *testing.T) {
	for name, write := range map[string]func(command string) llmtest.Answer{
		"tags": func(c string) llmtest.Answer {
			return llmtest.Answer{Text: "I look.\n<tool_call>\n{\"name\": \"exec_shell\", \"arguments\": {\"command\": \"" + c + "\"}}\n</tool_call>\n<tool_call>{\"name\": \"submit\", \"arguments\": {}}</tool_call>"}
		},
		"fenced": func(c string) llmtest.Answer {
			return llmtest.Answer{Text: "```json\n{\"name\": \"exec_shell\", \"arguments\": {\"command\": \"" + c + "\"}}\n```"}
		},
		"parameters": func(c string) llmtest.Answer {
			return llmtest.Answer{Text: "<tool_call>\n<function=exec_shell>\n<parameter=command>\n" + c + "\n</parameter>\n</function>\n</tool_call>"}
		},
		"legacy": func(c string) llmtest.Answer {
			return llmtest.Answer{Legacy: true, Calls: []llm.ToolCall{{Name: "exec_shell", Arguments: `{"command": "` + c + `"}`}}}
		},
	} {
		each(t, func(t *testing.T, c agenttest.Case) {
			if name == "legacy" && (c.Entry.Name != "tools" || c.Model != "test") {
				return
			}
			play := c.Play
			c.Play = func(n int, r llmtest.Request) llmtest.Answer {
				said := play(n, r)
				if strings.Contains(r.Messages[0].Text, "Hindsight:") || len(r.Messages) > 4 {
					return said
				}
				return write("kubectl get pods")
			}
			if r := c.Go(t); r.Err != nil || r.Answer != "Yes" || !strings.Contains(r.Responses[0], "kubectl get pods") {
				t.Errorf("%s: submitted %v after %d steps, %v\n%q", name, r.Answer, len(r.Responses), r.Err, r.Responses)
			}
		})
	}
}
