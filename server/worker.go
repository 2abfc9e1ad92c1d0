package server

import (
	"context"
	"net/http"
	"sync"
)

// Worker serves one session, or one environment, to a front. Its paths are those of the API.
type Worker struct {
	backend Backend
	ctx     context.Context // of all that it runs
	cancel  context.CancelFunc
	mux     *http.ServeMux

	mu      sync.Mutex
	session *hosted
	gym     *gym
}

// NewWorker returns a worker that runs what it is told to on a backend.
func NewWorker(b Backend) *Worker {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Worker{backend: b, ctx: ctx, cancel: cancel, mux: http.NewServeMux()}
	w.mux.Handle("POST /sessions", handler(w.open))
	session := func(pattern string, h func(h *hosted, w http.ResponseWriter, r *http.Request) error) {
		w.mux.Handle(pattern, handler(func(rw http.ResponseWriter, r *http.Request) error {
			s := w.current()
			if s == nil {
				return fail(http.StatusNotFound, "there is no session yet")
			}
			return h(s, rw, r)
		}))
	}
	session("GET /sessions/{id}", (*hosted).serveInfo)
	session("DELETE /sessions/{id}", (*hosted).serveCancel)
	session("GET /sessions/{id}/problem", (*hosted).serveProblem)
	session("POST /sessions/{id}/act", (*hosted).serveAct)
	session("GET /sessions/{id}/observation", (*hosted).serveObservation)
	session("POST /sessions/{id}/submit", (*hosted).serveSubmit)
	session("POST /sessions/{id}/give-up", (*hosted).serveGiveUp)
	session("GET /sessions/{id}/outcome", (*hosted).serveOutcome)
	session("GET /sessions/{id}/events", func(h *hosted, w http.ResponseWriter, r *http.Request) error {
		return h.feed.serve(w, r)
	})
	session("GET /sessions/{id}/record", (*hosted).serveRecord)
	session("GET /sessions/{id}/archive", (*hosted).serveArchive)
	session("POST /sessions/{id}/interrupt", (*hosted).serveInterrupt)
	w.mux.Handle("POST /envs", handler(w.stage))
	w.mux.Handle("POST /envs/{id}/reset", handler(w.reset))
	w.mux.Handle("POST /envs/{id}/step", handler(w.step))
	w.mux.Handle("POST /envs/{id}/snapshot", handler(w.snapshot))
	w.mux.Handle("POST /envs/{id}/restore", handler(w.restore))
	w.mux.Handle("POST /envs/{id}/refuse", w.asked(inquiry.serveRefusal))
	for _, whose := range []string{"/sessions/{id}", "/envs/{id}"} {
		w.mux.Handle("GET "+whose+"/questions", w.asked(inquiry.serveList))
		w.mux.Handle("POST "+whose+"/questions/{number}", w.asked(inquiry.serveAnswer))
	}
	return w
}

func (w *Worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.mux.ServeHTTP(rw, r) }

// Close cancels what runs, and waits until it is graded.
func (w *Worker) Close() {
	w.cancel()
	if s := w.current(); s != nil {
		<-s.done
	}
	w.mu.Lock()
	g := w.gym
	w.mu.Unlock()
	if g != nil {
		g.close()
	}
}

func (w *Worker) current() *hosted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// open begins the worker's session.
func (w *Worker) open(rw http.ResponseWriter, r *http.Request) error {
	var s Spec
	if err := decode(rw, r, &s); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session != nil || w.gym != nil {
		return fail(http.StatusConflict, "the worker is taken")
	}
	w.session = host(w.ctx, s, w.backend.Open)
	return writeJSON(rw, http.StatusCreated, w.session.info())
}

func (h *hosted) serveInfo(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, h.info())
}

func (h *hosted) serveCancel(w http.ResponseWriter, r *http.Request) error {
	h.cancel()
	if err := h.wait(r.Context()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, h.archive.Session)
}

func (h *hosted) serveProblem(w http.ResponseWriter, r *http.Request) error {
	p, err := h.briefing(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

func (h *hosted) serveAct(w http.ResponseWriter, r *http.Request) error {
	var a Act
	if err := decode(w, r, &a); err != nil {
		return err
	}
	response, err := a.response()
	if err != nil {
		return err
	}
	t, err := h.act(r.Context(), response)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, t)
}

func (h *hosted) serveObservation(w http.ResponseWriter, r *http.Request) error {
	t, err := h.observation(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, t)
}

func (h *hosted) serveSubmit(w http.ResponseWriter, r *http.Request) error {
	var s Submission
	if err := decode(w, r, &s); err != nil {
		return err
	}
	o, next, err := h.submit(r.Context(), s.Answer)
	switch {
	case err != nil:
		return err
	case next != nil:
		return writeJSON(w, http.StatusAccepted, next)
	}
	return writeJSON(w, http.StatusOK, o)
}

func (h *hosted) serveGiveUp(w http.ResponseWriter, r *http.Request) error {
	var s Surrender
	if err := decode(w, r, &s); err != nil {
		return err
	}
	return writeOutcome(w, func() (*Outcome, error) { return h.giveUp(r.Context(), s.Reason) })
}

func (h *hosted) serveOutcome(w http.ResponseWriter, r *http.Request) error {
	return writeOutcome(w, func() (*Outcome, error) { return h.outcome(r.Context()) })
}

func writeOutcome(w http.ResponseWriter, get func() (*Outcome, error)) error {
	o, err := get()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, o)
}

func (h *hosted) serveRecord(w http.ResponseWriter, r *http.Request) error {
	select {
	case <-h.done:
		return h.archive.serveRecord(w, r)
	default:
		return fail(http.StatusConflict, "the record tells the answer, and is there after the verdict")
	}
}

// serveArchive answers when the session has ended, to the front.
func (h *hosted) serveArchive(w http.ResponseWriter, r *http.Request) error {
	if err := h.wait(r.Context()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, h.archive)
}

// serveInterrupt ends the command that the step at hand runs, for the front. The step is done then, and counts.
func (h *hosted) serveInterrupt(w http.ResponseWriter, r *http.Request) error {
	if _, err := h.briefing(r.Context()); err != nil {
		return err
	}
	if i, ok := h.run.(interrupter); ok {
		i.Interrupt()
	}
	return writeJSON(w, http.StatusOK, h.info())
}
