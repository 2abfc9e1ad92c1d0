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
	spec    Spec
	request string  // that asked for it
	first   Session // as of when it was asked for
	begun   chan struct{}
	lease   *lease        // there when begun is closed
	done    chan struct{} // closed when there is an archive
	archive Archive
}

// begin starts a session that is known to be possible, or has it wait in line.
func (f *Front) begin(ctx context.Context, n NewSession) (*entry, error) {
	e := &entry{
		spec:    Spec{ID: session.NewID(), NewSession: n, Near: near(ctx)},
		request: idOf(ctx), begun: make(chan struct{}), done: make(chan struct{}),
	}
	e.first = Session{ID: e.spec.ID, Agent: cmp.Or(n.Agent, n.Name), State: Preparing, Created: time.Now()}
	now, err := f.admit(e)
	if err != nil {
		return nil, err
	}
	if !now {
		f.keep(e)
		f.log.With("run", e.first.ID).Info("session queued", "request", e.request, "place", e.first.Place)
		return e, nil
	}
	if err := f.launch(ctx, e); err != nil {
		f.giveBack(1)
		return nil, err
	}
	f.keep(e)
	f.running.Go(func() { f.attend(e) })
	return e, nil
}

// launch has a worker begin a session that has a place.
func (f *Front) launch(ctx context.Context, e *entry) error {
	log := f.log.With("run", e.spec.ID)
	l, err := f.hire(ctx, log)
	if err != nil {
		return err
	}
	var s Session
	if err := l.ask(ctx, http.MethodPost, "/sessions", e.spec, &s); err != nil {
		l.Stop()
		return err
	}
	e.lease = l
	log.Info("session begun", "request", e.request, "agent", s.Agent)
	close(e.begun)
	return nil
}

// attend waits for the end of a session that has begun, and gives its place back.
func (f *Front) attend(e *entry) {
	f.watch(e)
	f.log.With("run", e.spec.ID).Info("session ended", e.archive.Session.summary()...)
	e.lease.Stop()
	f.giveBack(1)
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
		e.archive = Archive{Session: e.unbegun()}
		e.archive.Session.State, e.archive.Session.Error = Failed, err.Error()
	}
}

// unbegun is what is known of a session without asking its worker.
func (e *entry) unbegun() Session {
	s := e.first
	s.State, s.Place = Preparing, 0
	return s
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
func (f *Front) info(ctx context.Context, e *entry) Session {
	select {
	case <-e.begun:
		return e.info(ctx)
	case <-e.done:
		return e.archive.Session
	default:
	}
	s := e.unbegun()
	if s.Place = f.place(e); s.Place > 0 {
		s.State = Queued
	}
	return s
}

// info is what is known of a session that has begun.
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
		return e.unbegun() // Its process is too busy to say more.
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
	ctx := r.Context()
	if n.Agent == "" {
		ctx = fromNear(ctx, neighbour(r))
	}
	e, err := f.begin(ctx, n)
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
		wg.Go(func() { list[i] = f.info(r.Context(), e) })
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
	return writeJSON(w, http.StatusOK, f.info(r.Context(), e))
}

// cancelSession answers DELETE /sessions/{id}.
func (f *Front) cancelSession(w http.ResponseWriter, r *http.Request) error {
	e, err := f.entry(r)
	if err != nil {
		return err
	}
	if err := f.end(r.Context(), e); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, e.archive.Session)
}

// end cancels a session, and waits until it is graded.
func (f *Front) end(ctx context.Context, e *entry) error {
	if f.leaveLine(e) {
		return nil
	}
	if err := e.launched(ctx); err != nil {
		return err
	}
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
		if err := e.launched(r.Context()); err != nil {
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
