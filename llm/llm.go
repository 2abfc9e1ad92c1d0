// Package llm is chat models behind one interface: messages and tools in, a reply and its usage out.
//
//	m, err := connect.Open(connect.Config{Model: "openai/gpt-4o", Env: os.Getenv})
//	reply, err := m.Chat(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "Hello"}}})
//
// The back ends are below: openai for every endpoint that speaks OpenAI's protocol, anthropic for
// Anthropic's; connect chooses one by the model's name and takes the keys from the environment.
// [Retry], [Cache] and [Read] are models on top of models.
package llm

import (
	"context"
	"encoding/json"
)

// Model is a chat model. It is safe for concurrent use.
type Model interface {
	// Name is the model's name as the provider knows it.
	Name() string
	// Info is what is known of the model.
	Info() Info
	// Chat waits for the reply. See the errors of this package for what can go wrong. A reply that is
	// empty, refused or cut off is no error.
	Chat(ctx context.Context, r Request) (Reply, error)
}

// Role says who speaks.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Result    Role = "tool" // what a tool call came to
)

// Message is a message of a conversation.
type Message struct {
	Role  Role       `json:"role"`
	Text  string     `json:"text"`
	Calls []ToolCall `json:"calls,omitempty"` // that an assistant makes
	For   string     `json:"for,omitempty"`   // id of the call that a result is of
	// Thoughts are an assistant's. They are sent back only to an endpoint that wants them.
	Thoughts string `json:"thoughts,omitempty"`
	// Sealed are the thoughts as the provider signed them, if it did. It wants them back unchanged.
	Sealed json.RawMessage `json:"sealed,omitempty"`
}

// ToolCall is a call of a tool that a model asks for.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON as the model wrote it, which may be no JSON
}

// Tool is something a model can call.
type Tool struct {
	Name   string          `json:"name"`
	Doc    string          `json:"doc"`
	Schema json.RawMessage `json:"schema"` // JSON schema of the arguments, an object
}

// Request is what a model is asked.
type Request struct {
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools,omitempty"`
	// MaxTokens limits the reply; 0 leaves it to the model.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Temperature is left to the model if it is nil, or if the model takes none.
	Temperature *float64 `json:"temperature,omitempty"`
	// TopP is left to the model if nil.
	TopP *float64 `json:"top_p,omitempty"`
	// Delta is told the parts of the reply's text as they come, thoughts included if the endpoint does not
	// part them. It may be nil. After a failure in the middle, the next attempt tells them again.
	Delta func(text string) `json:"-"`
	// Again is told of every attempt that failed and after which another one is made. It may be nil.
	Again func(Attempt) `json:"-"`
}

// Attempt is a request that failed and will be repeated.
type Attempt struct {
	Model   string  `json:"model"`
	Number  int     `json:"number"` // from 1
	Error   string  `json:"error"`
	Seconds float64 `json:"wait_seconds"` // until the next
}

// Stop says why a reply ended.
type Stop string

// The reasons.
const (
	Done    Stop = "done"
	Calling Stop = "calling" // it calls tools
	Length  Stop = "length"  // it was cut off at the limit of tokens
	Refused Stop = "refused" // the model or a filter of the provider refused
)

// Reply is what a model says.
type Reply struct {
	Text string `json:"text"`
	// Thoughts are what the model thought before or between. They are never obeyed.
	Thoughts string          `json:"thoughts,omitempty"`
	Sealed   json.RawMessage `json:"sealed,omitempty"` // see Message
	Calls    []ToolCall      `json:"calls,omitempty"`
	Stop     Stop            `json:"stop"`
	Usage    Usage           `json:"usage"`
	Attempts int             `json:"attempts,omitempty"` // how often the provider was asked, if more than once
	Cached   bool            `json:"cached,omitempty"`   // it comes from the cache on disk
}

// Usage is how many tokens an exchange took, as the provider counts, or else as we do.
type Usage struct {
	In      int `json:"in"`                // all that was read
	Cached  int `json:"cached,omitempty"`  // part of In that the provider had in its cache
	Written int `json:"written,omitempty"` // part of In that it put into its cache
	Out     int `json:"out"`
	// Estimated says that the provider did not tell all of it, and we counted.
	Estimated bool `json:"estimated,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.In + v.In, u.Cached + v.Cached, u.Written + v.Written, u.Out + v.Out, u.Estimated || v.Estimated}
}

// Ask returns a function that asks a model one thing, at temperature 0.
func Ask(m Model) func(ctx context.Context, system, user string) (string, error) {
	return func(ctx context.Context, system, user string) (string, error) {
		reply, err := m.Chat(ctx, Request{
			Messages:    []Message{{Role: System, Text: system}, {Role: User, Text: user}},
			Temperature: new(float64),
		})
		return reply.Text, err
	}
}
