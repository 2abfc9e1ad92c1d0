package flower

import (
	"math/rand/v2"
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
	p.Log = func(_ time.Time, line string) bool {
		lines = append(lines, line)
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
}
