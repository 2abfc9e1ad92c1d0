package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/record"
)

const (
	worldProblem = "revoke_auth_mongodb-localization-1"
	// worldTarget is how many seconds it may take from nothing until a fault can come.
	worldTarget = 3
	// phases of a run, as its record names them
	deployingPhase = "deploying hotel-reservation"
	servingPhase   = "waiting until its users are served"
	injectingPhase = "injecting"
)

// benchWorld measures how long it takes to make an environment ready for a fault: a cluster, an application with its
// telemetry, its past, and users who are served. The agent does nothing.
func benchWorld(ctx context.Context, r *run) error {
	var started, deployed, ready []float64
	for i := range r.rounds {
		results := filepath.Join(r.dir, fmt.Sprintf("world-%d", i))
		begun := time.Now()
		cmd := exec.CommandContext(ctx, r.binary,
			"run", worldProblem, "--agent", "noop", "--results", results, "--quiet")
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 4) { // not solved
			return fmt.Errorf("run %s: %w: %s", worldProblem, err, out)
		}
		at, err := phases(results)
		if err != nil {
			return err
		}
		started = append(started, at[deployingPhase].Sub(begun).Seconds())
		deployed = append(deployed, at[servingPhase].Sub(begun).Seconds())
		ready = append(ready, at[injectingPhase].Sub(begun).Seconds())
	}
	r.report(measure.Row{What: "world: process start to a cluster", Value: measure.Of("s", started...)})
	r.report(measure.Row{What: "world: ... with application and telemetry", Value: measure.Of("s", deployed...)})
	r.report(measure.Row{
		What: "world: ... with a past and four seconds of users, ready for the fault", Value: measure.Of("s", ready...),
		Target: measure.AtMost(worldTarget),
	})
	return nil
}

// phases are when the phases of the one run in a directory began.
func phases(results string) (map[string]time.Time, error) {
	files, err := filepath.Glob(filepath.Join(results, "*.jsonl"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("%s has %d records: %w", results, len(files), err)
	}
	rec, err := record.Read(files[0])
	if err != nil {
		return nil, err
	}
	at := map[string]time.Time{}
	for _, e := range rec.Events {
		var p record.Phase
		if e.Kind != record.PhaseEvent {
			continue
		}
		if err := e.Decode(&p); err != nil {
			return nil, err
		}
		at[p.Name] = e.Time
	}
	for _, name := range []string{deployingPhase, servingPhase, injectingPhase} {
		if at[name].IsZero() {
			return nil, fmt.Errorf("%s: there is no phase %q", files[0], name)
		}
	}
	return at, nil
}
