package server

import (
	"context"
	"crypto/rand"
	"net/http"
)

const (
	// maxSnapshots is how many snapshots an environment has.
	maxSnapshots = 64
	// maxSnapshotBytes is how much they hold in all.
	maxSnapshotBytes = 16 << 20
)

// snapshot is one that was taken in an environment. Nobody changes it.
type snapshot struct {
	env string
	trail
}

// takeSnapshot answers POST /envs/{id}/snapshot.
func (f *Front) takeSnapshot(w http.ResponseWriter, r *http.Request) error {
	s, err := f.snap(r.Context(), callerOf(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s)
}

// snap takes a snapshot in an environment of a caller, between two steps.
func (f *Front) snap(ctx context.Context, c *caller, id string) (*Snapshot, error) {
	e, err := f.enter(ctx, c, id)
	if err != nil {
		return nil, err
	}
	defer f.leave(e)
	if e.lease == nil || !e.playing {
		return nil, errNoEpisode
	}
	n, held := f.snapshotsOf(id)
	if n >= maxSnapshots {
		return nil, fail(http.StatusTooManyRequests, "there are %d snapshots of the environment; delete one", n)
	}
	s, room := &snapshot{env: id}, snapshotSpec{maxSnapshotBytes - held}
	if err := e.lease.ask(ctx, http.MethodPost, "/envs/"+id+"/snapshot", room, &s.trail); err != nil {
		return nil, err
	}
	name := rand.Text()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.envs[id] != e { // Its end takes its snapshots with it.
		return nil, noEnv(id)
	}
	f.snapshots[name] = s
	return &Snapshot{name, len(s.Steps)}, nil
}

// snapshotsOf is how many snapshots an environment has, and what they hold. Who takes one has the environment.
func (f *Front) snapshotsOf(env string) (n, held int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.snapshots {
		if s.env == env {
			n, held = n+1, held+s.size()
		}
	}
	return n, held
}

// findSnapshot returns a snapshot of an environment that a caller may use.
func (f *Front) findSnapshot(c *caller, id string) (*snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.snapshots[id]; s != nil && c.reaches(s.env) {
		return s, nil
	}
	return nil, noSnapshot(id)
}

func noSnapshot(id string) error { return fail(http.StatusNotFound, "there is no snapshot %q", id) }

// dropSnapshot answers DELETE /envs/{id}/snapshots/{snapshot}.
func (f *Front) dropSnapshot(w http.ResponseWriter, r *http.Request) error {
	env, id := r.PathValue("id"), r.PathValue("snapshot")
	if s, err := f.findSnapshot(callerOf(r), id); err != nil || s.env != env {
		return noSnapshot(id)
	}
	f.mu.Lock()
	delete(f.snapshots, id)
	f.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// restoreEnv answers POST /envs/{id}/restore.
func (f *Front) restoreEnv(w http.ResponseWriter, r *http.Request) error {
	var s Restore
	if err := decode(w, r, &s); err != nil {
		return err
	}
	res, err := f.restore(r.Context(), callerOf(r), r.PathValue("id"), s.Snapshot)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, res)
}

// restore takes an environment of a caller to a snapshot. The problem, the seed and the limits are those of the
// snapshot, rewards and records those of the environment, whose next episodes are what they would have been.
func (f *Front) restore(ctx context.Context, c *caller, id, name string) (*Restored, error) {
	s, err := f.findSnapshot(c, name)
	if err != nil {
		return nil, err
	}
	e, err := f.env(c, id)
	if err != nil {
		return nil, err
	}
	done := e.endsSoon(ctx)
	_, err = f.enter(ctx, c, id)
	done()
	if err != nil {
		return nil, err
	}
	defer f.leave(e)
	spec := restoreSpec{From: s.Spec.ID, Taken: s.Steps, episodeSpec: episodeSpec{
		Reward: e.spec.Reward, Keep: e.spec.Keep, Spec: Spec{NewSession: s.Spec.NewSession},
	}}
	body := func(id string) any {
		spec.ID = id
		return spec
	}
	res := &Restored{}
	if err := f.startOver(ctx, e, spec.NewSession, "/restore", body, res); err != nil {
		return nil, err
	}
	e.begins(First{Info: res.Info}, s.Spec.NewSession, "")
	e.repeats() // It has a mark already, but others have not.
	e.goesOn(res.Result)
	return res, nil
}

// snapshotBatch answers POST /envs/batch/snapshot.
func (f *Front) snapshotBatch(w http.ResponseWriter, r *http.Request) error {
	var b BatchSnapshot
	if err := decode(w, r, &b); err != nil {
		return err
	}
	who := callerOf(r)
	list, err := batch(f, b.Snapshots, func(m EnvRef) string { return m.Env }, func(m EnvRef) EnvSnapshot {
		s, err := f.snap(r.Context(), who, m.Env)
		if err != nil {
			return EnvSnapshot{Env: m.Env, Error: ownError(r.Context(), err)}
		}
		return EnvSnapshot{Env: m.Env, Snapshot: s}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, BatchSnapshots{list})
}

// restoreBatch answers POST /envs/batch/restore.
func (f *Front) restoreBatch(w http.ResponseWriter, r *http.Request) error {
	var b BatchRestore
	if err := decode(w, r, &b); err != nil {
		return err
	}
	who := callerOf(r)
	list, err := batch(f, b.Restores, func(m EnvRestore) string { return m.Env }, func(m EnvRestore) EnvRestored {
		res, err := f.restore(r.Context(), who, m.Env, m.Snapshot)
		if err != nil {
			return EnvRestored{Env: m.Env, Error: ownError(r.Context(), err)}
		}
		return EnvRestored{Env: m.Env, Restored: res}
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, BatchRestored{list})
}
