package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// resetBatch answers POST /envs/batch/reset.
func (f *Front) resetBatch(w http.ResponseWriter, r *http.Request) error {
	var b BatchReset
	if err := decode(w, r, &b); err != nil {
		return err
	}
	who := callerOf(r)
	list, err := batch(f, b.Resets, func(m EnvReset) string { return m.Env }, func(m EnvReset) EnvFirst {
		first, err := f.beginEpisode(r.Context(), who, m.Env, m.Reset)
		if err != nil {
			return EnvFirst{Env: m.Env, Error: ownError(r.Context(), err)}
		}
		return EnvFirst{Env: m.Env, First: &first}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, BatchFirst{list})
}

// stepBatch answers POST /envs/batch/step.
func (f *Front) stepBatch(w http.ResponseWriter, r *http.Request) error {
	var b BatchStep
	if err := decode(w, r, &b); err != nil {
		return err
	}
	who := callerOf(r)
	list, err := batch(f, b.Steps, func(m EnvMove) string { return m.Env }, func(m EnvMove) EnvResult {
		result, err := f.takeStep(r.Context(), who, m.Env, m.Move)
		if err != nil {
			return EnvResult{Env: m.Env, Error: ownError(r.Context(), err)}
		}
		return EnvResult{Env: m.Env, Result: &result}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, BatchResult{list})
}

// batch does something for every member, all at once, and returns what came of each in their order. A batch in which an
// environment is twice is refused: nobody could say which comes first.
func batch[M, R any](f *Front, members []M, id func(M) string, do func(M) R) ([]R, error) {
	if len(members) == 0 || len(members) > f.MaxSessions {
		return nil, fail(http.StatusUnprocessableEntity,
			"the batch has %d members; it has one at least, and %d at most", len(members), f.MaxSessions)
	}
	seen := map[string]bool{}
	for _, m := range members {
		if seen[id(m)] {
			return nil, fail(http.StatusUnprocessableEntity, "environment %q is in the batch twice", id(m))
		}
		seen[id(m)] = true
	}
	list := make([]R, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { list[i] = do(m) })
	}
	wg.Wait()
	return list, nil
}

// ownError is the error of one member of a batch.
func ownError(ctx context.Context, err error) *EnvError {
	if f, ok := errors.AsType[*failure](err); ok {
		return &EnvError{f.status, f.detail}
	}
	if ctx.Err() != nil {
		return &EnvError{http.StatusServiceUnavailable, errEnding.Error()}
	}
	return &EnvError{http.StatusInternalServerError, err.Error()}
}
