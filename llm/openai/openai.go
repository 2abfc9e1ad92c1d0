// Package openai is the back end for chat models at any endpoint that speaks OpenAI's protocol:
// OpenAI, Azure, OpenRouter, vLLM, Ollama. It asks once; see [llm.Retry].
//
// The few types of the protocol that are needed are written out here. OpenAI's own client would make
// the binary 14 MB larger; its decoder of streams is used, and the tests check that it says and reads
// the same as we do.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aiopslab/aiopslab/llm"
)

// BaseURL is where OpenAI's own models are.
const BaseURL = "https://api.openai.com/v1"

// maxBody is how much of an answer that is no stream is read.
const maxBody = 16 << 20

// Config says which model, where, and who asks.
type Config struct {
	Model   string
	Info    llm.Info
	BaseURL string // empty for OpenAI's own
	Key     string // may be empty for an endpoint of your own
	// KeyHeader is the header that has the key, instead of "Authorization: Bearer"; Azure's is
	// "api-key".
	KeyHeader string
	Client    *http.Client // nil for the default
}

// Model is a chat model.
type Model struct {
	c Config

	mu     sync.Mutex
	quirks quirks
}

var _ llm.Model = (*Model)(nil)

// quirks are what an endpoint was found not to take.
type quirks struct {
	noTemperature, noUsage bool
	oldLimit, newLimit     bool // what it calls the limit of tokens
	limit                  int  // the most it takes for that; 0 if unknown
}

// New makes a model. It does not connect yet.
func New(c Config) *Model {
	c.BaseURL = strings.TrimRight(cmp.Or(c.BaseURL, BaseURL), "/")
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	return &Model{c: c}
}

// Name is the model's name.
func (m *Model) Name() string { return m.c.Model }

// Info is what is known of the model.
func (m *Model) Info() llm.Info { return m.c.Info }

// Chat asks once. If the endpoint does not take one of the optional parameters, it asks again without.
func (m *Model) Chat(ctx context.Context, r llm.Request) (llm.Reply, error) {
	for {
		m.mu.Lock()
		q := m.quirks
		m.mu.Unlock()
		if q.limit > 0 && r.MaxTokens > q.limit {
			r.MaxTokens = q.limit
		}
		reply, err := m.ask(ctx, m.request(r, q), r.Delta)
		f, ok := errors.AsType[*llm.Failure](err)
		if ok {
			f.Message = llm.Redact(f.Message, m.c.Key)
		}
		switch {
		case ok && f.Refused():
			return llm.Reply{Text: f.Message, Stop: llm.Refused}, nil
		case ok && f.Status == http.StatusBadRequest && m.learn(f, q, r.MaxTokens):
			continue
		}
		return reply.Without(m.c.Key), err
	}
}

// learn notes what an endpoint complains of, and reports whether there is a way without it.
func (m *Model) learn(f *llm.Failure, q quirks, asked int) bool {
	before := q
	limit, tooLarge := f.SmallerLimit(asked)
	switch text := f.Message; {
	case tooLarge:
		q.limit = limit
	case strings.Contains(text, "temperature"):
		q.noTemperature = true
	case strings.Contains(text, "stream_options"):
		q.noUsage = true
	case strings.Contains(text, "max_completion_tokens") && !q.newLimit && m.newLimit(q):
		q.oldLimit = true
	case strings.Contains(text, "max_tokens") && !q.oldLimit && !m.newLimit(q):
		q.newLimit = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quirks = q
	return q != before
}

// newLimit reports whether the limit of tokens goes by its new name, which OpenAI's newer models insist
// on and other endpoints often do not know.
func (m *Model) newLimit(q quirks) bool {
	if q.oldLimit || q.newLimit {
		return q.newLimit
	}
	return strings.Contains(m.c.BaseURL, "api.openai.com") || strings.Contains(m.c.BaseURL, ".azure.com")
}

// ask sends a request and reads the answer, a stream or not.
func (m *Model) ask(ctx context.Context, body request, delta func(string)) (llm.Reply, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return llm.Reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.c.BaseURL+"/chat/completions", bytes.NewReader(b))
	if err != nil {
		return llm.Reply{}, fmt.Errorf("%w: %w", llm.ErrUnavailable, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	switch {
	case m.c.Key == "":
	case m.c.KeyHeader != "":
		req.Header.Set(m.c.KeyHeader, m.c.Key)
	default:
		req.Header.Set("Authorization", "Bearer "+m.c.Key)
	}
	res, err := m.c.Client.Do(req)
	if err != nil {
		return llm.Reply{}, &llm.Failure{After: -1, Cause: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return llm.Reply{}, failure(res)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return readStream(res, delta)
	}
	return readWhole(res, delta)
}

// failure reads an answer that is an error.
func failure(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(text, &answer)
	e := parseError(answer.Error)
	if e.Message == "" { // Not OpenAI's form: what it says is all there is.
		e.Message = llm.Brief(text)
	}
	return llm.NewFailure(res, e.code(), e.Message)
}

// readWhole reads an answer that is not a stream.
func readWhole(res *http.Response, delta func(string)) (llm.Reply, error) {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return llm.Reply{}, &llm.Failure{Status: res.StatusCode, Message: "the answer broke off", After: -1, Cause: err}
	}
	var c chunk
	if err := json.Unmarshal(text, &c); err != nil {
		return llm.Reply{}, &llm.Failure{Status: res.StatusCode, Message: "the answer is no JSON: " + llm.Brief(text), After: -1}
	}
	a := &answer{delta: delta}
	if err := a.add(c); err != nil {
		return llm.Reply{}, err
	}
	if !a.began {
		return llm.Reply{}, &llm.Failure{Status: res.StatusCode, Message: "the answer has no reply in it", After: -1}
	}
	return a.reply(), nil
}
