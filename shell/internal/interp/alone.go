package interp

import (
	"fmt"
	"runtime/debug"

	"github.com/aiopslab/aiopslab/kit"
)

// The status of a shell that cannot fork.
const (
	cannotForkAsh  = 2
	cannotForkBash = 254
)

// takePlace takes a place in the container's process table for a copy of the shell, which a kernel
// would run as a process. If there is none left, the copy does nothing but say so.
func (s *Shell) takePlace() {
	s.task, s.refused = nil, false
	table, ok := s.env.Procs.(kit.Tasks)
	if !ok {
		return
	}
	done, err := table.Task()
	if err != nil {
		s.refused = true
		return
	}
	s.task = done
}

// cannotFork says that there is no place for another process.
func (s *Shell) cannotFork() {
	s.complain("%s: Resource temporarily unavailable", s.pick("can't fork", "fork: retry"))
	s.status = cannotForkAsh
	if s.bash {
		s.status = cannotForkBash
	}
}

// alone runs f on a goroutine of its own. A panic in it is the end of this copy of the shell, with
// the trace on its standard error, and not of everything.
func (s *Shell) alone(f func()) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(s.fd(2), "panic: %v\n\n%s", r, debug.Stack())
			s.status = kit.ExitPanic
			s.close()
		}
	}()
	f()
}
