package cli

import (
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/session"
)

func TestBoard(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	b := &board{
		out: &out, all: 4, workers: 2, clock: func() time.Time { return now },
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
	b := &board{out: io.Discard, live: true, all: 2, workers: 1, clock: func() time.Time { return now }}
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

// writes are the single ones.
type writes []string

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, string(b))
	return len(b), nil
}

// A terminal shows what it has got so far, so what is drawn again goes out in one write: else it flickers.
func TestBoardIsDrawnAtOnce(t *testing.T) {
	var out writes
	b := &board{out: &out, live: true, all: 4, workers: 2, clock: time.Now}
	b.line("first\n")
	b.line("second\n")
	want := writes{"first\n0 of 4 done\n", "\x1b[1A\x1b[Jsecond\n0 of 4 done\n"}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}

func TestUsualWorkers(t *testing.T) {
	memory := func(kB string) fstest.MapFS {
		return fstest.MapFS{"proc/meminfo": {Data: []byte("MemAvailable: " + kB + " kB\n")}}
	}
	if n := usualWorkers(memory("1500000"), 0); n != 1 {
		t.Errorf("%d with memory for one", n)
	}
	if n := usualWorkers(memory("1000"), 0); n != 1 {
		t.Errorf("%d with memory for none", n)
	}
	if n, most := usualWorkers(fstest.MapFS{}, 2), usualWorkers(memory("9000000000"), 2); n != most {
		t.Errorf("%d if the memory is not known, %d if there is much", n, most)
	}
}
