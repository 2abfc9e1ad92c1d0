package llm

import (
	"context"
	"strings"

	"github.com/aiopslab/aiopslab/internal/thought"
)

// Read returns a model that makes sense of what another one says: thoughts in the text are parted from
// the answer, and what the provider does not count is counted here.
func Read(m Model) Model { return &reader{m} }

type reader struct{ Model }

func (m *reader) Chat(ctx context.Context, r Request) (Reply, error) {
	reply, err := m.Model.Chat(ctx, r)
	if err != nil {
		return reply, err
	}
	text, thoughts := thought.Split(reply.Text, reply.Stop == Length)
	reply.Text = text
	reply.Thoughts = strings.TrimSpace(strings.TrimSpace(reply.Thoughts) + "\n\n" + thoughts)
	reply.Usage = complete(reply.Usage, r, reply)
	return reply, nil
}

// complete counts what a provider did not: a budget must hold at every endpoint.
func complete(u Usage, r Request, reply Reply) Usage {
	var c Counter
	if u.In == 0 {
		u.In, u.Estimated = c.Messages(r.Messages...)+c.Tools(r.Tools...), true
	}
	said := c.Text(reply.Text) + c.Text(reply.Thoughts)
	for _, call := range reply.Calls {
		said += c.Text(call.Name) + c.Text(call.Arguments)
	}
	if u.Out == 0 && said > 0 {
		u.Out, u.Estimated = said, true
	}
	return u
}
