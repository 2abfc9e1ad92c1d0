package interp

import (
	"bytes"
	"context"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// builtinExec replaces the shell by a program, or only its files. The program runs in a process of
// its own; signals for the shell go to it, and its end is the shell's.
func builtinExec(s *Shell, ctx context.Context, args []string) flow {
	for len(args) > 0 && (args[0] == "--" || args[0] == "-c" || args[0] == "-l") {
		args = args[1:]
	}
	if len(args) > 1 && args[0] == "-a" {
		args = args[2:]
	}
	if len(args) == 0 {
		s.keepRedirs = true
		return flowNext
	}
	p, sc := s.start(ctx, args)
	switch {
	case sc != nil:
		s.runScript(ctx, sc, args)
		return flowExit
	case p == nil:
		return flowExit
	}
	s.traps.mu.Lock()
	s.traps.forward = func(sig syscall.Signal) { s.env.Procs.Signal(p.PID(), sig) }
	clear(s.traps.actions)
	s.traps.mu.Unlock()
	s.takeSignals(ctx)
	s.await(ctx, p)
	return flowExit
}

// builtinSource runs a script in the shell itself.
func builtinSource(s *Shell, ctx context.Context, args []string) flow {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return s.fail(2, ".: %s", "filename argument required")
	}
	here := s.here()
	file := args[0]
	if !strings.Contains(file, "/") {
		if found, ok := s.sourceInPath(file); ok {
			file = found
		}
	}
	data, err := here.ReadFile(file)
	if err != nil {
		s.complain("%s", s.pick(".: can't open '"+args[0]+"': "+tool.Reason(err), args[0]+": "+tool.Reason(err)))
		if s.status = 1; !s.bash && !s.interactive {
			s.status = 2
			return flowExit
		}
		return flowNext
	}
	params := s.params
	if len(args) > 1 {
		s.params = args[1:]
		defer func() { s.params = params }()
	}
	s.status = s.lastStatus
	return s.evalFile(ctx, bytes.NewReader(data))
}

// sourceInPath finds a script for the dot command, which need not be executable.
func (s *Shell) sourceInPath(name string) (string, bool) {
	here := s.here()
	for _, dir := range tool.PathDirs(here) {
		file := tool.Join(dir, name)
		if fi, err := here.FS.Stat(here.Path(file)); err == nil && fi.Mode().IsRegular() {
			return file, true
		}
	}
	return "", false
}

// builtinPrintf adds -v to the program printf.
func builtinPrintf(s *Shell, ctx context.Context, args []string) flow {
	program := s.programs["printf"]
	if program == nil {
		return s.external(ctx, append([]string{"printf"}, args...))
	}
	if len(args) < 2 || args[0] != "-v" {
		return s.inside(ctx, program, append([]string{"printf"}, args...))
	}
	out, _ := s.newCapture()
	defer out.w.(*capture).holder.Release()
	sub := s.fork()
	sub.setFD(1, out)
	fl := sub.inside(ctx, program, append([]string{"printf"}, args[2:]...))
	sub.close()
	if s.status = sub.status; s.status == 0 {
		s.set(args[1], string(out.w.(*capture).bytes()))
	}
	return fl
}
