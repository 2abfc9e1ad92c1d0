package interp

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// child is the world of a command.
func (s *Shell) child(args []string) *kit.Env {
	c := s.env.Child(args...)
	c.Vars, c.Dir = s.exported(), s.dir
	c.Stdin, c.Stdout, c.Stderr = s.fd(0), s.fd(1), s.fd(2)
	if s.fd(0).Terminal() == nil || s.fd(1).Terminal() == nil {
		c.Terminal = nil
	}
	c.FS = s.childFS()
	return c
}

// inside runs a program without a process of its own.
func (s *Shell) inside(ctx context.Context, p kit.Program, args []string) flow {
	env := s.child(args)
	env.PID = s.env.PID
	s.status = kit.Run(ctx, p, env)
	if s.status == brokenPipe {
		return flowExit // The signal meant the shell.
	}
	return s.died(ctx)
}

// external runs a program in the foreground.
func (s *Shell) external(ctx context.Context, args []string) flow {
	p, sub := s.start(ctx, args)
	if p == nil {
		if sub != nil {
			return s.runScript(ctx, sub, args)
		}
		return flowNext
	}
	return s.await(ctx, p)
}

// await waits for a program in the foreground.
func (s *Shell) await(ctx context.Context, p kit.Process) flow {
	s.fg.add(p.PID())
	defer s.fg.remove(p.PID())
	done := make(chan int, 1)
	go func() { done <- p.Wait() }()
	select {
	case s.status = <-done:
		return s.interrupted(s.status)
	case <-ctx.Done():
		s.status = killedStatus(ctx)
		return flowExit
	}
}

// script is a file that the shell itself has to run.
type script struct {
	path string
	text []byte
}

// start starts a program. If there is none, but a script without #!, that is returned for the shell
// to run. If there is neither, it has been reported, and the status is set.
func (s *Shell) start(ctx context.Context, args []string) (kit.Process, *script) {
	if s.meter.Spend(ctx, spawnCost) != nil {
		s.status = killedStatus(ctx)
		return nil, nil
	}
	p, err := s.env.Procs.Start(ctx, s.child(args))
	if err == nil {
		return p, nil
	}
	if errors.Is(err, syscall.EAGAIN) {
		s.cannotFork()
		return nil, nil
	}
	exec, ok := errors.AsType[*kit.ExecError](err)
	if !ok {
		s.fail(kit.ExitNotRunnable, "%s: %v", args[0], err)
		return nil, nil
	}
	here := s.here()
	if file, found := tool.LookPath(here, args[0]); found {
		text, err := here.ReadFile(file)
		if interpreter := shebang(text); err == nil && interpreter != nil {
			return s.startInterpreter(ctx, interpreter, file, args)
		}
		if err == nil && !bytes.ContainsRune(text[:min(len(text), 256)], 0) {
			return nil, &script{file, text}
		}
	}
	s.notRunnable(args[0], exec)
	return nil, nil
}

// shebang returns the interpreter that the first line of a script names, and its argument.
func shebang(text []byte) []string {
	line, _, _ := strings.Cut(string(text[:min(len(text), 256)]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return nil
	}
	name, arg, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if arg = strings.TrimSpace(arg); arg != "" {
		return []string{name, arg}
	}
	return []string{name}
}

func (s *Shell) startInterpreter(
	ctx context.Context, interpreter []string, file string, args []string,
) (kit.Process, *script) {
	full := append(append(interpreter, file), args[1:]...)
	p, err := s.env.Procs.Start(ctx, s.child(full))
	if err != nil {
		if s.bash {
			s.fail(kit.ExitNotRunnable, "%s: %s: bad interpreter: No such file or directory", args[0], interpreter[0])
		} else {
			s.fail(kit.ExitNotFound, "%s: not found", args[0])
		}
		return nil, nil
	}
	return p, nil
}

// notRunnable says why a command was not run.
func (s *Shell) notRunnable(name string, err *kit.ExecError) {
	here := s.here()
	fi, statErr := here.FS.Stat(here.Path(name))
	slash := strings.Contains(name, "/")
	switch {
	case slash && statErr == nil && fi.IsDir():
		s.fail(kit.ExitNotRunnable, "%s: %s", name, s.pick("Permission denied", "Is a directory"))
	case errors.Is(err, syscall.EACCES):
		s.fail(kit.ExitNotRunnable, "%s: Permission denied", name)
	case err.ExitCode() != kit.ExitNotFound:
		s.fail(err.ExitCode(), "%s: %s", name, tool.Reason(err.Err))
	case slash:
		s.fail(kit.ExitNotFound, "%s: %s", name, s.pick("not found", "No such file or directory"))
	default:
		s.fail(kit.ExitNotFound, "%s: %s", name, s.pick("not found", "command not found"))
	}
}

// runScript runs a script that does not name its interpreter in a copy of the shell.
func (s *Shell) runScript(ctx context.Context, sc *script, args []string) flow {
	sub := s.fork()
	sub.name, sub.params = sc.path, args[1:]
	sub.opts.command = false
	sub.evalFile(ctx, bytes.NewReader(sc.text))
	sub.finish(ctx)
	s.status = sub.status
	return s.died(ctx)
}

// foreground are the programs the user waits for, whom Ctrl-C is for. It is shared by all copies of
// a shell.
type foreground struct {
	mu   sync.Mutex
	pids map[int]int // with how often each was added
	hit  bool        // Ctrl-C was pressed
}

func (f *foreground) add(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pids == nil {
		f.pids = map[int]int{}
	}
	f.pids[pid]++
}

func (f *foreground) remove(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pids[pid]--; f.pids[pid] == 0 {
		delete(f.pids, pid)
	}
}

// interrupt sends SIGINT to all programs in the foreground. It reports false if there is none, or
// one that cannot be signalled.
func (f *foreground) interrupt(procs kit.Processes) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hit = true
	reached := len(f.pids) > 0
	for pid := range f.pids {
		if procs.Signal(pid, syscall.SIGINT) != nil {
			reached = false
		}
	}
	return reached
}

// interrupted gives up the line an interactive shell is at, if Ctrl-C was what a program ended of.
func (s *Shell) interrupted(status int) flow {
	if !s.interactive {
		return flowNext
	}
	s.fg.mu.Lock()
	defer s.fg.mu.Unlock()
	if s.fg.hit && status == kit.ExitSignal+int(syscall.SIGINT) {
		return flowExit
	}
	return flowNext
}
