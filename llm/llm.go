// Package llm is chat models behind one small type. Any endpoint that speaks OpenAI's protocol will
// do: OpenAI, Azure, OpenRouter, vLLM, Ollama.
//
//	m, err := llm.New(llm.Config{Model: "gpt-4o", Key: os.Getenv("OPENAI_API_KEY")})
//	reply, err := m.Chat(ctx, "You are an impartial judge.", "...")
package llm

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Config says which model, where, and who asks.
type Config struct {
	Model   string
	BaseURL string // empty for OpenAI's own
	Key     string // may be empty for an endpoint of your own
}

// Model is a chat model. It is safe for concurrent use.
type Model struct {
	name   string
	client openai.Client
}

// New makes a model. It does not connect yet.
func New(c Config) (*Model, error) {
	if c.Model == "" {
		return nil, errors.New("no model is named")
	}
	if c.Key == "" && c.BaseURL == "" {
		return nil, errors.New("there is no key: set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs none")
	}
	opts := []option.RequestOption{option.WithAPIKey(c.Key)}
	if c.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(c.BaseURL))
	}
	return &Model{c.Model, openai.NewClient(opts...)}, nil
}

// Chat asks once, at temperature 0, and returns the reply. The client tries again by itself when the
// endpoint is busy.
func (m *Model) Chat(ctx context.Context, system, user string) (string, error) {
	r, err := m.client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
		Model:       m.name,
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage(user)},
		Temperature: openai.Float(0),
	})
	if refused, ok := errors.AsType[*openai.Error](err); ok && refused.Message != "" {
		return "", fmt.Errorf("model %s: %w: %s", m.name, err, refused.Message)
	}
	if err != nil {
		return "", fmt.Errorf("model %s: %w", m.name, err)
	}
	if len(r.Choices) == 0 {
		return "", fmt.Errorf("model %s gave no reply", m.name)
	}
	return r.Choices[0].Message.Content, nil
}
