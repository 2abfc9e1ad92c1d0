package interp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
)

// jobTable are the background jobs of a shell.
type jobTable struct {
	list []*job
	last int // the process ID of the latest one; $!
}

// job is a command in the background.
type job struct {
	number int // as in %1
	pid    int
	text   string
	signal func(syscall.Signal) error
	done   chan struct{}
	status int // once done is closed
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// addJob notes a job whose result wait returns.
func (s *Shell) addJob(pid int, text string, signal func(syscall.Signal) error, wait func() int) *job {
	number := 1
	for _, j := range s.jobs.list {
		number = max(number, j.number+1)
	}
	j := &job{number: number, pid: pid, text: text, signal: signal, done: make(chan struct{})}
	s.jobs.list = append(s.jobs.list, j)
	s.jobs.last = pid
	go func() {
		j.status = wait()
		close(j.done)
	}()
	return j
}

// remove forgets a job that has been waited for.
func (t *jobTable) remove(j *job) {
	for i, x := range t.list {
		if x == j {
			t.list = append(t.list[:i:i], t.list[i+1:]...)
			return
		}
	}
}

// background starts a command and does not wait for it.
func (s *Shell) background(ctx context.Context, st *syntax.Stmt) {
	copied := *st
	copied.Background, copied.Disown = false, false
	text := sourceOf(&copied)
	sub := s.fork()
	if !s.interactive {
		sub.setFD(0, newFile(strings.NewReader(""), nil, nil))
	}
	s.status = 0
	if j := s.backgroundProgram(ctx, sub, &copied, text); j != nil {
		s.announce(j)
		return
	}
	s.announce(s.backgroundCopy(sub, &copied, text))
}

// jobContext is the context of a job. A job outlives the shell, whose own context ends when it has
// returned; but it does not outlive the shell being killed, or whatever holds both.
func (s *Shell) jobContext() context.Context {
	life, returned := s.life, s.returned
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(life))
	context.AfterFunc(life, func() {
		if cause := context.Cause(life); !returned.Load() || cause != context.Canceled {
			cancel(cause)
		}
	})
	return ctx
}

// announce tells an interactive user about a new job.
func (s *Shell) announce(j *job) {
	if s.interactive && s.bash {
		s.note("[%d] %d\n", j.number, j.pid)
	}
}

// backgroundProgram starts a command that is a single program, so that the job has the process ID of
// the program itself. It returns nil, having done nothing, if it is not.
func (s *Shell) backgroundProgram(ctx context.Context, sub *Shell, st *syntax.Stmt, text string) *job {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Negated || len(c.Args) == 0 || len(c.Assigns) > 0 {
		return nil
	}
	name := c.Args[0].Lit()
	if name == "" || s.funcs[name] != nil || builtins[name] != nil || s.programs[name] != nil || s.aliases[name] != "" {
		return nil
	}
	status := 0
	var p kit.Process
	var sc *script
	undo, ok := sub.redirect(ctx, st.Redirs)
	if ok {
		args, err := sub.fields(ctx, c.Args...)
		if err != nil {
			sub.badExpansion(err)
		} else {
			sub.trace(nil, args)
			p, sc = sub.start(s.jobContext(), args)
		}
	}
	status = sub.status
	if sc != nil {
		undo(false)
		return nil
	}
	undo(true) // What is redirected is not held any longer.
	if p == nil {
		sub.close()
		gone := func(syscall.Signal) error { return syscall.ESRCH }
		return s.addJob(nextLocalPID(), text, gone, func() int { return status })
	}
	pid := p.PID()
	signal := func(sig syscall.Signal) error { return s.env.Procs.Signal(pid, sig) }
	return s.addJob(pid, text, signal, func() int {
		code := p.Wait()
		sub.close()
		return code
	})
}

// forkFailed is the status of a command that no process could be had for, as bash has it.
const forkFailed = 254

// backgroundCopy runs a command in a copy of the shell, in a process of its own if there can be one.
func (s *Shell) backgroundCopy(sub *Shell, st *syntax.Stmt, text string) *job {
	program := func(ctx context.Context, env *kit.Env) error {
		sub.env, sub.process = env, true
		return sub.asProcess(ctx, func(ctx context.Context) { sub.lastStmt(ctx, st) })
	}
	env := s.env.Child(s.env.Args...)
	env.Vars, env.Dir = s.exported(), s.dir
	env.Stdin, env.Stdout, env.Stderr = sub.fd(0), sub.fd(1), sub.fd(2)
	if forker, ok := s.env.Procs.(kit.Forker); ok {
		p, err := forker.Fork(s.jobContext(), env, program)
		switch {
		case err == nil:
			signal := func(sig syscall.Signal) error { return s.env.Procs.Signal(p.PID(), sig) }
			return s.addJob(p.PID(), text, signal, p.Wait)
		case errors.Is(err, syscall.EAGAIN): // There are too many processes.
			sub.close()
			s.complain("fork: retry: Resource temporarily unavailable")
			gone := func(syscall.Signal) error { return syscall.ESRCH }
			return s.addJob(nextLocalPID(), text, gone, func() int { return forkFailed })
		}
	}
	l := newLocalProcess(s.jobContext(), env)
	return s.addJob(env.PID, text, l.signal, func() int {
		code := kit.Run(l.ctx, program, env)
		l.cancel(errors.New("ended"))
		return code
	})
}

// sourceOf is the text of a command, for jobs.
func sourceOf(st *syntax.Stmt) string {
	var b strings.Builder
	if syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, st) != nil {
		return "?"
	}
	return b.String()
}

// localPIDs are the process IDs of jobs that the container's process table cannot hold. They begin
// beyond those the kernel gives by default.
var localPIDs atomic.Int64

func nextLocalPID() int { return 1<<22 + int(localPIDs.Add(1)) }

// localProcess is a process only the shell that started it knows.
type localProcess struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	signals chan syscall.Signal // nil until the program takes them
}

func newLocalProcess(ctx context.Context, env *kit.Env) *localProcess {
	l := &localProcess{}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	env.PID = nextLocalPID()
	env.OnNotify(func() <-chan syscall.Signal {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.signals == nil {
			l.signals = make(chan syscall.Signal, 16)
		}
		return l.signals
	})
	return l
}

func (l *localProcess) signal(sig syscall.Signal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
		return syscall.ESRCH
	case sig == 0 || l.signals == nil && harmless(sig):
	case l.signals != nil && sig != syscall.SIGKILL:
		select {
		case l.signals <- sig:
		default: // More than can wait are lost, as the kernel merges them.
		}
	default:
		l.cancel(kit.Killed{Signal: sig})
	}
	return nil
}

// findJob finds a job by %1, %%, %+, %- , %name or a process ID.
func (s *Shell) findJob(spec string) (*job, error) {
	name, isJob := strings.CutPrefix(spec, "%")
	if !isJob {
		pid, err := strconv.Atoi(spec)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", spec, s.pick("bad number", "not a pid or valid job spec"))
		}
		for _, j := range s.jobs.list {
			if j.pid == pid {
				return j, nil
			}
		}
		return nil, fmt.Errorf("pid %d is not a child of this shell", pid)
	}
	number, err := strconv.Atoi(name)
	for i := len(s.jobs.list) - 1; i >= 0; i-- {
		j := s.jobs.list[i]
		current := name == "" || name == "%" || name == "+"
		previous := name == "-" && (i == len(s.jobs.list)-2 || len(s.jobs.list) == 1)
		named := err != nil && name != "-" && strings.HasPrefix(j.text, name)
		if current || previous || named || err == nil && j.number == number {
			return j, nil
		}
	}
	return nil, fmt.Errorf("%s: no such job", spec)
}
