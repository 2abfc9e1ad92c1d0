package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/report/dataset"
	"github.com/aiopslab/aiopslab/session"
)

// liveFlags are those of a run that mean nothing to an incident that is over.
var liveFlags = []string{
	"approver", "cloud", "context", "decoy", "hand-over", "i-know", "images", "jaeger", keepTelemetryFlag, "kubeconfig",
	"load-from", "loki", "max-memory", "namespace", "noise", "past", "policy", "prometheus", "seed", "shadow", "tempo",
}

func atMostOneCase(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fail(ExitUsage, fmt.Errorf("one incident at a time, or all: %q is too much", args[1]), "")
	}
	return nil
}

// runOffline has an agent work on the incidents of a data set, one after another.
func runOffline(c *cobra.Command, s *State, f *runFlags, args []string) error {
	if err := f.checkOffline(c); err != nil {
		return err
	}
	names, err := dataset.Names(f.offline)
	if err != nil {
		return fail(ExitUsage, fmt.Errorf("--offline %w", err), "'aiopslab export --telemetry' makes such a data set.")
	}
	if len(args) == 1 {
		if !slices.Contains(names, args[0]) {
			return fail(ExitUsage, fmt.Errorf("there is no incident %q in %s", args[0], f.offline),
				"Leave it out to work on all of them.")
		}
		names = args
	}
	program := strings.HasPrefix(f.agent, external.Prefix)
	if err := f.cage.check(program); err != nil {
		return err
	}
	ctx, cancel := untilSignal(c.Context(), func() { report(s.Stderr, errors.New("stopping")) })
	defer cancel()
	var outcomes []*session.Outcome
	for _, name := range names {
		o, err := f.runCase(ctx, s, name, program)
		if err != nil {
			return err
		}
		if outcomes = append(outcomes, o); ctx.Err() != nil {
			break
		}
	}
	return f.endOffline(s, outcomes)
}

// checkOffline refuses what means nothing without a cluster.
func (f *runFlags) checkOffline(c *cobra.Command) (err error) {
	c.Flags().Visit(func(flag *pflag.Flag) {
		if err == nil && slices.Contains(liveFlags, flag.Name) {
			err = fail(ExitUsage, fmt.Errorf("--%s means nothing to --offline: there is no cluster", flag.Name), "")
		}
	})
	if err == nil && f.task != "" && !slices.Contains(aci.OfflineTasks, f.task) {
		err = fail(ExitUsage, fmt.Errorf("--task %s: an incident that is over can be asked about %s", f.task,
			strings.Join(aci.OfflineTasks, ", ")), "")
	}
	if err == nil && f.steps < 1 {
		err = fail(ExitUsage, fmt.Errorf("--max-steps %d: an agent needs one step at least, to submit", f.steps), "")
	}
	return err
}

// runCase has the agent work on one incident.
func (f *runFlags) runCase(ctx context.Context, s *State, name string, program bool) (*session.Outcome, error) {
	archive, err := dataset.OpenCase(f.offline, name)
	if err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("--offline %s: %w", f.offline, err), "")
	}
	p, err := f.offlineProblem(s, archive)
	if err != nil {
		return nil, err
	}
	a, err := findAgent(s, f.agent, f.cageOf(s, p))
	if err != nil {
		return nil, err
	}
	if a.Live {
		return nil, fail(ExitUsage, fmt.Errorf("the agent %s works with kubectl, and there is no cluster", a.Name),
			"mksmc, pdiagnose, rmlad and agents with a model read what was recorded.")
	}
	if err := checkResults(f.results); err != nil {
		return nil, err
	}
	run := session.Session{
		ID: session.NewID(), Seed: max(archive.Truth.Seed, 1), Problem: p, Agent: a, Offline: true, Results: f.results,
		Steps: f.steps, Time: f.time, Budget: f.models.budget(), Log: s.logger(logs.Off), Scratch: tempDir(s),
		Environment: &session.Offline{
			Archive: archive, Tables: archive.Export, Faults: archive.Truth.Faults, Scratch: tempDir(s),
			Self: toolCommand(s),
		},
	}
	if run.Model, err = f.models.open(s, a); err != nil {
		return nil, err
	}
	if run.Judge, err = f.models.openJudge(s); err != nil {
		return nil, err
	}
	hideArguments(s, p)
	f.blind = program
	t := f.transcript(s)
	t.offline = true
	t.begin(p, a)
	run.Progress = t.event
	o, err := run.Run(ctx)
	if err == nil {
		t.end(o)
	}
	return o, err
}

// taskWord is the task in the id of a problem.
var taskWord = regexp.MustCompile(`-(detection|localization|analysis|mitigation|incident)-`)

// offlineProblem is what is asked about an incident.
func (f *runFlags) offlineProblem(s *State, c *dataset.Case) (*problem.Problem, error) {
	task := problem.Localization
	if f.task != "" {
		task = problem.Task(f.task)
	}
	truth := c.Truth
	if task == problem.Analysis && len(truth.Faults) > 0 && truth.Answer.Cause == nil {
		return nil, fail(ExitUsage, fmt.Errorf("--task analysis: %s does not tell the cause of %s", f.offline, c.Name),
			"")
	}
	a := &app.App{
		Name: truth.App, Title: truth.App, Namespace: truth.App, Description: "A system of services.",
		Operations: []string{"What its users do is not known"},
	}
	for _, known := range s.Parts.AllApps() {
		if known.Name == truth.App {
			a = known
		}
	}
	var faults []problem.FaultSpec
	for _, x := range truth.Faults {
		faults = append(faults, problem.FaultSpec{Kind: x.Kind, Target: x.Target})
	}
	id := "offline-" + taskWord.ReplaceAllString(truth.Problem, "-"+string(task)+"-")
	return session.OfflineProblem(id, task, a, faults, truth.Answer), nil
}

// endOffline tells what came of all incidents, and returns the exit status: that of the worst.
func (f *runFlags) endOffline(s *State, outcomes []*session.Outcome) error {
	if len(outcomes) == 1 {
		if _, err := printData(s.Stdout, f.output, outcomes[0]); err != nil {
			return err
		}
		return verdictStatus(outcomes[0])
	}
	if printed, err := printData(s.Stdout, f.output, outcomes); err != nil || printed {
		return err
	}
	solved, worst := 0, ExitOK
	for _, o := range outcomes {
		if code := verdictCode(o.Verdict.Class); code != ExitOK {
			worst = max(worst, code)
		} else {
			solved++
		}
	}
	fmt.Fprintf(s.Stdout, "\n%d of %d incidents solved. 'aiopslab report %s' tells more.\n", solved, len(outcomes),
		f.results)
	if worst != ExitOK {
		return exitStatus(worst)
	}
	return nil
}
