package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// partOfFlag makes a run one of a campaign: it ends with its standard input, and what is in the campaign's folder is
// hidden from its agent.
const partOfFlag = "part-of"

// lockFD is the file descriptor by which a run of a campaign holds the campaign's folder.
const lockFD = 3

// pool has the runs of a campaign done, each by a process of this program: the only one that there is for verify,
// audit, bench, and the pods of a Job.
type pool struct {
	program string
	dir     string   // the campaign's folder
	args    []string // of every run
	cage    []string // of the runs whose agent is a program
	env     []string // variables of the runs, besides those of this process
	log     *lines
	by      map[string]*problem.Problem
}

func newPool(s *State, dir string, problems []*problem.Problem) *pool {
	p := &pool{
		program: self(s), dir: dir, log: &lines{w: io.Discard}, by: map[string]*problem.Problem{},
		args: slices.Concat(s.dirs.args(), s.logs.args(), []string{"--quiet", "-o", "json"}),
	}
	if s.logs.settings().Or(logs.Settings{Level: logs.Off}).Level != logs.Off {
		p.log.w = s.Stderr
	}
	for _, x := range problems {
		p.by[x.ID] = x
	}
	return p
}

// command is the process of a try.
func (p *pool) command(t *local.Try) *exec.Cmd {
	args := []string{"run", t.Problem}
	if x := p.by[t.Problem]; !x.BuiltIn() {
		args = []string{"run", x.Document.File, "--task", t.Problem}
	}
	args = append(args, "--agent", t.Agent, "--seed", fmt.Sprint(t.Seed), "--results", t.Dir, "--"+partOfFlag, p.dir)
	if t.Ahead {
		args = append(args, "--"+aheadFlag)
	}
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	if strings.HasPrefix(t.Agent, external.Prefix) {
		args = append(args, p.cage...)
	}
	cmd := exec.Command(p.program, append(args, p.args...)...)
	cmd.Env = p.environ()
	cmd.Stderr = p.log.writer() // What went wrong is told in the result.
	return cmd
}

// environ are the variables of the runs.
func (p *pool) environ() []string { return append(os.Environ(), p.env...) }

// abandon leaves the record of a run whose process has ended before its time.
func (p *pool) abandon(t *local.Try, why string) error {
	files, err := filepath.Glob(filepath.Join(t.Dir, "*.jsonl"))
	if err != nil {
		return err
	}
	id := session.NewID()
	file := filepath.Join(t.Dir, id+".jsonl")
	if len(files) > 0 {
		file = files[0]
	}
	run := record.Run{ID: id, Agent: t.Agent, Problem: t.Problem, Seed: t.Seed}
	_, err = session.Abandon(file, p.by[t.Problem], run, why)
	return err
}

// run takes a campaign to its end. Ctrl-C lets the runs that are under way end, the second one stops them, and tell is
// told so.
func (p *pool) run(ctx context.Context, s *State, c *local.Campaign, tell func(string)) (*local.Summary, error) {
	if _, err := environments(tempDir(s)); err != nil { // Cleans up after the killed.
		return nil, err
	}
	if err := p.ready(s); err != nil {
		return nil, err
	}
	ctx, drain, release := untilTwice(ctx, tell)
	defer release()
	folder, err := local.Open(ctx, p.dir, func() {
		tell("waiting for the runs of another campaign in " + p.dir + " to end")
	})
	if err != nil {
		return nil, fail(ExitEnvironment, err, "")
	}
	defer folder.Close()
	c.Folder, c.Command, c.Abandon, c.Drain = folder, p.command, p.abandon, drain
	c.Ready = func() error { return p.ready(s) }
	c.Room = tryRoom(func() { tell("there is too little memory for another run: it waits until there is more") })
	sum, err := c.Run(ctx)
	switch {
	case errors.Is(err, local.ErrSettings):
		return nil, fail(ExitUsage, err, "Choose another folder with --results.")
	case err != nil:
		return nil, fail(ExitEnvironment, err, "")
	case errors.Is(sum.Why, local.ErrDrained), ctx.Err() != nil && sum.Why != nil:
		return sum, exitStatus(ExitSignal + int(syscall.SIGINT))
	case errors.Is(sum.Why, local.ErrBudget), errors.Is(sum.Why, local.ErrRow):
		return sum, nil
	}
	return sum, fail(ExitEnvironment, sum.Why, "What is finished is kept.")
}

// ready says why no run can be started now.
func (p *pool) ready(s *State) error {
	if err := checkResults(p.dir); err != nil {
		return err
	}
	return checkTemp(tempDir(s))
}

// untilTwice returns a channel that is closed with the first Ctrl-C, and a context that ends with the second, or with
// another signal. One more kills the process.
func untilTwice(ctx context.Context, tell func(string)) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, release := catchSignals()
	drain := make(chan struct{})
	go func() {
		defer release()
		for once := false; ; once = true {
			select {
			case sig := <-signals:
				if sig == os.Interrupt && !once {
					tell("the runs that are under way may end; press Ctrl-C again to stop them")
					close(drain)
					continue
				}
				tell("stopping the runs that are under way")
				cancel(stopped{sig})
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, drain, func() { cancel(nil) }
}

// stopped is why runs were stopped: a signal came.
type stopped struct{ os.Signal }

func (s stopped) Error() string {
	switch s.Signal {
	case syscall.SIGHUP:
		return "the terminal was closed"
	case os.Interrupt:
		return "Ctrl-C was pressed twice"
	}
	return "the campaign was told to end (" + s.String() + ")"
}

// untilEOF returns a context that ends with what is read, and a channel that is closed when there is a line of it.
func untilEOF(ctx context.Context, from io.Reader) (_ context.Context, line <-chan struct{}, _ context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	came := make(chan struct{})
	go func() {
		defer cancel()
		in := bufio.NewReader(from)
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		close(came)
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx, came, cancel
}
