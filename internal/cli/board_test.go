package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/session"
)

func plain() screen { return screen{} }

func TestBoard(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	b := &board{
		out: &out, all: 4, workers: 2, screen: plain, clock: func() time.Time { return now },
	}
	run := func(problem string) local.Run {
		return local.Run{Agent: "react", Model: "openai/m", Problem: problem, Seed: 7}
	}
	b.ended(nil, &local.Result{Run: run("p"), Class: session.Solved, Seconds: 60, Cost: 1, Kept: true})
	b.live = true
	try := &local.Try{Run: run("q"), Number: 2, Dir: t.TempDir(), Began: now.Add(-time.Minute)}
	b.began(try)
	b.ended(try, &local.Result{Run: run("q"), Class: session.Infra, Why: "it\ndied", Seconds: 30, Cost: 0.5, Again: true})
	b.live = false
	out.WriteString(b.erased())
	b.ended(nil, &local.Result{Run: run("q"), Class: session.AgentFailed, Seconds: 90, Cost: 0.5})
	want := `1 of 4 done, 100 % solved (21 to 100), $1.00
  react (openai/m) q  seed 7  1m0s: starting, try 2
` + "\x1b[2A\x1b[J" + `   1/4  infra        react (openai/m) q                                                  seed 7      30.0 s  again: it; died
1 of 4 done, 100 % solved (21 to 100), $1.50
` + "\x1b[1A\x1b[J" + `   2/4  failed       react (openai/m) q                                                  seed 7      90.0 s  2 of 4 done, 50 % solved (9 to 91), $2.00, about 2 min left
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// What is prepared is no run that goes on, until it is its turn.
func TestBoardPrepared(t *testing.T) {
	now := time.Unix(1000, 0)
	b := &board{out: io.Discard, live: true, all: 2, workers: 1, screen: plain, clock: func() time.Time { return now }}
	try := &local.Try{Run: local.Run{Agent: "react", Model: "openai/m", Problem: "q", Seed: 7}, Dir: t.TempDir(), Ahead: true}
	want := func(text string) {
		t.Helper()
		if diff := cmp.Diff("0 of 2 done\n"+text, b.drawing()); diff != "" {
			t.Error(diff)
		}
	}
	b.prepared(try)
	want("  react (openai/m) q  seed 7: prepared for its turn\n")
	try.Began = now.Add(-time.Second)
	b.began(try)
	want("  react (openai/m) q  seed 7  1s: starting\n")
	b.ended(try, nil)
	want("")
	b.prepared(try)
	b.ended(try, nil) // Its turn did not come.
	want("")
}

// However many runs go on, what is drawn is no higher than the terminal, also if that has become smaller: what leaves it
// at the top stays for good.
func TestBoardFits(t *testing.T) {
	var out writes
	now, size := time.Unix(1000, 0), screen{height: 5}
	b := &board{
		out: &out, live: true, all: 9, workers: 8, screen: func() screen { return size },
		clock: func() time.Time { return now },
	}
	try := func(problem string) *local.Try {
		return &local.Try{Run: local.Run{Agent: "react", Problem: problem, Seed: 7}, Dir: t.TempDir(), Began: now}
	}
	for _, p := range []string{"a", "b", "c", "d", "e", "f"} {
		b.running = append(b.running, try(p))
	}
	b.line("first\n")
	size.height = 3
	b.line("second\n")
	size.height = 1 // There is no such terminal.
	b.line("")
	size.height = 10
	b.line("third\n")
	line := func(p string) string { return "  react          " + p + "  seed 7  0s: starting\n" }
	want := writes{
		"first\n0 of 9 done\n" + line("a") + line("b") + "  and 4 more\n",
		"\x1b[2A\x1b[Jsecond\n0 of 9 done\n  and 6 more\n",
		"\x1b[1A\x1b[J0 of 9 done\n",
		"\x1b[1A\x1b[Jthird\n0 of 9 done\n" + line("a") + line("b") + line("c") + line("d") + line("e") + line("f"),
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}

// What was spent is what the campaign says: tries that were replaced, or cut off, have no result.
func TestBoardSpending(t *testing.T) {
	spent := 1.5
	b := &board{out: io.Discard, all: 2, workers: 1, screen: plain, spending: func() float64 { return spent }}
	b.ended(nil, &local.Result{Class: session.Solved, Cost: 1, Kept: true})
	if got := b.status(); !strings.Contains(got, "$1.50") {
		t.Error(got)
	}
	spent = 2
	b.ended(nil, nil)
	if got := b.status(); !strings.Contains(got, "$2.00") {
		t.Error(got)
	}
}

// A campaign whose runs must end in a certain way says how many have not.
func TestBoardOfProofs(t *testing.T) {
	var out strings.Builder
	b := &board{out: &out, all: 3, workers: 1, screen: plain}
	try := &local.Try{Dir: t.TempDir()}
	b.began(try)
	b.judged(try, &local.Result{Class: session.Solved, Seconds: 10}, false)
	b.judged(nil, &local.Result{Class: session.Solved, Seconds: 20}, true)
	b.judged(nil, nil, false)
	if got, want := b.status(), "2 of 3 done, 1 not as they must, about 15 s left"; got != want || len(b.running) > 0 {
		t.Errorf("%q, want %q; %d go on", got, want, len(b.running))
	}
	if _, err := fmt.Fprintf(b, "%s\n", "a line"); err != nil || out.String() != "a line\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// writes are the single ones.
type writes []string

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, string(b))
	return len(b), nil
}

// A terminal shows what it has got so far, so what is drawn again goes out in one write: else it flickers.
func TestBoardIsDrawnAtOnce(t *testing.T) {
	var out writes
	b := &board{out: &out, live: true, all: 4, workers: 2, screen: plain, clock: time.Now}
	b.line("first\n")
	b.line("second\n")
	want := writes{"first\n0 of 4 done\n", "\x1b[1A\x1b[Jsecond\n0 of 4 done\n"}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}
