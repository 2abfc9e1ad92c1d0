package cli

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/exploit"
	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// provers are the agents that prove something.
var provers = append([]string{"oracle", "noop"}, fault.Remedies...)

type verifyFlags struct {
	matrix
	agents []string
	repeat int
	audit  int
	on     campaignFlags
}

// holds reports whether what must come of a cell has.
func (c *cell) holds() bool { return c.Got == c.Want }

func newVerify(s *State) *cobra.Command {
	f := &verifyFlags{}
	c := &cobra.Command{
		Use:   "verify [PROBLEM...]",
		Short: "Prove problems: the reference solution passes, doing nothing and blunt remedies fail",
		Long: `Prove problems. For each of them, the reference solution must pass; doing
nothing must fail, if something is wrong. Where the system is to be mended, in a
mitigation or an incident, blunt remedies must fail as well: restarting or
rolling back everything, scaling to zero, deleting the workload, lifting limits,
silencing alerts; unless the problem says, with a reason, that one of them is a
true fix, which must pass then, or may be one by luck, which is not run. In
operations and shifts doing nothing and blunt remedies must fail as well, also
if nothing is wrong, unless an operation says that one of them does what it asks
for. A shift that is proved lasts four minutes.

Of a suite, some localizations are also answered by exploits, which do not look
at the system's health; see 'aiopslab audit'. None may be above chance, with a
bar that is as much higher as there are exploits.

Every run has a cluster and a process of its own, unless --isolation is reset; with --cloud kubeconfig the
runs take place on a cluster that you have, in namespaces of their own, as far as
it can have the problems. The exit status is 0 only if all of it holds.

With --on cluster, a Job of a cluster that you have does the runs, each in a pod
with the embedded cloud inside it: as many at a time as -j says, there is room
for and quotas allow. The records are kept on a volume or in a bucket, and
gathered in results/NAME. Ctrl-C leaves the Job running. The same command again
goes on: what is recorded is not run again. See docs/campaigns.md.`,
		Example: `  aiopslab verify scale_pod_zero_social_net-mitigation-1
  aiopslab verify --suite mitigation -j 4
  aiopslab verify --agents oracle --audit 10
  aiopslab verify --on cluster --image registry.example/aiopslab:v1 --records pvc:records -j 200`,
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("audit") && (len(args) > 0 || len(f.agents) > 0) {
				f.audit = 0
			}
			if err := f.on.complete(c, &f.matrix); err != nil {
				return err
			}
			if f.on.cluster() {
				if c.Flags().Changed("audit") && f.audit > 0 {
					return fail(ExitUsage, fmt.Errorf("--audit %d: an audit has no records to gather", f.audit),
						"Run the audit on one machine.")
				}
				f.audit = 0
			}
			return verify(c.Context(), s, f, args)
		},
	}
	flags := c.Flags()
	f.add(c, s, "prove, if none is named", []string{"all"}, "by default they are kept only of what does not hold")
	flags.StringSliceVar(&f.agents, "agents", nil, "only these agents: "+strings.Join(provers, ", "))
	flags.IntVar(&f.repeat, "repeat", 1,
		"how often each is run, each time with the next seed; how many verdicts differ is told in the end")
	flags.IntVar(&f.audit, "audit", 5,
		"how many localizations exploits are tried on; none by default if problems or agents are named")
	f.cloud.add(c)
	f.cloud.addIKnow(c)
	f.cloud.addImages(c, s)
	f.cloud.addLoadFrom(c)
	f.cloud.addPast(c)
	f.on.add(c)
	f.apart.add(c)
	completeFlag(c, "agents", func() []string { return provers })
	return c
}

// result is where the result is told if that is not the data of -o: what does not hold, and how much does.
func (f *verifyFlags) result(s *State) io.Writer {
	if f.output != "" {
		return f.progress(s)
	}
	return s.Stdout
}

// where leaves the problems that can be run where the runs take place.
func (f *verifyFlags) where(ctx context.Context, problems []*problem.Problem, out io.Writer,
) ([]*problem.Problem, error) {
	if f.on.cluster() {
		return problems, nil
	}
	return f.onCluster(ctx, problems, out)
}

// kept is the directory of the records, if they stay there.
func (f *verifyFlags) kept() string {
	if f.on.cluster() {
		return f.on.dir(f.results)
	}
	return f.results
}

// onCluster has the runs take place on a cluster that is there: those of the problems that can be run there, without an
// audit, because there is no past that an exploit could read.
func (f *verifyFlags) onCluster(ctx context.Context, problems []*problem.Problem, out io.Writer,
) (list []*problem.Problem, err error) {
	lacks, err := f.cloud.lacking(ctx)
	if err != nil || !f.cloud.onCluster() {
		return problems, err
	}
	f.audit = 0
	for _, p := range problems {
		if why := lacks(p); why != "" {
			fmt.Fprintf(out, "not run: %s: %s\n", p.ID, why)
			continue
		}
		list = append(list, p)
	}
	return list, nil
}

// runInPods has a Job run the cells. Done is told of each when its record is there.
func (f *verifyFlags) runInPods(ctx context.Context, s *State, problems []*problem.Problem, cells []*cell,
	done func(n int, c *cell),
) error {
	args, err := f.runArgs(s)
	if err != nil {
		return err
	}
	plan := &campaign.Plan{Args: args}
	if plan.Documents, err = documents(problems); err != nil {
		return err
	}
	for _, x := range cells {
		plan.Runs = append(plan.Runs, x.run())
	}
	n := 0
	return f.on.runInPods(ctx, s, &f.matrix, "verify", plan, func(i int, r *local.Result) {
		n++
		done(n, cells[i].ended(r))
	}, func(i int, why string) {
		n++
		cells[i].lost(why)
		done(n, cells[i])
	})
}

// cells are the matrix of the problems.
func (f *verifyFlags) cells(problems []*problem.Problem) []*cell {
	var list []*cell
	add := func(p *problem.Problem, agent string, solves bool) {
		if len(f.agents) > 0 && !slices.Contains(f.agents, agent) {
			return
		}
		want := session.AgentFailed
		if solves {
			want = session.Solved
		}
		list = append(list, &cell{Problem: p.ID, Agent: agent, Want: string(want)})
	}
	for _, p := range problems {
		add(p, "oracle", true)
		asked := p.Task == problem.Operation || p.Task == problem.OnCall
		add(p, "noop", !p.Faulty() && !asked)
		if !asked && (!p.Faulty() || !p.Asks(problem.Mitigation)) {
			continue
		}
		fixes, lucky := p.TrueFixes(), p.MayFix()
		for _, remedy := range fault.Remedies {
			_, fix := fixes[remedy]
			if _, ok := lucky[remedy]; !ok {
				add(p, remedy, fix)
			}
		}
	}
	return list
}

func verify(ctx context.Context, s *State, f *verifyFlags, ids []string) error {
	if f.workers < 1 || f.repeat < 1 {
		return fail(ExitUsage, fmt.Errorf("-j %d --repeat %d: both are 1 at least", f.workers, f.repeat), "")
	}
	elsewhere := ""
	switch {
	case f.on.cluster():
		elsewhere = "--on cluster"
	case f.cloud.onCluster():
		elsewhere = "--cloud kubeconfig"
	}
	if err := f.apart.check(elsewhere); err != nil {
		return err
	}
	if f.audit < 0 {
		return fail(ExitUsage, fmt.Errorf("--audit %d: it is a number of localizations", f.audit), "")
	}
	for _, a := range f.agents {
		if !slices.Contains(provers, a) {
			return fail(ExitUsage, fmt.Errorf("--agents %s proves nothing", a),
				"Choose among "+strings.Join(provers, ", ")+".")
		}
	}
	problems, err := f.problems(s, ids)
	if err != nil {
		return err
	}
	f.length = verifiedShift
	out, start := f.progress(s), time.Now()
	if problems, err = f.where(ctx, problems, out); err != nil {
		return err
	}
	var cells []*cell
	for i := range f.repeat {
		for _, c := range f.cells(problems) {
			c.seed = f.seed + uint64(i)
			cells = append(cells, c)
		}
	}
	fmt.Fprintf(out, "%d runs of %d %s, %d at a time\n", len(cells), len(problems), plural(len(problems), "problem"),
		f.workers)
	bad, result := 0, f.result(s)
	done := func(out io.Writer, n int, c *cell) {
		mark := "ok  "
		if !c.holds() {
			bad++
			mark = "BAD "
			c.keep(f.kept())
			if f.quiet {
				out = result
			}
		}
		fmt.Fprintf(out, "%4d/%d  %s  %-55s %-22s %-8s %5.1f s  %s\n", n, len(cells), mark, c.Problem,
			c.Agent, c.Got, c.Seconds, c.explain())
	}
	if f.on.cluster() {
		err = f.runInPods(ctx, s, problems, cells, func(n int, c *cell) { done(out, n, c) })
	} else {
		err = f.run(ctx, s, problems, cells, done)
	}
	if err != nil {
		return err
	}
	if _, err := printData(s.Stdout, f.output, cells); err != nil {
		return err
	}
	fmt.Fprintf(result, "%d of %d hold, in %v\n", len(cells)-bad, len(cells), time.Since(start).Round(time.Second))
	if f.repeat > 1 {
		flakesOf(cells).print(result)
	}
	if f.audit > 0 {
		above, err := f.auditSample(ctx, s, problems, out)
		if err != nil {
			return err
		}
		bad += above
	}
	if bad > 0 {
		return exitStatus(ExitUnsolved)
	}
	return nil
}

// auditSample tries exploits on some of the localizations, and returns how many of them are above chance. Of many
// rows one is by luck alone, so the bar is as much higher as there are rows.
func (f *verifyFlags) auditSample(ctx context.Context, s *State, problems []*problem.Problem, out io.Writer,
) (int, error) {
	var list []*problem.Problem
	for _, p := range problems {
		if p.Task == problem.Localization && exploit.Asks(p) {
			list = append(list, p)
		}
	}
	r := rand.New(rand.NewPCG(f.seed, 0x61756469))
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = list[:min(f.audit, len(list))]
	if len(list) == 0 {
		fmt.Fprintln(out, "no localization to audit")
		return 0, nil
	}
	flags := auditFlags{matrix: f.matrix, seeds: 1}
	result, err := flags.measure(ctx, s, list, exploit.All(), out)
	if err != nil {
		return 0, err
	}
	result.print(out)
	above := result.above(len(result.Rows))
	fmt.Fprintf(out, "%d of %d exploits above chance\n", len(above), len(exploit.All()))
	return len(above) + len(result.Lost), nil
}

// keep moves the records of a cell out of the temporary directory, unless they are in another one.
func (c *cell) keep(results string) {
	if results != "" || c.Record == "" || os.MkdirAll(defaultResults, 0o755) != nil {
		return
	}
	for _, file := range []string{c.Record, strings.TrimSuffix(c.Record, ".jsonl") + ".json"} {
		if b, err := os.ReadFile(file); err == nil &&
			os.WriteFile(filepath.Join(defaultResults, filepath.Base(file)), b, 0o644) == nil {
			continue
		}
		return
	}
	c.Record = filepath.Join(defaultResults, filepath.Base(c.Record))
}

// explain says why a cell does not hold.
func (c *cell) explain() string {
	if c.holds() {
		return ""
	}
	return fmt.Sprintf("want %s: %s %s", c.Want, oneLine(c.Why), c.Record)
}
