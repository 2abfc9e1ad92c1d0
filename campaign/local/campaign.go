package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

const (
	// DefaultRetries is how often a run is tried again that says nothing of its agent.
	DefaultRetries = 2
	// roomInterval is how often it is looked whether there is room now.
	roomInterval = time.Second / 4
)

// Campaign is many runs in one folder. Its first fields are needed.
type Campaign struct {
	Folder  *Folder
	Runs    []Run // each once
	Workers int   // how many go on at a time
	// Ahead is how many more processes are started before it is their turn. Each prepares what it can, and waits. With
	// a Runner it must be 0, or nothing is run.
	Ahead int
	// Command is the process of a try, which has not been started. It leaves one record and one session file in the
	// try's directory, says on its standard error why it did not, ends when its standard input does, and its file
	// descriptor 3 is the folder's lock. That of a try which is [Try.Ahead] does nothing that counts before it reads a
	// line from its standard input. It may be called from several goroutines.
	Command func(*Try) *exec.Cmd
	// Runner is a process that has one try after another, which has not been started: it is told the arguments of
	// Command's process, and answers, as [Order] and [Answer] say, over its standard streams. It ends when its standard
	// input does, and its file descriptor 3 is the folder's lock. If it is nil every try has a process of its own.
	Runner func() *exec.Cmd
	// Kin says which runs a runner had better have one after another, as they can share what it keeps. With a Runner it
	// is needed.
	Kin func(Run) string
	// Alone says which runs cannot go on at the same time, as they need the same: those of which it says the same; of
	// runs that can be beside any, nothing. It may be nil, and must be with a Runner or Ahead, or nothing is run.
	Alone func(Run) string
	// Abandon leaves the record of a try whose process has ended without a verdict: infra, and why.
	Abandon func(t *Try, why string) error

	Retries int     // how often a run is tried again that says nothing of its agent, in all; see [DefaultRetries]
	MaxCost float64 // if the runs of the folder have cost so many dollars, no more are started; 0 for no limit
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
	// Room reports whether there is room for another process besides those of tries that are under way. While there is
	// not, none is started, and it is asked again and again. It may be nil.
	Room func(under []*Try) bool
	// Prepared is told of each try that is started ahead, Began of each when it begins, Ended of each when it has ended
	// or was there before, one at a time. They may be nil.
	Prepared func(*Try)
	Began    func(*Try)
	Ended    func(*Try, *Result)

	queue  []*job
	active int
	ahead  []*Try  // whose processes wait for their turn, or were told to end instead; the next one first
	slots  []*slot // one for each that may go on at a time
	ended  chan ending
	held   bool // there was no room the last time that it was looked
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
	ErrFull    = errors.New("the disk is full")
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
	spent  float64 // by one that has no result
	err    error   // of this machine
}

// Run runs what there is no result of. If ctx ends, the runs under way are stopped. An error is of this machine, such
// as a full disk; what is finished is kept whatever happens.
func (c *Campaign) Run(ctx context.Context) (*Summary, error) {
	if c.Runner != nil && c.Ahead > 0 {
		return nil, fmt.Errorf("a campaign whose runners take try after try prepares none: Ahead is %d", c.Ahead)
	}
	if c.Alone != nil && (c.Runner != nil || c.Ahead > 0) {
		return nil, errors.New("runs that cannot go on at the same time are for processes of their own, none ahead")
	}
	if c.Settings != nil {
		if err := c.Folder.hold(c.Settings); err != nil {
			return nil, err
		}
	}
	if err := c.plan(); err != nil {
		return nil, err
	}
	c.ended = make(chan ending)
	for range c.Workers {
		c.slots = append(c.slots, &slot{})
	}
	defer c.closeSlots()
	drain := c.Drain
	for {
		c.held = false
		for c.active < c.Workers && (len(c.ahead) > 0 || c.first() >= 0 && c.hasRoom()) && c.mayStart(ctx) {
			c.next(ctx)
		}
		for len(c.ahead) < c.Ahead && len(c.queue) > 0 && c.hasRoom() && c.mayStart(ctx) {
			c.prepare(ctx)
		}
		c.closeIdle()
		if c.sum.Why != nil {
			c.dismiss()
		}
		if c.active+len(c.ahead) == 0 {
			break
		}
		var again <-chan time.Time
		if c.held {
			again = time.After(roomInterval)
		}
		select {
		case e := <-c.ended:
			c.end(e)
		case <-drain:
			drain = nil
			c.stop(ErrDrained)
		case <-again:
		}
	}
	c.sum.Left += len(c.queue)
	if c.sum.Left == 0 {
		c.sum.Why = nil
	}
	return &c.sum, nil
}

// plan takes what the folder has, and queues the rest.
func (c *Campaign) plan() error {
	past, err := c.Folder.past()
	if err != nil {
		return err
	}
	if c.Fresh {
		past = nil
	} else if c.sum.Spent, err = c.Folder.spent(past); err != nil {
		return err
	}
	for _, run := range c.Runs {
		tries := past[run.key()]
		for _, r := range tries {
			r.Run, r.Kept = run, true
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

// Spent is how many dollars have been spent, with what was before in the folder. It is for Began and Ended to ask.
func (c *Campaign) Spent() float64 { return c.sum.Spent }

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

// hasRoom reports whether there is room for another process, if the next try takes one. One alone has it anyway: it
// could wait for nobody.
func (c *Campaign) hasRoom() bool {
	if c.Runner != nil {
		if s, _ := c.match(); s.runner != nil {
			return true
		}
	}
	under := slices.Clone(c.ahead)
	for _, s := range c.slots {
		if s.busy {
			under = append(under, s.try)
		}
	}
	c.held = c.Room != nil && len(under) > 0 && !c.Room(under)
	return !c.held
}

// next begins the next try: of those whose processes wait for their turn, or else of the queue.
func (c *Campaign) next(ctx context.Context) {
	if len(c.ahead) > 0 {
		t := c.ahead[0]
		c.ahead = c.ahead[1:]
		c.begin(t, c.slots[slices.IndexFunc(c.slots, func(s *slot) bool { return !s.busy })])
		_, _ = t.stdin.Write([]byte("go\n")) // One that is gone is told of soon.
		return
	}
	s, which := c.match()
	if t := c.take(which); t != nil {
		c.begin(t, s)
		go func() { c.ended <- c.do(ctx, t) }()
	}
}

// first is the first of the queue that can go on beside what does; -1 if there is none.
func (c *Campaign) first() int {
	return slices.IndexFunc(c.queue, func(j *job) bool {
		if c.Alone == nil {
			return true
		}
		key := c.Alone(j.Run)
		return key == "" || !slices.ContainsFunc(c.slots, func(s *slot) bool { return s.busy && c.Alone(s.run) == key })
	})
}

// begin notes that it is a try's turn.
func (c *Campaign) begin(t *Try, s *slot) {
	c.active++
	t.slot, t.Began, s.busy, s.run, s.try = s, time.Now(), true, t.Run, t
	if c.Began != nil {
		c.Began(t)
	}
}

// prepare starts the process of the next try, which waits for its turn.
func (c *Campaign) prepare(ctx context.Context) {
	t := c.take(0)
	if t == nil {
		return
	}
	t.Ahead, t.dismissed = true, make(chan struct{})
	c.ahead = append(c.ahead, t)
	if c.Prepared != nil {
		c.Prepared(t)
	}
	go func() { c.ended <- c.do(ctx, t) }()
}

// dismiss ends the processes whose turn will not come.
func (c *Campaign) dismiss() {
	for _, t := range c.ahead {
		select {
		case <-t.dismissed:
		default:
			close(t.dismissed)
		}
	}
}

// take makes a try of one of the queue; nil if that cannot be.
func (c *Campaign) take(which int) *Try {
	j := c.queue[which]
	t := &Try{Run: j.Run, Number: j.past + 1, replaces: j.replaces, past: j.past}
	var err error
	if c.Runner == nil {
		t.in, t.stdin, err = os.Pipe()
	}
	if err == nil {
		t.Dir, err = c.Folder.desk(j.Who())
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: %s", ErrFull, c.Folder.Dir)
	}
	if err != nil {
		c.stop(err)
		return nil
	}
	c.queue = slices.Delete(c.queue, which, which+1)
	return t
}

// do has a try, and takes what came of it into the folder.
func (c *Campaign) do(ctx context.Context, t *Try) ending {
	var why string
	if c.Runner == nil {
		why = t.run(ctx, c.Command(t), c.Folder.lock)
	} else {
		why = c.runIn(ctx, t, t.slot)
	}
	select {
	case <-t.dismissed: // It has done nothing that counts.
		return ending{try: t, err: os.RemoveAll(t.Dir)}
	default:
	}
	r, err := t.result()
	stopped := ctx.Err() != nil
	if err != nil && !stopped {
		if err := c.Abandon(t, why); err != nil { // It tells nothing, as one that was cut off.
			spent, derr := c.Folder.drop(t.Dir)
			err = fmt.Errorf("record that a run was lost (%s): %w", why, err)
			return ending{try: t, spent: spent, err: errors.Join(err, derr)}
		}
		r, err = t.result()
	}
	if stopped && (err != nil || !r.Counts()) { // It was not its fault.
		spent, err := c.Folder.drop(t.Dir)
		return ending{try: t, spent: spent, err: err}
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
	return ending{try: t, result: r, err: err}
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
	if s := e.try.slot; s != nil {
		c.active--
		s.busy = false
	} else {
		c.ahead = slices.DeleteFunc(c.ahead, func(t *Try) bool { return t == e.try })
	}
	switch {
	case errors.Is(e.err, syscall.ENOSPC):
		c.stop(fmt.Errorf("%w: %s", ErrFull, c.Folder.Dir))
	case e.err != nil:
		c.stop(e.err)
	}
	r := e.result
	if r == nil {
		c.sum.Spent += e.spent
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
