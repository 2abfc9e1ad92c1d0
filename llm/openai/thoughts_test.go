package openai

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

// Thoughts are beside the content or among its parts, in a stream or not.
func TestThoughts(t *testing.T) {
	for _, a := range []llmtest.Answer{
		{Thoughts: "Let me think of the pods."},
		{Thoughts: "Let me think of the pods.", ThoughtField: "reasoning"},
		{Thoughts: "Let me think of the pods.", Parts: true},
		{Parts: true},
	} {
		for _, whole := range []bool{false, true} {
			a.Text, a.Whole = "I look at the pods, with \"quotes\".", whole
			reply, err := model(t, llmtest.Script(a)).Chat(context.Background(), question)
			if err != nil || reply.Text != a.Text || reply.Thoughts != a.Thoughts {
				t.Errorf("%+v: got %+v, %v", a, reply, err)
			}
		}
	}
}

func TestLegacyCall(t *testing.T) {
	for _, whole := range []bool{false, true} {
		m := model(t, llmtest.Script(llmtest.Answer{Legacy: true, Whole: whole, Calls: []llm.ToolCall{{Name: "submit", Arguments: `{"a":1}`}}}))
		reply, err := m.Chat(context.Background(), question)
		if err != nil || len(reply.Calls) != 1 || reply.Calls[0].Name != "submit" || reply.Calls[0].Arguments != `{"a":1}` || reply.Calls[0].ID == "" || reply.Stop != llm.Calling {
			t.Errorf("got %+v, %v", reply, err)
		}
	}
}

// An endpoint that knows no system role gets what the system says from the user, from then on.
func TestNoSystem(t *testing.T) {
	for _, message := range []string{
		"System role not supported", "Developer instruction is not enabled for models/gemma-3", "This model does not support system messages.", "Unsupported role: 'system'",
	} {
		for _, status := range []int{400, 500} { // Of a template that fails, too.
			refused := 0
			m := model(t, func(_ int, r llmtest.Request) llmtest.Answer {
				if r.Messages[0].Role == llm.System {
					refused++
					return llmtest.Answer{Status: status, Message: message}
				}
				return llmtest.Answer{Text: r.Messages[0].Text}
			})
			for range 2 {
				if reply, err := m.Chat(context.Background(), question); err != nil || reply.Text != "You are an engineer.\n\nWhat is wrong?" {
					t.Errorf("%s: got %+v, %v", message, reply, err)
				}
			}
			if refused != 1 {
				t.Errorf("%s: it was refused %d times", message, refused)
			}
		}
	}
	if question.Messages[1].Text != "What is wrong?" {
		t.Error("the question has changed")
	}
	m := model(t, llmtest.Script(llmtest.Answer{Status: 400, Message: "the file system is not supported"}))
	if _, err := m.Chat(context.Background(), question); err == nil {
		t.Error("any failure is taken for one of the role")
	}
}

// Thoughts go back to whom they must, and to nobody else.
func TestThoughtsBack(t *testing.T) {
	q := question
	q.Messages = slices.Clone(q.Messages)
	q.Messages[2].Thoughts = "Alerts first."
	const (
		wants   = "The `reasoning_content` in the thinking mode must be passed back to the API."
		missing = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
		refuses = "property 'reasoning_content' is unsupported"
	)
	for _, tt := range []struct {
		name, known, refusal string
		field                string
		want                 []bool // whether the thoughts are there, request by request
	}{
		{name: "nobody says", want: []bool{false, false}},
		{name: "known", known: llm.Back, want: []bool{true, true}},
		{name: "known not to", known: llm.Forget, want: []bool{false, false}},
		{name: "asked for", refusal: wants, want: []bool{false, true, true}},
		{name: "missed", refusal: missing, want: []bool{false, true, true}},
		{name: "wrongly known", known: llm.Back, refusal: refuses, want: []bool{true, false, false}},
		{name: "in another field", known: llm.Back, field: "reasoning", want: []bool{true, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []bool
			url := llmtest.Start(t, func(_ int, r llmtest.Request) llmtest.Answer {
				there := r.Messages[2].Thoughts == "Alerts first."
				got = append(got, there)
				if tt.refusal != "" && there == (tt.refusal == refuses) {
					return llmtest.Answer{Status: 400, Message: tt.refusal}
				}
				return llmtest.Answer{Text: "ok", Thoughts: "Hm.", ThoughtField: tt.field}
			})
			m := New(Config{Model: "tiny", BaseURL: url + "/v1", Info: llm.Info{Thoughts: tt.known}})
			for range 2 {
				if reply, err := m.Chat(context.Background(), q); err != nil || reply.Text != "ok" {
					t.Fatalf("got %+v, %v", reply, err)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("thoughts were sent %v, want %v", got, tt.want)
			}
		})
	}
	// An endpoint that will have it neither way is not asked for ever.
	n := 0
	m := model(t, func(_ int, r llmtest.Request) llmtest.Answer {
		n++
		return llmtest.Answer{Status: 400, Message: map[bool]string{true: refuses, false: wants}[r.Messages[2].Thoughts != ""]}
	})
	if _, err := m.Chat(context.Background(), q); err == nil || !strings.Contains(err.Error(), "must be passed back") || n != 3 {
		t.Errorf("%d requests, %v", n, err)
	}
}
