package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	resets, err := resetWorld(ctx, r)
	if err != nil {
		return err
	}
	r.report(measure.Row{
		What: "world: reset of an environment to ready for the fault", Value: measure.Of("s", resets...),
		Target: measure.AtMost(keptTarget),
	})
	return nil
}

// resetWorld has a server run one episode after another in an environment, and returns in how many seconds each but the
// first, which deploys the application, was ready for the fault.
func resetWorld(ctx context.Context, r *run) (list []float64, err error) {
	s, err := r.serve(ctx)
	if err != nil {
		return nil, err
	}
	var env struct{ ID string }
	err = s.call(ctx, http.MethodPost, "/envs", map[string]any{"problem": worldProblem}, &env)
	for i := 0; err == nil && i <= r.rounds; i++ {
		err = s.call(ctx, http.MethodPost, "/envs/"+env.ID+"/reset", map[string]any{"seed": i + 1}, nil)
		if err == nil {
			err = s.call(ctx, http.MethodPost, "/envs/"+env.ID+"/step", map[string]any{"action": "submit([])"}, nil)
		}
	}
	s.close()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "served", "*.jsonl")) // Their names tell the time.
	if err != nil || len(files) <= r.rounds {
		return nil, fmt.Errorf("%d episodes have %d records: %w", r.rounds+1, len(files), err)
	}
	for _, file := range files[len(files)-r.rounds:] {
		begun, at, err := phases(file, servingPhase)
		if err != nil {
			return nil, err
		}
		list = append(list, at[injectingPhase].Sub(begun).Seconds())
	}
	return list, nil
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
	files, err := filepath.Glob(filepath.Join(results, "*.jsonl"))
	if err != nil || len(files) != 1 {
		return begun, nil, fmt.Errorf("%s has %d records: %w", results, len(files), err)
	}
	_, at, err := phases(files[0], first)
	return begun, at, err
}

// phases are when a run was begun, and when its phases were. The first phase is to be one of them.
func phases(file, first string) (begun time.Time, at map[string]time.Time, err error) {
	rec, err := record.Read(file)
	if err != nil {
		return begun, nil, err
	}
	at = map[string]time.Time{}
	for i, e := range rec.Events {
		var p record.Phase
		if i == 0 {
			begun = e.Time
		}
		if e.Kind != record.PhaseEvent {
			continue
		}
		if err := e.Decode(&p); err != nil {
			return begun, nil, err
		}
		at[p.Name] = e.Time
	}
	for _, name := range []string{first, servingPhase, injectingPhase} {
		if at[name].IsZero() {
			return begun, nil, fmt.Errorf("%s: there is no phase %q", file, name)
		}
	}
	return begun, at, nil
}
