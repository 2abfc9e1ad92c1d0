package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

// runUsage says how commands are told a run.
const runUsage = `RUN is the id of a run, as 'aiopslab runs' lists it, or as much of its beginning
as no other run has; or the file of its record.`

// inFlag adds where runs are looked for by their ids.
func inFlag(c *cobra.Command, in *string) {
	c.Flags().StringVar(in, "in", defaultResults, "`directory` in which the run is looked for by its id")
	c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		x, err := index.Open(*in, index.Options{Cache: indexCache()})
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var ids []string
		for _, r := range x.Runs {
			ids = append(ids, r.ID)
		}
		return ids, cobra.ShellCompDirectiveDefault
	}
}

// findRun returns the file of a run's record.
func findRun(name, dir string) (string, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return name, nil
	}
	return findRunIn(name, dir, func() (*index.Index, error) { return readIndex(dir) })
}

// findRunIn is findRun for what is no file, by the index of the directory.
func findRunIn(name, dir string, open func() (*index.Index, error)) (string, error) {
	x, err := open()
	if err != nil {
		return "", err
	}
	found := x.Find(name)
	switch {
	case name == "" || len(found) == 0:
		return "", fail(ExitUsage, fmt.Errorf("there is no run %q in %s, and no file of that name", name, dir),
			"Run 'aiopslab runs' to see the runs; --in names another directory.")
	case len(found) > 1:
		var ids []string
		for _, r := range found[:min(len(found), 5)] {
			ids = append(ids, r.ID)
		}
		return "", fail(ExitUsage, fmt.Errorf("%d runs begin with %q", len(found), name),
			"Give more of the id, such as "+visible(alternatives(ids))+".")
	}
	return found[0].File, nil
}

// oneRun is a run that was read whole.
type oneRun struct {
	index.Run
	record  *record.Record
	outcome *session.Outcome
	events  []told // in the order of their times
}

// told is an event that a transcript tells of.
type told struct {
	record.Event
	data any
}

// readRun reads the record of a run.
func readRun(file string) (*oneRun, error) {
	rec, err := record.Read(file)
	if err == nil {
		var run *oneRun
		if run, err = newOneRun(rec, file); err == nil {
			return run, nil
		}
		err = fmt.Errorf("%s: %w", file, err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(ExitUsage, err, "")
	}
	return nil, fail(ExitError, err, "")
}

func newOneRun(rec *record.Record, file string) (*oneRun, error) {
	run, err := index.Of(rec)
	if err != nil {
		return nil, err
	}
	run.File = file
	one := &oneRun{Run: run, record: rec}
	o := &session.Outcome{ID: rec.ID, Problem: rec.Problem, Agent: rec.Agent, Seed: rec.Seed, Record: file}
	o.Verdict = session.Verdict{Class: index.Unfinished, Why: "it has no verdict: it is under way, or was cut off"}
	for _, e := range rec.Events {
		if e.Kind == record.VerdictEvent {
			o.Verdict = session.Verdict{}
			err = e.Decode(&o.Verdict)
		} else if read := toldKinds[e.Kind]; read != nil {
			t := told{Event: e}
			t.data, err = read(e)
			one.events = append(one.events, t)
		}
		if err != nil {
			return nil, err
		}
	}
	if beside := strings.TrimSuffix(file, ".jsonl") + ".json"; beside != file {
		if _, err := os.Stat(beside); err == nil {
			o.Session = beside
		}
	}
	// What was withheld from the agent is written late, with the time it is of.
	slices.SortStableFunc(one.events, func(a, b told) int { return a.Time.Compare(b.Time) })
	one.outcome = o
	return one, nil
}

// toldKinds are the kinds of events that a transcript tells of, and how their data is read.
var toldKinds = map[string]func(record.Event) (any, error){
	record.PhaseEvent: decoded[record.Phase], record.FaultEvent: decoded[record.Fault],
	record.HandOverEvent: decoded[record.HandOver], record.ActionEvent: decoded[record.Action],
	record.StepEvent: decoded[record.Step], record.LogEvent: decoded[record.Output],
	record.StderrEvent: decoded[record.Output], record.RetryEvent: decoded[llm.Attempt],
	record.AnswerEvent: decoded[record.Answer], record.SubmissionEvent: decoded[record.Submission],
	record.BaselineEvent: decoded[grade.Look], record.LookEvent: decoded[grade.Look],
	record.PageEvent: decoded[record.Page], record.IncidentEvent: decoded[record.Incident],
	record.ShiftEvent: decoded[record.Shift], record.PastEvent: decoded[record.Past],
	record.IsolationEvent: decoded[record.Isolation],
	record.WriteEvent:     decoded[guard.Entry], record.MessageEvent: decoded[record.Message],
}

func decoded[T any](e record.Event) (any, error) {
	var v T
	err := e.Decode(&v)
	return v, err
}
