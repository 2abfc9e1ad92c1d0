package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/campaign/local"
	runs "github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// boardInterval is how often the board of a terminal is drawn.
const boardInterval = time.Second / 2

// board tells how a campaign goes: a line for each run that has ended and, on a terminal, what is under way below them.
type board struct {
	out    io.Writer // of lines
	live   bool      // it is a terminal
	screen func() screen
	clock  func() time.Time
	// spending is what was spent so far, asked when a run has ended; nil if nobody but the results tells.
	spending func() float64

	mu      sync.Mutex
	all     int
	workers int
	done    int
	kept    int
	here    int // that ended in this command
	counted int
	bad     int // that did not end as they must
	spent   float64
	took    time.Duration // of those that ended in this command
	solved  runs.Problems
	running []*local.Try
	waiting []*local.Try // for their turn, with environments that are prepared
	drawn   int          // lines of what is under way
}

func newBoard(s *State, m *matrix, all int) *board {
	b := &board{out: m.progress(s), all: all, workers: m.workers, clock: time.Now}
	var w io.Writer = s.Stdout
	if b.live = s.OutTerminal; m.output != "" {
		w, b.live = s.Stderr, s.Terminal
	}
	b.live = b.live && s.Env("TERM") != "dumb" && !m.quiet
	b.screen = func() screen { return screenOf(s, w, b.live) } // Its size may change.
	return b
}

// show draws what is under way again and again, until it is told to stop.
func (b *board) show() (stop func()) {
	if !b.live {
		return func() {}
	}
	end, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(boardInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				b.line("")
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-gone
		b.mu.Lock()
		defer b.mu.Unlock()
		_, _ = io.WriteString(b.out, b.erased())
		b.live = false
	}
}

// tell prints a line.
func (b *board) tell(text string) { b.line(text + "\n") }

// Write prints whole lines.
func (b *board) Write(text []byte) (int, error) {
	b.line(string(text))
	return len(text), nil
}

// line prints a text above what is under way, which is drawn anew: in one write, so that nobody sees it half done.
func (b *board) line(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = io.WriteString(b.out, b.erased()+text+b.drawing())
}

// erased is what takes away what is under way.
func (b *board) erased() (text string) {
	if b.drawn > 0 {
		text = fmt.Sprintf("\x1b[%dA\x1b[J", min(b.drawn, b.screen().lines()-1))
	}
	b.drawn = 0
	return text
}

// drawing is what is under way, as far as it fits: what has left the screen at its top cannot be taken away any more.
func (b *board) drawing() string {
	if !b.live {
		return ""
	}
	c := b.screen()
	columns := c.columns(0)
	lines := []string{c.paint(bold, clip(b.status(), columns))}
	for _, t := range b.running {
		lines = append(lines, clip(b.doing(t), columns))
	}
	for _, t := range b.waiting {
		text := fmt.Sprintf("  %-14s %s  seed %d: prepared for its turn", t.Who(), t.Problem, t.Seed)
		lines = append(lines, clip(text, columns))
	}
	if most := c.lines() - 1; len(lines) > most { // The cursor has a line as well.
		fit := max(1, most-1)
		more := fmt.Sprintf("  and %d more", len(lines)-fit)
		if lines = lines[:fit]; fit < most {
			lines = append(lines, clip(more, columns))
		}
	}
	b.drawn = len(lines)
	return strings.Join(lines, "\n") + "\n"
}

// doing says what a run does.
func (b *board) doing(t *local.Try) string {
	phase, step := t.State()
	text := "starting"
	if phase != "" {
		text = phase
	}
	if step > 0 {
		text += fmt.Sprintf(", step %d", step)
	}
	if t.Number > 1 {
		text += fmt.Sprintf(", try %d", t.Number)
	}
	return fmt.Sprintf("  %-14s %s  seed %d  %v: %s", t.Who(), t.Problem, t.Seed,
		b.clock().Sub(t.Began).Round(time.Second), text)
}

// status says how far it is.
func (b *board) status() string {
	text := fmt.Sprintf("%d of %d done", b.done, b.all)
	if b.counted > 0 {
		s := b.solved.Share()
		text += fmt.Sprintf(", %.0f %% solved (%.0f to %.0f)", 100*s.Value, 100*s.Low, 100*s.High)
	}
	if b.bad > 0 {
		text += fmt.Sprintf(", %d not as they must", b.bad)
	}
	if b.spent > 0 {
		text += fmt.Sprintf(", $%.2f", b.spent)
	}
	if left := b.all - b.done; left > 0 && b.here > 0 {
		each := b.took / time.Duration(b.here)
		text += ", about " + rough(each*time.Duration(left)/time.Duration(min(b.workers, left))) + " left"
	}
	return text
}

// rough is a duration as people say it.
func rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

// prepared takes a try that waits for its turn.
func (b *board) prepared(t *local.Try) {
	b.mu.Lock()
	b.waiting = append(b.waiting, t)
	b.mu.Unlock()
	if b.live {
		b.line("")
	}
}

func (b *board) began(t *local.Try) {
	b.mu.Lock()
	b.waiting = without(b.waiting, t)
	b.running = append(b.running, t)
	b.mu.Unlock()
	if b.live {
		b.line("")
	}
}

func without(list []*local.Try, t *local.Try) []*local.Try {
	return slices.DeleteFunc(list, func(x *local.Try) bool { return x == t })
}

// ended takes the end of a try; what was kept from before is counted, and not told.
func (b *board) ended(t *local.Try, r *local.Result) {
	text := ""
	b.mu.Lock()
	b.gone(t)
	if b.spending != nil {
		b.spent = b.spending()
	}
	if r != nil {
		b.take(r)
		if !r.Kept {
			text = b.describe(r)
		}
	}
	b.mu.Unlock()
	if text != "" || b.live {
		b.line(text)
	}
}

// judged takes the end of a try of which somebody else tells, who knows what must come of it. Without a result it is
// not done.
func (b *board) judged(t *local.Try, r *local.Result, bad bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone(t)
	if r != nil {
		b.count(r)
		if bad {
			b.bad++
		}
	}
}

// gone takes a try from what is under way.
func (b *board) gone(t *local.Try) {
	b.running, b.waiting = without(b.running, t), without(b.waiting, t)
}

// take counts what a try came to.
func (b *board) take(r *local.Result) {
	if b.spending == nil {
		b.spent += r.Cost
	}
	if r.Again {
		return
	}
	b.count(r)
	if r.Counts() {
		b.counted++
		b.solved.Add(r.Problem, r.Class == session.Solved)
	}
}

// count counts a run that is done.
func (b *board) count(r *local.Result) {
	b.done++
	if r.Kept {
		b.kept++
	} else {
		b.here++
		b.took += time.Duration(r.Seconds * float64(time.Second))
	}
}

// describe is the line of a run that has ended.
func (b *board) describe(r *local.Result) string {
	what := map[session.Class]string{session.AgentFailed: "failed"}[r.Class]
	if what == "" {
		what = string(r.Class)
	}
	line := fmt.Sprintf("%4d/%d  %-12s %-14s %-50s seed %-4d %6.1f s", b.done, b.all, what, r.Who(), r.Problem, r.Seed,
		r.Seconds)
	switch {
	case r.Again:
		line += "  again: " + oneLine(r.Why)
	case !r.Counts():
		line += "  " + oneLine(r.Why)
	case !b.live:
		line += "  " + b.status()
	}
	return line + "\n"
}
