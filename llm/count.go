package llm

import "github.com/aiopslab/aiopslab/internal/token"

// perMessage is how many tokens a message takes beside its text.
const perMessage = 4

// Counter estimates how many tokens there are in what a model is sent. It remembers what it has
// counted, because a conversation is sent again with every turn. It is not safe for concurrent use.
type Counter struct {
	// Thoughts says that thoughts are sent back, so that they count.
	Thoughts bool
	seen     map[string]int
}

// Text counts a text.
func (c *Counter) Text(text string) int {
	n, ok := c.seen[text]
	if !ok {
		n = token.Count(text)
		if c.seen == nil {
			c.seen = map[string]int{}
		}
		c.seen[text] = n
	}
	return n
}

// Messages counts messages.
func (c *Counter) Messages(list ...Message) int {
	n := 0
	for _, m := range list {
		n += c.Text(m.Text) + perMessage
		if c.Thoughts {
			n += c.Text(m.Thoughts)
		}
		for _, call := range m.Calls {
			n += c.Text(call.Name) + c.Text(call.Arguments) + perMessage
		}
	}
	return n
}

// Tools counts the descriptions of tools.
func (c *Counter) Tools(list ...Tool) int {
	n := 0
	for _, t := range list {
		n += c.Text(t.Name) + c.Text(t.Doc) + c.Text(string(t.Schema))
	}
	return n
}
