package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// infoTimeout is how long a worker may take to say how its session is.
const infoTimeout = 5 * time.Second

// entry is a session as the front knows it.
type entry struct {
	first   Session // as of when it began
	lease   *lease
	done    chan struct{} // closed when there is an archive
	archive Archive
}

// begin starts a session that is known to be possible.
func (f *Front) begin(ctx context.Context, n NewSession) (*entry, error) {
	if err := f.reserve(1); err != nil {
		return nil, err
	}
	id := session.NewID()
	log := f.log.With("run", id)
	l, err := f.hire(ctx, log)
	if err != nil {
		f.giveBack(1)
		return nil, err
	}
	e := &entry{lease: l, done: make(chan struct{})}
	if err := l.ask(ctx, http.MethodPost, "/sessions", Spec{id, n}, &e.first); err != nil {
		l.Stop()
		f.giveBack(1)
		return nil, err
	}
	f.keep(e)
	log.Info("session begun", "request", idOf(ctx), "agent", e.first.Agent)
	f.running.Go(func() {
		f.watch(e)
		log.Info("session ended", e.archive.Session.summary()...)
		l.Stop()
		f.giveBack(1)
	})
	return e, nil
}

// keep makes a session findable, and forgets the oldest that has ended if there are too many.
func (f *Front) keep(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[e.first.ID] = e
	f.order = append(f.order, e.first.ID)
	for i := 0; len(f.order) > maxKept && i < len(f.order); i++ {
		select {
		case <-f.sessions[f.order[i]].done:
			delete(f.sessions, f.order[i])
			f.tokens.revoke(f.order[i])
			f.order = append(f.order[:i], f.order[i+1:]...)
			i--
		default:
		}
	}
}

// watch waits for the end of a session.
func (f *Front) watch(e *entry) {
	defer close(e.done)
	err := e.lease.ask(f.ctx, http.MethodGet, "/sessions/"+e.first.ID+"/archive", nil, &e.archive)
	if err != nil {
		e.archive = Archive{Session: e.first}
		e.archive.Session.State, e.archive.Session.Error = Failed, err.Error()
	}
}

// summary is a session that has ended, for the log. Only now does that tell the problem: an agent that is
// a program on this machine could read the log.
func (s Session) summary() []any {
	args := []any{"state", s.State, "steps", s.Steps}
	if s.Outcome != nil {
		args = append(args, "class", s.Outcome.Class, "problem", s.Outcome.Problem)
	}
	if s.Error != "" {
		args = append(args, "error", s.Error)
	}
	return args
}

// info is what is known of a session by now.
func (e *entry) info(ctx context.Context) Session {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	var s Session
	err := errors.New("it has ended")
	select {
	case <-e.done:
	default:
		err = e.lease.ask(ctx, http.MethodGet, "/sessions/"+e.first.ID, nil, &s)
	}
	if err == nil {
		return s
	}
	select {
	case <-e.done:
		return e.archive.Session
	case <-ctx.Done():
		return e.first // Its process is too busy to say more.
	}
}

func (f *Front) entry(r *http.Request) (*entry, error) {
	id := r.PathValue("id")
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.sessions[id]; ok && callerOf(r).reaches(id) {
		return e, nil
	}
	return nil, fail(http.StatusNotFound, "there is no session %q", id)
}

// openSession answers POST /sessions.
func (f *Front) openSession(w http.ResponseWriter, r *http.Request) error {
	var n NewSession
	if err := decode(w, r, &n); err != nil {
		return err
	}
	if err := f.checkSession(r.Context(), &n); err != nil {
		return err
	}
	e, err := f.begin(r.Context(), n)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/sessions/"+e.first.ID)
	return writeJSON(w, http.StatusCreated, OpenedSession{e.first, f.tokens.issue(e.first.ID)})
}

// checkSession refuses what cannot be run, and fills in what was left out.
func (f *Front) checkSession(ctx context.Context, n *NewSession) error {
	if err := f.settle(n); err != nil {
		return err
	}
	if err := cmp.Or(checkLimits(n.MaxSteps, n.MaxTime), checkNoise(n.Noise), checkDecoys(n.Decoys)); err != nil {
		return err
	}
	if err := checkHandOver(n.HandOver); err != nil {
		return err
	}
	if n.Agent != "" {
		n.Agent = f.likeTheirs(n.Agent)
		return f.checkAgent(ctx, *n)
	}
	if n.Model != "" || n.Sampling != (Sampling{}) {
		return fail(http.StatusUnprocessableEntity,
			"a model and its settings are for a named agent; the caller's has its own")
	}
	n.Name = cmp.Or(n.Name, "http")
	return nil
}

// ErrModel is the error of a model that cannot be asked, though nothing is wrong with the request.
var ErrModel = errors.New("the model does not answer")

// checkAgent refuses a named agent that cannot be run.
func (f *Front) checkAgent(ctx context.Context, n NewSession) error {
	if err := known("agent", n.Agent, f.Agents); err != nil {
		return err
	}
	if n.Name != "" {
		return fail(http.StatusUnprocessableEntity, "name is what the record calls the caller's agent; %s has a name",
			n.Agent)
	}
	if n.MaxTokens < 0 {
		return fail(http.StatusUnprocessableEntity, "max_tokens %d: it cannot be negative", n.MaxTokens)
	}
	if n.TopP != nil && (*n.TopP <= 0 || *n.TopP > 1) {
		return fail(http.StatusUnprocessableEntity, "top_p %v: it is above 0, and 1 at most", *n.TopP)
	}
	if f.Check != nil {
		if err := f.Check(ctx, n); errors.Is(err, ErrModel) {
			return fail(http.StatusBadGateway, "%v", err)
		} else if err != nil {
			return fail(http.StatusUnprocessableEntity, "%v", err)
		}
	}
	return nil
}

// listSessions answers GET /sessions.
func (f *Front) listSessions(w http.ResponseWriter, r *http.Request) error {
	f.mu.Lock()
	entries := make([]*entry, 0, len(f.order))
	for _, id := range f.order {
		entries = append(entries, f.sessions[id])
	}
	f.mu.Unlock()
	list := make([]Session, len(entries))
	var wg sync.WaitGroup
	for i, e := range entries {
		wg.Go(func() { list[i] = e.info(r.Context()) })
	}
	wg.Wait()
	return writeJSON(w, http.StatusOK, list)
}

// getSession answers GET /sessions/{id}.
func (f *Front) getSession(w http.ResponseWriter, r *http.Request) error {
	e, err := f.entry(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, e.info(r.Context()))
}

// cancelSession answers DELETE /sessions/{id}.
func (f *Front) cancelSession(w http.ResponseWriter, r *http.Request) error {
	e, err := f.entry(r)
	if err != nil {
		return err
	}
	if err := e.end(r.Context()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, e.archive.Session)
}

// end cancels a session, and waits until it is graded.
func (e *entry) end(ctx context.Context) error {
	select {
	case <-e.done:
		return nil
	default:
	}
	var s Session
	if err := e.lease.ask(ctx, http.MethodDelete, "/sessions/"+e.first.ID, nil, &s); err != nil && ctx.Err() != nil {
		return err
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// part answers what is asked of a part of a session: by its worker, or by what that has left.
func (f *Front) part(name string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		e, err := f.entry(r)
		if err != nil {
			return err
		}
		select {
		case <-e.done:
			return e.archive.serve(name, w, r)
		default:
		}
		err = e.lease.pass(w, r)
		if m, ok := errors.AsType[*failure](err); !ok || m.status != http.StatusBadGateway {
			return err
		}
		select {
		case <-e.done: // It ended just then.
			return e.archive.serve(name, w, r)
		case <-r.Context().Done():
			return err
		case <-time.After(deathTimeout):
			return err
		}
	}
}
