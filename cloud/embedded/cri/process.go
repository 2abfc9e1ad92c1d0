package cri

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	maxInterp = 4 // how many "#!" lines may lead to each other

	// maxProcesses bounds the programs of a container, as pids.max does. All of them are goroutines of
	// one process, and a fork bomb in one container must not be one in all.
	maxProcesses = 512
)

// processes are the programs of a container. It implements kit.Processes, which shows those of the
// container's PID namespace.
type processes struct {
	container *Container
	space     *pidSpace

	mu    sync.Mutex
	own   map[*kit.Running]bool // of this container
	more  int                   // tasks that are not listed
	first kit.IDs               // of the main program, once it has some
}

var (
	_ kit.Forker   = (*processes)(nil)
	_ kit.Tasks    = (*processes)(nil)
	_ kit.Confiner = (*processes)(nil)
)

// Confine implements kit.Confiner: all containers are in one process.
func (*processes) Confine() bool { return true }

// What execve(2) takes.
const (
	maxArgument  = 128 << 10 // bytes of one
	maxArguments = 2 << 20   // bytes of all, variables included
	perArgument  = 8
)

// tooLong reports whether a program's arguments and variables are more than a kernel takes.
func tooLong(env *kit.Env) bool {
	total := 0
	for _, a := range env.Args {
		if total += len(a) + 1 + perArgument; len(a) >= maxArgument {
			return true
		}
	}
	for name, value := range env.Vars {
		if total += len(name) + len(value) + 2 + perArgument; len(name)+len(value)+1 >= maxArgument {
			return true
		}
	}
	return total > maxArguments
}

func newProcesses(c *Container, space *pidSpace) *processes {
	return &processes{container: c, space: space, own: map[*kit.Running]bool{}}
}

// Start implements kit.Processes.
func (ps *processes) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	prog, err := ps.lookup(env)
	if err != nil {
		return nil, err
	}
	return ps.Fork(ctx, env, prog)
}

// Fork implements kit.Forker.
func (ps *processes) Fork(ctx context.Context, env *kit.Env, p kit.Program) (kit.Process, error) {
	if ps.full() {
		return nil, os.NewSyscallError("fork", syscall.EAGAIN)
	}
	return ps.run(ctx, env, p), nil
}

// full reports whether there is no place for another program.
func (ps *processes) full() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.own)+ps.more >= maxProcesses
}

// count returns how many programs of the container run.
func (ps *processes) count() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.own)
}

// Task implements kit.Tasks.
func (ps *processes) Task() (done func(), err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.own)+ps.more >= maxProcesses {
		return nil, os.NewSyscallError("fork", syscall.EAGAIN)
	}
	ps.more++
	return func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		ps.more--
	}, nil
}

// run starts a program, however many there are: one that is executed from outside, so that somebody
// can look. It ends with ctx, and with the container.
func (ps *processes) run(ctx context.Context, env *kit.Env, prog kit.Program) *kit.Running {
	return ps.begin(ctx, &kit.Running{Owner: place{ps.container, false}}, env, prog, nil)
}

// runFirst starts the main program, in place of the one before if there was one.
func (ps *processes) runFirst(ctx context.Context, env *kit.Env, prog kit.Program, started time.Time) *kit.Running {
	ps.mu.Lock()
	first := ps.first
	ps.mu.Unlock()
	p := &kit.Running{Owner: place{ps.container, true}, Info: kit.ProcessInfo{Started: started}}
	ps.begin(ctx, p, env, prog, first)
	ps.mu.Lock()
	ps.first = p.IDs()
	ps.mu.Unlock()
	return p
}

func (ps *processes) begin(ctx context.Context, p *kit.Running, env *kit.Env, prog kit.Program,
	ids kit.IDs,
) *kit.Running {
	if p.Parent, _ = ps.space.Get(env.PID); p.Parent == nil || placeOf(p.Parent).container != ps.container {
		p.Parent = ps.container.sandbox.shim
	}
	ps.mu.Lock()
	ps.own[p] = true
	ps.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ps.container.ctx, func() { cancel(context.Cause(ps.container.ctx)) })
	ps.space.Begin(ctx, p, ids, env, prog, func(code int) int {
		killed, ok := errors.AsType[kit.Killed](context.Cause(ps.container.ctx))
		if ok && killed.Signal == syscall.SIGKILL { // Whatever ended it first.
			code = kit.ExitSignal + int(syscall.SIGKILL)
		}
		stop()
		cancel(nil)
		ps.mu.Lock()
		delete(ps.own, p)
		ps.mu.Unlock()
		return code
	})
	return p
}

// killTree ends a program and those it started.
func (ps *processes) killTree(root *kit.Running) {
	mine := func(p *kit.Running) bool { return placeOf(p).container == ps.container }
	for _, p := range ps.space.Family(root, mine) {
		p.Signal(syscall.SIGKILL)
	}
}

// List implements kit.Processes.
func (ps *processes) List() []kit.ProcessInfo { return ps.space.list() }

// Signal implements kit.Processes.
func (ps *processes) Signal(pid int, sig syscall.Signal) error {
	return ps.space.SignalAs(ps.container.user, pid, sig)
}

// lookup finds the program env.Args[0] names, as execvp does, and follows "#!" lines, which change
// the arguments.
func (ps *processes) lookup(env *kit.Env) (kit.Program, error) {
	if len(env.Args) == 0 {
		return nil, &kit.ExecError{Err: syscall.ENOENT}
	}
	name := env.Args[0]
	if tooLong(env) {
		return nil, &kit.ExecError{Name: name, Err: syscall.E2BIG}
	}
	file, err := env.LookPath(name)
	if err != nil {
		return nil, &kit.ExecError{Name: name, Err: err}
	}
	for range maxInterp {
		content, err := (&kit.Env{FS: env.FS, Dir: "/"}).ReadFile(file)
		if err != nil {
			return nil, &kit.ExecError{Name: name, Err: errnoOf(err)}
		}
		if p, ok := ps.container.runtime.cfg.Images.program(content); ok {
			return p, nil
		}
		interp, ok := strings.CutPrefix(string(content[:min(len(content), 256)]), "#!")
		if !ok {
			return nil, &kit.ExecError{Name: name, Err: syscall.ENOEXEC}
		}
		line, _, _ := strings.Cut(interp, "\n")
		interp, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		args := []string{interp}
		if arg = strings.TrimSpace(arg); arg != "" {
			args = append(args, arg)
		}
		env.Args = append(append(args, file), env.Args[1:]...)
		if file, err = env.LookPath(env.Path(interp)); err != nil {
			return nil, &kit.ExecError{Name: name, Err: err}
		}
	}
	return nil, &kit.ExecError{Name: name, Err: syscall.ELOOP}
}

// errnoOf strips an error of its path.
func errnoOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

func filemode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	if m&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// nothing is the input of a program that has none.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
