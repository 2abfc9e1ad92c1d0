package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// aheadWorld is a campaign that starts processes ahead, and what it tells of its tries.
func aheadWorld(t *testing.T, workers, ahead int) (c *Campaign, journal string, told *[]string) {
	t.Helper()
	c, journal = world(t, filepath.Join(t.TempDir(), "folder"))
	c.Workers, c.Ahead = workers, ahead
	var list []string
	tell := func(what string, try *Try) { list = append(list, what+" "+try.Problem) }
	c.Prepared = func(try *Try) {
		if !try.Ahead || !try.Began.IsZero() {
			t.Errorf("%v is prepared, and began at %v", try.Run, try.Began)
		}
		tell("prepared", try)
	}
	c.Began = func(try *Try) { tell("began", try) }
	c.Ended = func(try *Try, r *Result) {
		if r == nil {
			tell("left", try)
		} else {
			tell("ended", try)
		}
	}
	return c, journal, &list
}

// nothingRuns checks that no run has left a directory.
func nothingRuns(t *testing.T, c *Campaign) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Join(c.Folder.Dir, runningName)); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// While a run goes on, the process of the next one is there already. It is the next one that begins.
func TestAhead(t *testing.T) {
	c, journal, told := aheadWorld(t, 1, 1)
	c.Runs = campaignRuns("patient", "solved", "agent")
	if sum, err := c.Run(t.Context()); err != nil || sum.Left != 0 || sum.Why != nil {
		t.Fatalf("%+v, %v", sum, err)
	}
	want := []string{
		"began patient", "prepared solved", "ended patient", "began solved", "prepared agent", "ended solved",
		"began agent", "ended agent",
	}
	if diff := cmp.Diff(want, *told); diff != "" {
		t.Error(diff)
	}
	want = []string{
		"begun a patient 1", "ended a patient 1", "begun a solved 1", "ended a solved 1", "begun a agent 1",
		"ended a agent 1",
	}
	begun := slices.DeleteFunc(lines(t, journal), func(line string) bool { return strings.HasPrefix(line, "ahead ") })
	if diff := cmp.Diff(want, begun); diff != "" {
		t.Error(diff)
	}
	nothingRuns(t, c)
}

// However many processes are there, no more are told to go on than may go on at a time.
func TestAheadIsNoWorker(t *testing.T) {
	const workers = 2
	c, journal, _ := aheadWorld(t, workers, 3)
	c.Runs = Cross([]Contestant{{Agent: "a"}}, []string{"slow", "once"}, 1, 8)
	if sum, err := c.Run(t.Context()); err != nil || sum.Left != 0 || sum.Why != nil {
		t.Fatalf("%+v, %v", sum, err)
	}
	running, most, waited := 0, 0, 0
	for _, line := range lines(t, journal) {
		switch what, _, _ := strings.Cut(line, " "); what {
		case "begun":
			running++
		case "ended":
			running--
		case "ahead":
			waited++
		}
		most = max(most, running)
	}
	if most > workers || waited < len(c.Runs)-workers {
		t.Errorf("%d at a time, %d were there before their turn", most, waited)
	}
}

// Whose turn will not come because the money is spent has cost nothing, used up no try, and left nothing.
func TestAheadBudget(t *testing.T) {
	c, journal, told := aheadWorld(t, 1, 2)
	c.MaxCost, c.Runs = 0.6, Cross([]Contestant{{Agent: "a"}}, []string{"solved"}, 1, 10)
	sum, err := c.Run(t.Context())
	if err != nil || !errors.Is(sum.Why, ErrBudget) || sum.Left != 7 || sum.Spent != 0.75 {
		t.Fatalf("%+v, %v", sum, err)
	}
	count := func(list []string, what string) (n int) {
		for _, line := range list {
			if strings.HasPrefix(line, what+" ") {
				n++
			}
		}
		return n
	}
	if begun, left := count(lines(t, journal), "begun"), count(*told, "left"); begun != 3 || left != 2 {
		t.Errorf("%d have begun, want 3; of %d that were prepared was told that they end, want 2", begun, left)
	}
	nothingRuns(t, c)
	past, err := c.Folder.past()
	if err != nil || len(past) != 3 {
		t.Errorf("%d runs have records, %v", len(past), err)
	}
}

// Neither the first signal nor the second begins what waits.
func TestAheadStops(t *testing.T) {
	for _, signals := range []int{1, 2} {
		c, journal, told := aheadWorld(t, 1, 1)
		drain := make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		c.Drain, c.Runs = drain, campaignRuns("patient", "solved")
		if signals == 2 {
			c.Runs[0].Problem = "hangs"
		}
		c.Prepared = func(*Try) {
			close(drain)
			if signals == 2 {
				cancel(errors.New("told twice"))
			}
		}
		// Another one, which nobody has told, lets the first one end.
		if err := note(journal, "ahead a solved 1"); err != nil {
			t.Fatal(err)
		}
		sum, err := c.Run(ctx)
		cancel(nil)
		if err != nil || sum.Left != signals || !errors.Is(sum.Why, ErrDrained) {
			t.Errorf("%d signals: %+v, %v", signals, sum, err)
		}
		if slices.Contains(*told, "began solved") || seen(journal, "begun a solved 1") {
			t.Errorf("%d signals: what waited has begun", signals)
		}
		nothingRuns(t, c)
	}
}

// A full disk is found when it is the turn of what waits.
func TestAheadFullDisk(t *testing.T) {
	c, journal, _ := aheadWorld(t, 1, 1)
	c.Runs = campaignRuns("patient", "solved")
	full := errors.New("no space left on device")
	c.Ready = func() error {
		if seen(journal, "ended a patient 1") {
			return full
		}
		return nil
	}
	sum, err := c.Run(t.Context())
	if err != nil || !errors.Is(sum.Why, full) || sum.Left != 1 || seen(journal, "begun a solved 1") {
		t.Errorf("%+v, %v", sum, err)
	}
	nothingRuns(t, c)
}

// A process that ends before its turn is a try that failed. Its place is the next one's at once, and whose turn it is
// does not wait for it.
func TestAheadDies(t *testing.T) {
	c, journal, _ := aheadWorld(t, 1, 1)
	c.Runs = campaignRuns("patient", "gone ahead", "solved")
	ends := collect(c)
	sum, err := c.Run(t.Context())
	if err != nil || sum.Left != 0 || sum.Why != nil {
		t.Fatalf("%+v, %v", sum, err)
	}
	if got := *ends; got[0] != "gone ahead infra 1 again" || !slices.Contains(got, "patient solved 0") ||
		!slices.Contains(got, "solved solved 0") {
		t.Error(got)
	}
	if list := lines(t, journal); slices.Index(list, "ahead a solved 1") > slices.Index(list, "ended a patient 1") {
		t.Errorf("the place was not free: %v", list)
	}
	nothingRuns(t, c)
}
