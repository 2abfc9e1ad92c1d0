package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/session"
)

// episodeSpec is an episode that a worker is to begin.
type episodeSpec struct {
	Spec
	Reward Reward `json:"reward"`
	Keep   int    `json:"keep_records"`
}

// stageSpec is an environment that a worker is to set up.
type stageSpec struct {
	Spec
	Asked int `json:"asked"` // the last number of a question that the environment used up with other workers
}

// gym is an environment in its worker: one episode after another.
type gym struct {
	busy    chan struct{} // held by whoever resets or steps
	episode *hosted
	taken   []taken // its steps
	reward  Reward
	shaping shaping
	keep    int        // how many records; 0 for all
	kept    [][]string // the files of those, the oldest first

	latest atomic.Pointer[hosted] // episode, under way or not, for those who do not wait for a step
	before int                    // of an inquiry
}

// close ends the episode and waits until it is graded.
func (g *gym) close() {
	g.busy <- struct{}{}
	defer func() { <-g.busy }()
	g.end()
}

func (g *gym) end() {
	if g.episode != nil {
		g.episode.cancel()
		<-g.episode.done
		g.ended()
	}
}

// ended takes leave of an episode, and removes the records that are too many.
func (g *gym) ended() {
	o := g.episode.archive.Session.Outcome
	g.episode = nil
	if o == nil || g.keep == 0 {
		return
	}
	g.kept = append(g.kept, []string{o.Record, o.Session})
	for len(g.kept) > g.keep {
		for _, file := range g.kept[0] {
			_ = os.Remove(file) // If somebody else has done so, all the better.
		}
		g.kept = g.kept[1:]
	}
}

// stage sets the worker's environment up. The stage is ready, or cannot be, when it answers.
func (w *Worker) stage(rw http.ResponseWriter, r *http.Request) error {
	var s stageSpec
	if err := decode(rw, r, &s); err != nil {
		return err
	}
	w.mu.Lock()
	taken := w.session != nil || w.gym != nil
	if !taken {
		w.gym = &gym{busy: make(chan struct{}, 1), before: s.Asked}
	}
	w.mu.Unlock()
	if taken {
		return fail(http.StatusConflict, "the worker is taken")
	}
	if err := w.backend.Stage(w.ctx, s.Spec); err != nil {
		return fail(http.StatusBadGateway, "the environment cannot be set up: %v", err)
	}
	return writeJSON(rw, http.StatusCreated, struct{}{})
}

// enterGym returns the environment, if the front has asked for one, once others are done with it.
func (w *Worker) enterGym(ctx context.Context) (g *gym, leave func(), err error) {
	w.mu.Lock()
	g = w.gym
	w.mu.Unlock()
	if g == nil {
		return nil, nil, fail(http.StatusNotFound, "there is no environment yet")
	}
	select {
	case g.busy <- struct{}{}:
		return g, func() { <-g.busy }, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// reset begins an episode. One that is under way ends.
func (w *Worker) reset(rw http.ResponseWriter, r *http.Request) error {
	var s episodeSpec
	if err := decode(rw, r, &s); err != nil {
		return err
	}
	g, leave, err := w.enterGym(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	first, err := w.begin(r.Context(), g, s)
	if err != nil {
		return err
	}
	return writeJSON(rw, http.StatusOK, first)
}

// begin begins an episode. The caller has the environment.
func (w *Worker) begin(ctx context.Context, g *gym, s episodeSpec) (First, error) {
	g.end()
	misfit := false
	g.taken = nil
	g.reward, g.keep = s.Reward, s.Keep
	g.episode = host(w.ctx, s.Spec, func(ctx context.Context, s Spec, events eventFunc) (Run, error) {
		run, err := w.backend.Episode(ctx, s, events)
		misfit = errors.Is(err, ErrMisfit)
		return run, err
	})
	g.latest.Store(g.episode)
	p, err := g.episode.briefing(ctx)
	if err != nil {
		if ctx.Err() != nil {
			g.end() // Nobody has seen it begin, and one that is restored has no mark yet.
			return First{}, err
		}
		<-g.episode.done
		g.ended()
		if misfit {
			return First{}, fail(http.StatusMisdirectedRequest, "%v", ErrMisfit)
		}
		return First{}, fail(http.StatusBadGateway, "%v", err)
	}
	g.shaping.begin(ctx, s.Reward, g.episode.run)
	return First{p.text() + "\n\n" + aci.NextAction, map[string]any{
		"episode": s.ID, "task": p.Task, "namespace": p.Namespace, "tools": p.Tools,
		"kubeconfig": p.Kubeconfig,
	}}, nil
}

// step takes a step of the episode.
func (w *Worker) step(rw http.ResponseWriter, r *http.Request) error {
	var s stepSpec
	if err := decode(rw, r, &s); err != nil {
		return err
	}
	response, err := s.response()
	if err != nil {
		return err
	}
	g, leave, err := w.enterGym(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	if g.episode == nil {
		return errNoEpisode
	}
	if err := g.repeats(r.Context(), s.Repeats); err != nil {
		return err
	}
	res, err := g.take(context.WithoutCancel(r.Context()), response)
	if err != nil {
		return err
	}
	return writeJSON(rw, http.StatusOK, res)
}

// take takes a step, and notes it for snapshots.
func (g *gym) take(ctx context.Context, response string) (Result, error) {
	res, err := g.step(ctx, response)
	if err == nil {
		g.taken = append(g.taken, taken{response, res.Observation})
	}
	return res, err
}

func (g *gym) step(ctx context.Context, response string) (Result, error) {
	h := g.episode
	select {
	case <-h.over: // Its time was up.
		return g.last(ctx, Turn{Over: true})
	default:
	}
	t, err := h.act(ctx, response)
	if err != nil {
		f, ok := errors.AsType[*failure](err)
		if !ok || f.status != http.StatusConflict {
			return Result{}, err
		}
		t = Turn{Over: true}
	}
	if t.Over {
		return g.last(ctx, t)
	}
	info := map[string]any{"episode": h.spec.ID, "step": t.Step, "action": t.Action, "valid": true}
	if t.Question != "" {
		info["question"] = t.Question
	}
	reward := g.worth(t) + g.shaping.step(ctx, h.run)
	return Result{Observation: t.Observation + "\n" + aci.NextAction, Reward: reward, Info: info}, nil
}

// worth is the reward of a step, whatever comes of the episode.
func (g *gym) worth(t Turn) float64 {
	if t.Step == 0 {
		return 0 // It came too late to be taken.
	}
	worth := g.reward.Step
	if !slices.ContainsFunc(g.episode.problem.Tools, func(a Tool) bool { return a.Name == t.Action }) {
		worth += g.reward.Invalid
	}
	return worth
}

// last is what the last step of an episode came to. It waits for the verdict.
func (g *gym) last(ctx context.Context, t Turn) (Result, error) {
	h := g.episode
	o, err := h.outcome(ctx)
	if err != nil {
		return Result{}, err
	}
	res := Result{
		Observation: t.Observation, Reward: g.worth(t) + g.shaping.last(),
		Terminated: t.Submitted, Truncated: !t.Submitted,
		Info: map[string]any{
			"episode": h.spec.ID, "step": h.archive.Session.Steps, "action": t.Action,
			"problem": o.Problem, "seed": o.Seed, "class": o.Class, "why": o.Why, "results": o.Results,
			"record": o.Record,
		},
	}
	if t.Step == 0 {
		res.Observation = o.Why
	}
	class := session.Class(o.Class)
	if alone, ok := o.Results["search"].(string); ok && class == session.Searched {
		class = session.Class(alone) // What a step is worth is the same in a search.
	}
	switch class {
	case session.Solved:
		res.Reward += g.reward.Solved
		res.Info["valid"] = true
	case session.AgentFailed:
		res.Reward += g.reward.Failed
		res.Info["valid"] = true
	default:
		res.Reward = 0
		res.Info["valid"] = false
	}
	g.ended()
	return res, nil
}

// response is what an agent says by a move.
func (m Move) response() (string, error) {
	switch a := m.Action.(type) {
	case string:
		return a, nil
	case map[string]any:
		name, ok := a["name"].(string)
		args, isMap := a["arguments"].(map[string]any)
		if ok && name != "" && (isMap || a["arguments"] == nil) {
			return agent.CallNamed(name, args), nil
		}
	}
	return "", fail(http.StatusUnprocessableEntity,
		"an action is a text with one call in it, or an object with name and arguments")
}
