package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"syscall"
)

// Program is the main function of a container or of a command in it.
//
// The context ends when the program is told to stop: on SIGTERM, unless it took the signals with
// [Env.Notify], and at the latest on SIGKILL. After SIGKILL its network, files and output are gone.
// A nil result is exit code 0. An [ExitError] is its code. Any other error is printed to Stderr and
// is exit code 1. A panic is exit code 2 with the trace on Stderr.
type Program func(ctx context.Context, env *Env) error

// ExitError ends a program with the given code and prints nothing.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Exit returns the result of a program that ends with the given code.
func Exit(code int) error {
	if code == 0 {
		return nil
	}
	return ExitError(code)
}

// The exit codes the kernel and the shell give to what did not exit by itself.
const (
	ExitPanic       = 2
	ExitNotRunnable = 126
	ExitNotFound    = 127
	ExitSignal      = 128 // plus the signal's number
)

// Killed is the cause of a program's context when a signal ended it.
type Killed struct{ Signal syscall.Signal }

func (k Killed) Error() string { return "killed by signal " + k.Signal.String() }

// Run calls a program and turns its result into an exit code.
func Run(ctx context.Context, p Program, env *Env) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(env.Stderr, "panic: %v\n\n%s", r, debug.Stack())
			code = ExitPanic
		}
	}()
	return ExitCode(ctx, p(ctx, env), env.Stderr)
}

// ExitCode returns the exit code of a program that returned err. It prints the error to w, unless err is an exit
// code or a signal has ended the program.
func ExitCode(ctx context.Context, err error, w io.Writer) int {
	var exit ExitError
	var killed Killed
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case ctx.Err() != nil && errors.As(context.Cause(ctx), &killed) &&
		(errors.Is(err, ctx.Err()) || errors.Is(err, killed)):
		return ExitSignal + int(killed.Signal)
	}
	fmt.Fprintln(w, err)
	return 1
}

// IgnoreClosed returns nil for the errors with which servers report that they were shut down.
func IgnoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
