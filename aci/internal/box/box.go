package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/aci/tool"
)

// Options are what the agent's machine is made of.
type Options struct {
	Dir        string // the scratch directory, on the host
	Dial       func(ctx context.Context, network, address string) (net.Conn, error)
	DNS        string   // IP address of the cluster's DNS
	Search     []string // domains that short names are looked for in
	Kubeconfig []byte
	API        string   // host:port that kubectl and helm may connect to
	Self       []string // command line that runs a confined program: ShellName, kubectl or helm
}

// ShellName is the program that Serve is.
const ShellName = "shell"

const (
	home           = "/root"
	kubeconfigFile = home + "/.kube/config"
	hostname       = "ops"
	shellPID       = 50
	endPatience    = 5 * time.Second // for what a call left running
	shellPatience  = 15 * time.Second
)

// Home is where the agent starts, and where files for it are put.
const Home = home

// Box is the agent's machine. It is safe for concurrent use; commands run one at a time.
type Box struct {
	dir     string
	self    []string
	port    int
	dns     string
	search  []string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	root    *os.Root
	ownRoot bool // of its processes
	limits  limits

	mu     sync.Mutex
	shell  *host
	failed error  // why there is no shell
	at     string // the shell's working directory

	clock atomic.Pointer[timing] // of the command that runs, or nil
}

// New sets the machine up in its directory and starts its shell.
func New(o Options) (*Box, error) { return newBox(o, standard, tool.OwnRoot()) }

func newBox(o Options, l limits, ownRoot bool) (*Box, error) {
	dir, err := filepath.EvalSymlinks(o.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	_, port, err := net.SplitHostPort(o.API)
	if err != nil {
		return nil, fmt.Errorf("address of the API: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("address of the API: %s is no port", port)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	b := &Box{
		dir: dir, self: o.Self, port: number, dns: o.DNS, search: o.Search, dial: o.Dial,
		root: root, ownRoot: ownRoot, limits: l,
	}
	if err = b.fill(&o); err == nil {
		b.startShell()
		err = b.failed
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return b, nil
}

// place is where a process of the machine may go.
func (b *Box) place(readOnly bool) tool.Place {
	return tool.Place{Root: b.dir, Port: b.port, OwnRoot: b.ownRoot, ReadOnly: readOnly}
}

// startShell starts a shell. It does not wait until it is ready.
func (b *Box) startShell() {
	b.at = home
	if b.shell, b.failed = newHost(b); b.failed != nil {
		b.failed = fmt.Errorf("the shell cannot be started: %w", b.failed)
	}
}

// fill writes the files the machine starts with.
func (b *Box) fill(o *Options) error {
	resolv := fmt.Sprintf("nameserver %s\nsearch %s\noptions ndots:5\n", o.DNS, strings.Join(o.Search, " "))
	for name, content := range map[string]string{
		"tmp/.keep":           "",
		"etc/hostname":        hostname + "\n",
		"etc/hosts":           "127.0.0.1\tlocalhost\n",
		"etc/passwd":          "root:x:0:0:root:/root:/bin/bash\n",
		"etc/group":           "root:x:0:\n",
		"etc/resolv.conf":     resolv,
		local(kubeconfigFile): string(o.Kubeconfig),
	} {
		if err := b.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("set up the scratch directory: %w", err)
		}
		if err := b.root.WriteFile(name, []byte(content), 0o600); err != nil {
			return fmt.Errorf("set up the scratch directory: %w", err)
		}
	}
	return b.root.Remove("tmp/.keep")
}

// Outcome is what came of a command.
type Outcome struct {
	Output   string // both streams, in the order they were written
	Lost     int64  // bytes in the middle that were not kept
	Status   int    // 0 is success
	TimedOut bool
	TooLarge bool   // it was ended because it took too much memory
	Ended    string // why the shell's process ended, with its variables; a new one was started
}

// Run runs a command in the shell. Its input is empty. What it leaves in the background ends with it.
func (b *Box) Run(ctx context.Context, command string, timeout time.Duration) Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shell == nil || b.shell.ended() {
		if b.startShell(); b.failed != nil {
			return Outcome{Output: b.failed.Error() + "\n", Status: 1}
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return Outcome{Output: err.Error() + "\n", Status: 1}
	}
	out := &output{}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(out, r)
	}()
	o := b.runIn(ctx, command, timeout, w)
	select { // All of it has been written.
	case <-copied:
	case <-time.After(pipePatience):
	}
	r.Close()
	<-copied
	o.Output, o.Lost = out.close()
	return o
}

// runIn runs a command whose output goes to a file.
func (b *Box) runIn(ctx context.Context, command string, timeout time.Duration, out *os.File) Outcome {
	clock := startClock(ctx, timeout)
	defer clock.stop()
	ctx = clock
	sh := b.shell
	defer b.clock.Store(nil)
	b.clock.Store(&timing{clock, sh.line})
	// The shell keeps the time itself. If it does not, or somebody else ends the call, it has some patience.
	late, end := context.WithCancel(context.Background())
	defer end()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			_ = sh.line.send(&message{Stop: true})
		}
		time.AfterFunc(shellPatience, end)
	})()
	watched := sh.watch(late)
	r, err := sh.run(late, &order{Command: []byte(command), Timeout: int64(timeout)}, out)
	sh.endTools("", all) // The shell has forgotten them, or is gone.
	sh.ends.Wait()
	end()
	tooLarge := <-watched
	if err != nil {
		o := Outcome{
			Status: 128 + int(syscall.SIGKILL), Ended: sh.cause(),
			TimedOut: errors.Is(context.Cause(ctx), context.DeadlineExceeded),
		}
		b.startShell()
		return o
	}
	b.at = path.Clean("/" + string(r.Dir))
	return Outcome{Status: r.Status, TimedOut: r.TimedOut, TooLarge: ctx.Err() == nil && (r.TooLarge || tooLarge)}
}

// timing is what keeps the time of a command: here, and in the shell's process.
type timing struct {
	clock *clock
	line  *line
}

// Hold has the time of the command that runs stand still until it is released: what it waits for is not up to it.
func (b *Box) Hold() (release func()) {
	h := b.clock.Load()
	if h == nil {
		return func() {}
	}
	h.clock.hold()
	_ = h.line.send(&message{Hold: true}) // A shell that is gone keeps no time.
	return sync.OnceFunc(func() {
		_ = h.line.send(&message{Release: true})
		h.clock.release()
	})
}

// Dir returns the shell's working directory.
func (b *Box) Dir() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

// Root is the scratch directory, to read what the agent wrote.
func (b *Box) Root() *os.Root { return b.root }

// WriteFile puts a file there for the agent, as far as there is room.
func (b *Box) WriteFile(name string, data []byte) error {
	if measure(b.root)+int64(len(data)) > b.limits.Disk {
		return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	if err := b.root.MkdirAll(path.Dir(local(name)), 0o755); err != nil {
		return err
	}
	return b.root.WriteFile(local(name), data, 0o644)
}

// Confinement says how far the processes are confined.
func (b *Box) Confinement() string { return tool.Describe(b.ownRoot) }

// Close ends what runs. The directory stays.
func (b *Box) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shell != nil {
		b.shell.end("the machine is gone")
		<-b.shell.gone
	}
	return b.root.Close()
}
