package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/aci/tool"
	"github.com/aiopslab/aiopslab/app/kit"
	"github.com/aiopslab/aiopslab/app/shell"
)

// Options are what the agent's machine is made of.
type Options struct {
	Dir        string // the scratch directory, on the host
	Dial       func(ctx context.Context, network, address string) (net.Conn, error)
	DNS        string   // IP address of the cluster's DNS
	Search     []string // domains that short names are looked for in
	Kubeconfig []byte
	API        string   // host:port that kubectl and helm may connect to
	Self       []string // command line that runs a confined tool
}

const (
	home           = "/root"
	kubeconfigFile = home + "/.kube/config"
	hostname       = "ops"
	shellPID       = 50
	endPatience    = 5 * time.Second // for what a call left running
)

// Home is where the agent starts, and where files for it are put.
const Home = home

// Box is the agent's machine. It is safe for concurrent use; commands run one at a time.
type Box struct {
	dir    string
	self   []string
	port   int
	root   *os.Root
	fs     *rootFS
	procs  *table
	spools atomic.Int64
	memory uint64 // how much a command may add to what the process holds

	mu      sync.Mutex
	session *shell.Session
}

// New sets the machine up in its directory.
func New(o Options) (*Box, error) {
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
	b := &Box{dir: dir, self: o.Self, port: number, root: root, memory: maxMemory}
	if err := b.fill(&o); err != nil {
		root.Close()
		return nil, err
	}
	programs := shell.Workstation()
	for _, name := range []string{"kubectl", "helm"} {
		programs[name] = b.child(name)
	}
	programs["sudo"] = sudo
	names := slices.Collect(maps.Keys(programs))
	for name := range absent {
		programs[name] = unreachable
	}
	for name := range refused {
		programs[name] = unreachable
	}
	b.fs = newRootFS(root, slices.DeleteFunc(names, func(n string) bool { return absent[n] != "" || refused[n] != "" }))
	b.procs = newTable(programs)
	b.procs.judge = b.apply
	b.session = shell.NewSession(&kit.Env{
		Args: []string{"bash"}, Dir: home, PID: shellPID, Hostname: hostname,
		Vars: map[string]string{
			"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "KUBECONFIG": kubeconfigFile,
			"USER": "root", "SHELL": "/bin/bash", "TERM": "dumb", "LANG": "C.UTF-8",
		},
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		FS: b.fs, Net: &cluster{dial: o.Dial, server: o.DNS, search: o.Search}, CPU: processor{}, Memory: memory{}, Procs: b.procs,
	})
	return b, nil
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

// Outcome is what came of a command.
type Outcome struct {
	Output   string // both streams, in the order they were written
	Lost     int64  // bytes in the middle that were not kept
	Status   int    // 0 is success
	TimedOut bool
	TooLarge bool // it was ended because it took too much memory
}

// Run runs a command in the shell. Its input is empty. What it leaves in the background ends with it.
func (b *Box) Run(ctx context.Context, command string, timeout time.Duration) Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	watched := watchMemory(ctx, b.memory, func() { stop(errTooLarge) })
	out := &output{}
	status := b.session.Run(ctx, command, strings.NewReader(""), out, out)
	o := Outcome{Status: status, TimedOut: errors.Is(ctx.Err(), context.DeadlineExceeded), TooLarge: context.Cause(ctx) == errTooLarge}
	stop(context.Canceled)
	<-watched
	b.procs.stop(endPatience)
	o.Output, o.Lost = out.close()
	if o.TooLarge {
		debug.FreeOSMemory()
	}
	return o
}

// Dir returns the shell's working directory.
func (b *Box) Dir() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session.Dir()
}

// Root is the scratch directory, for files that are put there for the agent.
func (b *Box) Root() *os.Root { return b.root }

// Confinement says how far the processes are confined.
func (b *Box) Confinement() string { return tool.Describe() }

// Close ends what runs. The directory stays.
func (b *Box) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session.Close()
	b.procs.stop(endPatience)
	return b.root.Close()
}
