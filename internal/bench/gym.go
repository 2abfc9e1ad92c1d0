package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

const (
	gymProblem = "revoke_auth_mongodb-detection-1"
	gymFor     = time.Minute
	gymTarget  = 30 // episodes a minute
	// sessionsAtOnce is how many sessions a server should hold.
	sessionsAtOnce = 16
)

// benchGym runs episodes in one environment: reset, three steps, and a submission that ends it.
func benchGym(ctx context.Context, r *run) error {
	s, err := r.serve(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	var env struct{ ID string }
	if err := s.call(ctx, http.MethodPost, "/envs", map[string]any{"problem": gymProblem}, &env); err != nil {
		return err
	}
	at := "/envs/" + env.ID
	actions := []string{
		"get_alerts(\"test-hotel-reservation\")",
		"exec_shell(\"kubectl get pods -n test-hotel-reservation\")",
		"get_logs(\"test-hotel-reservation\", \"geo\")",
		"submit(\"Yes\")",
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
		What: "gym: episodes in one environment, a minute", Value: measure.Of("", rate),
		Target: measure.AtLeast(gymTarget),
	})
	r.report(measure.Row{
		What:  "gym: of them with the right reward",
		Value: measure.Of("%", 100*float64(solved)/float64(n)), Target: measure.AtLeast(100),
	})
	return nil
}

// benchSessions has one server take many sessions at once, faulty and healthy ones in turn, and
// counts those that are judged rightly.
func benchSessions(ctx context.Context, r *run) error {
	s, err := r.serve(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	start := time.Now()
	right := make([]bool, sessionsAtOnce)
	var prepared sync.WaitGroup // until all are in their agent's turn
	prepared.Add(sessionsAtOnce)
	var g errgroup.Group
	for i := range sessionsAtOnce {
		g.Go(func() error {
			id, answer := gymProblem, "Yes"
			if i%2 == 1 {
				id, answer = gymProblem+"-healthy", "No"
			}
			var session struct{ ID string }
			err := s.call(ctx, http.MethodPost, "/sessions", map[string]any{"problem": id, "max_time": 3600}, &session)
			if err == nil {
				err = s.call(ctx, http.MethodGet, "/sessions/"+session.ID+"/problem", nil, nil)
			}
			prepared.Done()
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
	n := 0
	for _, ok := range right {
		if ok {
			n++
		}
	}
	r.report(measure.Row{
		What: "sessions served at once, each correct", Value: measure.Of("", float64(n)),
		Target: measure.AtLeast(sessionsAtOnce),
	})
	r.report(measure.Row{
		What:  "sessions served at once: all of it",
		Value: measure.Of("s", time.Since(start).Seconds()),
	})
	return nil
}
