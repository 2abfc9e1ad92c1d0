package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/campaign/local"
	runs "github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// maxRow is how many tries in a row may say nothing of the agent, for each that goes on at a time.
const maxRow = 6

// What --retry has run again.
const (
	retryFailed = "agent"
	retryLost   = "infra"
)

type benchFlags struct {
	matrix
	agents   []string
	models   []string
	attempts int
	steps    int
	time     time.Duration
	hand     string // over
	maxCost  float64
	retry    []string
	keeps    bool // telemetry
	waits    bool // for its agents a run mostly waits: they use a model, or are programs
	ahead    preparation
	every    modelFlags // what holds for every run
	policy   policyFlags
	cage     cageFlags
	on       campaignFlags
}

func newBench(s *State) *cobra.Command {
	f := &benchFlags{}
	c := &cobra.Command{
		Use:   "bench [FILE]",
		Short: "Have agents try many problems, and compare them",
		Long: `Have agents try many problems, and compare them: every agent, with every model if
it needs one, tries every problem as often as -k says, each time with the next
seed, so that all have the same. In the end it prints what 'aiopslab report'
prints of the records and, of two, which is better, as 'aiopslab compare' does.

FILE is YAML with the names of flags and their values, and says the same; flags
that are given count more. Keep it in git, and the campaign is kept.

The records are in one folder. The same command again goes on: what is finished
is kept, what said nothing of the agent (infra, inconclusive) is run again, twice
at most, and what an agent has failed only with --retry agent. Nothing that is
finished is lost, or counted twice, if the command or one of its runs is killed.
Ctrl-C lets the runs that are under way end; again, and they are stopped.

With --on cluster, a Job of a cluster that you have does the runs, each in a pod
with the embedded cloud inside it, as 'aiopslab verify' tells. The records are
gathered in the folder, and the same command goes on. See docs/campaigns.md.

--max-cost is for all runs together: once it is spent no more are started. The
exit status is 0 if every run has a result that counts, 5 if some have none.`,
		Example: `  aiopslab bench --agent runbook,noop --suite mitigation --app hotel-reservation -k 5
  aiopslab bench --agent react,flash --model openai/gpt-4o --suite aiopslab --max-cost 50
  aiopslab bench nightly.yaml --results results/nightly
  aiopslab bench nightly.yaml --on cluster --image registry.example/aiopslab:v1 --records pvc:records -j 200`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fail(ExitUsage, fmt.Errorf("%s takes one file, got %q as well", c.CommandPath(), args[1]),
					"Name problems with --suite.")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := readFlags(c, args[0]); err != nil {
					return err
				}
			}
			if err := f.on.complete(c, &f.matrix); err != nil {
				return err
			}
			if err := f.checkPlace(c); err != nil {
				return err
			}
			if err := f.ahead.complete(c, &f.matrix); err != nil {
				return err
			}
			return bench(c.Context(), s, f)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.agents, "agent", []string{defaultAgent},
		"who works on them: `names` of 'aiopslab agents', or exec:COMMAND")
	flags.StringSliceVar(&f.models, "model", nil, "the `models` of agents that need one: "+modelForms)
	flags.IntVarP(&f.attempts, "attempts", "k", 1, "how often each is tried, each time with the next seed")
	flags.IntVar(&f.steps, "max-steps", session.DefaultSteps, "how many steps an agent has in a run")
	flags.DurationVar(&f.time, "max-time", session.DefaultTime, "how much time an agent has in a run")
	flags.StringVar(&f.hand, "hand-over", "", handOverUsage)
	flags.Float64Var(&f.maxCost, "max-cost", 0,
		"how many dollars all runs together may cost: then no more are started; 0 is no limit")
	flags.Float64Var(&f.every.cost, "max-run-cost", 0, "how many dollars the model of one run may cost; 0 is no limit")
	flags.StringSliceVar(&f.retry, "retry", nil,
		"run again `what` has a result: agent, what agents failed; infra, what has used up its tries")
	flags.BoolVar(&f.keeps, keepTelemetryFlag, false, keepTelemetryUsage)
	f.apart.add(c)
	f.ahead.add(c)
	f.policy.add(c)
	f.every.addEvery(c)
	f.cage.add(c)
	f.on.add(c)
	flags.StringVar(&f.on.modelSecret, "model-secret", "",
		"`name` of the Secret with the variables that models need in pods, such as OPENAI_API_KEY")
	f.cloud.addCluster(c)
	f.add(c, s, "try", nil, "made from what is to be run, in 'results', by default")
	completeFlag(c, "agent", func() []string { return agentNames(s) })
	completeFlag(c, "retry", func() []string { return []string{retryFailed, retryLost} })
	completeArgs(c, func() []string { return nil }, true, true)
	return c
}

// check refuses what cannot be meant.
func (f *benchFlags) check() error {
	switch {
	case f.workers < 1 || f.attempts < 1 || f.steps < 1:
		return fail(ExitUsage, fmt.Errorf("-j %d -k %d --max-steps %d: all are 1 at least", f.workers, f.attempts,
			f.steps), "")
	case f.time <= 0:
		return fail(ExitUsage, fmt.Errorf("--max-time %v: an agent needs some time", f.time), "")
	case f.maxCost < 0:
		return fail(ExitUsage, fmt.Errorf("--max-cost %v cannot be negative", f.maxCost), "")
	case len(f.suite) == 0:
		return fail(ExitUsage, errors.New("--suite: say which problems to try"),
			"Name a suite, as --suite aiopslab, an id or a file; --task and --app choose among them.")
	}
	for _, what := range f.retry {
		if what != retryFailed && what != retryLost {
			return fail(ExitUsage, fmt.Errorf("--retry %s: want %s or %s", what, retryFailed, retryLost), "")
		}
	}
	if _, err := session.ParseHandOver(f.hand); err != nil {
		return fail(ExitUsage, fmt.Errorf("--hand-over %w", err), "")
	}
	if err := f.apart.check(""); err != nil {
		return err
	}
	if f.on.cluster() {
		if err := f.policy.portable(); err != nil {
			return err
		}
	}
	return f.policy.read(false)
}

// contestants are the agents, each with each of the models if it needs one. The models are asked for a word: a wrong
// key or name is told before anything is run.
func (f *benchFlags) contestants(ctx context.Context, s *State) (list []local.Contestant, err error) {
	program, used := false, false
	for _, name := range f.agents {
		a, err := findAgent(s, name, &cage.Cage{})
		if err != nil {
			return nil, err
		}
		program = program || strings.HasPrefix(name, external.Prefix)
		models := []string{""}
		if a.NeedsModel || a.TakesModel && len(f.models) > 0 {
			used = true
			if models = f.models; len(models) == 0 {
				return nil, fail(ExitUsage, fmt.Errorf("the agent %s needs a model", a.Name), modelHint)
			}
		}
		for _, m := range models {
			if c := (local.Contestant{Agent: name, Model: m}); !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	f.waits = used || program
	if !used && len(f.models) > 0 {
		return nil, fail(ExitUsage, fmt.Errorf("--model %s: none of the agents needs a model",
			strings.Join(f.models, ",")), "Run 'aiopslab agents' to see which do.")
	}
	if program && f.on.cluster() {
		return nil, fail(ExitUsage, fmt.Errorf("--agent %s: a program that no pod has", strings.Join(f.agents, ",")),
			"Build it into the image as an agent of lab.Main, or run it on one machine.")
	}
	if used && f.on.cluster() && f.on.modelSecret == "" {
		return nil, fail(ExitUsage, errors.New("--on cluster needs --model-secret for agents with a model"),
			"Make one: kubectl create secret generic models --from-literal=OPENAI_API_KEY=...")
	}
	if err := f.cage.check(program); err != nil {
		return nil, err
	}
	if f.on.cluster() { // What opens models is in a Secret, for the pods alone.
		return list, nil
	}
	return list, f.checkModels(ctx, s)
}

func (f *benchFlags) checkModels(ctx context.Context, s *State) error {
	for i, name := range f.models {
		m := f.every
		if m.model = name; f.maxCost > 0 && m.cost == 0 {
			m.cost = f.maxCost // Its prices must be known.
		}
		if i > 0 {
			m.judge = "" // It was asked.
		}
		a, err := findAgent(s, defaultAgent, &cage.Cage{})
		if err != nil {
			return err
		}
		if _, err := m.open(s, a); err != nil {
			return err
		}
		if err := m.check(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// settings are the arguments of every run that its outcome depends on.
func (f *benchFlags) settings(s *State) ([]string, error) {
	level, err := f.noise.of(s)
	if err != nil {
		return nil, err
	}
	list := []string{"--noise", string(level), "--max-steps", fmt.Sprint(f.steps), "--max-time", f.time.String()}
	for _, x := range []struct{ flag, value, none string }{
		{"--decoy", f.decoys.String(), ""},
		{"--hand-over", f.hand, ""},
		{"--max-cost", fmt.Sprint(f.every.cost), "0"},
		{"--max-tokens", fmt.Sprint(f.every.tokens), "0"},
		{"--context-window", fmt.Sprint(f.every.window), "0"},
		{"--model-thoughts", f.every.thoughts, ""},
		{"--judge", f.every.judge, ""},
	} {
		if x.value != x.none {
			list = append(list, x.flag, x.value)
		}
	}
	return append(list, f.policy.args()...), nil
}

// others are the other arguments of every run.
func (f *benchFlags) others() []string {
	list := []string{"--max-memory", f.memory.String(), "--model-timeout", f.every.timeout.String()}
	if f.every.prices != "" {
		list = append(list, "--prices", f.every.prices)
	}
	if f.every.cache != "" {
		list = append(list, "--model-cache", f.every.cache)
	}
	if f.keeps {
		list = append(list, "--"+keepTelemetryFlag)
	}
	return list
}

func bench(ctx context.Context, s *State, f *benchFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	settings, err := f.settings(s)
	if err != nil {
		return err
	}
	problems, err := f.problems(s, nil)
	if err != nil {
		return err
	}
	who, err := f.contestants(ctx, s)
	if err != nil {
		return err
	}
	var ids []string
	for _, p := range problems {
		ids = append(ids, p.ID)
	}
	runs := local.Cross(who, ids, f.seed, f.attempts)
	if f.on.cluster() {
		return f.benchInPods(ctx, s, problems, who, runs, settings)
	}
	c := &local.Campaign{
		Runs: runs, Workers: f.workers, Ahead: f.ahead.of(&f.matrix, f.waits, os.DirFS("/")),
		Retries: local.DefaultRetries, MaxCost: f.maxCost, MaxRow: maxRow * f.workers,
		Settings:    slices.Concat(settings, f.apart.settings()),
		RetryFailed: slices.Contains(f.retry, retryFailed), RetryLost: slices.Contains(f.retry, retryLost),
	}
	dir := f.results
	if dir == "" {
		dir = filepath.Join(defaultResults, "bench-"+local.Digest(c.Runs, c.Settings))
	}
	p := newPool(s, dir, problems)
	p.args, p.cage = slices.Concat(p.args, settings, f.others()), f.cage.args()
	f.apart.apply(p, c)
	b := newBoard(s, &f.matrix, len(c.Runs))
	b.spending = c.Spent
	pace := fmt.Sprintf("%d at a time", f.workers)
	if c.Ahead > 0 {
		pace += fmt.Sprintf(" and %d prepared", c.Ahead)
	}
	fmt.Fprintf(b.out, "%s of %s by %s, %s, in %s\n", count(len(c.Runs), "run"), count(len(ids), "problem"),
		count(len(who), "agent"), pace, dir)
	side := map[string]int{} // by the record
	c.Prepared, c.Began, c.Ended = b.prepared, b.began, func(t *local.Try, r *local.Result) {
		if r != nil {
			side[r.Record] = slices.Index(who, r.Who())
		}
		b.ended(t, r)
	}
	stop := b.show()
	sum, err := p.run(ctx, s, c, b.tell)
	stop()
	if sum == nil {
		return err
	}
	if sum.Left > 0 {
		fmt.Fprintf(s.Stderr, "aiopslab: %d of %d runs are left, %v; the same command goes on\n", sum.Left,
			len(c.Runs), sum.Why)
		if f, ok := errors.AsType[*failure](err); ok { // That was it.
			err = exitStatus(f.code)
		}
	}
	if b.here == 0 && b.kept == 0 {
		return err
	}
	return f.conclude(s, b, dir, len(who), side, err)
}

// conclude prints what the records come to, however the campaign has ended.
func (f *benchFlags) conclude(s *State, b *board, dir string, of int, side map[string]int, err error) error {
	if terr := f.tabulate(s, dir, of, side); terr != nil {
		return errors.Join(err, terr)
	}
	if err == nil && b.counted < b.all {
		return exitStatus(ExitInconclusive)
	}
	return err
}

// benchResult is what the command tells.
type benchResult struct {
	Folder     string           `json:"folder"`
	Report     *runs.Report     `json:"report"`
	Comparison *runs.Comparison `json:"comparison,omitempty"` // of two
}

// tabulate prints what the records come to. Side says whose a record is, of so many.
func (f *benchFlags) tabulate(s *State, dir string, of int, side map[string]int) error {
	var b runs.Builder
	sides := make([][]*runs.Run, of)
	err := eachRun(s, []string{dir}, func(r *runs.Run) {
		b.Add(r)
		if i, ok := side[r.File]; ok && r.Counts() {
			sides[i] = append(sides[i], r)
		}
	})
	if err != nil {
		return err
	}
	result := benchResult{Folder: dir, Report: b.Report()}
	if of == 2 && len(sides[0]) > 0 && len(sides[1]) > 0 {
		c := runs.Compare(sides[0][0].Contestant(), sides[1][0].Contestant(), sides[0], sides[1])
		if c.Paired.Of() > 0 {
			result.Comparison = c
		}
	}
	if done, err := printData(s.Stdout, f.output, result); done {
		return err
	}
	if err := result.Report.WriteText(s.Stdout); err != nil || result.Comparison == nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "\n%s\n", result.Comparison.Sentence())
	return err
}
