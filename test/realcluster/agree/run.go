package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

const (
	realSide     = "real"
	embeddedSide = "embedded"
)

// maxTries is how often a run is made that says nothing of its agent.
const maxTries = 2

// outcome is what came of a run on one side.
type outcome struct {
	row
	Want    string         `json:"want,omitempty"` // what it must come to; empty for runbook, which may fail
	Got     string         `json:"got"`            // the class of the verdict, or none
	Why     string         `json:"why,omitempty"`
	Seconds float64        `json:"seconds"` // of the whole run, its cluster or its namespaces included
	Answers map[string]any `json:"answers,omitempty"`
}

// none is what a remedy comes to that is not tried on a problem, because it may be a fix by luck.
const none = "none"

// tells reports whether the outcome says something of the agent.
func (o outcome) tells() bool {
	return o.Got == string(session.Solved) || o.Got == string(session.AgentFailed) || o.Got == none
}

// latest are the outcomes of a side, the last of each run, and how often it was tried.
func latest(list []outcome) (last map[row]outcome, tries map[row]int) {
	last, tries = map[row]outcome{}, map[row]int{}
	for _, o := range list {
		last[o.row] = o
		tries[o.row]++
	}
	return last, tries
}

// runAll runs what of the plan is not recorded on a side yet. If limit is not 0, it begins none after that time.
func (f folder) runAll(ctx context.Context, side string, limit time.Duration, out io.Writer, call caller) error {
	plan, err := lines[row](f.plan())
	if err == nil && len(plan) == 0 && side == realSide {
		if err = makePlan(ctx, f, out, call); err == nil {
			plan, err = lines[row](f.plan())
		}
	}
	if err != nil {
		return err
	}
	if len(plan) == 0 {
		return fmt.Errorf("there is no %s: 'plan %s' makes it, on the real cluster", f.plan(), f)
	}
	recorded, err := lines[outcome](f.side(side))
	if err != nil {
		return err
	}
	last, tries := latest(recorded)
	file, err := os.OpenFile(f.side(side), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	began, left := time.Now(), 0
	for i, r := range plan {
		if last[r].tells() || tries[r] >= maxTries {
			continue
		}
		if ctx.Err() != nil || limit > 0 && time.Since(began) > limit {
			left++
			continue
		}
		o := f.runOne(ctx, side, r, call)
		if ctx.Err() != nil { // What was broken off says nothing.
			left++
			continue
		}
		// A line begins anew even if a process was killed in the middle of the last one.
		b, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(file, "\n%s\n", b); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d/%d  %-10s %-55s %-22s %-8s %5.0f s  %s\n", i+1, len(plan), r.Part, r.Problem, r.Agent,
			o.Got, o.Seconds, o.Why)
	}
	if left > 0 {
		fmt.Fprintf(out, "%d of %d runs are left; the same command goes on\n", left, len(plan))
	}
	return cmp.Or(ctx.Err(), file.Close())
}

// runOne makes a run on a side. Whatever happens is an outcome.
func (f folder) runOne(ctx context.Context, side string, r row, call caller) (o outcome) {
	o = outcome{row: r}
	began := time.Now()
	defer func() { o.Seconds = time.Since(began).Seconds() }()
	args := []string{"-o", "json", "--seed", "1", "--results", filepath.Join(string(f), "records", side)}
	if side == realSide {
		args = append(args, "--cloud", "kubeconfig", "--past", "0s")
	}
	var text []byte
	var err error
	var file string
	if r.Part == incidents {
		var run struct {
			Record  string
			Verdict struct{ Class, Why string }
		}
		text, err = call(ctx, append([]string{"run", r.Problem, "--agent", r.Agent, "--quiet"}, args...)...)
		if jerr := json.Unmarshal(text, &run); jerr != nil {
			o.Got, o.Why = string(session.Infra), fmt.Sprintf("no result: %v", cmp.Or(err, jerr))
			return o
		}
		o.Got, o.Why, file = run.Verdict.Class, run.Verdict.Why, run.Record
		if o.Answers, err = answers(file); err != nil {
			o.Why = err.Error()
		}
		return o
	}
	var cells []struct{ Want, Got, Why string }
	text, err = call(ctx, append([]string{"verify", r.Problem, "--agents", r.Agent, "--workers", "1"}, args...)...)
	switch jerr := json.Unmarshal(text, &cells); {
	case jerr != nil:
		o.Got, o.Why = string(session.Infra), fmt.Sprintf("no result: %v", cmp.Or(err, jerr))
	case len(cells) == 0:
		o.Got = none
	default:
		o.Want, o.Got, o.Why = cells[0].Want, cells[0].Got, cells[0].Why
	}
	return o
}

// answers are what an agent answered to the questions of a run, by question.
func answers(file string) (map[string]any, error) {
	r, err := record.Read(file)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, e := range r.Events {
		if e.Kind != record.AnswerEvent {
			continue
		}
		var a record.Answer
		var v any
		if err := e.Decode(&a); err != nil {
			return nil, err
		}
		if len(a.Answer) > 0 {
			if err := json.Unmarshal(a.Answer, &v); err != nil {
				return nil, err
			}
		}
		all[a.Question] = v
	}
	return all, nil
}
