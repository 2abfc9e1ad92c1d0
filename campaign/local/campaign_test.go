package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/session"
)

func TestCross(t *testing.T) {
	got := Cross([]Contestant{{"react", "m"}, {"noop", ""}}, []string{"p", "q"}, 7, 2)
	want := []Run{
		{"react", "m", "p", 7},
		{"noop", "", "p", 7},
		{"react", "m", "q", 7},
		{"noop", "", "q", 7},
		{"react", "m", "p", 8},
		{"noop", "", "p", 8},
		{"react", "m", "q", 8},
		{"noop", "", "q", 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if Digest(got, nil) == Digest(got, []string{"--noise", "none"}) || Digest(got, nil) == Digest(got[:7], nil) {
		t.Error("other runs, or other settings, have the same digest")
	}
}

func TestDecide(t *testing.T) {
	result := func(class session.Class) *Result { return &Result{Class: class, Record: string(class)} }
	solved, failed, infra := result(session.Solved), result(session.AgentFailed), result(session.Infra)
	unsure, grader := result(session.Inconclusive), result(session.GraderFailed)
	cut := &Result{Class: session.Solved, Record: "cut", partial: true}
	for _, test := range []struct {
		name         string
		tries        []*Result
		failed, lost bool
		kept         *Result
		past         int
		replaces     string
	}{
		{name: "new"},
		{name: "solved", tries: []*Result{solved}, kept: solved},
		{name: "failed", tries: []*Result{failed}, kept: failed},
		{name: "failed, to be retried", tries: []*Result{failed}, failed: true, replaces: "agent"},
		{name: "solved is never retried", tries: []*Result{solved}, failed: true, lost: true, kept: solved},
		{name: "lost once", tries: []*Result{infra}, past: 1},
		{name: "lost twice", tries: []*Result{infra, unsure}, past: 2},
		{name: "tries used up", tries: []*Result{infra, unsure, infra}, kept: infra},
		{name: "tries used up, and more asked for", tries: []*Result{infra, unsure, infra}, lost: true},
		{name: "lost, then solved", tries: []*Result{infra, solved}, kept: solved},
		{name: "a failure whose retry was lost", tries: []*Result{failed, infra}, failed: true, past: 1, replaces: "agent"},
		{name: "a failure stands", tries: []*Result{failed, infra, infra, infra}, failed: true, kept: failed},
		{name: "cannot be judged", tries: []*Result{grader}, failed: true, lost: true, kept: grader},
		{name: "somebody removed the session file", tries: []*Result{cut}, replaces: "cut"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &Campaign{Retries: DefaultRetries, RetryFailed: test.failed, RetryLost: test.lost}
			kept, j := c.decide(Run{}, test.tries)
			if kept != test.kept || (j == nil) != (test.kept != nil) {
				t.Fatalf("kept %+v, job %+v", kept, j)
			}
			if j != nil && (j.past != test.past || j.replaces != test.replaces) {
				t.Errorf("past %d, replaces %q", j.past, j.replaces)
			}
		})
	}
}

func TestFolderFinishesOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	c, journal := world(t, dir)
	for _, p := range []string{"solved", "agent", "infra", "dies", "once"} {
		c.Runs = append(c.Runs, Run{Agent: "a", Problem: p, Seed: 1})
	}
	ends := collect(c)
	sum, err := c.Run(t.Context())
	if err != nil || sum.Left != 0 || sum.Why != nil {
		t.Fatalf("%+v, %v", sum, err)
	}
	want := []string{
		"agent agent 0", "dies infra 1 again", "dies infra 2 again", "dies infra 3", "infra infra 1 again",
		"infra infra 2 again", "infra infra 3", "once infra 1 again", "once solved 1", "solved solved 0",
	}
	if diff := cmp.Diff(want, ends.sorted()); diff != "" {
		t.Error(diff)
	}
	if want := 7 * price; sum.Spent != want { // Those that die have asked no model.
		t.Errorf("spent %v, want %v", sum.Spent, want)
	}
	before := lines(t, journal)
	c.Folder.Close()

	// The same again runs nothing, and knows the same.
	c, _ = world(t, dir)
	c.Runs, ends = campaignRuns("solved", "agent", "infra", "dies", "once"), collect(c)
	sum, err = c.Run(t.Context())
	if err != nil || sum.Left != 0 || sum.Spent != 7*price {
		t.Fatalf("%+v, %v", sum, err)
	}
	want = []string{
		"agent agent 0 kept", "dies infra 3 kept", "infra infra 3 kept", "once solved 1 kept", "solved solved 0 kept",
	}
	if diff := cmp.Diff(want, ends.sorted()); diff != "" {
		t.Error(diff)
	}
	if after := lines(t, journal); len(after) != len(before) {
		t.Errorf("run again: %v", after[len(before):])
	}
	c.Folder.Close()

	// A failure that is retried leaves one record that counts.
	c, _ = world(t, dir)
	c.Runs, c.RetryFailed, ends = campaignRuns("agent"), true, collect(c)
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"agent agent 0"}, ends.sorted()); diff != "" {
		t.Error(diff)
	}
	past, err := c.Folder.past()
	if n := len(past[c.Runs[0].key()]); err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
}

func TestBudget(t *testing.T) {
	c, _ := world(t, filepath.Join(t.TempDir(), "folder"))
	c.Workers, c.MaxCost, c.Runs = 1, 0.6, Cross([]Contestant{{Agent: "a"}}, []string{"solved"}, 1, 10)
	ends := collect(c)
	sum, err := c.Run(t.Context())
	if err != nil || !errors.Is(sum.Why, ErrBudget) || sum.Left != 7 || sum.Spent != 0.75 || len(*ends) != 3 {
		t.Fatalf("%+v, %v, %d ended", sum, err, len(*ends))
	}
	c.Folder.Close()
	again, _ := world(t, c.Folder.Dir)
	again.Workers, again.MaxCost, again.Runs = 1, 0.6, c.Runs
	if sum, err := again.Run(t.Context()); err != nil || sum.Left != 7 || sum.Spent != 0.75 {
		t.Errorf("again: %+v, %v", sum, err)
	}
}

func TestNothingWorks(t *testing.T) {
	c, _ := world(t, filepath.Join(t.TempDir(), "folder"))
	c.Workers, c.MaxRow, c.Runs = 1, 4, Cross([]Contestant{{Agent: "a"}}, []string{"dies"}, 1, 10)
	sum, err := c.Run(t.Context())
	if err != nil || !errors.Is(sum.Why, ErrRow) || !strings.Contains(sum.Why.Error(), "so it is") || sum.Left != 10 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestFullDisk(t *testing.T) {
	c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
	c.Workers, c.Runs = 1, Cross([]Contestant{{Agent: "a"}}, []string{"solved"}, 1, 4)
	full := errors.New("no space left on device")
	c.Ready = func() error {
		if len(lines(t, journal)) >= 4 {
			return full
		}
		return nil
	}
	sum, err := c.Run(t.Context())
	if err != nil || !errors.Is(sum.Why, full) || sum.Left != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// TestStops shows that the first signal lets runs end, and the second stops them without a trace.
func TestStops(t *testing.T) {
	c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
	drain := make(chan struct{})
	c.Workers, c.Drain, c.Runs = 2, drain, campaignRuns("hangs", "solved", "agent", "solved")
	c.Runs[3].Seed = 2
	ctx, cancel := context.WithCancelCause(t.Context())
	began := 0
	c.Began = func(try *Try) {
		if began++; began == 2 {
			close(drain)
		}
	}
	c.Ended = func(try *Try, r *Result) {
		if r != nil { // Both were begun; the one that hangs may not know it yet.
			cancel(errors.New("told twice"))
		}
	}
	sum, err := c.Run(ctx)
	if err != nil || sum.Left != 3 || !errors.Is(sum.Why, ErrDrained) {
		t.Errorf("%+v, %v", sum, err)
	}
	if left, err := os.ReadDir(filepath.Join(c.Folder.Dir, runningName)); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if strings.Contains(strings.Join(lines(t, journal), "\n"), "agent") {
		t.Error("a run was begun after the first signal")
	}
}

func TestSettings(t *testing.T) {
	c, _ := world(t, filepath.Join(t.TempDir(), "folder"))
	for range 2 {
		if err := c.Folder.hold([]string{"--noise", "none"}); err != nil {
			t.Error(err)
		}
	}
	err := c.Folder.hold([]string{"--noise", "calm"})
	if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "have --noise none, not --noise calm") {
		t.Error(err)
	}
}

func TestState(t *testing.T) {
	try := &Try{Dir: t.TempDir()}
	if phase, step := try.State(); phase != "" || step != 0 {
		t.Errorf("%q, %d before anything", phase, step)
	}
	file := filepath.Join(try.Dir, "1.jsonl")
	if err := leaveRecord(file, Run{"a", "", "p", 1}, session.Solved, 0, func(string) { try.State() }); err != nil {
		t.Fatal(err)
	}
	if phase, step := try.State(); phase != "agent" || step != 1 {
		t.Errorf("%q, %d", phase, step)
	}
}

func campaignRuns(problems ...string) (runs []Run) {
	for _, p := range problems {
		runs = append(runs, Run{Agent: "a", Problem: p, Seed: 1})
	}
	return runs
}

// ends are the results of a campaign, a line each.
type ends []string

func collect(c *Campaign) *ends {
	var list ends
	c.Ended = func(_ *Try, r *Result) {
		line := fmt.Sprintf("%s %s %d", r.Problem, r.Class, r.Tries)
		if r.Again {
			line += " again"
		}
		if r.Kept {
			line += " kept"
		}
		list = append(list, line)
	}
	return &list
}

func (e *ends) sorted() []string {
	list := append([]string{}, *e...)
	slices.Sort(list)
	return list
}

func lines(t testing.TB, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}
