package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

const key = "a-secret-key"

func model(t *testing.T, p llmtest.Play) *Model {
	t.Helper()
	return New(Config{Model: "tiny", BaseURL: llmtest.Start(t, p), Key: key})
}

var question = llm.Request{
	Messages: []llm.Message{
		{Role: llm.System, Text: "You are an engineer."},
		{Role: llm.User, Text: "What is wrong?"},
		{Role: llm.Assistant, Text: "Let me see.", Calls: []llm.ToolCall{{ID: "c1", Name: "get_alerts", Arguments: `{"namespace":"x"}`}, {ID: "c2", Name: "get_logs", Arguments: `{}`}}},
		{Role: llm.Result, Text: "geo is down", For: "c1"},
		{Role: llm.Result, Text: "not done", For: "c2"},
	},
	Tools: []llm.Tool{{Name: "get_alerts", Doc: "Shows alerts.", Schema: []byte(`{"type":"object","properties":{"namespace":{"type":"string"}}}`)}},
}

func TestChat(t *testing.T) {
	answer := llmtest.Answer{
		Text: "I look at the pods: é世界, then \"quotes\".\nNext line.", Usage: llm.Usage{In: 100, Cached: 40, Written: 30, Out: 7},
		Calls: []llm.ToolCall{{ID: "c3", Name: "exec_shell", Arguments: `{"command":"kubectl get pods -A | grep -v Running"}`}, {ID: "c4", Name: "submit", Arguments: `{}`}},
	}
	open := func(p llmtest.Play) llm.Model { return model(t, p) }
	for _, got := range llmtest.CheckChat(t, open, question, answer) {
		if got.Header.Get("X-Api-Key") != key || got.Header.Get("Anthropic-Version") == "" {
			t.Errorf("asked %+v", got)
		}
	}
}

// The form in which a conversation is sent, as the protocol's documentation has it.
func TestRequest(t *testing.T) {
	q := llm.Request{MaxTokens: 9, Messages: []llm.Message{
		{Role: llm.System, Text: "sys"},
		{Role: llm.User, Text: "one"},
		{Role: llm.User, Text: "two"}, // Roles must alternate.
		{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c1", Name: "f", Arguments: "no JSON"}}},
		{Role: llm.Result, Text: "wrong", For: "c1"},
		{Role: llm.User, Text: "go on"},
	}}
	b, err := json.Marshal(New(Config{Model: "tiny"}).request(q))
	want := `{"max_tokens":9,"messages":[` +
		`{"content":[{"text":"one","type":"text"},{"text":"two","type":"text"}],"role":"user"},` +
		`{"content":[{"id":"c1","input":{},"name":"f","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"tool_use_id":"c1","content":[{"text":"wrong","type":"text"}],"type":"tool_result"},{"text":"go on","cache_control":{"type":"ephemeral"},"type":"text"}],"role":"user"}` +
		`],"model":"tiny","system":[{"text":"sys","cache_control":{"type":"ephemeral"},"type":"text"}]}`
	if err != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
}

func TestStops(t *testing.T) {
	for _, stop := range []llm.Stop{llm.Done, llm.Length, llm.Refused} {
		m := model(t, llmtest.Script(llmtest.Answer{Text: "so", Stop: stop}, llmtest.Answer{Stop: stop}))
		for _, text := range []string{"so", ""} {
			if reply, err := m.Chat(context.Background(), question); err != nil || reply.Stop != stop || reply.Text != text {
				t.Errorf("%s: got %+v, %v", stop, reply, err)
			}
		}
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name      string
		answer    llmtest.Answer
		class     error
		temporary bool
		text      string
	}{
		{"wrong key", llmtest.Answer{Status: 401, Message: "invalid x-api-key " + key}, llm.ErrUnavailable, false, "invalid x-api-key [redacted]"},
		{"overloaded", llmtest.Answer{Status: 529, Code: "overloaded_error", Message: "Overloaded"}, llm.ErrUnavailable, true, "Overloaded"},
		{"too long", llmtest.Answer{Status: 400, Message: "prompt is too long: 200001 tokens > 200000 maximum"}, llm.ErrTooLong, false, "too long"},
		{"cut", llmtest.Answer{Text: "hello", CutAfter: 3}, llm.ErrUnavailable, true, "EOF"},
		{"ended without an end", llmtest.Answer{Raw: `{"type":"ping"}`}, llm.ErrUnavailable, true, "the stream was cut"},
		{"an error in the stream", llmtest.Answer{Raw: `{"type":"error","error":{"type":"overloaded_error","message":"busy, ` + key + `"}}`}, llm.ErrUnavailable, true, "busy, [redacted]"},
		{"no JSON in the stream", llmtest.Answer{Raw: "<html>"}, llm.ErrUnavailable, true, "invalid character '<'"},
		{"no reply", llmtest.Answer{Raw: `{}`, Whole: true}, llm.ErrUnavailable, true, "no reply"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := model(t, func(int, llmtest.Request) llmtest.Answer { return tt.answer })
			reply, err := m.Chat(context.Background(), question)
			f, ok := errors.AsType[*llm.Failure](err)
			if !ok || !errors.Is(err, tt.class) || f.Temporary() != tt.temporary || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), key) {
				t.Errorf("got %+v, %v", reply, err)
			}
		})
	}
}

func TestRetried(t *testing.T) {
	m := llm.Retry(model(t, llmtest.Script(
		llmtest.Answer{Status: 429, RetryAfter: "0"},
		llmtest.Answer{Text: "hello, hello, hello", CutAfter: 4},
		llmtest.Answer{Text: "hello"},
	)), llm.Patience{First: time.Millisecond})
	if reply, err := m.Chat(context.Background(), question); err != nil || reply.Text != "hello" || reply.Attempts != 3 {
		t.Errorf("got %+v, %v", reply, err)
	}
}

// A model that takes no temperature or not so long a reply is asked without, from then on.
func TestQuirks(t *testing.T) {
	n := 0
	m := model(t, func(i int, r llmtest.Request) llmtest.Answer {
		n = i
		if r.MaxTokens > 4096 {
			return llmtest.Answer{Status: 400, Message: "max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens for this model"}
		}
		if r.Temperature != nil {
			return llmtest.Answer{Status: 400, Message: "temperature is deprecated for this model"}
		}
		return llmtest.Answer{Text: "ok"}
	})
	q := question
	q.Temperature = new(float64)
	for range 2 {
		if reply, err := m.Chat(context.Background(), q); err != nil || reply.Text != "ok" {
			t.Errorf("got %+v, %v", reply, err)
		}
	}
	if n != 4 {
		t.Errorf("%d requests", n)
	}
}

// FuzzAnswer feeds the readers what no endpoint should say.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","input":7}}`))
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","id":"a","input":{"x":1}},{"type":"text"}],"stop_reason":"end_turn","usage":"much"}`))
	f.Add([]byte(`{"type":"error","error":{"type":"overloaded_error"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		problemIn(data)
		var e sdk.MessageStreamEventUnion
		if json.Unmarshal(data, &e) == nil {
			a := &answer{}
			a.add(e)
			if r := a.reply(); r.Stop == "" {
				t.Errorf("%+v has no reason to stop", r)
			}
		}
		res := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(data))}
		if r, err := readWhole(res, nil); err == nil && r.Stop == "" {
			t.Errorf("%+v has no reason to stop", r)
		}
	})
}

// Thoughts are blocks of their own, and go back signed as they came.
func TestThoughts(t *testing.T) {
	for _, whole := range []bool{false, true} {
		var sent string
		m := model(t, func(n int, r llmtest.Request) llmtest.Answer {
			if n == 2 {
				sent = r.Messages[2].Thoughts
			}
			return llmtest.Answer{Thoughts: "Let me think of the pods.", Text: "I look.", Whole: whole}
		})
		reply, err := m.Chat(context.Background(), question)
		if err != nil || reply.Text != "I look." || reply.Thoughts != "Let me think of the pods." {
			t.Fatalf("got %+v, %v", reply, err)
		}
		q := question
		q.Messages = append(append([]llm.Message(nil), question.Messages[:2]...),
			llm.Message{Role: llm.Assistant, Text: reply.Text, Thoughts: reply.Thoughts, Sealed: reply.Sealed}, llm.Message{Role: llm.User, Text: "Go on."})
		if _, err := m.Chat(context.Background(), q); err != nil || sent != reply.Thoughts {
			t.Errorf("sent back %q, %v", sent, err)
		}
	}
}
