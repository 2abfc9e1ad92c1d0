package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/server/mcp"
	"github.com/aiopslab/aiopslab/session"
)

// mcpEntry stands for the client, in the record. It may be whoever runs this command.
var mcpEntry = agent.Entry{Name: "mcp", Doc: "an MCP client", Gap: neighbour}

// neighbour is why a client over HTTP or MCP counts as unconfined.
const neighbour = "unconfined, as far as is known: a client on this machine, of the same user, is not the lab's to " +
	"confine"

func newMCP(s *State) *cobra.Command {
	f := &runFlags{}
	var addr string
	c := &cobra.Command{
		Use:   "mcp PROBLEM",
		Short: "Serve a problem to an MCP client, which works on it",
		Long: `Serve a problem to an agent that is an MCP client, such as Claude Code or Codex.
Each action is a tool, and so is submit; the problem is in the server's
instructions, and in the resource ` + mcp.BriefingURI + `.

Over standard input and output, the run begins at once and ends when the client
submits or leaves. With --addr the server is at http://ADDR` + mcp.Path + ` until the run is
over. What happens, and the verdict, is told on standard error.

With --policy and --approver ask, the client asks its user about the changes that
the policy has approved, by a form. A client that has its model fill in the form
approves itself.`,
		Example: `  claude mcp add lab -- aiopslab mcp revoke_auth_mongodb-mitigation-1
  aiopslab mcp revoke_auth_mongodb-mitigation-1 --addr 127.0.0.1:8090
  aiopslab mcp revoke_auth_mongodb-mitigation-1 --policy careful --approver ask`,
		Args: f.shadow.oneProblem,
		RunE: func(c *cobra.Command, args []string) error {
			id, _ := f.shadow.names(args)
			f.policy.elsewhere = true
			p, err := f.problem(s, id)
			if err != nil {
				return err
			}
			if !c.Flags().Changed("addr") {
				return serveMCP(c.Context(), s, f, p, nil)
			}
			token, err := envToken(s)
			if err != nil {
				return err
			}
			if _, err := checkAddr(addr, token, "AIOPSLAB_TOKEN"); err != nil {
				return err
			}
			l, err := net.Listen("tcp", addr)
			if err != nil {
				return fail(ExitError, err, "Choose another with --addr.")
			}
			return serveMCP(c.Context(), s, f, p, l)
		},
	}
	c.Flags().StringVar(&addr, "addr", "", "serve HTTP on this `address`, not standard input and output; port 0 is any")
	f.addSteps(c)
	f.addRun(c, s)
	return c
}

// serveMCP serves a run over HTTP, or over standard input and output if there is no listener.
func serveMCP(ctx context.Context, s *State, f *runFlags, p *problem.Problem, l net.Listener) error {
	run := &upcoming{begun: make(chan struct{})}
	var desk *session.Desk
	if f.policy.asksElsewhere() {
		desk = session.NewDesk()
	}
	server := mcp.New(run, mcp.Options{
		Asked: p.Asked(),
		Task:  string(p.Task), App: p.App, Version: ownVersion(),
		Log: s.logger(logs.Off), Policy: f.policy.policy, Desk: desk,
	})
	serving, stop := context.WithCancel(ctx)
	defer stop()
	gone := make(chan struct{}) // There is no client any more, and there will be none.
	var failed error
	go func() {
		defer close(gone)
		if l == nil {
			failed = server.Stdio(serving, s.Stdin, s.Stdout)
			return
		}
		fmt.Fprintf(s.Stderr, "serving MCP at http://%s%s\n", l.Addr(), mcp.Path)
		failed = server.HTTP(serving, l, strings.TrimSpace(s.Env("AIOPSLAB_TOKEN")))
	}()
	t := newTranscript(s.Stderr, screenOf(s, s.Stderr, s.Terminal))
	t.blind = true
	interrupted := false
	outcome, err := holdSession(ctx, s, f, p, mcpEntry, t,
		func(ctx context.Context, session session.Session) (*session.Outcome, error) {
			session.Desk = desk
			outcome, err := run.take(ctx, session, gone)
			interrupted = ctx.Err() != nil
			return outcome, err
		})
	if err != nil {
		run.begin(nil, err)
	} else if l == nil && !interrupted { // The client may have questions left, and is told that the run is over.
		signals, release := catchSignals()
		defer release()
		select {
		case <-gone:
		case <-signals:
		}
	}
	stop()
	<-gone
	if err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	return verdictStatus(outcome)
}

// upcoming is a run that begins when its cluster is up.
type upcoming struct {
	begun chan struct{} // closed when there is a run, or an error
	live  *session.Live
	err   error
}

func (u *upcoming) begin(l *session.Live, err error) {
	if u.live == nil && u.err == nil {
		u.live, u.err = l, err
		close(u.begun)
	}
}

// take has the clients take the session's steps, until it is over or the last is gone.
func (u *upcoming) take(ctx context.Context, s session.Session, gone <-chan struct{}) (*session.Outcome, error) {
	live := s.Open(ctx)
	u.begin(live, nil)
	ctx = context.WithoutCancel(ctx) // The run ends with the other one, and is waited for.
	turn := make(chan struct{})
	go func() {
		if _, err := live.Briefing(ctx); err == nil {
			close(turn)
		}
	}()
	select {
	case <-live.Done():
	case <-gone:
		select {
		case <-turn:
			_ = live.GiveUp(ctx, errors.New("the client left before it submitted")) // It may be over by now.
		default:
			live.Cancel()
		}
	}
	return live.Wait(ctx)
}

// Briefing waits until the agent has its turn.
func (u *upcoming) Briefing(ctx context.Context) (agent.Briefing, error) {
	select {
	case <-u.begun:
	case <-ctx.Done():
		return agent.Briefing{}, context.Cause(ctx)
	}
	if u.err != nil {
		return agent.Briefing{}, u.err
	}
	return u.live.Briefing(ctx)
}

// Step takes a step, in a turn that has come.
func (u *upcoming) Step(ctx context.Context, response string) (session.Turn, error) {
	return u.live.Step(ctx, response)
}
