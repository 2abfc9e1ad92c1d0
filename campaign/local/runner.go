package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Order is what a runner is told to do: a line of JSON on its standard input.
type Order struct {
	Args []string `json:"args"` // of the process of a try, without its name
}

// Answer is what a runner says when that is done: a line of JSON on its standard output.
type Answer struct {
	Why string `json:"why,omitempty"` // what is the matter if it has left no record
}

// slot is where one try goes on after another.
type slot struct {
	busy   bool
	run    Run    // while it is busy
	try    *Try   // so, too
	kin    string // of its last try, if it has a runner
	runner *runner
}

// match says where the next try goes on, and which of the queue it is: the first one that can share what a free runner
// keeps, or else the first that can go on now, where nothing is kept if there is such a place.
func (c *Campaign) match() (s *slot, next int) {
	next = -1
	for _, x := range c.slots {
		if x.busy || x.runner == nil {
			continue
		}
		i := slices.IndexFunc(c.queue, func(j *job) bool { return c.Kin(j.Run) == x.kin })
		if i >= 0 && (next < 0 || i < next) {
			s, next = x, i
		}
	}
	if s != nil {
		return s, next
	}
	for _, x := range c.slots {
		if !x.busy && (s == nil || s.runner != nil && x.runner == nil) {
			s = x
		}
	}
	return s, c.first()
}

// closeIdle ends the runners that have nothing to do: nothing is queued, or nothing more is started.
func (c *Campaign) closeIdle() {
	if len(c.queue) > 0 && c.sum.Why == nil {
		return
	}
	for _, s := range c.slots {
		if !s.busy && s.runner != nil {
			s.runner.stdin.Close()
		}
	}
}

// closeSlots ends all runners, and waits until they are gone.
func (c *Campaign) closeSlots() {
	var all sync.WaitGroup
	for _, s := range c.slots {
		if s.runner != nil {
			all.Go(s.runner.close)
		}
	}
	all.Wait()
}

// runIn has a try in a slot. Why says what is the matter if it has not done its work.
func (c *Campaign) runIn(ctx context.Context, t *Try, s *slot) (why string) {
	order := Order{Args: c.Command(t).Args[1:]}
	if s.runner != nil {
		why, err := s.runner.do(ctx, order)
		if !errors.Is(err, errNotBegun) { // It was ended when there seemed to be no more to do.
			c.settle(s, t, err)
			return why
		}
		s.runner.close()
	}
	var err error
	if s.runner, err = startRunner(c.Runner(), c.Folder.lock); err != nil {
		s.runner = nil
		return err.Error()
	}
	why, err = s.runner.do(ctx, order)
	c.settle(s, t, err)
	return why
}

// settle notes what a runner is good for after a try; nothing if it has ended.
func (c *Campaign) settle(s *slot, t *Try, err error) {
	if s.kin = c.Kin(t.Run); err != nil {
		s.runner.close()
		s.runner = nil
	}
}

// runner is a process that has one try after another.
type runner struct {
	cmd     *exec.Cmd
	stdin   *os.File // it ends when nobody has the other end any more
	answers chan Answer
	ended   chan struct{} // closed when it is gone
	err     error         // how, known then
	tail    *tail
}

// Why a runner has not done what it was told to.
var (
	errNotBegun = errors.New("the runner cannot be reached")
	errGone     = errors.New("the runner has ended")
)

func startRunner(cmd *exec.Cmd, lock *os.File) (*runner, error) {
	r := &runner{cmd: cmd, answers: make(chan Answer), ended: make(chan struct{}), tail: &tail{}}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		stdin.Close()
		return nil, err
	}
	defer stdout.Close()
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles, r.stdin = in, stdout, []*os.File{lock}, stdin
	if cmd.Stderr == nil {
		cmd.Stderr = r.tail
	} else {
		cmd.Stderr = io.MultiWriter(r.tail, cmd.Stderr)
	}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // As a try's process.
	if err := cmd.Start(); err != nil {
		stdin.Close()
		out.Close()
		return nil, err
	}
	go r.live(out)
	return r, nil
}

// live is the process from its start to its end.
func (r *runner) live(out *os.File) {
	defer out.Close()
	gone := make(chan struct{})
	go func() {
		r.err = r.cmd.Wait()
		_ = out.SetReadDeadline(time.Now().Add(time.Second)) // Whoever else may hold the other end.
		close(gone)
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a Answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			break
		}
		select {
		case r.answers <- a:
			continue
		case <-gone: // Its last words were too late.
		}
		break
	}
	select {
	case <-gone:
	default:
		_ = r.cmd.Process.Kill() // It speaks no more, or not as it should.
		<-gone
	}
	close(r.ended)
}

// do has a try, to its end. If ctx ends, the try is told to stop.
func (r *runner) do(ctx context.Context, o Order) (why string, err error) {
	b, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	if _, err := r.stdin.Write(append(b, '\n')); err != nil {
		return "", errNotBegun
	}
	stopping := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case a := <-r.answers:
			return a.Why, nil
		case <-r.ended:
			return r.tail.last(r.err), errGone
		case <-stopping:
			stopping, late = nil, time.After(stopTime)
			_ = r.cmd.Process.Signal(syscall.SIGTERM)
		case <-late:
			_ = r.cmd.Process.Kill()
		}
	}
}

// close ends the process, and waits until it is gone.
func (r *runner) close() {
	r.stdin.Close()
	select {
	case <-r.ended:
	case <-time.After(stopTime):
		_ = r.cmd.Process.Kill()
		<-r.ended
	}
}
