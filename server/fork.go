package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// A cluster under way has no copy: what its programs hold, what disturbs them, the load and the telemetry have no form
// in which they could be kept. So a snapshot is the way to a state: the episode's problem and seed, and the steps that
// were taken; and to restore it is to go that way again.

// taken is a step that an episode has taken.
type taken struct {
	Response    string `json:"response"`
	Observation string `json:"observation"`
}

// trail is the way to a state. It has the seed and the problem, and stays in the server.
type trail struct {
	Spec  Spec    `json:"spec"`
	Steps []taken `json:"steps"`
}

// size is how many bytes it holds, about.
func (t *trail) size() int {
	n := len(t.Spec.Document)
	for _, s := range t.Steps {
		n += len(s.Response) + len(s.Observation)
	}
	return n
}

// snapshotSpec is a snapshot that a worker is to take.
type snapshotSpec struct {
	Room int `json:"room"` // how large it may be
}

// restoreSpec is an episode that a worker is to begin with steps that another has taken.
type restoreSpec struct {
	episodeSpec
	From  string  `json:"from"` // the id of that one
	Taken []taken `json:"taken"`
}

// noted is a run whose record takes notes of others.
type noted interface {
	Note(ctx context.Context, kind string, data any) error
}

var _ noted = (*session.Live)(nil)

// mark puts into the record that the episode is one of a search. Without that, it would count as any other.
func (h *hosted) mark(ctx context.Context, kind string, data any) error {
	n, ok := h.run.(noted)
	if !ok {
		return fail(http.StatusUnprocessableEntity, "the episodes here cannot be restored")
	}
	err := n.Note(ctx, kind, data)
	h.searched = h.searched || err == nil
	return err
}

// snapshot answers with the trail of the episode, to the front. One that is refused leaves no mark.
func (w *Worker) snapshot(rw http.ResponseWriter, r *http.Request) error {
	var s snapshotSpec
	if err := decode(rw, r, &s); err != nil {
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
	select {
	case <-g.episode.over:
		return errNoEpisode // Its time was up.
	default:
	}
	t := trail{g.episode.spec, g.taken}
	if t.size() > s.Room {
		return fail(http.StatusTooManyRequests, "the snapshots of the environment would hold more than %d bytes; "+
			"delete some", maxSnapshotBytes)
	}
	if err := g.episode.mark(r.Context(), record.SnapshotEvent, record.Snapshot{Steps: len(t.Steps)}); err != nil {
		return err
	}
	return writeJSON(rw, http.StatusOK, t)
}

// restore begins an episode with the steps of a snapshot.
func (w *Worker) restore(rw http.ResponseWriter, r *http.Request) error {
	var s restoreSpec
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil { // From the front, and longer than a caller's body.
		return bodyError(err)
	}
	g, leave, err := w.enterGym(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	first, err := w.begin(r.Context(), g, s.episodeSpec)
	if err != nil {
		return err
	}
	res, err := g.again(r.Context(), first, s)
	if err != nil {
		g.end() // Nobody is to go on from half the way.
		return err
	}
	return writeJSON(rw, http.StatusOK, res)
}

// again takes steps again in an episode that has just begun. It stops between them if the caller goes away.
func (g *gym) again(ctx context.Context, first First, s restoreSpec) (*Restored, error) {
	how := record.Restore{From: s.From, Steps: len(s.Taken)}
	if err := g.episode.mark(ctx, record.RestoreEvent, how); err != nil {
		return nil, err
	}
	defer refuseAll(g.episode.desk())()
	res := &Restored{Result: Result{Observation: first.Observation, Info: first.Info}}
	for _, was := range s.Taken {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		now, err := g.take(context.WithoutCancel(ctx), was.Response)
		if err != nil {
			return nil, err
		}
		res.Steps++
		if a, b, differ := differs(was.Observation, now.Observation); !differ {
			res.Same++
		} else if res.Differs == nil {
			res.Differs = &Difference{res.Steps, a, b}
		}
		now.Reward += res.Reward
		now.Info = merged(first.Info, now.Info)
		if res.Result = now; now.Terminated || now.Truncated {
			break
		}
	}
	return res, nil
}

func merged(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

// refuseAll refuses whatever is asked until it is told to stop: what somebody has once approved of was approved of
// then, and who searches is not to ask until somebody is tired of it.
func refuseAll(d *session.Desk) (stop func()) {
	if d == nil {
		return func() {}
	}
	no := guard.Answer{By: "restore", Why: "nobody is asked about a step that is taken again"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			list, changed := d.Watch()
			for _, q := range list {
				_ = d.Answer(ctx, q.Number, no) // Somebody may have answered just now.
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
