package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/server/page"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/world/decoy"
	"github.com/aiopslab/aiopslab/world/noise"
)

const (
	// DefaultMaxSessions is how many sessions and environments there may be at once.
	DefaultMaxSessions = 16
	// DefaultEnvIdle is how long an environment that nobody uses is kept.
	DefaultEnvIdle = time.Hour
	// maxKept is how many sessions that have ended are still told of.
	maxKept = 1000
	// defaultAgent is whom a simulation means that names nobody.
	defaultAgent = "runbook"
)

// Options are what a front needs.
type Options struct {
	Workers Workers
	Agents  []string // that can be named
	// Check says why a session with a named agent cannot be run, such as for lack of a model, before anything is
	// started for it. If the model does not answer, the error is an [ErrModel]. Check may be nil.
	Check       func(context.Context, NewSession) error
	MaxSessions int           // and environments, at once; 0 is DefaultMaxSessions
	MaxQueued   int           // sessions that may wait in line when all places are taken; see [DefaultMaxQueued]
	EnvIdle     time.Duration // how long an environment is kept that nobody uses; 0 is DefaultEnvIdle
	// Library is the problems that can be named, and the applications that those of callers may be about.
	Library *problem.Library
	// Lacks says why a problem cannot be run where the sessions are, and is empty if it can. It may be nil: all can.
	Lacks func(*problem.Problem) string
	// Pages are for people, and know by themselves who may see them: the tokens of sessions open none. They may be nil.
	Pages *page.Site
	// NoEnvs says why there can be no environments for training. It is empty if there can.
	NoEnvs string
	// Log is told of sessions, environments and refusals, and of every request at level debug. It may be
	// nil.
	Log *slog.Logger
	// Token is what callers must show, if it is set. What they begin has a token of its own, which is
	// good for that alone.
	Token string
	// Loopback says that only this machine can connect. Without a token, requests must be addressed to it.
	Loopback bool
}

// Front is what callers talk to.
type Front struct {
	Options
	handler  http.Handler
	problems []string
	log      *journal
	tokens   tokens
	ctx      context.Context // of what goes on behind requests
	cancel   context.CancelFunc
	running  sync.WaitGroup // of workers

	bodyTimeout time.Duration // how long a request may take to arrive

	mu       sync.Mutex
	closed   bool
	taken    int // places for workers
	queue    []*entry
	leases   map[*lease]bool
	sessions map[string]*entry
	order    []string // of sessions, the oldest first
	envs     map[string]*env
	// snapshots are those of environments, by their ids, which nobody can guess.
	snapshots map[string]*snapshot
}

// NewFront returns a front.
func NewFront(o Options) *Front {
	o.MaxSessions = cmp.Or(o.MaxSessions, DefaultMaxSessions)
	o.EnvIdle = cmp.Or(o.EnvIdle, DefaultEnvIdle)
	f := &Front{
		Options: o, leases: map[*lease]bool{}, sessions: map[string]*entry{}, envs: map[string]*env{},
		snapshots:   map[string]*snapshot{},
		bodyTimeout: bodyTimeout,
	}
	f.log = newJournal(o.Log, f.isToken)
	for _, p := range o.Library.Problems {
		f.problems = append(f.problems, p.ID)
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	for _, r := range f.routes() {
		mux.Handle(r.method+" "+r.path, r.handle)
	}
	mux.Handle("/", handler(func(_ http.ResponseWriter, r *http.Request) error {
		return fail(http.StatusNotFound, "there is no %s; GET /openapi.json tells what there is", r.URL.Path)
	}))
	f.handler = f.protect(plainErrors(mux))
	if o.Pages != nil {
		o.Pages.Host(people{f})
	}
	return f
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.handler.ServeHTTP(w, r) }

// Close ends all sessions and environments, which are graded, and waits for their workers. When ctx
// ends, what is left is killed.
func (f *Front) Close(ctx context.Context) {
	f.mu.Lock()
	f.closed = true
	for l := range f.leases {
		l.Stop()
	}
	waiting := f.queue
	f.queue = nil
	f.mu.Unlock()
	for _, e := range waiting {
		e.fail(errEnding)
	}
	gone := make(chan struct{})
	go func() {
		f.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		f.mu.Lock()
		for l := range f.leases {
			l.Kill()
		}
		f.mu.Unlock()
		<-gone
	}
	f.cancel()
}

// reserve takes places for n workers, or none if there are not so many. Who gets them must give each of them back.
func (f *Front) reserve(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return errEnding
	case f.taken >= f.MaxSessions:
		return f.full()
	case n > f.MaxSessions-f.taken:
		return fail(http.StatusServiceUnavailable,
			"there are %d sessions and environments of the %d that there may be, so that %d more do not fit; end "+
				"some, or start the server with more --max-sessions", f.taken, f.MaxSessions, n)
	}
	f.taken += n
	return nil
}

// full is the error of who finds no place. The caller holds f.mu.
func (f *Front) full() error {
	return fail(http.StatusServiceUnavailable,
		"there are %d sessions and environments, as many as there may be; end one, or start the server with "+
			"more --max-sessions", f.taken)
}

func (f *Front) giveBack(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken -= n
	f.callIn()
}

// hire starts a worker that Close ends, with a log for all that it does.
func (f *Front) hire(ctx context.Context, log *slog.Logger) (*lease, error) {
	l, err := f.lease(ctx, log)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leases[l] = true
	f.running.Go(func() {
		<-l.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.leases, l)
	})
	if f.closed {
		l.Stop()
		return nil, errEnding
	}
	return l, nil
}

// known refuses what is not in a list, and names all that is.
func known(what, name string, list []string) error {
	if slices.Contains(list, name) {
		return nil
	}
	hint := ""
	if near := strict.Nearest(name, list); near != "" {
		hint = " Did you mean " + near + "?"
	}
	return fail(http.StatusNotFound, "there is no %s %q.%s There are: %s", what, name, hint, strings.Join(list, ", "))
}

// checkLimits refuses limits that cannot be meant.
func checkLimits(steps int, seconds float64) error {
	if steps < 0 || seconds < 0 || seconds > maxSeconds {
		return fail(http.StatusUnprocessableEntity,
			"max_steps %d, max_time %v: an agent needs a step and some time, a week of it at most", steps, seconds)
	}
	return nil
}

func checkHandOver(text string) error {
	if _, err := session.ParseHandOver(text); err != nil {
		return fail(http.StatusUnprocessableEntity, "hand_over: %v", err)
	}
	return nil
}

// checkNoise refuses an unknown level of noise.
func checkNoise(level string) error {
	if _, err := noise.Parse(level); err != nil {
		return fail(http.StatusUnprocessableEntity, "noise: %v", err)
	}
	return nil
}

// checkDecoys refuses an unknown decoy.
func checkDecoys(kinds []string) error {
	if _, err := decoy.Of(kinds); err != nil {
		return fail(http.StatusUnprocessableEntity, "decoys: %v", err)
	}
	return nil
}

const maxSeconds = 7 * 24 * 3600
