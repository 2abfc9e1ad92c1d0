package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/world/noise"
)

const (
	// promptProblem is one whose agent has its turn as soon as the fault shows, if there is no noise. In waitingProblem
	// the time must not tell whether there is a fault: the turn comes seconds later, faulty or not, after a release.
	promptProblem  = "revoke_auth_mongodb-localization-1"
	waitingProblem = "revoke_auth_mongodb-detection-1"
	gymFor         = time.Minute
	gymTarget      = 30 // episodes a minute
	// sessionsAtOnce is how many sessions a server should hold, and sessionsInAll how many it is asked for when the
	// rest waits in line.
	sessionsAtOnce = 24
	sessionsInAll  = 64
	// vectorSize is how many environments are reset side by side: of two processors, the users of twice as many leave
	// fewer resets. resetsTarget is how many there should be in an hour, of all together.
	vectorSize   = 4
	resetsTarget = 5000
)

// benchGym runs episodes in one environment: reset, three steps, and a submission that ends it.
func benchGym(ctx context.Context, r *run) error {
	s, err := r.serve(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	var env struct{ ID string }
	asked := map[string]any{"problem": promptProblem, "noise": noise.None}
	if err := s.call(ctx, http.MethodPost, "/envs", asked, &env); err != nil {
		return err
	}
	at := "/envs/" + env.ID
	actions := []string{
		"get_alerts(\"test-hotel-reservation\")",
		"exec_shell(\"kubectl get pods -n test-hotel-reservation\")",
		"get_logs(\"test-hotel-reservation\", \"geo\")",
		"submit([\"mongodb-geo\"])",
	}
	episode := func(seed int) (reward float64, err error) {
		if err := s.call(ctx, http.MethodPost, at+"/reset", map[string]any{"seed": seed}, nil); err != nil {
			return 0, err
		}
		var step struct {
			Reward                float64
			Terminated, Truncated bool
		}
		for _, a := range actions {
			if err := s.call(ctx, http.MethodPost, at+"/step", map[string]any{"action": a}, &step); err != nil {
				return 0, err
			}
			reward += step.Reward
		}
		if !step.Terminated {
			return 0, errors.New("a submission does not end an episode")
		}
		return reward, nil
	}
	if _, err := episode(1); err != nil { // It deploys the application.
		return err
	}
	start := time.Now()
	n, solved := 0, 0
	for ; time.Since(start) < gymFor; n++ {
		reward, err := episode(n + 2)
		if err != nil {
			return err
		}
		if reward > 0 {
			solved++
		}
	}
	rate := float64(n) / time.Since(start).Minutes()
	r.report(measure.Row{
		What:  "gym: episodes a minute, one environment of " + promptProblem + ", noise none",
		Value: measure.Of("", rate), Target: measure.AtLeast(gymTarget),
	})
	r.report(measure.Row{
		What:  "gym: of them with the right reward",
		Value: measure.Of("%", 100*float64(solved)/float64(n)), Target: measure.AtLeast(100),
	})
	return nil
}

// benchVector resets environments of a problem that does not make its resets wait, so that processors are what bounds
// them; and of one that does, with the noise that a server has by default.
func benchVector(ctx context.Context, r *run) error {
	for _, of := range []struct {
		problem string
		level   noise.Level
		target  measure.Target
	}{
		{promptProblem, noise.None, measure.AtLeast(resetsTarget)},
		{problem: waitingProblem, level: noise.Default},
	} {
		rate, err := r.resets(ctx, of.problem, of.level)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%d environments of %s, noise %s", vectorSize, of.problem, of.level)
		r.report(measure.Row{
			What: "gym: resets an hour, " + what, Value: measure.Of("", rate), Target: of.target,
		})
	}
	return nil
}

// resets has environments of a problem reset side by side, each again and again, and returns how many resets of all of
// them that is in an hour. None waits for another, as members of a batch would: while one does, others work.
func (r *run) resets(ctx context.Context, problem string, level noise.Level) (rate float64, err error) {
	s, err := r.serve(ctx)
	if err != nil {
		return 0, err
	}
	defer s.close()
	var made struct{ Envs []struct{ ID string } }
	asked := map[string]any{"problem": problem, "noise": level, "n": vectorSize, "seed": 1}
	if err := s.call(ctx, http.MethodPost, "/envs", asked, &made); err != nil {
		return 0, err
	}
	reset := func(i int) error {
		return s.call(ctx, http.MethodPost, "/envs/"+made.Envs[i].ID+"/reset", struct{}{}, nil)
	}
	if err := sideBySide(vectorSize, reset); err != nil { // It deploys the application.
		return 0, err
	}
	rates := make([]float64, vectorSize)
	err = sideBySide(vectorSize, func(i int) error {
		start, n := time.Now(), 0.0
		for ; time.Since(start) < gymFor; n++ {
			if err := reset(i); err != nil {
				return err
			}
		}
		rates[i] = n / time.Since(start).Hours()
		return nil
	})
	for _, one := range rates {
		rate += one
	}
	return rate, err
}

// sideBySide does something n times, at the same time.
func sideBySide(n int, do func(i int) error) error {
	var g errgroup.Group
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}

// benchSessions has one server take many sessions at once, and then more than it has places for.
func benchSessions(ctx context.Context, r *run) error {
	if err := judgedRightly(ctx, r, "sessions served at once", sessionsAtOnce, true); err != nil {
		return err
	}
	return judgedRightly(ctx, r, fmt.Sprintf("sessions asked for at once, %d places", sessionsAtOnce), sessionsInAll,
		false)
}

// judgedRightly opens sessions, faulty and healthy ones in turn, and counts those that are judged rightly. Together has
// all be in their agent's turn before the first goes on.
func judgedRightly(ctx context.Context, r *run, what string, n int, together bool) error {
	s, err := r.serve(ctx, "--max-sessions", strconv.Itoa(sessionsAtOnce))
	if err != nil {
		return err
	}
	defer s.close()
	start := time.Now()
	right := make([]bool, n)
	var prepared sync.WaitGroup // until all are in their agent's turn
	if together {
		prepared.Add(n)
	}
	var g errgroup.Group
	for i := range n {
		g.Go(func() error {
			id, answer := waitingProblem, "Yes"
			if i%2 == 1 {
				id, answer = waitingProblem+"-healthy", "No"
			}
			var session struct{ ID string }
			err := s.call(ctx, http.MethodPost, "/sessions", map[string]any{"problem": id, "max_time": 3600}, &session)
			if err == nil {
				err = s.call(ctx, http.MethodGet, "/sessions/"+session.ID+"/problem", nil, nil)
			}
			if together {
				prepared.Done()
			}
			if err != nil {
				return err
			}
			prepared.Wait()
			var o struct{ Class string }
			if err := s.call(ctx, http.MethodPost, "/sessions/"+session.ID+"/act",
				map[string]any{"name": "get_logs", "arguments": getLogs}, nil); err != nil {
				return err
			}
			if err := s.call(ctx, http.MethodPost, "/sessions/"+session.ID+"/submit", map[string]any{"answer": answer},
				&o); err != nil {
				return err
			}
			right[i] = o.Class == "solved"
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	judged := 0
	for _, ok := range right {
		if ok {
			judged++
		}
	}
	r.report(measure.Row{
		What: what + ", each correct", Value: measure.Of("", float64(judged)), Target: measure.AtLeast(float64(n)),
	})
	r.report(measure.Row{What: what + ": all of it", Value: measure.Of("s", time.Since(start).Seconds())})
	return nil
}
