package kit

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// HostEnv is the Env of the operating system's own process: what an application runs in when it is
// the entry point of a real container.
func HostEnv() *Env {
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	groups, _ := os.Getgroups()
	vars := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	env := &Env{
		Args: os.Args, Vars: vars, Dir: dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		PID: os.Getpid(), Hostname: host, User: User{UID: os.Getuid(), GID: os.Getgid(), Groups: groups},
		FS: hostFS{}, Net: hostNetwork{}, CPU: hostCPU{}, Memory: &hostMemory{}, Procs: hostProcesses{},
		Started: time.Now(),
		Scratch: filepath.Join(os.TempDir(), "lab-"+strconv.Itoa(os.Getpid())),
	}
	env.OnNotify(sync.OnceValue(func() <-chan syscall.Signal { return hostSignals(context.Background()) }))
	return env
}

// RunHost runs a program in the Env of this process, as the main program of a real container, and returns its exit
// code. SIGTERM and SIGINT end its context unless it has taken the signals.
func RunHost(ctx context.Context, p Program, env *Env) int {
	running, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	in := make(chan os.Signal, 1)
	signal.Notify(in, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(in)
	var taken atomic.Bool
	env.OnNotify(sync.OnceValue(func() <-chan syscall.Signal {
		taken.Store(true)
		out := hostSignals(running)
		signal.Stop(in)
		return out
	}))
	go func() {
		select {
		case s := <-in:
			if !taken.Load() {
				end(Killed{Signal: s.(syscall.Signal)})
			}
		case <-ctx.Done():
		}
	}()
	return Run(ctx, p, env)
}

// hostSignals takes the signals programs handle, until ctx ends.
func hostSignals(ctx context.Context) <-chan syscall.Signal {
	in, out := make(chan os.Signal, 8), make(chan syscall.Signal)
	signal.Notify(in, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	go func() {
		defer signal.Stop(in)
		for {
			select {
			case s := <-in:
				select {
				case out <- s.(syscall.Signal):
				case <-ctx.Done():
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

type hostNetwork struct{}

func (hostNetwork) Listen(network, address string) (net.Listener, error) {
	return net.Listen(network, address)
}

func (hostNetwork) ListenPacket(network, address string) (net.PacketConn, error) {
	return net.ListenPacket(network, address)
}

func (hostNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (hostNetwork) LookupHost(ctx context.Context, host string) ([]string, error) {
	return net.DefaultResolver.LookupHost(ctx, host)
}

func (hostNetwork) Addrs() (ips []net.IP) {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() {
			ips = append(ips, n.IP)
		}
	}
	return ips
}

// hostCPU really spends the time, so that the container's real quota throttles it.
type hostCPU struct{}

func (hostCPU) Use(ctx context.Context, d time.Duration) error {
	for start := time.Now(); time.Since(start) < d; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (hostCPU) Info() CPUInfo {
	info := CPUInfo{Cores: runtime.NumCPU()}
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		info.Used = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return info
}

// hostMemory really holds the memory, so that the container's real limit kills it.
type hostMemory struct {
	mu     sync.Mutex
	chunks [][]byte
	used   int64
}

const hostPage = 4096

func (m *hostMemory) Add(n int64) error {
	const chunk = 1 << 20
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used+n < 0 {
		return errors.New("memory: freed more than was held")
	}
	m.used += n
	for int64(len(m.chunks))*chunk < m.used/chunk*chunk {
		c := make([]byte, chunk)
		for i := 0; i < len(c); i += hostPage {
			c[i] = 1 // Untouched pages would not count.
		}
		m.chunks = append(m.chunks, c)
	}
	for int64(len(m.chunks))*chunk > m.used {
		m.chunks[len(m.chunks)-1] = nil
		m.chunks = m.chunks[:len(m.chunks)-1]
	}
	return nil
}

func (m *hostMemory) Info() MemoryInfo {
	m.mu.Lock()
	used := m.used
	m.mu.Unlock()
	return hostMemoryInfo(used)
}

// hostProcesses starts and shows real processes.
type hostProcesses struct{}

type hostProcess struct {
	pid  int
	wait func() int
}

func (p hostProcess) PID() int  { return p.pid }
func (p hostProcess) Wait() int { return p.wait() }

func (hostProcesses) Start(ctx context.Context, env *Env) (Process, error) {
	file, err := env.LookPath(env.Args[0])
	if err != nil {
		return nil, &ExecError{Name: env.Args[0], Err: err}
	}
	cmd := exec.CommandContext(ctx, file, env.Args[1:]...)
	cmd.Args[0] = env.Args[0]
	cmd.Env, cmd.Dir = env.Environ(), env.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = env.Stdin, env.Stdout, env.Stderr
	// What ended the program that started it ends it too: a database that is told to stop closes its files.
	cmd.Cancel = func() error {
		if killed, ok := errors.AsType[Killed](context.Cause(ctx)); ok {
			return cmd.Process.Signal(killed.Signal)
		}
		return cmd.Process.Kill()
	}
	if err := cmd.Start(); err != nil {
		return nil, &ExecError{Name: env.Args[0], Err: err}
	}
	return hostProcess{cmd.Process.Pid, sync.OnceValue(func() int { return hostExitCode(cmd.Wait()) })}, nil
}

func hostExitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return ExitSignal + int(s.Signal())
		}
		return exit.ExitCode()
	}
	if err != nil {
		return 1
	}
	return 0
}

func (hostProcesses) List() []ProcessInfo { return hostList() }

func (hostProcesses) Signal(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }
