package cri

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	maxInterp   = 4 // how many "#!" lines may lead to each other
	signalQueue = 8

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
	own   map[*process]bool // of this container
	more  int               // tasks that are not listed
	first map[*pidSpace]int // the IDs of the main program, once it has some
}

// process is a running program.
type process struct {
	info      kit.ProcessInfo // besides IDs
	environ   []string
	container *Container // nil if it belongs to none
	main      bool       // it is the container's main program
	cancel    context.CancelCauseFunc
	done      chan struct{}
	code      int // valid once done is closed

	space  *pidSpace         // in which it was started
	ids    map[*pidSpace]int // in it and in those around it
	parent *process          // protected by the space's mutex

	mu      sync.Mutex
	signals chan syscall.Signal // nil until the program asked for signals
}

func (p *process) PID() int { return p.ids[p.space] }

func (p *process) Wait() int {
	<-p.done
	return p.code
}

// signal delivers a signal: to the program if it asked for signals, else it has its default effect.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	ch := p.signals
	p.mu.Unlock()
	switch {
	case sig == 0:
	case ch != nil && sig != syscall.SIGKILL:
		select {
		case ch <- sig:
		default:
		}
	case sig == syscall.SIGCHLD, sig == syscall.SIGWINCH, sig == syscall.SIGURG, sig == syscall.SIGCONT:
	default:
		p.cancel(kit.Killed{Signal: sig})
	}
}

func (p *process) notify() <-chan syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.signals == nil {
		p.signals = make(chan syscall.Signal, signalQueue)
	}
	return p.signals
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
	return &processes{container: c, space: space, own: map[*process]bool{}}
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
func (ps *processes) run(ctx context.Context, env *kit.Env, prog kit.Program) *process {
	return ps.begin(ctx, &process{}, env, prog, time.Now(), nil)
}

// runFirst starts the main program, in place of the one before if there was one.
func (ps *processes) runFirst(ctx context.Context, env *kit.Env, prog kit.Program, started time.Time) *process {
	ps.mu.Lock()
	first := ps.first
	ps.mu.Unlock()
	p := ps.begin(ctx, &process{main: true}, env, prog, started, first)
	ps.mu.Lock()
	ps.first = p.ids
	ps.mu.Unlock()
	return p
}

func (ps *processes) begin(ctx context.Context, p *process, env *kit.Env, prog kit.Program, started time.Time,
	ids map[*pidSpace]int,
) *process {
	ctx, p.cancel = context.WithCancelCause(ctx)
	p.container, p.done, p.environ = ps.container, make(chan struct{}), env.Environ()
	p.info = kit.ProcessInfo{Args: slices.Clone(env.Args), User: env.User, Started: started}
	if p.parent = ps.space.get(env.PID); p.parent == nil || p.parent.container != ps.container {
		p.parent = ps.container.sandbox.shim
	}
	ps.space.enter(p, ids)
	ps.mu.Lock()
	ps.own[p] = true
	ps.mu.Unlock()
	env.PID = p.PID()
	env.OnNotify(p.notify)
	stop := context.AfterFunc(ps.container.ctx, func() { p.cancel(context.Cause(ps.container.ctx)) })
	go func() {
		code := kit.Run(ctx, prog, env)
		for _, c := range []context.Context{ctx, ps.container.ctx} { // Whatever it says of itself.
			if killed, ok := errors.AsType[kit.Killed](context.Cause(c)); ok && killed.Signal == syscall.SIGKILL {
				code = kit.ExitSignal + int(syscall.SIGKILL)
			}
		}
		stop()
		p.cancel(nil)
		ps.space.leave(p)
		ps.mu.Lock()
		delete(ps.own, p)
		ps.mu.Unlock()
		p.code = code
		close(p.done)
	}()
	return p
}

// killTree ends a program and those it started.
func (ps *processes) killTree(root *process) {
	family := map[*process]bool{root: true}
	ps.space.mu.Lock()
	for grown := true; grown; {
		grown = false
		for _, p := range ps.space.all {
			if p.container == ps.container && family[p.parent] && !family[p] {
				family[p], grown = true, true
			}
		}
	}
	ps.space.mu.Unlock()
	for p := range family {
		p.signal(syscall.SIGKILL)
	}
}

// List implements kit.Processes.
func (ps *processes) List() []kit.ProcessInfo { return ps.space.list() }

// Signal implements kit.Processes.
func (ps *processes) Signal(pid int, sig syscall.Signal) error {
	return ps.space.signal(pid, sig, ps.container.user)
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
