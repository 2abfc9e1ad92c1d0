package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// DefaultRetries is how often a run is tried again that says nothing of its agent.
const DefaultRetries = 2

// Campaign is many runs in one folder. Its first fields are needed.
type Campaign struct {
	Folder  *Folder
	Runs    []Run // each once
	Workers int   // how many go on at a time
	// Command is the process of a try, which has not been started. It leaves one record and one session file in the
	// try's directory, says on its standard error why it did not, ends when its standard input does, and its file
	// descriptor 3 is the folder's lock. It may be called from several goroutines.
	Command func(*Try) *exec.Cmd
	// Abandon leaves the record of a try whose process has ended without a verdict: infra, and why.
	Abandon func(t *Try, why string) error

	Retries int     // how often a run is tried again that says nothing of its agent, in all; see [DefaultRetries]
	MaxCost float64 // if runs have cost so many dollars, no more are started; 0 for no limit
	MaxRow  int     // if so many tries in a row say nothing of the agent, no more are started; 0 for no limit
	// Settings are how every run is run. A folder with runs that were run otherwise is refused. Nil for any.
	Settings []string
	// Fresh has all be run, whatever the folder has.
	Fresh bool
	// RetryFailed has what agents failed run again, once, and RetryLost what has used up its tries.
	RetryFailed, RetryLost bool
	// Drain has no more runs started once it is closed; those under way go on. It may be nil.
	Drain <-chan struct{}
	// Ready says why no run can be started now. None is from then on. It may be nil.
	Ready func() error
	// Began is told of each try when it begins, Ended of each when it has ended or was there before, one at a time.
	// They may be nil.
	Began func(*Try)
	Ended func(*Try, *Result)

	queue  []*job
	active int
	ended  chan ending
	stdin  *os.File // of all processes; it ends with this one
	row    int
	sum    Summary
}

// Summary is how a campaign ended.
type Summary struct {
	Spent float64 // dollars, with what was spent before
	Left  int     // runs that are still to be had
	Why   error   // nothing more was started because of it; nil if there was nothing left to start
}

// Why no more runs are started.
var (
	ErrBudget  = errors.New("the budget is used up")
	ErrDrained = errors.New("no more runs are to be started")
	ErrRow     = errors.New("the environment fails again and again")
)

// job is a run that is to be had.
type job struct {
	Run
	past     int
	replaces string
}

// ending is the end of a try.
type ending struct {
	try    *Try
	result *Result // nil if it says nothing and is not kept
	err    error   // of this machine
}

// Run runs what there is no result of. If ctx ends, the runs under way are stopped. An error is of this machine, such
// as a full disk; what is finished is kept whatever happens.
func (c *Campaign) Run(ctx context.Context) (*Summary, error) {
	if c.Settings != nil {
		if err := c.Folder.hold(c.Settings); err != nil {
			return nil, err
		}
	}
	if err := c.plan(); err != nil {
		return nil, err
	}
	stdin, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	defer hold.Close()
	c.stdin, c.ended = stdin, make(chan ending)
	drain := c.Drain
	for {
		for c.active < c.Workers && len(c.queue) > 0 && c.mayStart(ctx) {
			c.start(ctx)
		}
		if c.active == 0 {
			break
		}
		select {
		case e := <-c.ended:
			c.end(e)
		case <-drain:
			drain = nil
			c.stop(ErrDrained)
		}
	}
	c.sum.Left += len(c.queue)
	if c.sum.Left == 0 {
		c.sum.Why = nil
	}
	return &c.sum, err
}

// plan takes what the folder has, and queues the rest.
func (c *Campaign) plan() error {
	past, err := c.Folder.past()
	if err != nil {
		return err
	}
	if c.Fresh {
		past = nil
	}
	for _, run := range c.Runs {
		tries := past[run.key()]
		for _, r := range tries {
			r.Run, r.Kept = run, true
			c.sum.Spent += r.Cost
		}
		kept, j := c.decide(run, tries)
		if j != nil {
			c.queue = append(c.queue, j)
		} else if c.Ended != nil {
			c.Ended(nil, kept)
		}
	}
	return nil
}

// decide looks whether a run is finished, by its tries: then it returns how it ended, and else what is to be done.
func (c *Campaign) decide(run Run, tries []*Result) (*Result, *job) {
	j := &job{Run: run}
	var best *Result
	for _, r := range tries {
		switch {
		case r.partial, r.Class == session.AgentFailed && c.RetryFailed:
			best, j.replaces = r, r.Record
		case r.passing():
			j.past++
			if j.replaces == "" {
				best = r
			}
		default: // It counts; or the lab cannot judge it, and will not be able to.
			r.Tries = j.past
			return r, nil
		}
	}
	if j.past > c.Retries && c.RetryLost {
		j.past = 0
	}
	if j.past <= c.Retries {
		return nil, j
	}
	best.Tries = j.past
	return best, nil
}

// stop has no more runs started.
func (c *Campaign) stop(why error) {
	if c.sum.Why == nil {
		c.sum.Why = why
	}
}

func (c *Campaign) mayStart(ctx context.Context) bool {
	select {
	case <-c.Drain:
		c.stop(ErrDrained)
	default:
	}
	switch {
	case c.sum.Why != nil:
	case ctx.Err() != nil:
		c.stop(context.Cause(ctx))
	case c.MaxCost > 0 && c.sum.Spent >= c.MaxCost:
		c.stop(fmt.Errorf("%w: $%.2f of $%.2f", ErrBudget, c.sum.Spent, c.MaxCost))
	case c.Ready != nil:
		if err := c.Ready(); err != nil {
			c.stop(err)
		}
	}
	return c.sum.Why == nil
}

// start begins the next try.
func (c *Campaign) start(ctx context.Context) {
	j := c.queue[0]
	dir, err := c.Folder.desk(j.Who())
	if err != nil {
		c.stop(err)
		return
	}
	c.queue = c.queue[1:]
	t := &Try{Run: j.Run, Number: j.past + 1, Dir: dir, Began: time.Now(), replaces: j.replaces, past: j.past}
	c.active++
	if c.Began != nil {
		c.Began(t)
	}
	go func() { c.ended <- c.do(ctx, t) }()
}

// do has a try, and takes what came of it into the folder.
func (c *Campaign) do(ctx context.Context, t *Try) ending {
	why := t.run(ctx, c.Command(t), c.stdin, c.Folder.lock)
	r, err := t.result()
	stopped := ctx.Err() != nil
	if err != nil && !stopped {
		if err := c.Abandon(t, why); err != nil {
			return ending{try: t, err: fmt.Errorf("record that a run was lost (%s): %w", why, err)}
		}
		r, err = t.result()
	}
	if stopped && (err != nil || !r.Counts()) { // It was not its fault.
		return ending{try: t, err: os.RemoveAll(t.Dir)}
	}
	if err != nil {
		return ending{try: t, err: err}
	}
	replaces := t.replaces
	if r.passing() { // The failure stands until there is something better.
		replaces = ""
	}
	if r.Record, err = c.Folder.commit(r.Record, t.Run, replaces); err == nil {
		err = os.RemoveAll(t.Dir)
	}
	return ending{t, r, err}
}

// result is how the try ended.
func (t *Try) result() (*Result, error) {
	file := recordIn(t.Dir)
	if file == "" {
		return nil, errUnfinished
	}
	r, err := readResult(file)
	if err != nil {
		return nil, err
	}
	if !exists(sessionFile(file)) {
		return nil, errUnfinished
	}
	r.Run = t.Run
	return r, nil
}

// end takes the end of a try.
func (c *Campaign) end(e ending) {
	c.active--
	if e.err != nil {
		c.stop(e.err)
	}
	r := e.result
	if r == nil {
		c.sum.Left++
		if c.Ended != nil {
			c.Ended(e.try, nil)
		}
		return
	}
	c.sum.Spent += r.Cost
	r.Tries = e.try.past
	c.row++
	if !r.passing() {
		c.row = 0
	} else if r.Tries++; r.Tries <= c.Retries {
		r.Again = true
		c.queue = append(c.queue, &job{Run: r.Run, past: r.Tries, replaces: e.try.replaces})
	}
	if c.MaxRow > 0 && c.row >= c.MaxRow {
		c.stop(fmt.Errorf("%w, %d times in a row; the last time: %s", ErrRow, c.row, r.Why))
	}
	if c.Ended != nil {
		c.Ended(e.try, r)
	}
}
