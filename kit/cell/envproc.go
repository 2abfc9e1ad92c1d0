package cell

import (
	"context"
	"io"
	"sync"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// processes are what a program in a cell can do with others: start them.
type processes struct{ *far }

// Start has the host start a program. Streams of the cell's own are carried over.
func (p processes) Start(_ context.Context, env *kit.Env) (kit.Process, error) {
	c := &child{far: p.far}
	q := Command{Args: env.Args, Vars: env.Vars, Dir: env.Dir}
	q.Streams[0] = c.reader(env.Stdin)
	q.Streams[1] = c.writer(env.Stdout)
	q.Streams[2] = c.writer(env.Stderr)
	var a Started
	p.call("Start", q, &a)
	if a.Failed != nil {
		for _, id := range q.Streams {
			if id > firstHandle {
				_ = (&handle{p.far, id}).Close()
			}
		}
		return nil, &kit.ExecError{Name: env.Args[0], Err: a.Failed.err()}
	}
	c.id, c.pid = a.Handle, a.PID
	return c, nil
}

// List returns nothing: a program in a cell does not look at others.
func (processes) List() []kit.ProcessInfo { return nil }

// Signal reaches no process.
func (processes) Signal(int, syscall.Signal) error { return syscall.ESRCH }

// child is a program at the host.
type child struct {
	*far
	id, pid int
	outputs sync.WaitGroup // what it prints and is carried over
}

// reader returns the handle of an input. What it is at the cell is copied over.
func (c *child) reader(r io.Reader) int {
	if h, ok := r.(*handle); ok {
		return h.id
	}
	var a Pipes
	c.call("Pipe", 0, &a)
	go func() {
		w := &handle{c.far, a.Write}
		_, _ = io.Copy(w, r)
		_ = w.Close()
	}()
	return a.Read
}

// writer returns the handle of an output.
func (c *child) writer(w io.Writer) int {
	if h, ok := w.(*handle); ok {
		return h.id
	}
	var a Pipes
	c.call("Pipe", 0, &a)
	c.outputs.Go(func() {
		r := &handle{c.far, a.Read}
		_, _ = io.Copy(w, r)
		_ = r.Close()
	})
	return a.Write
}

func (c *child) PID() int { return c.pid }

func (c *child) Wait() int {
	var code int
	c.call("Wait", c.id, &code)
	c.outputs.Wait()
	return code
}
