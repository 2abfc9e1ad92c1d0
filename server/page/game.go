package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

// maxGames is how many games are remembered. Of those that are over, the oldest are forgotten; their records stay.
const maxGames = 64

// game is an incident that a person works on. It does not know the problem, so that no page can tell of it: what comes
// with the verdict is all there is. Nobody needs to look at it for it to go on.
type game struct {
	id, who  string
	app      *app.App // as the person will be told
	steps    int      // limits
	limit    time.Duration
	begun    time.Time
	sessions Sessions
	ctx      context.Context // of the site
	past     past            // lines that were typed

	mu       sync.Mutex
	more     chan struct{} // closed at every change
	told     *Told
	turn     time.Time // when the person's turn began
	played   []played
	acting   string // the call that is under way
	since    time.Time
	question string // what submit answers: a task, or a question of an incident
	over     time.Time
	ended    *Ended
	wrong    string // why there is no verdict
	looked   int    // step that came of a form last
	watchers int    // terminals
}

// played is a step that was taken.
type played struct {
	Turn
	Call string
	At   time.Time
	Took time.Duration
	lens lens
}

// name is the call in a few words: what a lens asks for has a long one.
func (p *played) name() string {
	if p.lens.kind == ofMetrics || p.lens.kind == ofTraces {
		return p.lens.kind + ": " + p.lens.about
	}
	return p.Call
}

// games are those of a server.
type games struct {
	mu   sync.Mutex
	list []*game // the oldest first
}

func (l *games) find(id string) *game {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.list {
		if g.id == id {
			return g
		}
	}
	return nil
}

// add remembers a game, and forgets the oldest that is over if there are too many.
func (l *games) add(g *game) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, g)
	if len(l.list) > maxGames {
		if i := slices.IndexFunc(l.list, (*game).done); i >= 0 {
			l.list = slices.Delete(l.list, i, i+1)
		}
	}
}

// open are the games that are not over, the newest first.
func (l *games) open() (list []*game) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range slices.Backward(l.list) {
		if !g.done() {
			list = append(list, g)
		}
	}
	return list
}

// follow knows of a game what there is to know, until it is over.
func (g *game) follow() {
	told, err := g.sessions.Told(g.ctx, g.id)
	if err == nil {
		g.change(func() {
			g.told, g.turn, g.question = &told, time.Now(), told.Task
			if told.Task == term.Incident {
				g.question = term.Detection // The description asks it.
			}
		})
	}
	ended, err2 := g.sessions.Outcome(g.ctx, g.id)
	g.change(func() {
		if g.over.IsZero() {
			g.over = time.Now()
		}
		if err2 != nil {
			g.wrong = cmp.Or(err, err2).Error()
			return
		}
		g.ended = &ended
	})
}

// change changes what is known, and tells those who watch.
func (g *game) change(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
	close(g.more)
	g.more = make(chan struct{})
}

// done reports whether there is nothing to come.
func (g *game) done() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended != nil || g.wrong != ""
}

var (
	errNotYet  = fail(http.StatusConflict, "the system is still being set up")
	errTooLate = fail(http.StatusConflict, "your turn is over")
	errActing  = fail(http.StatusConflict, "a step is under way; wait until it is done, or interrupt it")
)

// act takes a step, and waits for what comes of it. Who leaves does not end it.
func (g *game) act(ctx context.Context, response string, l lens) (played, error) {
	_, call := aci.Told(response)
	begun := played{Call: call, lens: l}
	if err := g.begin(begun.name()); err != nil {
		return played{}, err
	}
	type result struct {
		step played
		err  error
	}
	done := make(chan result, 1)
	go func() {
		t, err := g.sessions.Act(g.ctx, g.id, response)
		p := played{Turn: t, Call: call, lens: l}
		g.change(func() {
			p.At, p.Took = time.Now(), time.Since(g.since)
			g.acting = ""
			if err != nil {
				return
			}
			g.question = cmp.Or(t.Question, g.question)
			g.played = append(g.played, p)
			if l.kind != byTerminal {
				g.looked = len(g.played)
			}
			if t.Over {
				g.over = time.Now()
			}
		})
		done <- result{p, err}
	}()
	select {
	case r := <-done:
		return r.step, r.err
	case <-ctx.Done():
		return played{}, context.Cause(ctx)
	}
}

// begin takes the turn for a call.
func (g *game) begin(call string) (err error) {
	g.change(func() {
		switch {
		case g.told == nil && g.over.IsZero():
			err = errNotYet
		case !g.over.IsZero():
			err = errTooLate
		case g.acting != "":
			err = errActing
		default:
			g.acting, g.since = cmp.Or(call, "…"), time.Now()
		}
	})
	return err
}

// interrupt ends the command that is under way.
func (g *game) interrupt(ctx context.Context) error {
	g.mu.Lock()
	acting := g.acting
	g.mu.Unlock()
	if acting == "" {
		return nil
	}
	return g.sessions.Interrupt(ctx, g.id)
}

// giveUp ends the turn. The verdict comes by itself.
func (g *game) giveUp(ctx context.Context) error {
	g.mu.Lock()
	over, told := !g.over.IsZero(), g.told != nil
	g.mu.Unlock()
	if over {
		return errTooLate
	}
	if !told {
		return errNotYet
	}
	if err := g.interrupt(ctx); err != nil {
		return err
	}
	g.change(func() { g.over = time.Now() })
	go func() { _ = g.sessions.GiveUp(g.ctx, g.id) }() // It waits for the verdict; if it cannot, the outcome says why.
	return nil
}
