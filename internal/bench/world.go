package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/record"
)

const (
	worldProblem = "revoke_auth_mongodb-localization-1"
	// worldTarget is how many seconds it may take from nothing until a fault can come, keptTarget from a kept world.
	worldTarget = 3
	keptTarget  = 1.5
	// phases of a run, as its record names them
	deployingPhase = "deploying hotel-reservation"
	keptPhase      = "starting from a kept hotel-reservation"
	servingPhase   = "waiting until its users are served"
	injectingPhase = "injecting"
)

// benchWorld measures how long it takes to make an environment ready for a fault: a cluster, an application with its
// telemetry, its past, and users who are served. The agent does nothing. Each is made from nothing, and then from what
// was kept of it.
func benchWorld(ctx context.Context, r *run) error {
	var started, deployed, ready, revived, again []float64
	for i := range r.rounds {
		dir := filepath.Join(r.dir, fmt.Sprintf("world-%d", i))
		begun, at, err := runWorld(ctx, r, dir, "new", deployingPhase)
		if err != nil {
			return err
		}
		started = append(started, at[deployingPhase].Sub(begun).Seconds())
		deployed = append(deployed, at[servingPhase].Sub(begun).Seconds())
		ready = append(ready, at[injectingPhase].Sub(begun).Seconds())
		if begun, at, err = runWorld(ctx, r, dir, "kept", keptPhase); err != nil {
			return err
		}
		revived = append(revived, at[keptPhase].Sub(begun).Seconds())
		again = append(again, at[injectingPhase].Sub(begun).Seconds())
	}
	r.report(measure.Row{What: "world: process start to a cluster", Value: measure.Of("s", started...)})
	r.report(measure.Row{What: "world: ... with application and telemetry", Value: measure.Of("s", deployed...)})
	r.report(measure.Row{
		What: "world: ... with a past and users, ready for the fault", Value: measure.Of("s", ready...),
		Target: measure.AtMost(worldTarget),
	})
	r.report(measure.Row{
		What: "world: process start to a kept application with a past", Value: measure.Of("s", revived...),
	})
	r.report(measure.Row{
		What: "world: ... with users, ready for the fault", Value: measure.Of("s", again...),
		Target: measure.AtMost(keptTarget),
	})
	return nil
}

// runWorld runs the problem, with a directory of kept worlds, and returns when it was begun and when its phases were.
// The first phase is to be one of them.
func runWorld(ctx context.Context, r *run, dir, name, first string) (time.Time, map[string]time.Time, error) {
	results := filepath.Join(dir, name)
	begun := time.Now()
	cmd := exec.CommandContext(ctx, r.binary, "run", worldProblem, "--agent", "noop", "--results", results, "--quiet")
	cmd.Env = append(os.Environ(), "AIOPSLAB_WORLDS="+filepath.Join(dir, "worlds"))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 4) { // not solved
		return begun, nil, fmt.Errorf("run %s: %w: %s", worldProblem, err, out)
	}
	at, err := phases(results, first)
	return begun, at, err
}

// phases are when the phases of the one run in a directory began.
func phases(results, first string) (map[string]time.Time, error) {
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
	for _, name := range []string{first, servingPhase, injectingPhase} {
		if at[name].IsZero() {
			return nil, fmt.Errorf("%s: there is no phase %q", files[0], name)
		}
	}
	return at, nil
}
