package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/record"
)

// spentSoFar runs a campaign of a folder, and returns what it says that was spent.
func spentSoFar(t *testing.T, dir string, runs []Run, change func(*Campaign)) float64 {
	t.Helper()
	c, _ := world(t, dir)
	defer c.Folder.Close()
	c.Runs, c.Workers = runs, 1
	if change != nil {
		change(c)
	}
	sum, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum.Spent
}

// What a try has cost stays spent when another one replaces it: over commands, and for a budget.
func TestSpentOnWhatIsReplaced(t *testing.T) {
	dir, runs := filepath.Join(t.TempDir(), "folder"), campaignRuns("agent")
	for i, retry := range []bool{false, true, true, false} {
		want := price * float64(min(i+1, 3))
		if got := spentSoFar(t, dir, runs, func(c *Campaign) { c.RetryFailed = retry }); got != want {
			t.Errorf("command %d: %v are spent, want %v", i+1, got, want)
		}
	}
	// The money is of the folder, whichever runs a command is about.
	if got := spentSoFar(t, dir, campaignRuns("solved"), nil); got != 1 {
		t.Errorf("other runs: %v are spent, want 1", got)
	}
	c, _ := world(t, dir)
	defer c.Folder.Close()
	c.Runs, c.MaxCost = campaignRuns("grader"), 1
	if sum, err := c.Run(t.Context()); err != nil || !errors.Is(sum.Why, ErrBudget) || sum.Left != 1 {
		t.Errorf("a run was started although the budget is used up: %+v, %v", sum, err)
	}
}

// leaveHalf leaves what a try has left when it is cut off: it has asked its model twice, and was killed in the middle of
// a line.
func leaveHalf(t *testing.T, dir, name string) {
	t.Helper()
	file := filepath.Join(dir, name+".jsonl")
	l, err := record.Create(file, record.Run{ID: name, Agent: "a"})
	for range 2 {
		err = errors.Join(err, l.Append(record.ModelEvent, map[string]any{"number": 1, "cost_usd": 0.5}))
	}
	err = errors.Join(err, l.Append(record.ModelEvent, map[string]any{"number": 3, "cost_usd": nil}), l.Close())
	f, oerr := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err = errors.Join(err, oerr); err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"seq":4,"kind":"model","data":{"number":4,"cost_`)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A campaign that is killed leaves tries that nobody finishes. They are run again, and what they had spent stays spent,
// once, however many commands follow. Of those that had spent nothing, nothing stays.
func TestSpentOnWhatIsCutOff(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	f, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2"} {
		desk, err := f.desk(Contestant{Agent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		leaveHalf(t, desk, name)
	}
	free, err := f.desk(Contestant{Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := record.Create(filepath.Join(free, "3.jsonl"), record.Run{ID: "3", Agent: "a"})
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	f.lock.Close() // As if it had been killed.
	for i := range 3 {
		if got := spentSoFar(t, dir, campaignRuns("solved"), nil); got != 2.25 {
			t.Errorf("command %d: %v are spent, want 2 of the cut off and 0.25", i+1, got)
		}
	}
	cut, _ := filepath.Glob(filepath.Join(dir, "*"+cutSuffix))
	if len(cut) != 2 {
		t.Errorf("cut off: %v", cut)
	}
	if left, err := os.ReadDir(filepath.Join(dir, runningName)); err == nil {
		t.Errorf("left over: %v", left)
	}
}

// So it is with tries that are stopped by the second Ctrl-C, in this command and in the next.
func TestSpentOnWhatIsStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	c, _ := world(t, dir)
	c.Runs, c.Workers = campaignRuns("hangs"), 1
	ctx, cancel := context.WithCancelCause(t.Context())
	c.Began = func(try *Try) {
		leaveHalf(t, try.Dir, "1")
		cancel(errors.New("told twice"))
	}
	var told float64
	c.Ended = func(*Try, *Result) { told = c.Spent() }
	sum, err := c.Run(ctx)
	if err != nil || sum.Spent != 1 || told != 1 || sum.Left != 1 {
		t.Errorf("%+v, told %v, %v", sum, told, err)
	}
	c.Folder.Close()
	if got := spentSoFar(t, dir, nil, nil); got != 1 {
		t.Errorf("the next command: %v are spent, want 1", got)
	}
}

// A finished try that says nothing of its agent, and that nobody waited for, is run again; its money is gone as well.
func TestSpentOnWhatIsLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	f, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	desk, err := f.desk(Contestant{Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	leaveHalf(t, desk, "1")
	f.lock.Close()
	full := &os.PathError{Op: "write", Path: "1.jsonl", Err: syscall.ENOSPC}
	c, _ := world(t, dir)
	c.Runs, c.Workers = campaignRuns("dies"), 1
	c.Command = func(try *Try) *exec.Cmd {
		leaveHalf(t, try.Dir, "2")
		return exec.Command("true")
	}
	c.Abandon = func(*Try, string) error { return full } // Nobody can record that it was lost.
	sum, err := c.Run(t.Context())
	if err != nil || !errors.Is(sum.Why, ErrFull) || sum.Spent != 2 || sum.Left != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	c.Folder.Close()
	if got := spentSoFar(t, dir, nil, nil); got != 2 {
		t.Errorf("the next command: %v are spent, want 2", got)
	}
}
