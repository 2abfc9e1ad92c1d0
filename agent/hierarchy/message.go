package hierarchy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/aiopslab/aiopslab/agent/hierarchy/queue"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/record"
)

// The names of those who look after no service: who leads the group, or speaks for it, and what sends heartbeats. A
// service of such a name has no maintainer.
const (
	managerName   = "manager"
	speakerName   = "speaker"
	heartbeatName = "heartbeat"
)

// Bounds of what members say.
const (
	maxText     = 6000 // characters of a message
	maxMessages = 60   // that a maintainer sends in a run, or on call from one answer to the next, beside answers
	maxHops     = 8    // of a talk in which each message answers the one before
	maxFindings = 40   // of a message
)

// Message is what one member tells another.
type Message struct {
	record.Message
	ID   string `json:"id"`
	Hops int    `json:"hops,omitempty"`
	// What rules tell rules beside the text.
	Want     want              `json:"want,omitempty"`
	Findings []runbook.Finding `json:"findings,omitempty"`
	Order    *order            `json:"order,omitempty"`
	Reading  *reading          `json:"reading,omitempty"`
	Pause    int               `json:"pause,omitempty"` // seconds to pass before a measurement
	// Trouble is whether somebody who gives no numbers says that something is wrong.
	Trouble *bool `json:"trouble,omitempty"`
	// Silent marks an answer that somebody did not give in time. It is never sent.
	Silent bool `json:"-"`
}

// want is what rules are asked to do.
type want string

const (
	look    want = ""        // look at the service
	again   want = "again"   // look once more, after a pause
	repair  want = "repair"  // set right what was found
	confirm want = "confirm" // look whether a repair elsewhere helped, and start anew who waits for it
	told    want = "told"    // it is the answer to a note
)

var (
	errSelf     = errors.New("nobody sends messages to themselves")
	errTooMany  = fmt.Errorf("that are too many messages: a maintainer may send %d", maxMessages)
	errTooDeep  = fmt.Errorf("this talk has gone back and forth %d times; report what you know instead", maxHops)
	errNoMember = errors.New("there is no such member")
)

// bus carries messages between members: it says who they are from, bounds them and records them.
type bus struct {
	queue *queue.Queue
	note  func(kind string, data any)
	names []string // of the inboxes, the chief's first

	mu      sync.Mutex
	number  int
	sent    map[string]int    // by sender
	ids     map[string]int    // the numbers of messages that were sent
	pending map[string]string // those that nobody is done with, and whose they are
	quiet   chan struct{}     // is closed when nothing is pending any more
}

func newBus(q *queue.Queue, names []string, note func(string, any)) *bus {
	return &bus{
		queue: q, note: note, names: names, sent: map[string]int{}, ids: map[string]int{},
		pending: map[string]string{}, quiet: make(chan struct{}),
	}
}

// send sends a message once, however often it is called with its ID. An error that is the sender's own mistake says
// so in words for it.
func (b *bus) send(ctx context.Context, m Message) error {
	switch {
	case m.To == m.From:
		return errSelf
	case m.Hops > maxHops:
		return errTooDeep
	case !contains(b.names, m.To):
		return fmt.Errorf("%w: %q; the members are %s", errNoMember, clip(m.To, 60), strings.Join(b.names, ", "))
	}
	m.Text = clip(strings.ToValidUTF8(strings.TrimSpace(m.Text), "?"), maxText)
	m.Findings = m.Findings[:min(len(m.Findings), maxFindings)]
	b.mu.Lock()
	if n, again := b.ids[m.ID]; again {
		m.Number = n
		b.mu.Unlock()
		return b.put(ctx, m) // The queue drops it if it has it.
	}
	if m.Kind == record.NoteMessage && m.Want != told { // Answers are as many as what they answer.
		if b.sent[m.From] >= maxMessages {
			b.mu.Unlock()
			return errTooMany
		}
		b.sent[m.From]++
	}
	b.number++
	m.Number = b.number
	b.ids[m.ID] = m.Number
	b.pending[m.ID] = m.To
	b.note(record.MessageEvent, m.Message)
	b.mu.Unlock()
	err := b.put(ctx, m)
	if err != nil {
		b.done(m.ID)
	}
	return err
}

func (b *bus) put(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.queue.Send(ctx, m.To, m.ID, body)
}

// done says that a message is dealt with.
func (b *bus) done(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.pending[id]; !ok {
		return
	}
	delete(b.pending, id)
	if len(b.pending) == 0 {
		close(b.quiet)
		b.quiet = make(chan struct{})
	}
}

// pendingOf are the messages that a member is not done with.
func (b *bus) pendingOf(name string) (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, to := range b.pending {
		if to == name {
			ids = append(ids, id)
		}
	}
	return ids
}

// renew begins to count anew what members send.
func (b *bus) renew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.sent)
}

// settled is a channel that is closed when nobody has anything left to do, or nil if that is so.
func (b *bus) settled() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) == 0 {
		return nil
	}
	return b.quiet
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// clip takes the middle out of a long text.
func clip(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most/2]) + " [...] " + string(r[len(r)-most/2:])
}

// quoted is what somebody said, so that no line of it can be taken for somebody else's words.
func quoted(text string) string {
	return "> " + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), "\r", ""), "\n", "\n> ")
}

// heading says who a message is from and what it is.
func heading(m Message) string {
	switch m.Kind {
	case record.TaskMessage:
		return "TASK:"
	case record.HeartbeatMessage:
		return "HEARTBEAT:"
	case record.IssueMessage:
		return fmt.Sprintf("ISSUE from %s:", m.From)
	case record.NoteMessage:
		return fmt.Sprintf("NOTE from %s:", m.From)
	}
	if m.Silent {
		return fmt.Sprintf("NO ANSWER from %s:", m.From)
	}
	return fmt.Sprintf("RESPONSE from %s:", m.From)
}

// joined are messages as a model reads them.
func joined(list []Message) string {
	var parts []string
	for _, m := range list {
		parts = append(parts, heading(m)+"\n"+quoted(m.Text))
	}
	return strings.Join(parts, "\n\n")
}
