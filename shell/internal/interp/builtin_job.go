package interp

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

func builtinJobs(s *Shell, _ context.Context, args []string) flow {
	pids := len(args) > 0 && args[0] == "-p"
	long := len(args) > 0 && args[0] == "-l"
	for i, j := range s.jobs.list {
		state := "Running"
		if j.ended() {
			if state = "Done"; j.status != 0 {
				state = "Done(" + strconv.Itoa(j.status) + ")"
			}
		}
		mark := " "
		switch i {
		case len(s.jobs.list) - 1:
			mark = "+"
		case len(s.jobs.list) - 2:
			mark = "-"
		}
		var fl flow
		switch {
		case pids:
			fl = s.printf("%d\n", j.pid)
		case long:
			fl = s.printf("[%d]%s %d %-22s %s\n", j.number, mark, j.pid, state, j.text)
		default:
			fl = s.printf("[%d]%s  %-22s %s\n", j.number, mark, state, j.text)
		}
		if fl != flowNext {
			return fl
		}
	}
	for _, j := range append([]*job(nil), s.jobs.list...) {
		if j.ended() {
			s.jobs.remove(j)
		}
	}
	return flowNext
}

// builtinForeground waits for a job as if it had been started in the foreground.
func builtinForeground(s *Shell, ctx context.Context, args []string) flow {
	if !s.interactive {
		return builtinNoJobControl(s, ctx, args)
	}
	spec := "%%"
	if len(args) > 0 {
		spec = args[0]
	}
	j, err := s.findJob(spec)
	if err != nil {
		return s.fail(1, "fg: %v", err)
	}
	s.printf("%s\n", j.text)
	s.fg.add(j.pid)
	defer s.fg.remove(j.pid)
	return s.waitJob(ctx, j)
}

func builtinDisown(s *Shell, _ context.Context, args []string) flow {
	if len(args) == 0 {
		args = []string{"%%"}
	}
	for _, spec := range args {
		if strings.HasPrefix(spec, "-") {
			continue
		}
		j, err := s.findJob(spec)
		if err != nil {
			s.fail(1, "disown: %v", err)
			continue
		}
		s.jobs.remove(j)
	}
	return flowNext
}

// waitJob waits for one job. A signal that has a trap ends the wait, with the status of the signal.
func (s *Shell) waitJob(ctx context.Context, j *job) flow {
	trapped, cancel := s.untilTrap(ctx)
	defer cancel()
	select {
	case <-j.done:
		s.status = j.status
		s.jobs.remove(j)
		return flowNext
	case <-trapped.Done():
	}
	if errors.Is(context.Cause(trapped), errTrapped) {
		s.status = s.trappedStatus()
		return flowBreak // Of the wait, not of a loop: callers know.
	}
	s.status = killedStatus(ctx)
	return flowExit
}

// trappedStatus is the status of a wait that a signal ended.
func (s *Shell) trappedStatus() int {
	s.traps.mu.Lock()
	defer s.traps.mu.Unlock()
	if len(s.traps.pending) == 0 {
		return kit.ExitSignal
	}
	sig, _ := tool.ParseSignal(s.traps.pending[0])
	return kit.ExitSignal + int(sig)
}

func builtinWait(s *Shell, ctx context.Context, args []string) flow {
	if len(args) > 0 && args[0] == "-n" {
		return s.waitAny(ctx)
	}
	if len(args) == 0 {
		for len(s.jobs.list) > 0 {
			if fl := s.waitJob(ctx, s.jobs.list[0]); fl != flowNext {
				return s.afterWait(fl)
			}
		}
		s.status = 0
		return flowNext
	}
	for _, spec := range args {
		j, err := s.findJob(spec)
		if err != nil {
			s.status = 127
			if s.bash {
				s.complain("wait: %v", err)
			}
			continue
		}
		if fl := s.waitJob(ctx, j); fl != flowNext {
			return s.afterWait(fl)
		}
	}
	return flowNext
}

// afterWait turns the outcome of a wait that was cut short into how the script goes on.
func (s *Shell) afterWait(fl flow) flow {
	if fl == flowBreak {
		return flowNext
	}
	return fl
}

// waitAny waits for whichever job ends first.
func (s *Shell) waitAny(ctx context.Context) flow {
	if len(s.jobs.list) == 0 {
		s.status = 127
		return flowNext
	}
	trapped, cancel := s.untilTrap(ctx)
	defer cancel()
	first := make(chan *job, len(s.jobs.list))
	for _, j := range s.jobs.list {
		go func() {
			select {
			case <-j.done:
				first <- j
			case <-trapped.Done():
			}
		}()
	}
	select {
	case j := <-first:
		s.status = j.status
		s.jobs.remove(j)
		return flowNext
	case <-trapped.Done():
	}
	if errors.Is(context.Cause(trapped), errTrapped) {
		s.status = s.trappedStatus()
		return flowNext
	}
	s.status = killedStatus(ctx)
	return flowExit
}

// builtinKill is part of the shell because only it knows what %1 is.
func builtinKill(s *Shell, _ context.Context, args []string) flow {
	sig := syscall.SIGTERM
	if len(args) == 0 {
		return s.fail(2, "kill: %s", s.pick("you need to specify whom to kill",
			"usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]"))
	}
	switch first := args[0]; {
	case first == "-l" || first == "-L":
		return s.listSignals(args[1:])
	case (first == "-s" || first == "-n") && len(args) > 1:
		var err error
		if sig, err = tool.ParseSignal(args[1]); err != nil {
			return s.fail(1, "kill: %v", err)
		}
		args = args[2:]
	case first == "--":
		args = args[1:]
	case strings.HasPrefix(first, "-") && len(first) > 1:
		var err error
		if sig, err = tool.ParseSignal(first[1:]); err != nil {
			return s.fail(1, "kill: %v", err)
		}
		args = args[1:]
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
	}
	for _, target := range args {
		if err := s.killOne(target, sig); err != nil {
			s.fail(1, "kill: %v", err)
		}
	}
	return flowNext
}

func (s *Shell) killOne(target string, sig syscall.Signal) error {
	if j, err := s.findJob(target); err == nil {
		if err = j.signal(sig); err != nil {
			pid := strconv.Itoa(j.pid)
			return errors.New(s.pick("can't kill pid "+pid+": ", "("+pid+") - ") + tool.Reason(err))
		}
		return nil
	} else if strings.HasPrefix(target, "%") {
		return err
	}
	pid, err := strconv.Atoi(target)
	if err != nil {
		return errors.New(s.pick("bad pid '"+target+"'", target+": arguments must be process or job IDs"))
	}
	if pid == s.env.PID && s.takesSignal(sig) {
		s.deliver(s.traps, sig) // So that its trap runs before the next command.
		return nil
	}
	if err := s.env.Procs.Signal(pid, sig); err != nil {
		return errors.New(s.pick("can't kill pid "+target+": ", "("+target+") - ") + tool.Reason(err))
	}
	return nil
}

// listSignals is kill -l.
func (s *Shell) listSignals(args []string) flow {
	if len(args) == 0 {
		for _, name := range tool.SignalNames() {
			sig, _ := tool.ParseSignal(name)
			if fl := s.printf("%2d) %s\n", int(sig), name); fl != flowNext {
				return fl
			}
		}
		return flowNext
	}
	for _, a := range args {
		n, err := strconv.Atoi(a)
		if err == nil {
			if n > kit.ExitSignal {
				n -= kit.ExitSignal // The status of what a signal ended will do.
			}
			s.printf("%s\n", tool.SignalName(syscall.Signal(n)))
			continue
		}
		sig, err := tool.ParseSignal(a)
		if err != nil {
			s.fail(1, "kill: %v", err)
			continue
		}
		s.printf("%d\n", int(sig))
	}
	return flowNext
}
