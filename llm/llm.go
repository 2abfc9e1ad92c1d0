// Package llm is chat models behind one small type. Any endpoint that speaks OpenAI's protocol will
// do: OpenAI, Azure, OpenRouter, vLLM, Ollama.
//
//	m, err := llm.New(llm.Config{Model: "gpt-4o", Key: os.Getenv("OPENAI_API_KEY")})
//	reply, err := m.Chat(ctx, "You are an impartial judge.", "...")
//
// The one request it makes is written out here: OpenAI's own client would make the binary 14 MB
// larger.
package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	openAI = "https://api.openai.com/v1"
	// tries is how often a busy endpoint is asked, and pause how long to wait in between if it does
	// not say.
	tries = 5
	pause = time.Second
	// maxPause is the longest wait that an endpoint is granted.
	maxPause = time.Minute
	maxReply = 4 << 20
)

// Config says which model, where, and who asks.
type Config struct {
	Model   string
	BaseURL string // empty for OpenAI's own
	Key     string // may be empty for an endpoint of your own
}

// Model is a chat model. It is safe for concurrent use.
type Model struct{ c Config }

// New makes a model. It does not connect yet.
func New(c Config) (*Model, error) {
	if c.Model == "" {
		return nil, errors.New("no model is named")
	}
	if c.Key == "" && c.BaseURL == "" {
		return nil, errors.New("there is no key: set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs none")
	}
	c.BaseURL = strings.TrimRight(cmp.Or(c.BaseURL, openAI), "/")
	return &Model{c}, nil
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Chat asks at temperature 0 and returns the reply. It tries again when the endpoint is busy.
func (m *Model) Chat(ctx context.Context, system, user string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"model": m.c.Model, "temperature": 0, "messages": []message{{"system", system}, {"user", user}},
	})
	if err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		reply, wait, err := m.ask(ctx, body)
		if err == nil {
			return reply, nil
		}
		err = fmt.Errorf("model %s: %w", m.c.Model, err)
		if wait < 0 || try == tries {
			return "", err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return "", err
		}
	}
}

// ask asks once. If it may help to ask again, it says after how long; else wait is negative.
func (m *Model) ask(ctx context.Context, body []byte) (reply string, wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.c.BaseURL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", -1, err
	}
	req.Header.Set("Content-Type", "application/json")
	if m.c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.c.Key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", pause, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return "", pause, err
	}
	var answer struct {
		Choices []struct{ Message message } `json:"choices"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	broken := json.Unmarshal(text, &answer)
	switch {
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError:
		return "", retryAfter(res), fmt.Errorf("%s %s", res.Status, answer.Error.Message)
	case res.StatusCode != http.StatusOK:
		return "", -1, fmt.Errorf("%s: %s", res.Status, answer.Error.Message)
	case broken != nil:
		return "", -1, fmt.Errorf("the reply is not JSON: %w", broken)
	case len(answer.Choices) == 0:
		return "", -1, errors.New("it gave no reply")
	}
	return answer.Choices[0].Message.Content, 0, nil
}

// retryAfter is how long the endpoint asks to be left alone.
func retryAfter(res *http.Response) time.Duration {
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return pause
	}
	return min(time.Duration(seconds)*time.Second, maxPause)
}
