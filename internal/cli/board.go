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
	screen screen
	clock  func() time.Time

	mu      sync.Mutex
	all     int
	workers int
	done    int
	kept    int
	here    int // that ended in this command
	counted int
	spent   float64
	took    time.Duration // of those that ended in this command
	solved  runs.Problems
	running []*local.Try
	waiting []*local.Try // for their turn, with environments that are prepared
	drawn   int          // lines of what is under way
}

func newBoard(s *State, f *benchFlags, all int) *board {
	b := &board{
		out: f.progress(s), all: all, workers: f.workers, clock: time.Now,
	}
	b.live, b.screen = s.OutTerminal, screenOf(s, s.Stdout, s.OutTerminal)
	if f.output != "" {
		b.live, b.screen = s.Terminal, screenOf(s, s.Stderr, s.Terminal)
	}
	if s.Env("TERM") == "dumb" {
		b.live = false
	}
	if f.quiet {
		b.out, b.live = io.Discard, false
	}
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
	}
}

// tell prints a line.
func (b *board) tell(text string) { b.line(text + "\n") }

// line prints a text above what is under way, which is drawn anew: in one write, so that nobody sees it half done.
func (b *board) line(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = io.WriteString(b.out, b.erased()+text+b.drawing())
}

// erased is what takes away what is under way.
func (b *board) erased() (text string) {
	if b.drawn > 0 {
		text = fmt.Sprintf("\x1b[%dA\x1b[J", b.drawn)
	}
	b.drawn = 0
	return text
}

// drawing is what is under way.
func (b *board) drawing() string {
	if !b.live {
		return ""
	}
	lines := []string{b.screen.paint(bold, clip(b.status(), b.screen.columns(0)))}
	for _, t := range b.running {
		lines = append(lines, clip(b.doing(t), b.screen.columns(0)))
	}
	for _, t := range b.waiting {
		text := fmt.Sprintf("  %-14s %s  seed %d: prepared for its turn", t.Who(), t.Problem, t.Seed)
		lines = append(lines, clip(text, b.screen.columns(0)))
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
	b.running, b.waiting = without(b.running, t), without(b.waiting, t)
	if r != nil {
		b.count(r)
		if !r.Kept {
			text = b.describe(r)
		}
	}
	b.mu.Unlock()
	if text != "" || b.live {
		b.line(text)
	}
}

func (b *board) count(r *local.Result) {
	b.spent += r.Cost
	if r.Again {
		return
	}
	b.done++
	if r.Kept {
		b.kept++
	} else {
		b.here++
		b.took += time.Duration(r.Seconds * float64(time.Second))
	}
	if r.Counts() {
		b.counted++
		b.solved.Add(r.Problem, r.Class == session.Solved)
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
