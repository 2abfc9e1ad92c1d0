// Package openai is the back end for chat models at any endpoint that speaks OpenAI's protocol:
// OpenAI, Azure, OpenRouter, vLLM, Ollama. It asks once; see [llm.Retry].
//
// It is OpenAI's own client underneath, at a release from before its size tripled with services that
// are of no use here.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

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
	c       Config
	service sdk.ChatCompletionService

	mu     sync.Mutex
	quirks quirks
}

var _ llm.Model = (*Model)(nil)

// quirks are what an endpoint was found not to take.
type quirks struct {
	noTemperature, noUsage bool
	oldLimit, newLimit     bool   // what it calls the limit of tokens
	limit                  int    // the most it takes for that; 0 if unknown
	noSystem               bool   // it knows no system role
	thoughts               string // llm.Back or llm.Forget; empty if unknown
	settled                bool   // it refused thoughts, so it is not asked again
	field                  string // that it has thoughts in
}

// New makes a model. It does not connect yet.
func New(c Config) *Model {
	c.BaseURL = strings.TrimRight(cmp.Or(c.BaseURL, BaseURL), "/")
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	options := []option.RequestOption{
		option.WithBaseURL(c.BaseURL), option.WithHTTPClient(c.Client),
		option.WithMaxRetries(0),
	}
	switch {
	case c.Key == "":
	case c.KeyHeader != "":
		options = append(options, option.WithHeader(c.KeyHeader, c.Key))
	default:
		options = append(options, option.WithAPIKey(c.Key))
	}
	return &Model{c: c, service: sdk.NewChatCompletionService(options...), quirks: quirks{thoughts: c.Info.Thoughts}}
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
		reply, field, err := m.ask(ctx, m.request(r, q), r.Delta)
		f, ok := errors.AsType[*llm.Failure](err)
		if ok {
			f.Message = llm.Redact(f.Message, m.c.Key)
		}
		switch {
		case ok && f.Refused():
			return llm.Reply{Text: f.Message, Stop: llm.Refused}, nil
		case ok && f.Status >= http.StatusBadRequest && m.learn(f, q, r):
			continue
		case field != "" && field != q.field:
			m.mu.Lock()
			m.quirks.field = field
			m.mu.Unlock()
		}
		return reply.Without(m.c.Key), err
	}
}

// How endpoints and the templates behind them say that they know no system role, and that they want
// thoughts back, or not. They say it with any status.
var (
	noSystem = regexp.MustCompile(
		`(?i)(system|developer) (role|message|prompt|instruction)s?\b.*\bnot (supported|allowed|enabled|available)|(does not|doesn't|not) support.*\bsystem (role|message|prompt|instruction)|(unsupported|unknown|invalid|unexpected) (message )?role:? .{0,3}system`)
	wantThought = regexp.MustCompile(
		`(?i)missing .?reasoning(_content)?\b|.?reasoning(_content)?\b.*(is missing|must be (passed|sent|provided)|is required)`)
	noThought = regexp.MustCompile("(?i)(unsupported|unknown|unrecogni[sz]ed|unexpected|extra|not " +
		"(supported|allowed|permitted|expected)|must not|should not|remove)")
	ofThought = regexp.MustCompile(`\breasoning(_content)?\b`)
)

// learn notes what an endpoint complains of, and reports whether there is a way without it.
func (m *Model) learn(f *llm.Failure, q quirks, r llm.Request) bool {
	before := q
	limit, tooLarge := f.SmallerLimit(r.MaxTokens)
	bad := f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity
	switch text := f.Message; {
	case noSystem.MatchString(text) && len(r.Messages) > 0 && r.Messages[0].Role == llm.System:
		q.noSystem = true
	case !bad:
	case wantThought.MatchString(text) && !q.settled:
		q.thoughts = llm.Back
	case q.thoughts == llm.Back && ofThought.MatchString(text) && noThought.MatchString(text):
		q.thoughts, q.settled = llm.Forget, true
	case tooLarge:
		q.limit = limit
	case strings.Contains(text, "temperature"), strings.Contains(text, "top_p"):
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

// ask sends a request and reads the answer, a stream or not. It returns the field that thoughts were in, too.
func (m *Model) ask(ctx context.Context, params sdk.ChatCompletionNewParams,
	delta func(string),
) (llm.Reply, string, error) {
	if _, err := url.Parse(m.c.BaseURL); err != nil {
		return llm.Reply{}, "", fmt.Errorf("%w: %w", llm.ErrUnavailable, err)
	}
	var res *http.Response
	stream := m.service.NewStreaming(ctx, params, option.WithResponseInto(&res))
	defer stream.Close()
	switch {
	case res == nil:
		return llm.Reply{}, "", &llm.Failure{After: -1, Cause: stream.Err()}
	case res.StatusCode != http.StatusOK:
		return llm.Reply{}, "", failure(res)
	}
	a := &answer{delta: delta}
	read := a.readWhole
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		read = func(*http.Response) error { return a.readStream(stream) }
	}
	if err := read(res); err != nil {
		return llm.Reply{}, "", err
	}
	return a.reply(), a.field, nil
}

// failure reads an answer that is an error.
func failure(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxBody))
	p, _ := problemIn(text)
	if p.Message == "" { // Not OpenAI's form: what it says is all there is.
		p.Message = llm.Brief(text)
	}
	return llm.NewFailure(res, p.code(), p.Message)
}

// readStream reads an answer that comes in parts.
func (a *answer) readStream(stream *ssestream.Stream[sdk.ChatCompletionChunk]) error {
	for stream.Next() {
		a.add(stream.Current())
	}
	err := stream.Err()
	if e, ok := errors.AsType[*ssestream.StreamError](err); ok {
		p, _ := problemIn(e.Event.Data)
		return &llm.Failure{Code: p.code(), Message: cmp.Or(p.Message, e.Message), After: -1}
	}
	switch {
	case err != nil:
		return &llm.Failure{Message: "the stream broke off", After: -1, Cause: err}
	case !a.began:
		return &llm.Failure{Message: "the stream has no reply in it", After: -1}
	case a.reason == "":
		return &llm.Failure{Message: "the stream was cut", After: -1}
	}
	return nil
}

// readWhole reads an answer that is not a stream though one was asked for.
func (a *answer) readWhole(res *http.Response) error {
	fail := func(code, message string, cause error) error {
		return &llm.Failure{Status: res.StatusCode, Code: code, Message: message, After: -1, Cause: cause}
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return fail("", "the answer broke off", err)
	}
	if p, ok := problemIn(text); ok {
		return fail(p.code(), p.Message, nil)
	}
	var c sdk.ChatCompletion
	if err := json.Unmarshal(text, &c); err != nil {
		return fail("", "the answer is no JSON: "+llm.Brief(text), nil)
	}
	if len(c.Choices) == 0 {
		return fail("", "the answer has no reply in it", nil)
	}
	a.addWhole(c)
	return nil
}
