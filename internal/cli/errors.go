package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exit codes. They are documented in docs/cli.md.
const (
	ExitOK           = 0   // it worked
	ExitError        = 1   // the command failed
	ExitUsage        = 2   // the command line is wrong
	ExitEnvironment  = 3   // the environment could not be started, or died
	ExitUnsolved     = 4   // not solved, does not hold (`verify`), is guessed (`audit`), or differs today (`regrade`)
	ExitInconclusive = 5   // a run says nothing of the agent: interrupted, not graded (again), or not begun (`bench`)
	ExitNotRunnable  = 126 // the command of `up` or `shell -- COMMAND` cannot be run
	ExitNotFound     = 127 // the command of `up` or `shell -- COMMAND` is not there
	ExitSignal       = 128 // plus the number of the signal that ended the command, or the start
)

// failure is an error with an exit code and a hint.
type failure struct {
	err  error
	code int
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail wraps an error for the edge. The hint says what to do, in a full sentence.
func fail(code int, err error, hint string) error {
	if err == nil {
		return nil
	}
	return &failure{err, code, hint}
}

// exitStatus ends the process with a code and prints nothing.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// report prints an error and returns the exit code it asks for.
func report(w io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	if s, ok := errors.AsType[exitStatus](err); ok {
		return int(s)
	}
	fmt.Fprintf(w, "aiopslab: %s\n", oneLine(err.Error()))
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return ExitError
	}
	if f.hint != "" {
		fmt.Fprintf(w, "aiopslab: hint: %s\n", f.hint)
	}
	return f.code
}

// oneLine keeps an error that spans lines on one.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
