package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// shadowFlags say that a run is on a live system, and what of that may be read.
type shadowFlags struct {
	on         bool
	namespaces []string
	telemetry  observe.External
}

func (f *shadowFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.on, "shadow", false,
		"look at a live system, with --cloud kubeconfig: no fault, no load; what the agent would write is recorded")
	flags.StringSliceVar(&f.namespaces, "namespace", nil, "a `namespace` that a shadow run may read; several")
	flags.StringVar(&f.telemetry.Prometheus, "prometheus", "",
		"the `URL` of a Prometheus that you have: the agent's metrics and alerts come from there")
	flags.StringVar(&f.telemetry.Jaeger, "jaeger", "",
		"the `URL` of a Jaeger that you have: the agent's traces come from there")
	flags.StringVar(&f.telemetry.Tempo, "tempo", "",
		"the `URL` of a Tempo that you have: the agent's traces come from there")
	flags.StringVar(&f.telemetry.Loki, "loki", "",
		"the `URL` of a Loki that you have: the agent's logs come from there")
}

// check refuses flags that do not go together.
func (f *shadowFlags) check(cloud *cloudFlags) error {
	if !f.on {
		switch {
		case len(f.namespaces) > 0:
			return fail(ExitUsage, errors.New("--namespace is for shadow runs"),
				"Add --shadow --cloud kubeconfig to look at a live system, or leave it out.")
		case f.telemetry != (observe.External{}) && !cloud.onCluster():
			return fail(ExitUsage,
				errors.New("--prometheus, --jaeger, --tempo and --loki mean nothing to the embedded cloud"),
				"Add --cloud kubeconfig to use a cluster that you have, or leave it out.")
		}
		return fail(ExitUsage, f.telemetry.Check(), "")
	}
	switch {
	case !cloud.onCluster():
		return fail(ExitUsage, errors.New("--shadow looks at a cluster that you have"), "Add --cloud kubeconfig.")
	case len(f.namespaces) == 0:
		return fail(ExitUsage, errors.New("--shadow needs a --namespace: what the agent may read"),
			"Nothing else is shown to it. Name several if the system has several.")
	}
	return fail(ExitUsage, f.telemetry.Check(), "")
}

// names takes the name of a problem off the arguments. A shadow run has none.
func (f *shadowFlags) names(args []string) (id string, rest []string) {
	if f.on || len(args) == 0 {
		return "", args
	}
	return args[0], args[1:]
}

// oneProblem wants the name of a problem, unless the run is on a live system.
func (f *shadowFlags) oneProblem(c *cobra.Command, args []string) error {
	if !f.on {
		return oneArg("a problem")(c, args)
	}
	if len(args) > 0 {
		return fail(ExitUsage, fmt.Errorf("a shadow run has no problem, and %q is one", args[0]),
			"Leave it out: what is wrong, if anything, nobody knows. --task says what is asked.")
	}
	return nil
}

// problem is what is asked in a shadow run.
func (f *shadowFlags) problem(task string) (*problem.Problem, error) {
	t := problem.Task(task)
	switch {
	case task == "":
		t = problem.Mitigation
	case !slices.Contains(problem.Tasks, t), t == problem.Incident:
		return nil, fail(ExitUsage, fmt.Errorf("--task %s: a shadow run asks for a detection, localization, analysis "+
			"or mitigation", task), "")
	}
	return session.ShadowProblem(t, f.namespaces), nil
}

// holdShadow has a session on a live system, in this process. There is nothing to leave behind.
func holdShadow(ctx context.Context, s *State, f *runFlags, run session.Session, t *transcript,
	work func(context.Context, session.Session) (*session.Outcome, error),
) (*session.Outcome, error) {
	ctx, cancel := untilSignal(ctx, func() { t.progress("stopping; press Ctrl-C again to stop at once") })
	defer cancel()
	c, err := f.cloud.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	run.ID, run.Log, run.Shadow, run.Seed = session.NewID(), s.logger(logs.Off), true, session.NewSeed()
	run.Environment = &session.Shadow{
		Cloud: c, Namespaces: f.shadow.namespaces, Telemetry: f.shadow.telemetry, Self: toolCommand(s),
		Scratch: tempDir(s),
	}
	run.Progress = t.event
	outcome, err := work(ctx, run)
	if err != nil {
		return nil, err
	}
	t.endShadow(outcome)
	return outcome, nil
}

// cageOf is the cage of an agent that is a program. On a live system the ways around the guard are hidden from it: the
// kubeconfigs that the run has its own rights from.
func (f *runFlags) cageOf(s *State, p *problem.Problem) *cage.Cage {
	c := f.cage.of(s, f.results, p)
	c.Hidden = append(c.Hidden, f.partOf, f.offline)
	if f.shadow.on {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		c.Hidden = append(c.Hidden, filepath.Dir(clientcmd.RecommendedHomeFile), "/var/run/secrets", f.cloud.kubeconfig)
		c.Hidden = append(c.Hidden, rules.GetLoadingPrecedence()...)
	}
	return c
}

// checkShadow refuses a program that could go around the guard, unless that is asked for.
func (f *runFlags) checkShadow(a agent.Entry) error {
	if a.Gap == "" || f.cage.off {
		return nil
	}
	return fail(ExitUsage, fmt.Errorf("a shadow run cannot hold this program in: %s", a.Gap),
		"It could write to the cluster with your own kubeconfig. --unconfined allows it, and nothing is proved then.")
}

// shadowSession is what a run has of its flags.
func (f *runFlags) shadowSession(p *problem.Problem, a agent.Entry) session.Session {
	return session.Session{
		Problem: p, Agent: a, Results: f.results, Steps: f.steps, Time: f.time, Budget: f.models.budget(),
	}
}

// beginShadow tells what is looked at.
func (t *transcript) beginShadow(context string, namespaces []string, a agent.Entry) {
	t.line("%s  %s by %s: it reads the cluster of context %s, and writes nothing", t.paint(bold, "shadow run"),
		strings.Join(namespaces, ", "), a.Name, context)
}

// endShadow tells what the agent would have done. There is no verdict.
func (t *transcript) endShadow(o *session.Outcome) {
	v := o.Verdict
	if v.Class != session.ShadowRun {
		t.end(o)
		return
	}
	fmt.Fprintf(t.w, "\n%s: %s\n", t.paint(bold+";"+yellow, "shadow"), visible(v.Why))
	list, _ := v.Results["proposals"].([]string)
	for i, p := range list {
		fmt.Fprintf(t.w, "  %3d  %s\n", i+1, visible(p))
	}
	if answer := string(t.answer); answer != "" && answer != "null" {
		fmt.Fprintf(t.w, "  answered %s\n", visible(answer))
	}
	written := "nothing was written"
	if gap, ok := v.Results["unconfined"].(string); ok {
		written = "what its program wrote beside the guard is not known: it was " + gap
	}
	fmt.Fprintf(t.w, "  %s; the record has each in full: %s\n", written, o.Record)
}
