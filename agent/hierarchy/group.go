package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/hierarchy/queue"
	"github.com/aiopslab/aiopslab/agent/hierarchy/seat"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// DefaultPatience is how long the chief waits for somebody who says and does nothing.
	DefaultPatience = 3 * time.Minute
	// DefaultHeartbeat is how often maintainers are to look whether all is well.
	DefaultHeartbeat = 2 * time.Minute
)

// group is the agent.
type group struct {
	agent.Briefing
	options
	after func(time.Duration) <-chan time.Time

	floor   *floor
	site    runbook.Site
	unready []string // services that had not all pods ready at first
	order   *order   // what an operation asks for, as far as rules can read it
	queue   *queue.Queue
	bus     *bus
	members []*member
	chief   *chief
	head    string       // the name of the chief
	repairs atomic.Int64 // that were made
	answers atomic.Int64 // that a group on call has given
	looks   atomic.Int64 // times that it began to look anew: what was seen before may not hold any more
	paused  atomic.Int64 // the last round in which somebody waited for some seconds to pass

	cancel context.CancelFunc
	work   sync.WaitGroup
	ended  chan struct{} // the chief is done
	last   string

	noted   sync.Mutex      // Notes of several members must not be made at once.
	prompts map[string]bool // that are recorded
	mu      sync.Mutex
	err     error
	dead    map[string]string // who is gone, and why
	shift   chan struct{}     // is closed when somebody goes
	own     string            // a directory to be removed
	hall    *seat.Hall        // where maintainers join who are MCP clients; nil if there are none
	seats   map[string]*seat.Seat
}

// errChanged says that somebody is gone.
var errChanged = errors.New("a member is gone")

func (o options) newAgent(b agent.Briefing) (agent.Agent, error) {
	if o.needsModel && b.Model == nil {
		return nil, errors.New("the agent has no model")
	}
	return o.start(b, time.After), nil
}

// start begins to work. The queue comes up when it is known who the members are.
func (o options) start(b agent.Briefing, after func(time.Duration) <-chan time.Time) *group {
	ctx, cancel := context.WithCancel(context.Background())
	g := &group{
		Briefing: b, options: o, after: after, cancel: cancel, ended: make(chan struct{}),
		dead: map[string]string{}, shift: make(chan struct{}), prompts: map[string]bool{},
	}
	g.head = map[mode]string{manager: managerName, peers: speakerName, single: g.alone()}[g.mode]
	g.floor = newFloor(b.Steps, g.head)
	g.work.Go(func() {
		defer close(g.ended)
		if err := g.lead(ctx); err != nil && ctx.Err() == nil {
			g.fail(err)
		}
	})
	return g
}

// Act implements agent.Agent: the observation is for whoever made the last call, and the next call is that of
// whoever has waited longest.
func (g *group) Act(ctx context.Context, observation string) (string, error) {
	a, err := g.floor.next(ctx, observation, g.ended)
	if errors.Is(err, errClosed) {
		if err := g.failure(); err != nil {
			return "", err
		}
		if g.last == "" {
			return "", errors.New("the group has nothing more to do, and nothing is submitted")
		}
		return g.last, nil
	}
	if err != nil {
		return "", err
	}
	g.last = a.response
	return a.response, nil
}

// Close ends everything.
func (g *group) Close() error {
	g.cancel()
	g.work.Wait()
	var err error
	if g.queue != nil {
		err = g.queue.Close()
	}
	if g.hall != nil {
		err = errors.Join(err, g.hall.Close())
	}
	if g.own != "" {
		err = errors.Join(err, os.RemoveAll(g.own))
	}
	return err
}

// fail ends the work of the group with an error; the first counts. A queue that is lost is not the group's fault.
func (g *group) fail(err error) {
	if errors.Is(err, queue.ErrLost) {
		err = fmt.Errorf("%w: %w", agent.ErrUnavailable, err)
	}
	g.mu.Lock()
	if g.err == nil {
		g.err = err
	}
	g.mu.Unlock()
	g.cancel()
}

func (g *group) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// note records an event.
func (g *group) note(kind string, data any) {
	g.noted.Lock()
	defer g.noted.Unlock()
	if p, ok := data.(record.Prompt); ok { // All maintainers have the same.
		if g.prompts[p.Name] {
			return
		}
		g.prompts[p.Name] = true
	}
	if g.Note != nil {
		g.Note(kind, data)
	}
}

// gone says that a maintainer does not come back.
func (g *group) gone(ctx context.Context, name string, why error) {
	g.mu.Lock()
	g.dead[name] = fmt.Sprintf("the maintainer does not work any more: %v", why)
	close(g.shift)
	g.shift = make(chan struct{})
	g.mu.Unlock()
	g.unseat(name, why)
	for _, id := range g.bus.pendingOf(name) {
		g.bus.done(id)
	}
	m := Message{ID: "gone-" + name}
	m.Message = record.Message{From: name, To: g.head, Kind: record.IssueMessage, Text: g.dead[name]}
	_ = g.bus.send(ctx, m) // The chief sees by itself that it is gone.
}

func (g *group) isGone(name string) (why string, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	why, gone = g.dead[name]
	return why, gone
}

// changed is closed when somebody goes.
func (g *group) changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shift
}

// services are the names of the maintainers.
func (g *group) services() []string { return g.site.Services }

// answer sends what a mind said when it was done with a message: to the chief what it or a heartbeat had asked for,
// to a colleague what that had asked for. Trouble is told to the chief in any case.
func (g *group) answer(ctx context.Context, name string, msg Message, a answer) error {
	g.note(record.TurnEvent, record.Turn{Who: name, Round: msg.Round, Does: "report_result"})
	reply := a.Message
	reply.Message = record.Message{
		From: name, To: g.head, Kind: record.ResponseMessage, Round: msg.Round, Re: msg.Number, Text: a.Text,
	}
	reply.ID, reply.Hops = msg.ID+"/"+name, msg.Hops+1
	if a.issue && msg.Kind != record.TaskMessage {
		reply.Kind = record.IssueMessage
	}
	if msg.Kind != record.NoteMessage {
		return g.bus.send(ctx, reply)
	}
	if a.issue {
		if err := g.bus.send(ctx, reply); err != nil {
			return err
		}
	}
	if strings.TrimSpace(a.Text) == "" || msg.Want == told {
		return nil
	}
	reply.To, reply.Kind, reply.Want, reply.ID = msg.From, record.NoteMessage, told, msg.ID+"/back-"+name
	return g.bus.send(ctx, reply)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
