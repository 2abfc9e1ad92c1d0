package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/session/process"
)

// maxOrder is how long an order may be.
const maxOrder = 1 << 20

// newRunner is the command that is the process of many runs of a campaign, one after another, for whose environment it
// stands. What to run is told to it alone: its arguments tell nothing.
func newRunner(s *State) *cobra.Command {
	return &cobra.Command{
		Use: "runner", Short: "Have one run of a campaign after another", Hidden: true, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			syscall.CloseOnExec(lockFD)
			if s.own {
				keepMemory() // What a run knows stays in it after the run.
			}
			r := &runner{}
			defer r.leave()
			return r.serve(c.Context(), s)
		},
	}
}

// runner keeps the environment of a run for the next one.
type runner struct {
	env     *process.Environment // nil for none
	ceiling int64                // of its memory
}

// serve does what it is told to, until nobody tells it any more. That ends a run that is under way, too.
func (r *runner) serve(ctx context.Context, s *State) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders, failed := make(chan local.Order), make(chan error, 1)
	go func() {
		defer cancel()
		lines := bufio.NewScanner(s.Stdin)
		lines.Buffer(nil, maxOrder)
		for lines.Scan() {
			var o local.Order
			if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
				failed <- fmt.Errorf("an order: %w", err)
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
		failed <- lines.Err()
	}()
	answers := json.NewEncoder(s.Stdout)
	for {
		select {
		case o := <-orders:
			a := local.Answer{Why: r.do(ctx, s, o.Args)}
			if ctx.Err() != nil { // Nobody is left to be told.
				return nil
			}
			if err := answers.Encode(a); err != nil {
				return err
			}
		case err := <-failed:
			return err
		}
	}
}

// do has a run as a process of its own would, and returns the last line that it has said.
func (r *runner) do(ctx context.Context, s *State, args []string) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var said bytes.Buffer
	Main(ctx, &State{
		Args: append([]string{s.Args[0]}, args...), own: s.own, runner: r, Env: s.Env, LookupEnv: s.LookupEnv,
		Parts: s.Parts, Stdin: ends{ctx}, Stdout: io.Discard, Stderr: io.MultiWriter(s.Stderr, &said),
	})
	text := bytes.TrimSpace(said.Bytes())
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// ends is an input without content, which ends with a context.
type ends struct{ ctx context.Context }

func (e ends) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, io.EOF
}

// visit is what a run needs of an environment that is kept.
type visit struct {
	problem *problem.Problem
	seed    uint64
	// trusted says that the run leaves nothing where the environment does not look: its agent is confined.
	trusted bool
	// counts reports whether the run has ended as one that says something of its agent. If it has not, the environment
	// may be why.
	counts func() bool
}

// with is withEnvironment with the environment of the run before, if that is as if there had been none, or a new one
// that is kept for the next.
func (r *runner) with(ctx context.Context, s *State, h hosting, log *slog.Logger, progress func(string), v visit,
	open, f func(ctx context.Context, env *process.Environment) error,
) error {
	ctx, cancel := untilSignal(ctx, func() { progress("stopping") })
	defer cancel()
	if !r.fits(ctx, h, log, v) {
		r.leave()
		if err := r.enter(ctx, s, h, log, v, open); err != nil {
			r.leave()
			if ctx.Err() != nil {
				return interrupted
			}
			return err
		}
	}
	err := f(ctx, r.env)
	if err != nil || ctx.Err() != nil || !v.trusted || !v.counts() || r.worn() {
		r.leave()
	}
	return err
}

// fits reports whether the environment that is kept will do for a run, and resets it then. A run that is not trusted
// gets nothing that was kept: the environment may have been made from a kept world.
func (r *runner) fits(ctx context.Context, h hosting, log *slog.Logger, v visit) bool {
	if r.env == nil || !v.trusted || !r.env.Fits(v.problem) || r.ceiling != h.ceiling {
		return false
	}
	if err := r.env.Renew(ctx, v.seed); err != nil {
		log.Warn("a kept environment is given up", "why", err)
		return false
	}
	return true
}

// enter has a new environment, with the application in it.
func (r *runner) enter(ctx context.Context, s *State, h hosting, log *slog.Logger, v visit,
	open func(ctx context.Context, env *process.Environment) error,
) error {
	tmp := tempDir(s)
	if err := checkTemp(tmp); err != nil {
		return err
	}
	dir, err := newDir(tmp)
	if err != nil {
		return fail(ExitEnvironment, err, tempHint)
	}
	if r.env, err = startEnvironment(s, dir, h, log); err != nil {
		_ = os.RemoveAll(dir)
		return fail(ExitEnvironment, err, "")
	}
	r.ceiling = h.ceiling
	return openEnvironment(ctx, r.env, func(ctx context.Context, env *process.Environment) error {
		if err := open(ctx, env); err != nil {
			return err
		}
		return env.Keep(ctx, v.problem)
	})
}

// worn reports whether the process of the environment has taken so much memory that it might be held against the next
// agent.
func (r *runner) worn() bool { return r.env.Memory() > r.ceiling/4 }

// leave ends the environment, if there is one.
func (r *runner) leave() {
	if r.env == nil {
		return
	}
	r.env.Close()
	_ = os.RemoveAll(r.env.Dir)
	r.env = nil
}

// scratch is the directory for what an agent needs on this machine, and how to remove it: one of its own where others
// will come after it.
func (r *runner) scratch(env *process.Environment) (dir string, remove func(), err error) {
	if r == nil {
		return env.Dir, func() {}, nil
	}
	if dir, err = os.MkdirTemp(env.Dir, "run-"); err != nil {
		return "", nil, fail(ExitEnvironment, err, tempHint)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// says reports whether a run says something of its agent.
func says(o *session.Outcome) bool {
	return o != nil && (o.Verdict.Class == session.Solved || o.Verdict.Class == session.AgentFailed)
}
