package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
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
	return New(Config{Model: "tiny", BaseURL: llmtest.Start(t, p) + "/v1/", Key: key})
}

// modelAt is a model at an endpoint of the test's own.
func modelAt(t *testing.T, h http.Handler) *Model {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return New(Config{Model: "tiny", BaseURL: s.URL + "/v1", Key: key})
}

// readBody returns the body of a request, and leaves it to be read again.
func readBody(t *testing.T, r *http.Request) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return string(b)
}

var question = llm.Request{
	Messages: []llm.Message{
		{Role: llm.System, Text: "You are an engineer."},
		{Role: llm.User, Text: "What is wrong?"},
		{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c1", Name: "get_alerts", Arguments: `{"namespace":"x"}`}}},
		{Role: llm.Result, Text: "geo is down", For: "c1"},
	},
	Tools: []llm.Tool{{Name: "get_alerts", Doc: "Shows alerts.", Schema: []byte(`{"type":"object","properties":{"namespace":{"type":"string"}}}`)}},
}

func TestChat(t *testing.T) {
	answer := llmtest.Answer{
		Text: "I look at the pods: é世界, then \"quotes\".\nNext line.", Usage: llm.Usage{In: 100, Cached: 40, Out: 7},
		Calls: []llm.ToolCall{{ID: "c2", Name: "exec_shell", Arguments: `{"command":"kubectl get pods -A | grep -v Running"}`}, {ID: "c3", Name: "submit", Arguments: `{}`}},
	}
	open := func(p llmtest.Play) llm.Model { return model(t, p) }
	for _, got := range llmtest.CheckChat(t, open, question, answer) {
		if got.Model != "tiny" || !got.Stream || got.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("asked %+v", got)
		}
	}
}

func TestStops(t *testing.T) {
	for _, stop := range []llm.Stop{llm.Done, llm.Length, llm.Refused} {
		m := model(t, llmtest.Script(llmtest.Answer{Text: "so", Stop: stop}, llmtest.Answer{Stop: stop}))
		for _, text := range []string{"so", ""} { // An empty reply is one, too.
			if reply, err := m.Chat(context.Background(), question); err != nil || reply.Stop != stop || reply.Text != text {
				t.Errorf("%s: got %+v, %v", stop, reply, err)
			}
		}
	}
	refusal := `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I will not."},"finish_reason":"stop"}]}`
	m := model(t, llmtest.Script(llmtest.Answer{Raw: refusal, Whole: true}, llmtest.Answer{Status: 400, Code: "content_filter", Message: "filtered"}))
	for _, text := range []string{"I will not.", "filtered"} {
		if reply, err := m.Chat(context.Background(), question); err != nil || reply.Stop != llm.Refused || reply.Text != text {
			t.Errorf("got %+v, %v", reply, err)
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
		{"wrong key", llmtest.Answer{Status: 401, Message: "Incorrect API key provided: " + key}, llm.ErrUnavailable, false, "401 Unauthorized: Incorrect API key provided: [redacted]"},
		{"busy", llmtest.Answer{Status: 429, Message: "Rate limit reached", RetryAfter: "2"}, llm.ErrUnavailable, true, "Rate limit reached"},
		{"down", llmtest.Answer{Status: 502}, llm.ErrUnavailable, true, "502 Bad Gateway"},
		{"too long", llmtest.Answer{Status: 400, Code: "context_length_exceeded", Message: "reduce the length"}, llm.ErrTooLong, false, "reduce the length"},
		{"cut at once", llmtest.Answer{Text: "hello", CutAfter: 1}, llm.ErrUnavailable, true, "EOF"},
		{"cut before the end", llmtest.Answer{Text: strings.Repeat("hello ", 100), CutAfter: 20}, llm.ErrUnavailable, true, "EOF"},
		{"ended without an end", llmtest.Answer{Raw: `{"choices":[{"index":0,"delta":{"content":"hel"}}]}`}, llm.ErrUnavailable, true, "the stream was cut"},
		{"no JSON in the stream", llmtest.Answer{Raw: "<html>"}, llm.ErrUnavailable, true, "invalid character '<'"},
		{"an error in the stream", llmtest.Answer{Raw: `{"error":{"message":"overloaded, ` + key + `","code":503}}`}, llm.ErrUnavailable, true, "overloaded, [redacted]"},
		{"too long, in the stream", llmtest.Answer{Raw: `{"error":{"message":"long","code":"context_length_exceeded"}}`}, llm.ErrTooLong, false, "long"},
		{"no JSON", llmtest.Answer{Raw: "<html>\nbusy " + key, Whole: true}, llm.ErrUnavailable, true, "no JSON: <html> busy [redacted]"},
		{"no reply", llmtest.Answer{Raw: `{"choices":[]}`, Whole: true}, llm.ErrUnavailable, true, "no reply"},
		{"an error as an answer", llmtest.Answer{Raw: `{"error":"model is loading"}`, Whole: true}, llm.ErrUnavailable, true, "model is loading"},
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

// What one attempt cannot do, several can.
func TestRetried(t *testing.T) {
	m := llm.Retry(model(t, llmtest.Script(
		llmtest.Answer{Status: 429, RetryAfter: "0"},
		llmtest.Answer{Text: "hello, hello, hello", CutAfter: 2},
		llmtest.Answer{Status: 500},
		llmtest.Answer{Text: "hello"},
	)), llm.Patience{First: time.Millisecond})
	if reply, err := m.Chat(context.Background(), question); err != nil || reply.Text != "hello" || reply.Attempts != 4 {
		t.Errorf("got %+v, %v", reply, err)
	}
	gone := llm.Retry(New(Config{Model: "tiny", BaseURL: "http://127.0.0.1:1/v1"}), llm.Patience{Attempts: 2, First: time.Millisecond})
	if _, err := gone.Chat(context.Background(), question); !errors.Is(err, llm.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
	slow := llm.Retry(model(t, llmtest.Script(llmtest.Answer{Delay: time.Hour}, llmtest.Answer{Text: "at last"})), llm.Patience{First: time.Millisecond, Timeout: 50 * time.Millisecond})
	if reply, err := slow.Chat(context.Background(), question); err != nil || reply.Text != "at last" {
		t.Errorf("got %+v, %v", reply, err)
	}
}

// An endpoint that does not take a parameter is asked without it, from then on.
func TestQuirks(t *testing.T) {
	refuse := func(r *http.Request, body string) string {
		switch {
		case strings.Contains(body, `"temperature"`):
			return "Unsupported value: 'temperature' does not support 0 with this model."
		case strings.Contains(body, `"max_tokens"`):
			return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
		case strings.Contains(body, `"stream_options"`):
			return "stream_options: extra inputs are not permitted"
		}
		return ""
	}
	requests := 0
	handler := llmtest.Handler(func(_ int, r llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "ok"} })
	m := modelAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body := readBody(t, r)
		if text := refuse(r, body); text != "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"` + text + `","type":"invalid_request_error","code":null}}`))
			return
		}
		handler.ServeHTTP(w, r)
	}))
	q := question
	q.Temperature, q.MaxTokens = new(float64), 9
	for range 2 {
		if reply, err := m.Chat(context.Background(), q); err != nil || reply.Text != "ok" {
			t.Fatalf("got %+v, %v", reply, err)
		}
	}
	if requests != 5 {
		t.Errorf("%d requests, want three refused ones and two", requests)
	}
}

// A limit that is more than the model can do is lowered to what it can.
func TestLimit(t *testing.T) {
	for _, message := range []string{
		"max_tokens is too large: 100000. This model supports at most 4096 completion tokens, whereas you provided 100000.",
		"'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 4396 tokens and your request has 300 input tokens (100000 > 4396 - 300).",
	} {
		var asked []int
		m := model(t, func(_ int, r llmtest.Request) llmtest.Answer {
			asked = append(asked, r.MaxTokens)
			if r.MaxTokens > 4096 {
				return llmtest.Answer{Status: 400, Message: message}
			}
			return llmtest.Answer{Text: "ok"}
		})
		q := question
		q.MaxTokens = 100000
		for range 2 {
			if reply, err := m.Chat(context.Background(), q); err != nil || reply.Text != "ok" {
				t.Fatalf("got %+v, %v after %v", reply, err, asked)
			}
		}
		if len(asked) > 4 || asked[len(asked)-1] < 2000 {
			t.Errorf("asked for %v tokens", asked)
		}
	}
}

func TestAzureKey(t *testing.T) {
	var header http.Header
	url := llmtest.Start(t, func(_ int, r llmtest.Request) llmtest.Answer {
		header = r.Header
		return llmtest.Answer{Text: "the key is " + key}
	})
	m := New(Config{Model: "tiny", BaseURL: url + "/v1", Key: key, KeyHeader: "api-key"})
	reply, err := m.Chat(context.Background(), question)
	if err != nil || header.Get("Api-Key") != key || header.Get("Authorization") != "" {
		t.Errorf("got %v, %v", header, err)
	}
	if strings.Contains(reply.Text, key) {
		t.Error("the key is in the reply")
	}
}

// FuzzAnswer feeds the readers what no endpoint should say.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"x","tool_calls":[{"index":3,"function":{"arguments":"{"}}]},"finish_reason":"stop"}]}`))
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[{"index":-1},{"index":99999999}]}}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`{"choices":[{"delta":{"tool_calls":[{"id":"a"},{"function":{"name":7}}]}}],"usage":"much"}`))
	f.Add([]byte(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		problemIn(data)
		var chunk sdk.ChatCompletionChunk
		if json.Unmarshal(data, &chunk) == nil {
			a := &answer{}
			a.add(chunk)
			if r := a.reply(); r.Stop == "" {
				t.Errorf("%+v has no reason to stop", r)
			}
		}
		res := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(data))}
		a := &answer{}
		if err := a.readWhole(res); err == nil && a.reply().Stop == "" {
			t.Errorf("%+v has no reason to stop", a.reply())
		}
	})
}
