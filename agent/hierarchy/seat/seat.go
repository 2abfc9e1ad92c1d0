package seat

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/aci/mcptool"
	"github.com/aiopslab/aiopslab/agent"
)

// Config says whose seat it is.
type Config struct {
	Name         string // of the service
	Key          string // that a client must show
	Instructions string // for the client
	Actions      []*aci.Action
	Report       string // the name of the one among them that ends the work on a message
}

// maxVain is how many calls a client may make for nothing while it deals with a message. More are a flood.
const maxVain = 200

// Next waits for a message.
var Next = &aci.Action{
	Name: "next_message", Doc: "Wait for the next message to you: a task, a heartbeat or a note. Deal with it, " +
		"report, and call this again, until the run is over.",
	Kind: aci.Read, Params: []aci.Param{{
		Name: "wait", Type: "int", Default: 45, Doc: "How many seconds to wait at most, from 1 to 600.",
	}}, Returns: "str: the message, or that there is none yet.",
}

// Seat is the place of a member that is an MCP client. It is safe for concurrent use, but for Say and Leave, which are
// the group's.
type Seat struct {
	// URL is where the client connects to.
	URL string

	report  string
	server  *mcp.Server
	handler http.Handler
	calls   chan string // that the client makes, as an agent's responses

	mu      sync.Mutex
	message string        // that is dealt with; "" if none is
	taken   bool          // the client has it
	pending chan string   // gets what came of the call that is under way; nil if none is
	waiting chan struct{} // is closed when another call waits for messages
	news    chan struct{} // is closed when there is a message, or none will come
	vain    int           // calls for nothing since the message came
	why     error         // the seat is empty
}

func newSeat(c Config) *Seat {
	s := &Seat{report: c.Report, calls: make(chan string, 1), news: make(chan struct{})}
	s.server = mcp.NewServer(
		&mcp.Implementation{Name: "aiopslab-" + c.Name, Title: "AIOpsLab: " + c.Name, Version: "1"},
		&mcp.ServerOptions{
			Instructions: c.Instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	s.server.AddTool(mcptool.Of(Next), s.next)
	for _, a := range c.Actions {
		s.server.AddTool(mcptool.Of(a), s.tool(a))
	}
	return s
}

// Say tells the client something: a message, or what came of its call. It returns the next call that the client makes,
// as an agent's response. If ctx ends before, the client did not do its part.
func (s *Seat) Say(ctx context.Context, text string) (string, error) {
	s.mu.Lock()
	why := s.why
	switch {
	case why != nil:
	case s.pending != nil:
		s.pending <- text
		s.pending = nil
	default:
		s.message, s.taken, s.vain = text, false, 0
		s.wake()
	}
	news := s.news
	s.mu.Unlock()
	for why == nil {
		select {
		case call := <-s.calls:
			return call, nil
		case <-news:
			s.mu.Lock()
			why, news = s.why, s.news
			s.mu.Unlock()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return "", why
}

// Leave ends the work on a message, if it is not ended.
func (s *Seat) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave("Not done: this message is not yours to deal with any more. Call next_message.")
}

func (s *Seat) leave(text string) {
	s.message = ""
	if s.pending != nil {
		s.pending <- text
		s.pending = nil
	}
	select {
	case <-s.calls:
	default:
	}
}

// Close empties the seat: the client is told why.
func (s *Seat) Close(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(why)
}

func (s *Seat) end(why error) {
	if s.why == nil {
		s.why = why
		s.leave("Not done: " + why.Error() + ". There is nothing more to do.")
		s.wake()
	}
}

// wake tells whoever waits. The lock is held.
func (s *Seat) wake() {
	close(s.news)
	s.news = make(chan struct{})
}

// over is the result of a call for which nobody is there any more.
func (s *Seat) over() *mcp.CallToolResult {
	return mcptool.Failed("You are not a member of the group any more: %v. There is nothing more to do.", s.why)
}

// inVain notes a call for nothing. The lock is held.
func (s *Seat) inVain(format string, args ...any) *mcp.CallToolResult {
	if s.vain++; s.vain > maxVain {
		s.end(fmt.Errorf("it has made %d calls for nothing", maxVain))
	}
	return mcptool.Failed(format, args...)
}

// next serves next_message. The call that was made last waits; one before it is over.
func (s *Seat) next(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args, wrong := mcptool.Arguments(Next, req)
	if wrong != nil {
		return wrong, nil
	}
	seconds := 45.0
	if n, ok := args["wait"].(float64); ok {
		seconds = min(max(n, 1), 600)
	}
	limit := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer limit.Stop()
	mine := make(chan struct{})
	s.mu.Lock()
	if s.waiting != nil {
		close(s.waiting)
	}
	s.waiting = mine
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting == mine {
			s.waiting = nil
		}
	}()
	for {
		s.mu.Lock()
		text, again, why, news := s.message, s.taken, s.why, s.news
		s.taken = s.taken || text != ""
		if text != "" && again {
			r := s.inVain("You have this message, and have not reported on it. When you are done, call %s.\n\n%s",
				s.report, text)
			s.mu.Unlock()
			return r, nil
		}
		s.mu.Unlock()
		switch {
		case why != nil:
			return s.over(), nil
		case text != "":
			return mcptool.Text(text), nil
		}
		select {
		case <-news:
		case <-mine:
			return mcptool.Failed("Another call of next_message waits now."), nil
		case <-limit.C:
			return mcptool.Text("There is no message yet. Call next_message again."), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tool serves an action: the group is told of the call, and what it says of it is the result.
func (s *Seat) tool(a *aci.Action) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args, wrong := mcptool.Arguments(a, req)
		s.mu.Lock()
		switch {
		case s.why != nil:
			defer s.mu.Unlock()
			return s.over(), nil
		case wrong != nil:
			defer s.mu.Unlock()
			s.inVain("")
			return wrong, nil
		case s.message == "" || !s.taken:
			defer s.mu.Unlock()
			return s.inVain("You have no message to deal with. Call next_message first."), nil
		case s.pending != nil || len(s.calls) > 0:
			defer s.mu.Unlock()
			return s.inVain("One call at a time: another one of yours is under way."), nil
		}
		came := make(chan string, 1)
		s.calls <- agent.CallNamed(a.Name, args)
		if a.Name == s.report {
			s.message = ""
			s.mu.Unlock()
			return mcptool.Text("Reported. Call next_message to wait for the next message."), nil
		}
		s.pending = came
		s.mu.Unlock()
		select {
		case text := <-came:
			return mcptool.Text(text), nil
		case <-ctx.Done(): // What it asked for is done all the same.
			return nil, ctx.Err()
		}
	}
}
