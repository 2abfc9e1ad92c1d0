package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/llmtest"
)

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

// sdkQuestion is the question of the tests in the words of OpenAI's own client.
func sdkQuestion() sdk.ChatCompletionNewParams {
	return sdk.ChatCompletionNewParams{
		Model: "tiny",
		Messages: []sdk.ChatCompletionMessageParamUnion{
			sdk.SystemMessage("You are an engineer."),
			sdk.UserMessage("What is wrong?"),
			{OfAssistant: &sdk.ChatCompletionAssistantMessageParam{ToolCalls: []sdk.ChatCompletionMessageToolCallUnionParam{{
				OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID:       "c1",
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "get_alerts", Arguments: `{"namespace":"x"}`},
				},
			}}}},
			sdk.ToolMessage("geo is down", "c1"),
		},
		Tools: []sdk.ChatCompletionToolUnionParam{sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "get_alerts", Description: param.NewOpt("Shows alerts."),
			Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"namespace": map[string]any{"type": "string"}}},
		})},
		Temperature:   param.NewOpt(0.0),
		MaxTokens:     param.NewOpt(int64(50)),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
}

// We say what OpenAI's own client says, and read what it reads.
func TestAgreesWithOpenAI(t *testing.T) {
	answer := llmtest.Answer{
		Text: "I look at the pods, one after another.", Usage: llm.Usage{In: 100, Cached: 40, Out: 7},
		Calls: []llm.ToolCall{{ID: "c2", Name: "exec_shell", Arguments: `{"command":"kubectl get pods -A"}`}, {ID: "c3", Name: "submit", Arguments: `{}`}},
	}
	var bodies []any
	endpoint := llmtest.Handler(func(int, llmtest.Request) llmtest.Answer { return answer })
	m := modelAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		if err := json.Unmarshal([]byte(readBody(t, r)), &body); err != nil {
			t.Error(err)
		}
		bodies = append(bodies, body)
		endpoint.ServeHTTP(w, r)
	}))
	q := question
	q.Temperature, q.MaxTokens = new(float64), 50
	ours, err := m.Chat(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}

	service := sdk.NewChatCompletionService(option.WithBaseURL(m.c.BaseURL), option.WithAPIKey(key), option.WithMaxRetries(0))
	stream := service.NewStreaming(context.Background(), sdkQuestion())
	var acc sdk.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(bodies[0], bodies[1]) {
		t.Errorf("we ask    %v\nthey ask %v", bodies[0], bodies[1])
	}
	theirs := llm.Reply{
		Text: acc.Choices[0].Message.Content, Stop: stops[acc.Choices[0].FinishReason],
		Usage: llm.Usage{In: int(acc.Usage.PromptTokens), Cached: int(acc.Usage.PromptTokensDetails.CachedTokens), Out: int(acc.Usage.CompletionTokens)},
	}
	for _, c := range acc.Choices[0].Message.ToolCalls {
		theirs.Calls = append(theirs.Calls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("we read    %+v\nthey read %+v", ours, theirs)
	}
}

// FuzzAnswer feeds the reader what no endpoint should say.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"x","tool_calls":[{"index":3,"function":{"arguments":"{"}}]},"finish_reason":"stop"}]}`))
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[{"index":-1},{"index":99999999}]}}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c chunk
		if json.Unmarshal(data, &c) != nil {
			return
		}
		a := &answer{}
		if a.add(c) == nil {
			if r := a.reply(); r.Stop == "" {
				t.Errorf("%+v has no reason to stop", r)
			}
		}
	})
}
