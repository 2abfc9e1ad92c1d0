package interp

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// complain prints a message to standard error, after what the shell calls itself.
func (s *Shell) complain(format string, args ...any) {
	fmt.Fprintf(s.fd(2), "%s%s\n", s.prefix(), fmt.Sprintf(format, args...))
}

// prefix is "sh: ", or "script: line 3: " for what is read from a file.
func (s *Shell) prefix() string {
	switch {
	case s.interactive:
		return s.env.Args[0] + ": "
	case s.bash, s.name != s.env.Args[0] && !s.opts.command:
		return fmt.Sprintf("%s: line %d: ", s.name, max(s.line, 1))
	}
	return s.env.Args[0] + ": "
}

// note prints to standard error as it is.
func (s *Shell) note(format string, args ...any) { fmt.Fprintf(s.fd(2), format, args...) }

// fail complains and sets the status.
func (s *Shell) fail(status int, format string, args ...any) flow {
	s.complain(format, args...)
	s.status = status
	return flowNext
}

// printf writes to standard output. It reports what the shell has to do if nobody reads it.
func (s *Shell) printf(format string, args ...any) flow {
	_, err := io.WriteString(s.fd(1), fmt.Sprintf(format, args...))
	return s.wrote(err)
}

// wrote deals with the outcome of a write to standard output. A shell whose output nobody reads dies
// as of SIGPIPE.
func (s *Shell) wrote(err error) flow {
	switch {
	case err == nil:
		return flowNext
	case errors.Is(err, syscall.EPIPE):
		s.status = brokenPipe
		return flowExit
	}
	return s.fail(1, "write error: %s", tool.Reason(err))
}

// brokenPipe is the status of what died of SIGPIPE.
const brokenPipe = 128 + int(syscall.SIGPIPE)

// pick returns the wording of the shell that s is.
func (s *Shell) pick(ash, bash string) string {
	if s.bash {
		return bash
	}
	return ash
}
