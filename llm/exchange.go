package llm

// Exchange is what a model was asked and what it said, as it is recorded. It has no secrets in it.
type Exchange struct {
	Number int    `json:"number"` // from 1
	Model  string `json:"model"`
	// The prompt is the first Kept messages of the prompt of exchange Since, and then Messages.
	Since    int       `json:"since,omitempty"`
	Kept     int       `json:"kept,omitempty"`
	Messages []Message `json:"messages"`
	Tools    []string  `json:"tools,omitempty"` // by name
	Reply    Reply     `json:"reply"`
	Error    string    `json:"error,omitempty"` // instead of a reply
	Seconds  float64   `json:"seconds"`
	Cost     *float64  `json:"cost_usd"` // nil if unknown
}

// Redacted returns the message without secrets, and without a provider's seal, which only it can read.
func (m Message) Redacted() Message {
	m.Text, m.Thoughts, m.Sealed = Redact(m.Text), Redact(m.Thoughts), nil
	m.Calls = redactCalls(m.Calls)
	return m
}

// Redacted returns the reply without secrets, and without a provider's seal.
func (r Reply) Redacted() Reply {
	r.Text, r.Thoughts, r.Sealed = Redact(r.Text), Redact(r.Thoughts), nil
	r.Calls = redactCalls(r.Calls)
	return r
}

// Without returns the reply without a secret: a key that an endpoint says back goes no further.
func (r Reply) Without(secret string) Reply {
	r.Text, r.Thoughts = without(r.Text, secret), without(r.Thoughts, secret)
	for i, c := range r.Calls {
		r.Calls[i].Arguments = without(c.Arguments, secret)
	}
	return r
}

func redactCalls(calls []ToolCall) []ToolCall {
	var list []ToolCall
	for _, c := range calls {
		c.Arguments = Redact(c.Arguments)
		list = append(list, c)
	}
	return list
}
