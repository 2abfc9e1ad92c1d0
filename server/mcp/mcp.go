// Package mcp serves one run to an agent that is an MCP client: a tool for every action, the problem as
// instructions and as a resource, and submit as a tool.
//
//	s := mcp.New(live, mcp.Options{Task: "detection", App: a})
//	err := s.Stdio(ctx, os.Stdin, os.Stdout)
//
// Tools are listed at once; a call waits until the agent has its turn. When the run is over, a call
// is an error that says so. A client learns nothing of the answer, before or after it has submitted.
//
// With a [session.Desk], clients have their users answer what the run's policy asks.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/aci/mcptool"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// BriefingURI is the resource that tells the problem.
	BriefingURI = "problem://briefing"
	// progressInterval is how often a client that waits for its turn is told so.
	progressInterval = 2 * time.Second
)

// Run is a run whose steps the client takes, such as a [session.Live].
type Run interface {
	// Briefing waits until the agent has its turn.
	Briefing(ctx context.Context) (agent.Briefing, error)
	// Step takes a step. It returns session.ErrOver when there are none left.
	Step(ctx context.Context, response string) (session.Turn, error)
}

// Options say what the run is about, which is known before it begins.
type Options struct {
	Task    string
	App     *app.App
	Asked   string         // what an operation asks for
	Version string         // of this program
	Log     *slog.Logger   // is told of errors of the server; may be nil
	Policy  *policy.Policy // in force; nil for none
	// Desk is where the run's questions lie, for the users of clients to answer. Nil if clients are not to be asked:
	// where a client is nothing but the agent, it would approve itself.
	Desk *session.Desk
}

// Server serves a run. Any number of clients may be connected, at once or one after another; they
// share the run.
type Server struct {
	run    Run
	server *mcp.Server
	log    *slog.Logger
	tick   time.Duration
	life   context.Context // ends when the server is told to; the SDK would wait for the calls
	end    context.CancelFunc
	asker  *asker // nil if nobody is asked
}

// New makes a server of a run.
func New(run Run, o Options) *Server {
	text := briefing(o)
	s := &Server{run: run, log: o.Log, tick: progressInterval}
	s.life, s.end = context.WithCancel(context.Background())
	if o.Desk != nil {
		s.asker = newAsker(s.life, run, o.Desk)
	}
	s.server = mcp.NewServer(&mcp.Implementation{Name: "aiopslab", Title: "AIOpsLab", Version: o.Version},
		&mcp.ServerOptions{
			Instructions: text, Capabilities: &mcp.ServerCapabilities{
				Tools:     &mcp.ToolCapabilities{},
				Resources: &mcp.ResourceCapabilities{},
			},
		})
	s.server.AddResource(&mcp.Resource{
		URI: BriefingURI, Name: "briefing", Title: "The problem", MIMEType: "text/plain",
		Description: "What is to be done, on which system, and how the solution is submitted.",
	}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: BriefingURI, MIMEType: "text/plain", Text: text},
		}}, nil
	})
	for _, a := range aci.Actions(o.Task) {
		s.server.AddTool(mcptool.Of(a), s.tool(a))
	}
	return s
}

// briefing is what a client is told. It names tools, where an agent that answers in text is told how
// to write calls.
func briefing(o Options) string {
	submit := "The tool submit hands the solution in; it ends the run, so call it once and last."
	if o.Task == term.Incident {
		submit = "The tool submit hands in the answer to the question at hand, and returns the next one."
	}
	if o.Task == term.OnCall {
		submit = "The tool submit answers the pages so far and waits for the next one, until the shift is over."
	}
	asks := ""
	if o.Desk != nil {
		asks = `
Somebody may be asked to approve of a change, and the call waits for the answer.`
	}
	notice := strings.TrimRight(session.PolicyNotice(o.Policy), "\n")
	return aci.Description(o.Task, o.App, o.Asked) + notice + `

Use the tools of this server to look at the system and to change it; nothing else reaches it. exec_shell is a shell with kubectl and helm.
Each call is a step, and steps and time are limited. ` + submit + asks + `
The system may take a while to be ready: the first call waits for it.`
}

// tool is an action as a tool. A call is a step of the run; one with arguments that are wrong is not,
// since nothing is done. If the client cancels a call, the command that it runs ends.
func (s *Server) tool(a *aci.Action) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		args, wrong := mcptool.Arguments(a, req)
		if wrong != nil {
			return wrong, nil
		}
		step := agent.CallNamed(a.Name, args)
		if req.Params.RequestState != "" || len(req.Params.InputResponses) > 0 {
			if s.asker == nil {
				return stale(), nil
			}
			return s.asker.resume(ctx, req, step), nil
		}
		if err := s.await(ctx, req); err != nil {
			return unable(err), nil
		}
		if s.asker != nil {
			return s.asker.begin(ctx, req, step), nil
		}
		return came(s.run.Step(ctx, step)), nil
	}
}

// came is the result of a step.
func came(turn session.Turn, err error) *mcp.CallToolResult {
	if err != nil {
		return unable(err)
	}
	text := turn.Observation
	if turn.Over {
		text += "\nThe run is over. There is nothing more to do."
	}
	res := mcptool.Text(text)
	res.IsError = turn.Failed
	return res
}

// await waits until the agent has its turn. Who asked for progress is told that it goes on.
func (s *Server) await(ctx context.Context, req *mcp.CallToolRequest) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		_, err := s.run.Briefing(ctx)
		return err
	}
	ready := make(chan error, 1)
	go func() {
		_, err := s.run.Briefing(ctx)
		ready <- err
	}()
	began := time.Now()
	t := time.NewTicker(s.tick)
	defer t.Stop()
	for n := 1.0; ; n++ {
		select {
		case err := <-ready:
			return err
		case <-t.C:
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: n,
				Message: fmt.Sprintf("the system is being prepared, for %.0f s now", time.Since(began).Seconds()),
			}) // That it is not heard is no reason not to go on.
		}
	}
}

// unable is the result of a step that was not taken.
func unable(err error) *mcp.CallToolResult {
	if errors.Is(err, session.ErrOver) {
		return mcptool.Failed("The run is over. There is nothing more to do.")
	}
	return mcptool.Failed("The step could not be taken: %v", err)
}
