package flower

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestRecall checks that a link with a past has run for weeks, and that its runs are in order and look as today's.
func TestRecall(t *testing.T) {
	join := time.Now()
	p := past.New(7, join.Add(-time.Minute), join, past.Cast{})
	var lines []string
	last := join
	p.Log = func(at time.Time, line string) bool {
		if at.After(last) {
			t.Errorf("%q was logged after the line before it", line)
		}
		last, lines = at, append(lines, line)
		return true
	}
	const present = 17
	l := &superlink{runs: []*flowerpb.Run{{RunId: present, PendingAt: join.UnixMilli()}}}
	if err := l.recall(t.Context(), p, rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	if n := len(l.runs); n < 100 || n > maxRuns || l.runs[n-1].RunId != present {
		t.Errorf("%d runs, the last one is %d", n, l.runs[n-1].RunId)
	}
	for i, r := range l.runs[1:] {
		if r.PendingAt < l.runs[i].PendingAt {
			t.Errorf("run %d was started before the one before it", i+1)
		}
	}
	if first := time.UnixMilli(l.runs[0].PendingAt); join.Sub(first) < 24*time.Hour {
		t.Errorf("the first run was started at %v", first)
	}
	if len(lines) < 100 || !strings.Contains(lines[0], "Run finished run=") || !strings.Contains(lines[0], "rounds=3/3") {
		t.Errorf("%d lines: %.3q", len(lines), lines)
	}
	started := map[string]bool{}
	for _, line := range slices.Backward(lines) {
		_, run, _ := strings.Cut(line, " run=")
		run, _, _ = strings.Cut(run, " ")
		if strings.Contains(line, "Run started") {
			started[run] = true
		} else if !started[run] {
			t.Errorf("run %s has finished and not started", run)
		}
	}
	if strings.Contains(lines[0], "/past.go:") {
		t.Errorf("%q tells where its past is made up", lines[0])
	}
	if len(started) != len(lines)/2 {
		t.Errorf("%d of %d lines tell that a run has started", len(started), len(lines))
	}
}

// TestAppsRecall checks that the apps of server and parties have logged the same runs as the link: each its rounds in
// order while the run lasted, and that one party does not say what the other one says.
func TestAppsRecall(t *testing.T) {
	join := time.Now()
	p := past.New(7, join.Add(-time.Minute), join, past.Cast{})
	runs := runsBefore(p, rand.New(rand.NewPCG(p.Seed, 1)))
	during := map[string]*flowerpb.Run{}
	for _, r := range runs {
		during[fmt.Sprint(r.RunId)] = r
	}
	check := func(name string, lines []said, each ...string) {
		t.Helper()
		if len(lines) != len(each)*len(runs) {
			t.Fatalf("%s: %d lines of %d runs", name, len(lines), len(runs))
		}
		nth := map[string]int{}
		for i, x := range slices.Backward(lines) {
			if i > 0 && lines[i-1].at.Before(x.at) {
				t.Fatalf("%s: %q was logged after the line before it", name, x.text)
			}
			_, id, _ := strings.Cut(x.text, " run=")
			id, _, _ = strings.Cut(id, " ")
			r := during[id]
			if strings.Contains(x.text, "/past.go:") {
				t.Fatalf("%s: %q tells where its past is made up", name, x.text)
			}
			if r == nil || nth[id] == len(each) || !strings.Contains(x.text, each[nth[id]]) {
				t.Fatalf("%s: %q is line %d of a run", name, x.text, nth[id])
			}
			nth[id]++
			if x.at.UnixMilli() < r.PendingAt || x.at.UnixMilli() > r.FinishedAt {
				t.Fatalf("%s: %q of %v, and the run was from %d to %d", name, x.text, x.at, r.PendingAt, r.FinishedAt)
			}
		}
	}
	check("server", roundsOf(runs), "> Round 1 ", "> Round 2 ", "> Round 3 ", "> Run completed ")
	one := trainingsOf(runs, 240, rand.New(rand.NewPCG(7, 1)))
	other := trainingsOf(runs, 240, rand.New(rand.NewPCG(7, 2)))
	for _, lines := range [][]said{one, other} {
		check("party", lines, "> Trained ", "> Trained ", "> Trained ")
	}
	same := 0
	for i := range one {
		if one[i].text == other[i].text {
			same++
		}
	}
	if same > len(one)/10 {
		t.Errorf("%d of %d lines of the parties are the same", same, len(one))
	}
}
