package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/session/process"
)

// defaultResults is where records go.
const defaultResults = "results"

type runFlags struct {
	agent   string
	task    string
	steps   int
	time    time.Duration
	length  time.Duration // of a shift
	day     bool          // of users passes over it
	seed    uint64
	hand    string // over
	noise   noiseFlag
	decoys  decoyFlag
	policy  policyFlags
	results string
	partOf  string          // the folder of the campaign that the run is part of
	ahead   bool            // the run begins when it is its turn
	turn    <-chan struct{} // closed then; nil if it is from the start
	keeps   bool            // what the system told
	output  string
	memory  memoryFlag
	blind   bool // the transcript does not tell what is wrong
	silent  bool // nor the steps, which who works on it shows
	quiet   bool
	verbose bool
	models  modelFlags
	cage    cageFlags
	cloud   cloudFlags
	shadow  shadowFlags
	offline string // directory of a data set
}

// add adds the flags that running and playing have in common.
func (f *runFlags) add(c *cobra.Command, s *State) {
	f.addSteps(c)
	f.addRun(c, s)
	outputFlag(c, &f.output, dataFormats...)
	f.addDetail(c)
}

// addDetail adds the flags that say how much is told.
func (f *runFlags) addDetail(c *cobra.Command) {
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print the verdict alone")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "print commands and what they print in full")
	c.MarkFlagsMutuallyExclusive("quiet", "verbose")
}

// transcript is one as the flags want it: on standard output, unless that is for the result.
func (f *runFlags) transcript(s *State) *transcript {
	t := newTranscript(s.Stdout, screenOf(s, s.Stdout, s.OutTerminal))
	if f.output != "" {
		t = newTranscript(s.Stderr, screenOf(s, s.Stderr, s.Terminal))
	}
	t.blind, t.silent = f.blind, f.silent
	switch {
	case f.quiet && f.output != "": // The result is the verdict.
		t.w, t.detail = io.Discard, quiet
	case f.quiet:
		t.detail = quiet
	case f.verbose:
		t.detail = verbose
	}
	return t
}

func (f *runFlags) addSteps(c *cobra.Command) {
	c.Flags().IntVar(&f.steps, "max-steps", session.DefaultSteps, "how many steps the agent has")
}

// addRun adds the flags of every run.
func (f *runFlags) addRun(c *cobra.Command, s *State) {
	flags := c.Flags()
	flags.StringVar(&f.task, "task", "", taskUsage)
	flags.DurationVar(&f.time, "max-time", session.DefaultTime, "how much time the agent has")
	f.addLength(c)
	flags.Uint64Var(&f.seed, "seed", 0,
		"what is left to chance is drawn from this `number`; by default $"+seedVariable+", or a new one for each run")
	flags.StringVar(&f.hand, "hand-over", "", handOverUsage)
	f.noise.add(c)
	f.decoys.add(c)
	f.policy.add(c)
	flags.StringVar(&f.results, "results", defaultResults, "`directory` of the records")
	f.cloud.add(c)
	f.cloud.addIKnow(c)
	f.cloud.addImages(c, s)
	f.cloud.addLoadFrom(c)
	f.cloud.addPast(c)
	f.shadow.add(c)
	f.memory.add(c)
	completeFlag(c, "hand-over", func() []string { return []string{string(session.AtFault), string(session.AtAlert)} })
	completeFlag(c, "task", taskNames)
	completeArgs(c, s.problemIDs, true, true)
}

const handOverUsage = "`when` the agent's turn begins: fault, as it shows; alert, when somebody would be called; " +
	"or so long after, as 90s (default fault, for incidents alert)"

// seedVariable stands for --seed. Who asks for repeatable runs sets it once.
const seedVariable = "AIOPSLAB_SEED"

// fixSeed takes the seed that the environment names, if no flag does.
func (f *runFlags) fixSeed(s *State) (err error) {
	text := s.Env(seedVariable)
	if f.seed != 0 || text == "" {
		return nil
	}
	if f.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
		return fail(ExitUsage, fmt.Errorf("%s %s: want %s", seedVariable, text, forms["uint64"]), "")
	}
	return nil
}

// problem finds the problem, and refuses limits that cannot be meant.
func (f *runFlags) problem(s *State, id string) (*problem.Problem, error) {
	if f.steps < 1 {
		return nil, fail(ExitUsage, fmt.Errorf("--max-steps %d: an agent needs one step at least, to submit", f.steps),
			"")
	}
	if f.time <= 0 {
		return nil, fail(ExitUsage, fmt.Errorf("--max-time %v: an agent needs some time", f.time), "")
	}
	if _, err := session.ParseHandOver(f.hand); err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("--hand-over %w", err), "")
	}
	if err := f.fixSeed(s); err != nil {
		return nil, err
	}
	if err := f.policy.read(f.asks(s)); err != nil {
		return nil, err
	}
	if f.policy.policy != nil && f.shadow.on {
		return nil, fail(ExitUsage, errors.New("--policy is for problems: a shadow run writes nothing"), "")
	}
	if err := f.shadow.check(&f.cloud); err != nil {
		return nil, err
	}
	if f.shadow.on {
		return f.shadow.problem(f.task)
	}
	var err error
	if f.noise.level, err = f.noise.of(s); err != nil {
		return nil, err
	}
	p, err := findProblem(s, id, f.task)
	if err != nil {
		return nil, err
	}
	return f.lasting(p)
}

// asks reports whether a person can be asked at the terminal: it is one, and nobody else uses it.
func (f *runFlags) asks(s *State) bool {
	in, ok := s.Stdin.(*os.File)
	return ok && f.agent != "" && f.partOf == "" && term.IsTerminal(int(in.Fd()))
}

// keepTelemetryFlag has a run, or all of a campaign, keep what its system told.
const (
	keepTelemetryFlag  = "keep-telemetry"
	keepTelemetryUsage = "keep metrics, logs and traces until the agent's turn beside the record, " +
		"for 'aiopslab export --telemetry'"
)

func newRun(s *State) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run PROBLEM",
		Short: "Take an agent through a problem and grade it",
		Long: `Take an agent through a problem and grade it.

A fresh cluster is started and the application deployed, or taken from where an
earlier run has kept it ($AIOPSLAB_WORLDS), and put under load. Once it is well,
the fault is injected, and once the fault shows, the agent has its turn. What
happens is printed as it happens, and kept in a record.

PROBLEM is an id that 'aiopslab problems' lists, or a YAML file. Ctrl-C stops
the agent and grades what there is.

With --offline there is no cluster: the agent is given what was recorded of the
incidents of a data set that 'aiopslab export --telemetry' has made, or one in
the layout of RCAEval, and says where each comes from. The argument, if there is
one, is the name of one of them.`,
		Example: `  aiopslab run k8s_target_port-misconfig-mitigation-1
  aiopslab run revoke_auth_mongodb-localization-1 --agent oracle -o json
  aiopslab run ./mine.yaml --task detection
  aiopslab run misconfig_app_hotel_res-detection-1 --agent 'exec:python3 examples/agent.py'
  aiopslab run --offline incidents --agent pdiagnose`,
		Args: func(c *cobra.Command, args []string) error {
			if f.offline != "" {
				return atMostOneCase(c, args)
			}
			return f.shadow.oneProblem(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if f.offline != "" {
				return runOffline(c, s, f, args)
			}
			id, _ := f.shadow.names(args)
			p, err := f.problem(s, id)
			if err != nil {
				return err
			}
			if f.keeps && f.shadow.on {
				return fail(ExitUsage, errors.New("--keep-telemetry is for problems, not for --shadow"), "")
			}
			program := strings.HasPrefix(f.agent, external.Prefix)
			if err := f.cage.check(program); err != nil {
				return err
			}
			a, err := findAgent(s, f.agent, f.cageOf(s, p))
			if err != nil {
				return err
			}
			f.blind = program // It may find what is printed, in a file.
			ctx := c.Context()
			if f.partOf != "" {
				syscall.CloseOnExec(lockFD)
				var cancel context.CancelFunc
				var line <-chan struct{}
				ctx, line, cancel = untilEOF(ctx, s.Stdin)
				defer cancel()
				if f.ahead {
					f.turn = line
				}
			}
			return runProblem(ctx, s, f, p, a)
		},
	}
	c.Flags().StringVar(&f.agent, "agent", defaultAgent,
		"who works on it: a `name` of 'aiopslab agents', or exec:COMMAND")
	completeFlag(c, "agent", func() []string { return agentNames(s) })
	c.Flags().BoolVar(&f.keeps, keepTelemetryFlag, false, keepTelemetryUsage)
	c.Flags().StringVar(&f.offline, "offline", "",
		"work on the incidents of a data set in this `directory`, without a cluster")
	f.cage.add(c)
	f.models.add(c)
	f.add(c, s)
	c.Flags().StringVar(&f.partOf, partOfFlag, "", "the `folder` of the campaign that it is part of")
	c.Flags().Lookup(partOfFlag).Hidden = true
	c.Flags().BoolVar(&f.ahead, aheadFlag, false, "begin when a line comes from the standard input")
	c.Flags().Lookup(aheadFlag).Hidden = true
	return c
}

// runProblem runs a problem on a fresh cluster, tells of it, and returns the exit status of the
// verdict.
func runProblem(ctx context.Context, s *State, f *runFlags, p *problem.Problem, a agent.Entry) error {
	t := f.transcript(s)
	outcome, err := holdSession(ctx, s, f, p, a, t,
		func(ctx context.Context, run session.Session) (*session.Outcome, error) { return run.Run(ctx) })
	if err != nil {
		return err
	}
	if _, err := printData(s.Stdout, f.output, outcome); err != nil {
		return err
	}
	return verdictStatus(outcome)
}

// holdSession has a session in an environment of its own, and tells of it. Its run is up to work.
func holdSession(ctx context.Context, s *State, f *runFlags, p *problem.Problem, a agent.Entry, t *transcript,
	work func(context.Context, session.Session) (*session.Outcome, error),
) (outcome *session.Outcome, err error) {
	if err := checkResults(f.results); err != nil {
		return nil, err
	}
	model, err := f.models.open(s, a)
	if err != nil {
		return nil, err
	}
	judge, err := f.models.openJudge(s)
	if err != nil {
		return nil, err
	}
	if f.turn == nil {
		if err := f.models.check(ctx, s); err != nil {
			return nil, err
		}
	}
	g, err := newGuest(&f.cloud)
	if err != nil {
		return nil, err
	}
	if g != nil {
		g.telemetry = f.shadow.telemetry
	}
	if f.shadow.on {
		if err := f.checkShadow(a); err != nil {
			return nil, err
		}
		t.beginShadow(g.Context, f.shadow.namespaces, a)
		run := f.shadowSession(p, a)
		run.Model, run.Judge = model, judge
		return holdShadow(ctx, s, f, run, t, work)
	}
	hideArguments(s, p)
	t.name = strings.Join(s.dirs.name(p), " ")
	t.begin(p, a)
	t.progress(g.begins())
	began, id, seed := false, session.NewID(), f.seed
	if seed == 0 {
		seed = session.NewSeed()
	}
	log := s.logger(logs.Off).With("run", id)
	if f.cage.off {
		defer forgetWorlds(s)
	}
	defer func() {
		switch left := g.leave(t.progress); {
		case left == nil:
		case err == nil: // The verdict stands.
			report(s.Stderr, left)
		default:
			err = errors.Join(err, left)
		}
	}()
	open := func(ctx context.Context, env *process.Environment) error { return env.Open(ctx) }
	switch {
	case g != nil:
		open = func(ctx context.Context, env *process.Environment) error { return g.open(ctx, id, p, env) }
	case keepsWorlds(s, f.cage.off):
		open = func(ctx context.Context, env *process.Environment) error { return env.OpenFor(ctx, p.App, seed) }
	}
	h := hosting{ceiling: f.memory.bytes, keeps: g.keeps, exposed: f.cage.off || a.Gap != ""}
	hold := func(f func(ctx context.Context, env *process.Environment) error) error {
		return withEnvironment(ctx, s, h, log, t.progress, open, f)
	}
	if s.runner != nil && g == nil {
		v := visit{problem: p, seed: seed, counts: func() bool { return says(outcome) }}
		v.trusted = !f.cage.off && cage.Possible()
		hold = func(f func(ctx context.Context, env *process.Environment) error) error {
			return s.runner.with(ctx, s, h, log, t.progress, v, open, f)
		}
	}
	err = hold(func(ctx context.Context, env *process.Environment) error {
		if f.turn != nil {
			if err := f.await(ctx, env, g.problem(p)); err != nil {
				return err
			}
			if err := f.models.check(ctx, s); err != nil { // Not before: a word costs something, too.
				return err
			}
			id = session.NewID() // It tells when the run began.
			log = s.logger(logs.Off).With("run", id)
		}
		scratch, remove, err := s.runner.scratch(env)
		if err != nil {
			return err
		}
		defer remove()
		outcome, err = work(ctx, session.Session{
			ID: id, Log: log, Problem: g.problem(p), Agent: a, Environment: env,
			Results: f.results, Scratch: scratch, HandOver: session.HandOver(f.hand), Seed: seed,
			Noise: f.noise.level, Decoys: f.decoys.kinds, Lived: f.cloud.past.lived, Telemetry: f.keeps,
			Policy: f.policy.policy, Approve: f.policy.approve(s, f.asks(s)),
			Steps: f.steps, Time: f.time, Model: model, Budget: f.models.budget(), Judge: judge,
			Progress: func(kind string, data any) {
				began = began || kind == record.BriefingEvent
				t.event(kind, data)
			},
		})
		if err == nil && ctx.Err() != nil && !began { // There is nothing to tell.
			return interrupted
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t.end(outcome)
	return outcome, nil
}

// verdictStatus is what a command returns for the verdict to be its exit status.
func verdictStatus(o *session.Outcome) error {
	if o.Verdict.Class == session.ShadowRun {
		return nil
	}
	if code := verdictCode(o.Verdict.Class); code != ExitOK {
		return exitStatus(code)
	}
	return nil
}

// verdictCode is the exit status of a run.
func verdictCode(c session.Class) int {
	switch c {
	case session.Solved:
		return ExitOK
	case session.AgentFailed:
		return ExitUnsolved
	case session.Infra:
		return ExitEnvironment
	}
	return ExitInconclusive
}

// toolCommand runs a tool of this program, confined.
func toolCommand(s *State) []string { return []string{self(s), "tool"} }

// self is this program's file, under the name it was called by if that still leads there.
func self(s *State) string {
	exe, err := os.Executable()
	called, lerr := exec.LookPath(s.Args[0])
	if lerr != nil {
		return exe
	}
	called, lerr = filepath.Abs(called)
	if err != nil {
		return called
	}
	a, aerr := os.Stat(exe)
	b, berr := os.Stat(called)
	if lerr == nil && aerr == nil && berr == nil && os.SameFile(a, b) {
		return called
	}
	return exe
}
