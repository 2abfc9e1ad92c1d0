package campaign

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// ExitBadInput is the status of a pod whose run cannot take place however often it is tried: an unknown problem, or a
// list of runs that cannot be read. No other status of a worker, nor of a Go program that panics, is the same.
const ExitBadInput = 65

// indexVariable is what Kubernetes tells the pods of an Indexed Job their index in.
const indexVariable = "JOB_COMPLETION_INDEX"

// errBadInput wraps errors that another try does not mend.
type errBadInput struct{ error }

func (e errBadInput) Unwrap() error { return e.error }

// BadInput marks an error of a run that another try does not mend.
func BadInput(err error) error { return badInput(err) }

func badInput(err error) error {
	if err == nil {
		return nil
	}
	return errBadInput{err}
}

// ended turns an error into the status of a pod. What it prints last is told to who has started the campaign.
func ended(env *kit.Env, err error) error {
	if bad, ok := errors.AsType[errBadInput](err); ok {
		fmt.Fprintln(env.Stderr, bad)
		return kit.Exit(ExitBadInput)
	}
	return err
}

// Worker is what a pod of a campaign's Job does: one run.
type Worker struct {
	// Run does a run of a plan.
	Run func(ctx context.Context, env *kit.Env, p *Plan, r local.Run) (Leavings, error)
}

// ModelVariables are the variables of a run's model, as the Secret of the campaign has them.
func ModelVariables(env *kit.Env) (list []string) {
	for name, value := range env.Vars {
		if name, yes := strings.CutPrefix(name, modelPrefix); yes {
			list = append(list, name+"="+value)
		}
	}
	slices.Sort(list)
	return list
}

// share is what the pods of a Job know: the plan, and which of its runs the Job is for.
type share struct {
	*Plan
	encoded []byte // the plan
	todo    indexes
}

// podFlags are the arguments of a worker and of a keeper.
type podFlags struct{ plan, store, listen string }

// Where pods find things.
const (
	planDir    = "/campaign" // planName, and indexesName
	recordsDir = "/records"  // the volume
	keeperPort = 8377
	// indexesName is the file with the runs that a Job is for.
	indexesName = "indexes"
)

func (f *podFlags) parse(env *kit.Env) error {
	flags := flag.NewFlagSet(env.Args[0], flag.ContinueOnError)
	flags.SetOutput(env.Stderr)
	flags.StringVar(&f.plan, "plan", planDir, "`directory` with the list of runs")
	flags.StringVar(&f.store, "store", "", "`where` the records are kept")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:"+strconv.Itoa(keeperPort), "`address` for who gathers records")
	if err := flags.Parse(env.Args[1:]); err != nil {
		return kit.Exit(ExitBadInput)
	}
	return nil
}

// open reads what a pod is for.
func (f *podFlags) open(env *kit.Env) (s share, store Store, err error) {
	if err := f.parse(env); err != nil {
		return s, nil, err
	}
	if s.encoded, err = env.ReadFile(f.plan + "/" + planName); err != nil {
		return s, nil, badInput(err)
	}
	if s.Plan, err = DecodePlan(s.encoded); err != nil {
		return s, nil, badInput(err)
	}
	text, err := env.ReadFile(f.plan + "/" + indexesName)
	if err == nil {
		s.todo, err = parseIndexes(string(text), len(s.Runs))
	}
	if err != nil {
		return s, nil, badInput(err)
	}
	store, err = openStore(env, f.store)
	return s, store, err
}

// index is the run that the pod is for.
func (s *share) index(env *kit.Env) (int, error) {
	n, err := strconv.Atoi(env.Getenv(indexVariable))
	if err != nil || n < 0 || n >= len(s.todo) {
		return 0, badInput(fmt.Errorf("%s is %q; this Job is for %d runs", indexVariable, env.Getenv(indexVariable),
			len(s.todo)))
	}
	return s.todo[n], nil
}

// Main is the program of a worker. A run that is recorded already does not take place again, and what says nothing of
// the agent is not recorded: the Job tries it again.
func (w Worker) Main(ctx context.Context, env *kit.Env) error { return ended(env, w.work(ctx, env)) }

func (w Worker) work(ctx context.Context, env *kit.Env) error {
	var f podFlags
	s, store, err := f.open(env)
	if err != nil {
		return err
	}
	index, err := s.index(env)
	if err != nil {
		return err
	}
	name, run, began := RecordName(index), s.Runs[index], time.Now()
	has, err := store.Has(ctx, name)
	if err != nil {
		return fmt.Errorf("look for the record: %w", err)
	}
	if has {
		fmt.Fprintf(env.Stdout, "%s is recorded already\n", name)
		return nil
	}
	left, err := w.Run(ctx, env, s.Plan, run)
	if err != nil {
		return err
	}
	v, err := check(left.Record, run)
	if err != nil {
		return err
	}
	if v.Class == session.Infra {
		return fmt.Errorf("%s: the environment failed: %s", run, v.Why)
	}
	if n := len(left.Telemetry); n > maxRecord { // No reason to lose the run.
		fmt.Fprintf(env.Stdout, "the telemetry takes %d MiB; there is room for %d: it is not kept\n", n>>20,
			maxRecord>>20)
	} else if n > 0 { // Before the record: if that is there, all of it is.
		if _, err := store.Put(ctx, telemetryName(index, left.Record), left.Telemetry); err != nil {
			return fmt.Errorf("keep the telemetry: %w", err)
		}
	}
	fresh, err := store.Put(ctx, name, left.Record)
	if err != nil {
		return fmt.Errorf("keep the record: %w", err)
	}
	what := "recorded"
	if !fresh {
		what = "was recorded by another pod meanwhile"
	}
	fmt.Fprintf(env.Stdout, "%s %s after %v: %s, %s\n", name, what, time.Since(began).Round(time.Second), run, v.Class)
	return nil
}

// check reads the record of a run.
func check(data []byte, want local.Run) (*local.Result, error) {
	r, err := record.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if r.Problem != want.Problem || r.Agent != want.Agent || r.Seed != want.Seed {
		return nil, fmt.Errorf("the record is of %s by %s with seed %d, not of %s", r.Problem, r.Agent, r.Seed, want)
	}
	if len(r.Events) == 0 || r.Torn {
		return nil, errors.New("the record is not whole")
	}
	last := r.Events[len(r.Events)-1]
	if last.Kind != record.VerdictEvent {
		return nil, fmt.Errorf("the record ends with %s, not with a verdict", cmp.Or(last.Kind, "nothing"))
	}
	var v session.Verdict
	if err := last.Decode(&v); err != nil {
		return nil, err
	}
	result := &local.Result{Run: want, Class: v.Class, Why: v.Why, Seconds: last.Time.Sub(r.Time).Seconds()}
	result.Cost, _ = v.Results["cost_usd"].(float64)
	return result, nil
}
