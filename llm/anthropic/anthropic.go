// Package anthropic is the back end for Anthropic's models, and for endpoints that speak their
// Messages protocol. It asks once; see [llm.Retry].
//
// It is Anthropic's own client underneath, at a release from before it grew four times as large with
// services that are of no use here.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/aiopslab/aiopslab/llm"
)

const (
	// BaseURL is where Anthropic's own models are.
	BaseURL = "https://api.anthropic.com"
	// maxBody is how much of an answer that is no stream is read.
	maxBody = 16 << 20
	// defaultMaxTokens limits a reply for which nothing else is said; the protocol wants a number. What
	// a model thinks before it replies counts, too.
	defaultMaxTokens = 16_384
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
	service       sdk.MessageService
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
	options := []option.RequestOption{
		option.WithBaseURL(c.BaseURL), option.WithHTTPClient(c.Client),
		option.WithMaxRetries(0),
	}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key))
	}
	return &Model{c: c, service: sdk.NewMessageService(options...)}
}

// Name is the model's name.
func (m *Model) Name() string { return m.c.Model }

// Info is what is known of the model.
func (m *Model) Info() llm.Info { return m.c.Info }

// Chat asks the model. If the model does not take a temperature, or not so large a limit, it asks again without
// one or with a smaller one.
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

// ask sends a request and reads the answer, a stream or not.
func (m *Model) ask(ctx context.Context, r llm.Request) (llm.Reply, error) {
	if _, err := url.Parse(m.c.BaseURL); err != nil {
		return llm.Reply{}, fmt.Errorf("%w: %w", llm.ErrUnavailable, err)
	}
	var res *http.Response
	stream := m.service.NewStreaming(ctx, m.request(r), option.WithResponseInto(&res))
	defer stream.Close()
	switch {
	case res == nil:
		return llm.Reply{}, &llm.Failure{After: -1, Cause: stream.Err()}
	case res.StatusCode != http.StatusOK:
		return llm.Reply{}, failure(res)
	case strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"):
		return readStream(stream, r.Delta)
	}
	return readWhole(res, r.Delta)
}

// problem is an error as the protocol has it.
type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// problemIn reads an error; what has not its form is its message.
func problemIn(text []byte) problem {
	var answer struct {
		Error problem `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Error.Message == "" {
		answer.Error.Message = llm.Brief(text)
	}
	return answer.Error
}

// failure reads an answer that is an error.
func failure(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	p := problemIn(text)
	return llm.NewFailure(res, p.Type, p.Message)
}

// readStream reads an answer that comes in parts.
func readStream(stream *ssestream.Stream[sdk.MessageStreamEventUnion], delta func(string)) (llm.Reply, error) {
	a := &answer{delta: delta}
	for stream.Next() {
		a.add(stream.Current())
	}
	switch err := stream.Err(); {
	case err != nil:
		// The client tells of an error in the stream in no other way.
		if _, text, ok := strings.Cut(err.Error(), "received error while streaming: "); ok {
			p := problemIn([]byte(text))
			return llm.Reply{}, &llm.Failure{Code: p.Type, Message: p.Message, After: -1}
		}
		return llm.Reply{}, &llm.Failure{Message: "the stream broke off", After: -1, Cause: err}
	case !a.ended:
		return llm.Reply{}, &llm.Failure{Message: "the stream was cut", After: -1}
	}
	return a.reply(), nil
}

// readWhole reads an answer that is not a stream though one was asked for.
func readWhole(res *http.Response, delta func(string)) (llm.Reply, error) {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return llm.Reply{}, &llm.Failure{Status: res.StatusCode, Message: "the answer broke off", After: -1, Cause: err}
	}
	var whole sdk.Message
	if err := json.Unmarshal(text, &whole); err != nil || whole.StopReason == "" {
		return llm.Reply{}, &llm.Failure{
			Status:  res.StatusCode,
			Message: "the answer has no reply in it: " + llm.Brief(text), After: -1,
		}
	}
	a := &answer{delta: delta}
	a.addWhole(whole)
	return a.reply(), nil
}
