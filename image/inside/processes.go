package inside

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	maxInterp    = 4   // how many "#!" lines may lead to each other
	maxProcesses = 512 // how many programs of the image a process runs at a time
	maxLine      = 256 // bytes of a "#!" line
)

// processes are the programs that a process of a container starts and sees. Those of the image are run in the process
// itself, as they are in the embedded cloud: a shell and its commands share their input, which a real process could
// only be sent a copy of, and a command costs nothing to start. What is not of the image is a real process. All that
// runs in the process ends with it.
type processes struct {
	image *kit.Image
	host  kit.Processes
	table *kit.Table

	mu   sync.Mutex
	last int // the ID that was given last
}

var _ kit.Forker = (*processes)(nil)

func newProcesses(env *kit.Env, image *kit.Image) *processes {
	return &processes{image: image, host: env.Procs, table: kit.NewTable(env.PID + 1), last: env.PID}
}

// Start implements kit.Processes.
func (ps *processes) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	p, err := ps.lookup(env)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return ps.host.Start(ctx, env)
	}
	return ps.Fork(ctx, env, p)
}

// Fork implements kit.Forker.
func (ps *processes) Fork(ctx context.Context, env *kit.Env, p kit.Program) (kit.Process, error) {
	if len(ps.table.All()) >= maxProcesses {
		return nil, os.NewSyscallError("fork", syscall.EAGAIN)
	}
	r := &kit.Running{Info: kit.ProcessInfo{Parent: env.PID}}
	r.Parent, _ = ps.table.Get(env.PID)
	ps.table.Begin(ctx, r, kit.IDs{ps.table: ps.next(env)}, env, p, nil)
	return r, nil
}

// next is an ID that no process of the container has.
func (ps *processes) next(env *kit.Env) int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for {
		ps.last++
		if _, err := env.FS.Stat("/proc/" + strconv.Itoa(ps.last)); err != nil {
			return ps.last
		}
	}
}

// lookup finds the program of the image that env.Args[0] names and follows "#!" lines, which change the arguments. It
// is nil if the file is something else.
func (ps *processes) lookup(env *kit.Env) (kit.Program, error) {
	if len(env.Args) == 0 {
		return nil, &kit.ExecError{Err: syscall.ENOENT}
	}
	name := env.Args[0]
	file, err := env.LookPath(name)
	if err != nil {
		return nil, &kit.ExecError{Name: name, Err: err}
	}
	args := env.Args
	for range maxInterp {
		if p := linked(env, ps.image, file); p != nil {
			env.Args = args
			return p, nil
		}
		interp, arg := interpreter(env, file)
		if interp == "" {
			return nil, nil
		}
		start := []string{interp}
		if arg != "" {
			start = append(start, arg)
		}
		args = slices.Concat(start, []string{file}, args[1:])
		if file, err = env.LookPath(env.Path(interp)); err != nil {
			return nil, &kit.ExecError{Name: name, Err: err}
		}
	}
	return nil, &kit.ExecError{Name: name, Err: syscall.ELOOP}
}

// interpreter is what the "#!" line of a file says; nothing if it has none.
func interpreter(env *kit.Env, file string) (interp, arg string) {
	f, err := env.FS.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	start := make([]byte, maxLine)
	n, _ := f.Read(start)
	line, ok := strings.CutPrefix(string(start[:n]), "#!")
	if !ok {
		return "", ""
	}
	line, _, _ = strings.Cut(line, "\n")
	interp, arg, _ = strings.Cut(strings.TrimSpace(line), " ")
	return interp, strings.TrimSpace(arg)
}

// List implements kit.Processes.
func (ps *processes) List() []kit.ProcessInfo {
	list := append(ps.host.List(), ps.table.List()...)
	slices.SortStableFunc(list, func(a, b kit.ProcessInfo) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// Signal implements kit.Processes.
func (ps *processes) Signal(pid int, sig syscall.Signal) error {
	if p, _ := ps.table.Get(pid); p != nil {
		p.Signal(sig)
		return nil
	}
	return ps.host.Signal(pid, sig)
}
