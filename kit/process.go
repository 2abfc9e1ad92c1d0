package kit

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Processes starts and shows the programs of a container.
type Processes interface {
	// Start finds the program env.Args[0] names, by path or in PATH, and runs it in env. A program
	// that cannot be found or run is an *ExecError. It ends when ctx does.
	Start(ctx context.Context, env *Env) (Process, error)
	// List returns the running programs by ID.
	List() []ProcessInfo
	// Signal sends a signal; ESRCH if there is no such program.
	Signal(pid int, sig syscall.Signal) error
}

// Forker is an optional power of Processes: fork(2) for programs that are functions. A shell runs
// the commands of its background jobs and subshells in it, so that they have process IDs, are
// listed, and can be signalled.
type Forker interface {
	// Fork runs p in env like a program that was found. Nothing is looked up; env.Args is what is
	// shown. It ends when ctx does.
	Fork(ctx context.Context, env *Env, p Program) (Process, error)
}

// Tasks is an optional power of Processes. A program takes a place in the process table for each part that it runs
// at the same time as itself. A kernel would run such a part as a process; here nobody needs to see it.
type Tasks interface {
	// Task takes a place until done is called; EAGAIN if there is none.
	Task() (done func(), err error)
}

// Confiner is an optional power of Processes. Many programs share one process, and none may use up all of it. A
// program that counts what it holds cannot. An interpreter that does not count has to run in a process of its own:
// see package cell.
type Confiner interface {
	// Confine reports whether interpreters have to run in a process of their own.
	Confine() bool
}

// Process is a program that was started.
type Process interface {
	PID() int
	// Wait returns the exit code once the program has ended.
	Wait() int
}

// ProcessInfo describes a running program.
type ProcessInfo struct {
	PID, Parent int
	Args        []string
	User        User
	Started     time.Time
	// What its container uses, which is accounted as a whole and shown with its main program.
	CPU    time.Duration
	Memory int64 // bytes
}

// ExecError says why a program could not be started, in the words of os/exec.
type ExecError struct {
	Name string
	Err  error
}

func (e *ExecError) Error() string { return `exec: "` + e.Name + `": ` + e.Err.Error() }
func (e *ExecError) Unwrap() error { return e.Err }

// ErrNotInPath is the Err of an ExecError for a name without a slash.
var ErrNotInPath error = notInPath{}

type notInPath struct{}

func (notInPath) Error() string { return "executable file not found in $PATH" }
func (notInPath) Is(err error) bool {
	return err == syscall.ENOENT
}

// ExitCode is the code a shell gives to a command that could not be started.
func (e *ExecError) ExitCode() int {
	if errors.Is(e.Err, syscall.ENOENT) {
		return ExitNotFound
	}
	return ExitNotRunnable
}
