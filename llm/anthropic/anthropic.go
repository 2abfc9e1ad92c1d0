// Package anthropic is the back end for Anthropic's models, and for endpoints that speak their
// Messages protocol. It asks once; see [llm.Retry].
//
// The few types of the protocol that are needed are written out here. Anthropic's own client would
// make the binary 9 MB larger.
package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/llm"
)

const (
	// BaseURL is where Anthropic's own models are.
	BaseURL = "https://api.anthropic.com"
	// version is that of the protocol.
	version = "2023-06-01"
	// maxBody is how much of an answer that is no stream is read.
	maxBody = 16 << 20
	// defaultMaxTokens limits a reply for which nothing else is said; the protocol wants a number.
	defaultMaxTokens = 8192
)

// Config says which model, where, and who asks.
type Config struct {
	Model   string
	Info    llm.Info
	BaseURL string // empty for Anthropic's own
	Key     string // may be empty for an endpoint of your own
	Client  *http.Client
}

// Model is a chat model.
type Model struct {
	c             Config
	noTemperature atomic.Bool  // it was found to take none
	limit         atomic.Int64 // of a reply, the most it was found to take; 0 if unknown
}

var _ llm.Model = (*Model)(nil)

// New makes a model. It does not connect yet.
func New(c Config) *Model {
	c.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, BaseURL), "/"), "/v1")
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	return &Model{c: c}
}

// Name is the model's name.
func (m *Model) Name() string { return m.c.Model }

// Info is what is known of the model.
func (m *Model) Info() llm.Info { return m.c.Info }

// Chat asks once, or again without a temperature or with a smaller limit, if the model takes none or
// not so large a one.
func (m *Model) Chat(ctx context.Context, r llm.Request) (llm.Reply, error) {
	if r.MaxTokens == 0 {
		r.MaxTokens = defaultMaxTokens
	}
	for {
		if limit := int(m.limit.Load()); limit > 0 {
			r.MaxTokens = min(r.MaxTokens, limit)
		}
		if m.noTemperature.Load() {
			r.Temperature = nil
		}
		reply, err := m.ask(ctx, r)
		f, ok := errors.AsType[*llm.Failure](err)
		if ok {
			f.Message = llm.Redact(f.Message, m.c.Key)
		}
		if ok && f.Status == http.StatusBadRequest {
			if limit, ok := f.SmallerLimit(r.MaxTokens); ok {
				m.limit.Store(int64(limit))
				continue
			}
			if r.Temperature != nil && strings.Contains(f.Message, "temperature") {
				m.noTemperature.Store(true)
				continue
			}
		}
		return reply.Without(m.c.Key), err
	}
}

func (m *Model) ask(ctx context.Context, r llm.Request) (llm.Reply, error) {
	b, err := json.Marshal(m.request(r))
	if err != nil {
		return llm.Reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.c.BaseURL+"/v1/messages", bytes.NewReader(b))
	if err != nil {
		return llm.Reply{}, &llm.Failure{Status: http.StatusBadRequest, After: -1, Cause: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", version)
	if m.c.Key != "" {
		req.Header.Set("X-Api-Key", m.c.Key)
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
		return readStream(res, r.Delta)
	}
	return readWhole(res, r.Delta)
}

// failure reads an answer that is an error.
func failure(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	var answer struct {
		Error problem `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Error.Message == "" {
		answer.Error.Message = llm.Brief(text)
	}
	return llm.NewFailure(res, answer.Error.Type, answer.Error.Message)
}

// readWhole reads an answer that is not a stream.
func readWhole(res *http.Response, delta func(string)) (llm.Reply, error) {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return llm.Reply{}, &llm.Failure{Status: res.StatusCode, Message: "the answer broke off", After: -1, Cause: err}
	}
	var whole wireMessage
	if err := json.Unmarshal(text, &whole); err != nil || whole.StopReason == "" {
		return llm.Reply{}, &llm.Failure{Status: res.StatusCode, Message: "the answer has no reply in it: " + llm.Brief(text), After: -1}
	}
	a := &answer{delta: delta}
	for i, block := range whole.Content {
		a.begin(i, block)
	}
	a.usage(whole.Usage)
	a.reason = whole.StopReason
	return a.reply(), nil
}
