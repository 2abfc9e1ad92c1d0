package hierarchy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/hierarchy/queue"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/record"
)

// Mind decides what a maintainer does.
type Mind interface {
	// Work does what a message asks for, with calls and messages through the desk, and returns the answer. It ends
	// soon when ctx does. Before is what was done for this message already by a mind that died over it.
	Work(ctx context.Context, m Message, before []string, d *desk) (answer, error)
}

// answer is what a mind says when it is done.
type answer struct {
	Message // of it, text and findings
	issue   bool
}

// reported is an answer in words, with whether something is wrong.
func reported(text string, issue bool) (a answer) {
	a.Text, a.issue, a.Trouble = text, issue, &issue
	return a
}

// desk is where a maintainer works: its calls and its messages go over it.
type desk struct {
	g    *group
	name string
	msg  Message
	log  func(what string) // notes what was done for the message
	told bool              // that the calls are used up
}

// errUsedUp is the error of another call when the calls are used up.
var errUsedUp = errors.New("the calls of the group are used up")

// call makes a call, given as an agent's response.
func (d *desk) call(ctx context.Context, does, response string) (string, error) {
	d.turn(does)
	text, err := d.g.floor.call(ctx, d.name, response)
	switch {
	case err != nil:
		return "", err
	case text != usedUp:
		d.log(response)
	case d.told: // It was to report.
		return "", errUsedUp
	default:
		d.told = true
	}
	return text, nil
}

// turn records a decision.
func (d *desk) turn(does string) {
	d.g.note(record.TurnEvent, record.Turn{Who: d.name, Round: d.msg.Round, Does: does})
}

// tell sends a note to a colleague.
func (d *desk) tell(ctx context.Context, to, text string, more Message) error {
	d.turn("send_message")
	more.Message = record.Message{
		From: d.name, To: to, Kind: record.NoteMessage, Round: d.msg.Round, Re: d.msg.Number, Text: text,
	}
	more.ID = fmt.Sprintf("%s/%s-%s", d.msg.ID, d.name, to)
	more.Hops = d.msg.Hops + 1
	return d.g.bus.send(ctx, more)
}

const (
	// maxLives is how often a maintainer is made anew before its service is left alone.
	maxLives = 5
	// maxBefore is how much of what a maintainer did is kept for the one after it.
	maxBefore = 20
)

// member is a maintainer: an inbox, and a mind that deals with what arrives in it.
type member struct {
	g    *group
	name string
	mind func() (Mind, error) // makes one that remembers nothing

	mu   sync.Mutex
	kill context.CancelCauseFunc // ends the life at hand
	// over are the messages that are dealt with, and did what was done for those that are not.
	over map[string]bool
	did  map[string][]string
}

// errKilled is the cause of the end of a maintainer that somebody ended.
var errKilled = errors.New("it was ended")

// run has the maintainer live, again and again, until ctx ends.
func (m *member) run(ctx context.Context) {
	for life := 1; ctx.Err() == nil; life++ {
		err := m.live(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case fatal(err):
			m.g.fail(err)
			return
		case life == maxLives, errors.Is(err, errLost):
			m.g.gone(ctx, m.name, err)
			return
		}
	}
}

// fatal reports whether an error is not a maintainer's own, but that of a model or a queue that the whole
// group has.
func fatal(err error) bool {
	return errors.Is(err, agent.ErrUnavailable) || errors.Is(err, queue.ErrLost) || errors.Is(err, llm.ErrBudget) ||
		errors.Is(err, llm.ErrTooLong)
}

// live takes messages out of the inbox and deals with them, until it is ended or fails.
func (m *member) live(ctx context.Context) (err error) {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	m.mu.Lock()
	m.kill = kill
	m.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	mind, err := m.mind()
	if err != nil {
		return err
	}
	in, err := m.g.queue.Inbox(ctx, m.name)
	if err != nil {
		return err
	}
	for {
		d, err := in.Next(ctx)
		if err != nil {
			return err
		}
		var msg Message
		if json.Unmarshal(d.Body, &msg) != nil || m.isOver(msg.ID) {
			if err := d.Ack(); err != nil {
				return err
			}
			continue
		}
		if err := m.deal(ctx, mind, msg, d); err != nil {
			return err
		}
	}
}

// deal deals with a message. Unless it comes to an end, the message is given back, for the life that follows.
func (m *member) deal(ctx context.Context, mind Mind, msg Message, d *queue.Delivery) error {
	over := false
	defer func() {
		if !over {
			_ = d.Again() // If that fails it comes again, later.
		}
	}()
	stop := m.g.keep(ctx, d)
	defer stop()
	desk := &desk{g: m.g, name: m.name, msg: msg, log: func(what string) { m.remember(msg.ID, what) }}
	a, err := mind.Work(ctx, msg, m.before(msg.ID), desk)
	if errors.Is(err, errUsedUp) {
		a, err = reported("I could not go on: the calls of the group are used up.", true), nil
	}
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := m.g.answer(ctx, m.name, msg, a); err != nil && !refusal(err) {
		return err
	}
	over = true
	m.mu.Lock()
	m.over[msg.ID] = true
	delete(m.did, msg.ID)
	m.mu.Unlock()
	if err := d.Ack(); err != nil {
		return err
	}
	m.g.bus.done(msg.ID)
	return nil
}

// refusal reports whether a message was not sent because of what it is.
func refusal(err error) bool {
	return errors.Is(err, errSelf) || errors.Is(err, errTooMany) || errors.Is(err, errTooDeep) ||
		errors.Is(err, errNoMember)
}

func (m *member) isOver(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over[id]
}

func (m *member) remember(id, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.did[id]) < maxBefore {
		m.did[id] = append(m.did[id], clip(strings.TrimSpace(what), 400))
	}
}

func (m *member) before(id string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.did[id]...)
}

// keep says from time to time that a message is being worked on.
func (g *group) keep(ctx context.Context, d *queue.Delivery) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(queue.DefaultAckWait / 4)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				_ = d.Working() // If that fails, the message comes again, and is known.
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
