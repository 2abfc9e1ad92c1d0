package server

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// env is an environment as the front knows it.
type env struct {
	id   string
	spec NewEnv
	// documents are of those of its problems that are not of the library, by their ids. Nobody changes them.
	documents map[string]string

	busy chan struct{} // held by whoever resets it, or ends it

	// Of whoever holds busy.
	random *rand.Rand
	lease  *lease
	staged chan error // of the worker: what came of setting its stage up
	gone   bool

	// mu is for those who ask without holding busy, while a step is taken. Who changes lease holds both.
	mu     sync.Mutex
	shown  int          // the last number of a question that anybody was told of
	ending atomic.Int32 // how many wait to reset it, or to end it

	// Of whoever holds busy, too: the episode, for those who ask for its state.
	episode string // what it is called; empty before the first
	steps   int    // how many it has had
	limit   int    // how many it may have
	playing bool   // it is under way

	// Whether the episode repeats another one, as well.
	drawn    beginning
	drawnID  string // what its worker calls it
	repeated string // the id of the other one, or empty
	played   *played

	begun atomic.Int64  // episodes
	ended chan struct{} // closed when it has left its place
	idle  *time.Timer   // ends it when nobody has used it for long
}

// openEnv answers POST /envs. The environments are set up behind the answer.
func (f *Front) openEnv(w http.ResponseWriter, r *http.Request) error {
	n := NewEnv{Reward: DefaultReward}
	if err := decode(w, r, &n); err != nil {
		return err
	}
	list, err := f.makeEnvs(r.Context(), &n)
	if err != nil {
		return err
	}
	ids, opened := make([]string, len(list)), make([]OpenedEnv, len(list))
	for i, e := range list {
		ids[i], opened[i] = e.id, OpenedEnv{e.info(), f.tokens.issue(e.id)}
	}
	if n.N == 0 {
		w.Header().Set("Location", "/envs/"+ids[0])
		return writeJSON(w, http.StatusCreated, opened[0])
	}
	return writeJSON(w, http.StatusCreated, OpenedEnvs{opened, f.tokens.issue(ids...)})
}

// makeEnvs makes the environments that are asked for, if they can be had, and fills in what was left out.
func (f *Front) makeEnvs(ctx context.Context, n *NewEnv) ([]*env, error) {
	if f.NoEnvs != "" {
		return nil, fail(http.StatusUnprocessableEntity, "%s", f.NoEnvs)
	}
	documents, err := f.checkEnv(n)
	if err != nil {
		return nil, err
	}
	return f.beginEnvs(ctx, *n, documents)
}

// beginEnvs begins as many environments as are asked for, or none.
func (f *Front) beginEnvs(ctx context.Context, n NewEnv, documents map[string]string) ([]*env, error) {
	places := max(n.N, 1)
	if err := f.reserve(places); err != nil {
		return nil, err
	}
	var list []*env
	together := &played{}
	for i := range places {
		spec := n
		spec.Seed += uint64(i)
		e := &env{
			id: session.NewID(), spec: spec, documents: documents, busy: make(chan struct{}, 1),
			random: newRandom(spec.Seed), limit: spec.MaxSteps, ended: make(chan struct{}), played: together,
		}
		if err := f.restage(ctx, e, e.episodeOf(n.Problems[0])); err != nil {
			for _, e := range list {
				e.lease.Stop()
			}
			f.giveBack(places)
			return nil, err
		}
		list = append(list, e)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range list {
		f.envs[e.id] = e
		e.idle = time.AfterFunc(f.EnvIdle, func() { f.remove(e.id) })
		f.log.Info("environment begun", "env", e.id, "request", idOf(ctx), "problems", len(n.Problems))
	}
	return list, nil
}

// checkEnv refuses what cannot be run, and fills in what was left out.
func (f *Front) checkEnv(n *NewEnv) (documents map[string]string, err error) {
	if documents, err = f.settleEnv(n); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkLimits(n.MaxSteps, n.MaxTime), checkNoise(n.Noise), checkDecoys(n.Decoys)); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkHandOver(n.HandOver), n.Reward.check()); err != nil {
		return nil, err
	}
	if n.N < 0 || n.N > f.MaxSessions {
		return nil, fail(http.StatusUnprocessableEntity,
			"n is %d; there may be up to %d environments, or more if the server is started with more --max-sessions",
			n.N, f.MaxSessions)
	}
	if n.Keep < 0 {
		return nil, fail(http.StatusUnprocessableEntity, "keep_records is %d; it is a number of records, or 0 for all",
			n.Keep)
	}
	n.Name = cmp.Or(n.Name, "gym")
	n.Seed = cmp.Or(n.Seed, session.NewSeed())
	n.MaxSteps = cmp.Or(n.MaxSteps, session.DefaultSteps)
	return documents, nil
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func (e *env) info() Env {
	return Env{
		ID: e.id, Problems: e.spec.Problems, MaxSteps: e.spec.MaxSteps, Reward: e.spec.Reward,
		Episodes: int(e.begun.Load()),
	}
}

// episodeOf is an episode of a problem, but for its seed.
func (e *env) episodeOf(problem string) NewSession {
	return NewSession{
		Problem: problem, Document: e.documents[problem], Name: e.spec.Name, Noise: e.spec.Noise, Decoys: e.spec.Decoys,
		MaxSteps: e.spec.MaxSteps, MaxTime: e.spec.MaxTime, HandOver: e.spec.HandOver,
	}
}

// restage gives an environment a new worker with a stage for the problem of an episode. It does not wait for the
// stage.
func (f *Front) restage(ctx context.Context, e *env, episode NewSession) error {
	if e.lease != nil {
		e.lease.Stop()
		e.moves(nil)
	}
	l, err := f.hire(ctx, f.log.With("env", e.id))
	if err != nil {
		return err
	}
	n := NewSession{Problem: episode.Problem, Document: episode.Document, Seed: e.spec.Seed}
	s := stageSpec{Spec{ID: e.id, NewSession: n}, e.moves(l)}
	e.staged = make(chan error, 1)
	f.running.Go(func() {
		var ok struct{}
		e.staged <- l.ask(f.ctx, http.MethodPost, "/envs", s, &ok)
	})
	return nil
}

// env returns an environment that a caller may use. Others may be using it.
func (f *Front) env(c *caller, id string) (*env, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.envs[id]; ok && c.reaches(id) {
		return e, nil
	}
	return nil, noEnv(id)
}

// enter returns an environment that a caller may use, when nobody else uses it. It must be left.
func (f *Front) enter(ctx context.Context, c *caller, id string) (*env, error) {
	e, err := f.env(c, id)
	if err != nil {
		return nil, err
	}
	select {
	case e.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e.gone {
		<-e.busy
		return nil, noEnv(e.id)
	}
	e.idle.Stop()
	return e, nil
}

// leave lets others use an environment.
func (f *Front) leave(e *env) {
	e.idle.Reset(f.EnvIdle)
	<-e.busy
}

func noEnv(id string) error {
	return fail(http.StatusNotFound, "there is no environment %q", id)
}

// resetEnv answers POST /envs/{id}/reset.
func (f *Front) resetEnv(w http.ResponseWriter, r *http.Request) error {
	var reset Reset
	if err := decode(w, r, &reset); err != nil {
		return err
	}
	first, err := f.beginEpisode(r.Context(), callerOf(r), r.PathValue("id"), reset)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, first)
}

// beginEpisode begins an episode in an environment of a caller.
func (f *Front) beginEpisode(ctx context.Context, c *caller, id string, reset Reset) (first First, err error) {
	e, err := f.env(c, id)
	if err != nil {
		return first, err
	}
	if id := reset.Options.Problem; id != "" && !slices.Contains(e.spec.Problems, id) {
		if err := f.settle(&NewSession{Problem: id}); err != nil {
			return first, err
		}
	}
	done := e.endsSoon(ctx)
	_, err = f.enter(ctx, c, id)
	done()
	if err != nil {
		return first, err
	}
	defer f.leave(e)
	s := e.next(reset)
	body := func(id string) any {
		s.ID = id
		return s
	}
	if err = f.startOver(ctx, e, s.NewSession, "/reset", body, &first); err == nil {
		e.begins(first, s.NewSession, reset.name)
	}
	return first, err
}

// startOver has the environment's worker begin an episode, by a request to a path of its own, or a new worker if that
// one cannot. The body is for an id of the episode: what did not begin has left a record as well. Until that is done no
// episode is under way: if the caller goes away, nobody knows which one the worker has.
func (f *Front) startOver(ctx context.Context, e *env, episode NewSession, path string, body func(id string) any,
	into any,
) error {
	e.playing = false
	err := f.ask(ctx, e, path, body(session.NewID()), into)
	if m, ok := errors.AsType[*failure](err); ok &&
		(m.status == http.StatusMisdirectedRequest || m.status == http.StatusBadGateway) {
		// Another stage is needed, or this one broke; a new worker has neither fault.
		if err := f.restage(ctx, e, episode); err != nil {
			return err
		}
		err = f.ask(ctx, e, path, body(session.NewID()), into)
	}
	return err
}

// next draws the next episode, which has no id yet.
func (e *env) next(r Reset) episodeSpec {
	if r.Seed != nil {
		e.random = newRandom(*r.Seed)
	}
	p := cmp.Or(r.Options.Problem, e.spec.Problems[e.random.IntN(len(e.spec.Problems))])
	n := e.episodeOf(p)
	n.Seed = e.random.Uint64() >> 11 // JSON's numbers have 53 bits.
	return episodeSpec{Reward: e.spec.Reward, Keep: e.spec.Keep, Spec: Spec{NewSession: n}}
}

// ask sends a request to the environment's worker, once its stage is set.
func (f *Front) ask(ctx context.Context, e *env, path string, body, into any) error {
	if e.lease == nil {
		return fail(http.StatusBadGateway, "the environment has no process")
	}
	if e.staged != nil {
		select {
		case err := <-e.staged:
			e.staged = nil
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return e.lease.ask(ctx, http.MethodPost, "/envs/"+e.id+path, body, into)
}

// stepEnv answers POST /envs/{id}/step.
func (f *Front) stepEnv(w http.ResponseWriter, r *http.Request) error {
	var m Move
	if err := decode(w, r, &m); err != nil {
		return err
	}
	result, err := f.takeStep(r.Context(), callerOf(r), r.PathValue("id"), m)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, result)
}

// takeStep takes a step in an environment of a caller.
func (f *Front) takeStep(ctx context.Context, c *caller, id string, m Move) (result Result, err error) {
	e, err := f.enter(ctx, c, id)
	if err != nil {
		return result, err
	}
	defer f.leave(e)
	if _, err := m.response(); err != nil {
		return result, err // No step is taken, and none to be remembered.
	}
	if e.lease == nil || !e.playing {
		return result, errNoEpisode
	}
	if e.ending.Load() > 0 { // Whoever waits shall not wait for an answer.
		e.refuse(ctx)
	}
	s := stepSpec{m, e.repeats()}
	if err = e.lease.ask(ctx, http.MethodPost, "/envs/"+id+"/step", s, &result); err == nil {
		e.goesOn(result)
	}
	return result, err
}

// errNoEpisode is the error of a step that comes before a reset, or after the end of an episode.
var errNoEpisode = fail(http.StatusConflict, "no episode is under way; reset the environment")

// listEnvs answers GET /envs.
func (f *Front) listEnvs(w http.ResponseWriter, _ *http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Env, 0, len(f.envs))
	for _, id := range slices.Sorted(maps.Keys(f.envs)) {
		list = append(list, f.envs[id].info())
	}
	return writeJSON(w, http.StatusOK, list)
}

// closeEnv answers DELETE /envs/{id}. It does not wait for a step that is being taken.
func (f *Front) closeEnv(w http.ResponseWriter, r *http.Request) error {
	if id := r.PathValue("id"); !callerOf(r).reaches(id) || f.remove(id) == nil {
		return noEnv(id)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove ends an environment and its worker, as soon as nobody uses it, and returns what is closed then. It is nil if
// there is no such environment.
func (f *Front) remove(id string) (ended <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.envs[id]
	if e == nil {
		return nil
	}
	delete(f.envs, id)
	f.tokens.revoke(id)
	maps.DeleteFunc(f.snapshots, func(_ string, s *snapshot) bool { return s.env == id })
	if f.closed { // All workers have been told to end.
		close(e.ended)
		return e.ended
	}
	f.running.Go(func() {
		defer e.endsSoon(f.ctx)()
		e.busy <- struct{}{}
		e.gone = true
		e.idle.Stop()
		if e.lease != nil {
			e.lease.Stop()
		}
		<-e.busy
		f.giveBack(1)
		f.log.Info("environment ended", "env", id, "episodes", e.begun.Load())
		close(e.ended)
	})
	return e.ended
}
