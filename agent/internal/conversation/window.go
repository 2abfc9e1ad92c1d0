package conversation

import (
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/record"
)

// The rule that keeps a conversation within the window. The prompt and the problem always stay. While
// it is too long, in this order: the oldest observations but for those of the last turns are replaced
// by a line that says so; the oldest turns are left out; then the same with the last turns, but for
// the very last; at last, the last observation loses its middle.

const (
	// keptTurns is how many of the last turns are cut only if nothing else is left.
	keptTurns = 4
	// worthCutting is how many tokens an observation must have for a line to be shorter.
	worthCutting = 60
	// leastLast is how much of the last observation must be left for the conversation to make sense.
	leastLast = 100
	// maxReserve is what is left for the reply, at most.
	maxReserve = 4096
)

// state says what was done to a turn.
type state int

const (
	whole state = iota
	cut         // a line stands for the observation
	left        // it is left out
)

// limit is how many tokens a request may have: the window without room for a reply, and without a tenth
// because models count otherwise than we do.
func limit(window int) int {
	if window <= 0 {
		window = llm.DefaultWindow
	}
	return window*9/10 - min(maxReserve, window/4)
}

// fit cuts the conversation as the rule says, records what it cut, and returns how many tokens are
// left. Having begun, it cuts more than it must, to three quarters of what fits, so as not to begin
// again every turn.
func (c *Conversation) fit() (tokens int, err error) {
	size := c.size()
	if size <= c.limit {
		return size, nil
	}
	var done record.Cut
	cutOldest := func(from, to, target int) {
		for _, t := range c.turns[from:max(from, to)] {
			if n := c.counter.Messages(t.observation...); size > target && t.state == whole && n > worthCutting {
				t.cut(n)
				size -= n - c.counter.Messages(t.observation...)
				done.Observations = append(done.Observations, t.step)
			}
		}
		if size <= c.limit {
			return
		}
		for _, t := range c.turns[from:max(from, to)] {
			if size > target && t.state != left {
				size -= c.counter.Messages(t.reply) + c.counter.Messages(t.observation...)
				t.state = left
				done.Turns = append(done.Turns, t.step)
			}
		}
	}
	last := len(c.turns) - 1
	if last >= 0 {
		cutOldest(0, last+1-keptTurns, c.limit*3/4)
		cutOldest(max(last+1-keptTurns, 0), last, c.limit)
		if t := c.turns[last]; size > c.limit {
			before := c.counter.Messages(t.observation...)
			if c.shorten(t, before-(size-c.limit)) {
				size -= before - c.counter.Messages(t.observation...)
				done.Shortened = append(done.Shortened, t.step)
			}
		}
	}
	if size > c.limit {
		return size, fmt.Errorf("%w: about %d tokens are left after all cuts, and %d fit; use a model with a larger "+
			"window, or say --context-window if it is larger", llm.ErrTooLong, size, c.limit)
	}
	done.Tokens, done.Limit = size, c.limit
	c.note(record.CutEvent, done)
	return size, nil
}

// cut replaces the observation of n tokens by a line.
func (t *turn) cut(n int) {
	t.state = cut
	t.observation[0].Text = fmt.Sprintf(
		"[This observation, of about %d tokens, was cut to keep the conversation within the model's window.]", n)
}

// shorten takes the middle out of the observation of a turn, so that about as many tokens are left,
// and reports whether that was possible.
func (c *Conversation) shorten(t *turn, tokens int) bool {
	if len(t.observation) == 0 || tokens < leastLast {
		return false
	}
	const note = "\n[... the middle was cut to keep the conversation within the model's window ...]\n"
	text := []rune(t.observation[0].Text)
	for keep := len(text); keep > 0; keep = keep * 4 / 5 {
		t.observation[0].Text = strings.ToValidUTF8(string(text[:keep/2])+note+string(text[len(text)-keep/2:]), "")
		if c.counter.Messages(t.observation...) <= tokens {
			return true
		}
	}
	return false
}

// size is about how many tokens the conversation has, the tools included.
func (c *Conversation) size() int {
	return c.counter.Messages(c.messages()...) + c.counter.Tools(c.tools...)
}
