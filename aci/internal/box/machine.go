package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/aci/tool"
	"github.com/aiopslab/aiopslab/internal/socketpair"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// machine is the agent's machine, in the shell's process.
type machine struct {
	line   *line
	prefix string // of the agent's paths, as processes see them
	fs     *rootFS
	procs  *table
	limits limits
	spools atomic.Int64
	shell  *shell.Session

	preferences Preferences // of kubectl; nil for none
}

// Serve is the shell's process, whose kubectl has preferences. It returns when the environment has gone.
func Serve(w *tool.World, p Preferences) int {
	l, err := newLine(w.Line)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var m message
	if _, err := l.receive(&m); err != nil || m.Set == nil {
		return 1
	}
	machine, err := newMachine(w, l, m.Set)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	machine.preferences = p
	debug.FreeOSMemory() // Most of what starting took is not needed again, and there may be many of us.
	machine.serve()
	return 0
}

func newMachine(w *tool.World, l *line, s *setting) (*machine, error) {
	root, err := os.OpenRoot(w.Root)
	if err != nil {
		return nil, err
	}
	m := &machine{line: l, limits: s.Limits}
	if !w.OwnRoot {
		m.prefix = w.Root
	}
	programs := shell.Workstation()
	for _, name := range toolNames {
		programs[name] = m.child(name)
	}
	programs["sudo"] = sudo
	names := slices.Collect(maps.Keys(programs))
	for name := range absent {
		programs[name] = unreachable
	}
	for name := range refused {
		programs[name] = unreachable
	}
	m.fs = newRootFS(root, slices.DeleteFunc(names, func(n string) bool {
		return absent[n] != "" || refused[n] != ""
	}), s.Limits.Disk)
	m.procs = newTable(programs, s.Limits.Processes)
	m.procs.judge = m.apply
	m.shell = shell.NewSession(&kit.Env{
		Args: []string{"bash"}, Dir: home, PID: shellPID, Hostname: hostname,
		Vars: map[string]string{
			"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "KUBECONFIG": kubeconfigFile,
			"USER": "root", "SHELL": "/bin/bash", "TERM": "dumb", "LANG": "C.UTF-8",
		},
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		FS: m.fs, Net: &cluster{dial: m.dial, server: s.DNS, search: s.Search}, CPU: processor{}, Memory: memory{},
		Procs: m.procs,
	})
	return m, nil
}

// serve runs commands until the environment has gone.
func (m *machine) serve() {
	var (
		running sync.WaitGroup
		stop    = func() {}
		current *clock // of the command
	)
	for {
		var next message
		files, err := m.line.receive(&next)
		if err != nil {
			return
		}
		switch {
		case next.Stop:
			stop()
		case next.Hold && current != nil:
			current.hold()
		case next.Release && current != nil:
			current.release()
		case next.Run != nil && len(files) == 1:
			running.Wait()
			ctx, cancel := context.WithCancelCause(context.Background())
			stop = func() { cancel(errTooLarge) }
			clock := startClock(ctx, time.Duration(next.Run.Timeout))
			current = clock
			running.Go(func() {
				r := m.run(clock, next.Run, files[0])
				clock.stop()
				cancel(context.Canceled)
				_ = m.line.send(&message{Done: r})
			})
			continue
		}
		closeAll(files)
	}
}

// run runs a command. What it leaves in the background ends with it.
func (m *machine) run(ctx context.Context, o *order, to *os.File) *report {
	ctx, stop := context.WithCancelCause(ctx)
	watched := watchMemory(ctx, m.limits.Memory, func() { stop(errTooLarge) })
	out := &outlet{file: to}
	r := &report{Status: m.shell.Run(ctx, string(o.Command), strings.NewReader(""), out, out)}
	why := context.Cause(ctx)
	r.TimedOut, r.TooLarge = errors.Is(why, context.DeadlineExceeded), errors.Is(why, errTooLarge)
	stop(context.Canceled)
	<-watched
	m.procs.Stop(endPatience)
	out.close()
	r.Dir = []byte(m.shell.Dir())
	if r.TooLarge {
		debug.FreeOSMemory()
	}
	return r
}

// outlet is where a command's output goes. It takes nothing more once it is closed: what a command
// left behind may go on for a moment.
type outlet struct {
	file   *os.File
	closed atomic.Bool
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.closed.Load() {
		return len(p), nil
	}
	n, err := o.file.Write(p)
	if o.closed.Load() {
		return len(p), nil
	}
	return n, err
}

func (o *outlet) close() {
	o.closed.Store(true)
	o.file.Close()
}

// dial has the environment connect to something in the cluster.
func (m *machine) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: network, Addr: address{network, addr}, Err: err}
	}
	here, there, err := socketpair.New()
	if err != nil {
		return nil, fail(err)
	}
	defer there.Close()
	carrier, err := unixConn(here)
	if err != nil {
		return nil, fail(err)
	}
	s := newStream(carrier)
	if err := m.line.send(&message{Dial: &dialRequest{network, addr}}, there); err != nil {
		carrier.Close()
		return nil, fail(err)
	}
	there.Close() // So that its other end is the only one.
	stop := context.AfterFunc(ctx, func() { carrier.Close() })
	a, err := s.receiveAnswer()
	switch {
	case !stop():
		err = context.Cause(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = os.ErrDeadlineExceeded
		}
	case err == nil && a.Failure != nil:
		err = a.Failure.err()
	}
	if err != nil {
		carrier.Close()
		return nil, fail(err)
	}
	s.network, s.local, s.remote = network, address{network, a.Local}, address{network, a.Remote}
	if s.packets() {
		return packetStream{s}, nil
	}
	return s, nil
}

// sudo runs a command as who one is anyway.
func sudo(ctx context.Context, env *kit.Env) error {
	args := env.Args[1:]
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.Contains(args[0], "=")) {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	p, err := env.Procs.Start(ctx, env.Child(args...))
	if exec, ok := errors.AsType[*kit.ExecError](err); ok {
		fmt.Fprintf(env.Stderr, "sudo: %s: command not found\n", args[0])
		return kit.Exit(exec.ExitCode())
	}
	if err != nil {
		return err
	}
	return kit.Exit(p.Wait())
}

// unreachable is a program that the policy refuses.
func unreachable(context.Context, *kit.Env) error { return kit.Exit(kit.ExitNotFound) }

// processor and memory are those of a machine on which nothing is scarce.
type (
	processor struct{}
	memory    struct{}
)

func (processor) Use(ctx context.Context, _ time.Duration) error { return ctx.Err() }
func (processor) Info() kit.CPUInfo                              { return kit.CPUInfo{Cores: 2} }
func (memory) Add(int64) error                                   { return nil }
func (memory) Info() kit.MemoryInfo                              { return kit.MemoryInfo{Total: 4 << 30} }
