package hierarchy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/agent/hierarchy/queue"
	"github.com/aiopslab/aiopslab/record"
)

// maxRounds is how often the manager may hand out tasks, or on call from one answer to the next.
const maxRounds = 12

// Task is what the manager wants of a maintainer.
type Task struct {
	To, Text string
	Message  // what rules add
}

// errRounds is the error of a round too many.
var errRounds = fmt.Errorf("all %d rounds are used up; submit what you know", maxRounds)

// chief leads the group, or speaks for it: it hands out tasks, collects the answers and submits.
type chief struct {
	g      *group
	mail   chan *queue.Delivery
	round  int
	base   int             // the round before the first that counts
	issues []Message       // that nobody had asked for
	seen   map[string]bool // messages that were taken
	moves  int64           // what had been done when the chief last looked whether somebody is at work
}

// listen reads the chief's inbox until ctx ends.
func (c *chief) listen(ctx context.Context) error {
	in, err := c.g.queue.Inbox(ctx, c.g.head)
	if err != nil {
		return err
	}
	for {
		d, err := in.Next(ctx)
		if err != nil {
			return err
		}
		select {
		case c.mail <- d:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// turn records a decision of the chief.
func (c *chief) turn(does string) {
	c.g.note(record.TurnEvent, record.Turn{Who: c.g.head, Round: c.round, Does: does})
}

// assign hands out tasks and waits for the answers. Of those who say nothing and do nothing for as long as the
// group's patience lasts, it gets a silent answer. One maintainer has at most one task a round.
func (c *chief) assign(ctx context.Context, tasks []Task) ([]Message, error) {
	if err := c.check(tasks); err != nil {
		return nil, err
	}
	c.round++
	c.moves = c.g.floor.moves.Load()
	c.turn("assign_tasks")
	waiting := map[string]Message{} // by ID
	for _, t := range tasks {
		m := t.Message
		m.Message = record.Message{
			From: c.g.head, To: t.To, Kind: record.TaskMessage, Round: c.round, Text: t.Text,
		}
		m.ID = fmt.Sprintf("round-%d-%s", c.round, t.To)
		if err := c.g.bus.send(ctx, m); err != nil {
			return nil, err
		}
		waiting[m.ID] = m
	}
	return c.collect(ctx, waiting)
}

// rounds is how many there were, or on call since the last answer.
func (c *chief) rounds() int { return c.round - c.base }

// check says what is wrong with tasks.
func (c *chief) check(tasks []Task) error {
	if c.rounds() >= maxRounds {
		return errRounds
	}
	if len(tasks) == 0 {
		return errors.New("a round has at least one task")
	}
	seen := map[string]bool{}
	for _, t := range tasks {
		switch {
		case !contains(c.g.services(), t.To):
			return fmt.Errorf("there is no maintainer of %q; there are those of %s", clip(t.To, 60),
				strings.Join(c.g.services(), ", "))
		case seen[t.To]:
			return fmt.Errorf("%s has two tasks; one maintainer gets one task a round", t.To)
		case strings.TrimSpace(t.Text) == "":
			return fmt.Errorf("the task for %s has no words", t.To)
		}
		seen[t.To] = true
	}
	return nil
}

// collect waits for answers to messages, by ID.
func (c *chief) collect(ctx context.Context, waiting map[string]Message) (answers []Message, err error) {
	for len(waiting) > 0 {
		shift := c.g.changed() // before it is asked who is gone: nobody is to be missed
		for id, m := range waiting {
			if why, dead := c.g.isGone(m.To); dead {
				answers = append(answers, silence(m, why))
				delete(waiting, id)
			}
		}
		if len(waiting) == 0 {
			break
		}
		m, err := c.receive(ctx, shift)
		switch {
		case errors.Is(err, errChanged):
			continue
		case errors.Is(err, errSilence):
			for _, id := range sortedKeys(waiting) {
				m := waiting[id]
				answers = append(answers, silence(m, fmt.Sprintf("no word and no step for %v", c.g.patience)))
				c.g.bus.done(id) // Nobody waits for it any more. If it is answered later, that is an issue.
			}
			return answers, nil
		case err != nil:
			return nil, err
		}
		id, ok := c.answers(m, waiting)
		if !ok {
			c.issues = append(c.issues, m)
			continue
		}
		delete(waiting, id)
		answers = append(answers, m)
	}
	slices.SortStableFunc(answers, func(a, b Message) int { return a.Number - b.Number })
	return answers, nil
}

// answers says which of the messages somebody waits for is answered by another.
func (c *chief) answers(m Message, waiting map[string]Message) (id string, ok bool) {
	for id, w := range waiting {
		if m.From == w.To && m.ID == id+"/"+m.From {
			return id, true
		}
	}
	return "", false
}

func silence(m Message, why string) Message {
	s := Message{Silent: true}
	s.From, s.To, s.Kind, s.Round, s.Text = m.To, m.From, record.ResponseMessage, m.Round, why
	return s
}

// errSilence is the error of a wait in which nothing moved.
var errSilence = errors.New("nobody says or does anything")

// receive waits for a message. Whatever somebody does meanwhile shows that the group is at work.
func (c *chief) receive(ctx context.Context, shift <-chan struct{}) (Message, error) {
	for {
		select {
		case d := <-c.mail:
			if m, ok := c.take(d); ok {
				return m, nil
			}
		case <-c.g.after(c.g.patience):
			if !c.moved() {
				return Message{}, errSilence
			}
		case <-shift:
			return Message{}, errChanged
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

// moved reports whether anybody did anything since it was last asked.
func (c *chief) moved() bool {
	before := c.moves
	c.moves = c.g.floor.moves.Load()
	return c.moves != before
}

// take reads a delivery, unless it was taken before.
func (c *chief) take(d *queue.Delivery) (m Message, ok bool) {
	known := json.Unmarshal(d.Body, &m) == nil && !c.seen[m.ID]
	if known {
		c.seen[m.ID] = true
		c.g.bus.done(m.ID)
	}
	_ = d.Ack() // If that fails it comes again, and is known.
	return m, known
}

// drain takes what is there already.
func (c *chief) drain() {
	for {
		select {
		case d := <-c.mail:
			if m, ok := c.take(d); ok {
				c.issues = append(c.issues, m)
			}
		default:
			return
		}
	}
}

// unsolicited returns what came that nobody had asked for, once.
func (c *chief) unsolicited() []Message {
	c.drain()
	list := c.issues
	c.issues = nil
	return list
}

// submit hands in an answer, given as an agent's response, and returns what the lab says to that.
func (c *chief) submit(ctx context.Context, response string) (string, error) {
	c.turn("submit")
	return c.g.handIn(ctx, response)
}
