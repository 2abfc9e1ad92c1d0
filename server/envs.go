package server

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// env is an environment as the front knows it.
type env struct {
	id   string
	spec NewEnv
	// documents are of those of its problems that are not built in, by their ids.
	documents map[string]string

	busy chan struct{} // held by whoever resets it, or ends it

	// Of whoever holds busy.
	random *rand.Rand
	lease  *lease
	staged chan error // of the worker: what came of setting its stage up
	gone   bool

	begun atomic.Int64 // episodes
	idle  *time.Timer  // ends it when nobody has used it for long
}

// openEnv answers POST /envs. The environment is set up behind the answer.
func (f *Front) openEnv(w http.ResponseWriter, r *http.Request) error {
	n := NewEnv{Reward: DefaultReward}
	if err := decode(w, r, &n); err != nil {
		return err
	}
	if f.NoEnvs != "" {
		return fail(http.StatusUnprocessableEntity, "%s", f.NoEnvs)
	}
	documents, err := f.checkEnv(&n)
	if err != nil {
		return err
	}
	if err := f.reserve(); err != nil {
		return err
	}
	e := &env{
		id: session.NewID(), spec: n, documents: documents, busy: make(chan struct{}, 1),
		random: newRandom(n.Seed),
	}
	if err := f.restage(r.Context(), e, n.Problems[0]); err != nil {
		f.giveBack()
		return err
	}
	f.mu.Lock()
	f.envs[e.id] = e
	e.idle = time.AfterFunc(f.EnvIdle, func() { f.remove(e.id) })
	f.mu.Unlock()
	f.log.Info("environment begun", "env", e.id, "request", idOf(r.Context()), "problems", len(n.Problems))
	w.Header().Set("Location", "/envs/"+e.id)
	return writeJSON(w, http.StatusCreated, OpenedEnv{e.info(), f.tokens.issue(e.id)})
}

// checkEnv refuses what cannot be run, and fills in what was left out.
func (f *Front) checkEnv(n *NewEnv) (documents map[string]string, err error) {
	if documents, err = f.settleEnv(n); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkLimits(n.MaxSteps, n.MaxTime), checkNoise(n.Noise), checkDecoys(n.Decoys)); err != nil {
		return nil, err
	}
	if err := checkHandOver(n.HandOver); err != nil {
		return nil, err
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

// restage gives an environment a new worker with a stage for a problem. It does not wait for the
// stage.
func (f *Front) restage(ctx context.Context, e *env, problem string) error {
	if e.lease != nil {
		e.lease.Stop()
		e.lease = nil
	}
	l, err := f.hire(ctx, f.log.With("env", e.id))
	if err != nil {
		return err
	}
	e.lease, e.staged = l, make(chan error, 1)
	s := Spec{e.id, NewSession{Problem: problem, Document: e.documents[problem], Seed: e.spec.Seed}}
	f.running.Go(func() {
		var ok struct{}
		e.staged <- l.ask(f.ctx, http.MethodPost, "/envs", s, &ok)
	})
	return nil
}

// enter returns the environment of a request when nobody else uses it. It must be left.
func (f *Front) enter(r *http.Request) (*env, error) {
	e, err := f.env(r)
	if err != nil {
		return nil, err
	}
	select {
	case e.busy <- struct{}{}:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
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

func (f *Front) env(r *http.Request) (*env, error) {
	id := r.PathValue("id")
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.envs[id]; ok && callerOf(r).reaches(id) {
		return e, nil
	}
	return nil, noEnv(id)
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
	e, err := f.enter(r)
	if err != nil {
		return err
	}
	defer f.leave(e)
	if id := reset.Options.Problem; id != "" && !slices.Contains(e.spec.Problems, id) {
		n := NewSession{Problem: id}
		if err := f.settle(&n); err != nil {
			return err
		}
		e.documents[id] = n.Document
	}
	s := e.next(reset)
	first, err := f.episode(r.Context(), e, s)
	if m, ok := errors.AsType[*failure](err); ok &&
		(m.status == http.StatusMisdirectedRequest || m.status == http.StatusBadGateway) {
		// Another stage is needed, or this one broke; a new worker has neither fault.
		if err := f.restage(r.Context(), e, s.Problem); err != nil {
			return err
		}
		first, err = f.episode(r.Context(), e, s)
	}
	if err != nil {
		return err
	}
	e.begun.Add(1)
	return writeJSON(w, http.StatusOK, first)
}

// next draws the next episode.
func (e *env) next(r Reset) episodeSpec {
	if r.Seed != nil {
		e.random = newRandom(*r.Seed)
	}
	p := cmp.Or(r.Options.Problem, e.spec.Problems[e.random.IntN(len(e.spec.Problems))])
	seed := e.random.Uint64() >> 11 // JSON's numbers have 53 bits.
	return episodeSpec{Reward: e.spec.Reward, Keep: e.spec.Keep, Spec: Spec{session.NewID(), NewSession{
		Problem: p, Document: e.documents[p], Name: e.spec.Name, Seed: seed, Noise: e.spec.Noise, Decoys: e.spec.Decoys,
		MaxSteps: e.spec.MaxSteps, MaxTime: e.spec.MaxTime, HandOver: e.spec.HandOver,
	}}}
}

// episode begins an episode on the environment's worker, once its stage is set.
func (f *Front) episode(ctx context.Context, e *env, s episodeSpec) (first First, err error) {
	if e.lease == nil {
		return first, fail(http.StatusBadGateway, "the environment has no process")
	}
	if e.staged != nil {
		select {
		case err := <-e.staged:
			e.staged = nil
			if err != nil {
				return first, err
			}
		case <-ctx.Done():
			return first, context.Cause(ctx)
		}
	}
	err = e.lease.ask(ctx, http.MethodPost, "/envs/"+e.id+"/reset", s, &first)
	return first, err
}

// stepEnv answers POST /envs/{id}/step.
func (f *Front) stepEnv(w http.ResponseWriter, r *http.Request) error {
	e, err := f.enter(r)
	if err != nil {
		return err
	}
	defer f.leave(e)
	if e.lease == nil || e.begun.Load() == 0 {
		return fail(http.StatusConflict, "no episode is under way; reset the environment")
	}
	return e.lease.pass(w, r)
}

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
	if id := r.PathValue("id"); !callerOf(r).reaches(id) || !f.remove(id) {
		return noEnv(id)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove ends an environment and its worker, as soon as nobody uses it, and reports whether there was
// one.
func (f *Front) remove(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.envs[id]
	delete(f.envs, id)
	if e == nil {
		return false
	}
	f.running.Go(func() {
		e.busy <- struct{}{}
		e.gone = true
		e.idle.Stop()
		if e.lease != nil {
			e.lease.Stop()
		}
		<-e.busy
		f.giveBack()
		f.log.Info("environment ended", "env", id, "episodes", e.begun.Load())
	})
	f.tokens.revoke(id)
	return true
}
