package cell

import (
	"errors"
	"io"

	"github.com/aiopslab/aiopslab/kit"
)

// Command is a program that is to be started. Its streams are handles; it closes what it is given beyond
// the standard ones when it ends.
type Command struct {
	Args    []string
	Vars    map[string]string
	Dir     string
	Streams [3]int
}

// Started is a program that was started.
type Started struct {
	Handle, PID int
	Failed      *Failure
}

// Pipes are the handles of a pipe.
type Pipes struct{ Read, Write int }

// Pipe makes a pipe.
func (h *Host) Pipe(_ int, a *Pipes) error {
	r, w := io.Pipe()
	a.Read, a.Write = h.add(r), h.add(w)
	return nil
}

// Start starts a program.
func (h *Host) Start(q Command, a *Started) error {
	child := h.env.Child(q.Args...)
	child.Vars, child.Dir, child.Terminal = q.Vars, q.Dir, nil
	in, _ := h.get(q.Streams[0]).(io.Reader)
	out, _ := h.get(q.Streams[1]).(io.Writer)
	errs, _ := h.get(q.Streams[2]).(io.Writer)
	if in != nil && out != nil && errs != nil {
		child.Stdin, child.Stdout, child.Stderr = in, out, errs
	}
	p, err := h.env.Procs.Start(h.ctx, child)
	if err != nil {
		if exec, ok := errors.AsType[*kit.ExecError](err); ok {
			err = exec.Err
		}
		a.Failed = failureOf(err)
		return nil
	}
	done := make(chan int, 1)
	go func() {
		code := p.Wait()
		for _, handle := range q.Streams {
			if handle > firstHandle {
				_ = h.Close(handle, &Transfer{})
			}
		}
		done <- code
	}()
	a.Handle, a.PID = h.add(waiting{p, done}), p.PID()
	return nil
}

// waiting is a program and its exit code.
type waiting struct {
	kit.Process
	done chan int
}

// Wait waits for the end of a program.
func (h *Host) Wait(handle int, code *int) error {
	if w, ok := h.get(handle).(waiting); ok {
		*code = <-w.done
	}
	return nil
}
