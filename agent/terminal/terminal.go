// Package terminal is the agent that works in a shell of its own: a person, or a program that knows
// kubectl and nothing of the lab. Its kubeconfig reaches the cluster through the guard, and it hands
// its solution in with a command, submit.
//
// The command is a program of this one, by another name: it asks the agent, at an address and with a
// token that the environment has, whether the answer can be understood. One that cannot be is told so, and the run
// goes on.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/agent/internal/proc"
	"github.com/aiopslab/aiopslab/problem"
)

const (
	// endGrace is how long a program may go on after it has submitted.
	endGrace = 10 * time.Second
	// stopGrace is how long it has after it was told to end.
	stopGrace = 2 * time.Second
)

// Options say what runs.
type Options struct {
	Command []string // with its arguments
	// Shell says that the command is a shell for a person, which is ended with the run.
	Shell bool
	// Self is this program's file. It is kubectl and submit when it is called by these names.
	Self string
	// Stdin, Stdout and Stderr are the command's. What there is to know is told on Stderr.
	Stdin, Stdout, Stderr *os.File
	// Cage is what the command may use of the machine.
	Cage *cage.Cage
}

// Entry makes the agent. That its command is there is checked at once.
func Entry(o Options) (agent.Entry, error) {
	file, err := exec.LookPath(o.Command[0])
	if err != nil {
		return agent.Entry{}, err
	}
	o.Command = append([]string{file}, o.Command[1:]...)
	return agent.Entry{
		Name: "shell:" + filepath.Base(file), Doc: "works in a shell, with kubectl", Held: o.Cage.Holds(),
		Gap: o.Cage.Gap(),
		New: func(b agent.Briefing) (agent.Agent, error) {
			d, err := sit(b, o)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", agent.ErrUnavailable, err)
			}
			return d, nil
		},
	}, nil
}

// desk is a command at work on a problem.
type desk struct {
	o         Options
	dir       string
	briefing  agent.Briefing
	counter   *counter // where answers are handed in
	process   *proc.Process
	submitted bool
	mode      *term.State // of the terminal, before the command; nil if there is none
}

// sit lays out what the command needs.
func sit(b agent.Briefing, o Options) (d *desk, err error) {
	d = &desk{o: o, briefing: b}
	if d.dir, err = os.MkdirTemp(b.Scratch, "sh"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(d.dir)
		}
	}()
	if err := os.WriteFile(d.kubeconfig(), b.Kubeconfig, 0o600); err != nil {
		return nil, err
	}
	if err := os.Mkdir(d.bin(), 0o700); err != nil {
		return nil, err
	}
	for _, name := range []string{"kubectl", Program} {
		if err := os.Symlink(o.Self, filepath.Join(d.bin(), name)); err != nil {
			return nil, err
		}
	}
	d.counter, err = openCounter(string(b.Task))
	return d, err
}

func (d *desk) bin() string        { return filepath.Join(d.dir, "bin") }
func (d *desk) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }

// Act runs the command until it submits. After that, there is another time only if an incident has another question:
// what is handed in is valid.
func (d *desk) Act(ctx context.Context, observation string) (string, error) {
	switch {
	case d.process == nil:
		d.introduce(d.o.Stderr)
		if err := d.start(); err != nil {
			return "", err
		}
	case d.counter.incident:
		d.submitted = false
		d.counter.next(observation)
	default:
		return "", errors.New("the command had its turn")
	}
	select {
	case response := <-d.counter.answers:
		d.submitted = true
		return response, nil
	case <-d.process.Exited():
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if response, ok := d.counter.last(); ok { // It submitted as its last act.
		d.submitted = true
		return response, nil
	}
	if d.o.Shell {
		return "", errors.New("gave up: the shell was left without a submission")
	}
	text := fmt.Sprintf("the command %s without a submission", d.process.Status())
	if d.process.Failed() {
		text += d.o.Cage.Advise()
	}
	return "", errors.New(text)
}

// introduce tells the situation to a person.
func (d *desk) introduce(w io.Writer) {
	what := "The solution is submitted, once and last, with"
	if d.briefing.Task == problem.Incident {
		what = "An answer is submitted, once, with"
	}
	if d.briefing.Task == problem.OnCall {
		what = "Pages are answered, and waited for, with"
	}
	fmt.Fprintf(w, "\n%s\n\nkubectl reaches the cluster; its namespace is %s. %s\n%s\n",
		strings.TrimSpace(d.briefing.Description), d.briefing.Namespace, what, usage(string(d.briefing.Task)))
	if d.o.Shell {
		fmt.Fprintf(w, "Leave the shell to give up.\n")
	}
	fmt.Fprintln(w)
}

func (d *desk) start() (err error) {
	cmd := exec.Command(d.o.Command[0], d.o.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.o.Stdin, d.o.Stdout, d.o.Stderr
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+d.kubeconfig(), "PATH="+d.bin()+string(os.PathListSeparator)+os.Getenv("PATH"),
		CounterVariable+"="+d.counter.address())
	d.mode = modeOf(d.o.Stdin)
	// Whoever reads from the terminal must be in the group that has it. Else a group of its own is
	// easier to end.
	in := *d.o.Cage
	in.Read = append(slices.Clone(in.Read), d.o.Self) // It is kubectl and submit.
	d.process, err = proc.Start(cmd, d.mode == nil, func() error { return in.Start(cmd, d.dir) })
	return err
}

// Close ends the command, and puts the terminal in order.
func (d *desk) Close() error {
	d.counter.end()
	if d.process != nil {
		sig := syscall.SIGTERM
		switch {
		case d.o.Shell:
			sig = syscall.SIGHUP // A shell heeds it at its prompt, where it ignores SIGTERM.
		case d.submitted:
			d.process.Gone(endGrace)
		}
		d.process.Stop(sig, stopGrace)
		if d.mode != nil {
			regain(d.o.Stdin, d.mode)
		}
	}
	d.counter.close()
	return os.RemoveAll(d.dir)
}
