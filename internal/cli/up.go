package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
)

const (
	readyTimeout = 2 * time.Minute
	// minFree is the free space an environment needs to start: etcd allocates its files ahead.
	minFree = 64 << 20
)

type upFlags struct {
	nodes      int
	listen     string
	from       string
	tmp        string
	kubeconfig string
}

func newUp(s *State) *cobra.Command {
	f := &upFlags{}
	c := &cobra.Command{
		Use:   "up [flags] [-- COMMAND [ARG...]]",
		Short: "Start a cluster and keep it until Ctrl-C, or for the time of a command",
		Long: `Start a Kubernetes cluster in this process.

Without a command it prints how to connect and stays until Ctrl-C. With one it
runs the command with KUBECONFIG set (and kubectl in PATH, if you have none),
takes the cluster down when the command ends, and exits with its status.`,
		Example: `  aiopslab up
  aiopslab up -- kubectl get pods -A
  aiopslab up --nodes 5 -- ./my-test.sh`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return fail(ExitUsage, fmt.Errorf("unexpected argument %q", args[0]), "Put the command to run behind '--': aiopslab up -- "+strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return up(c.Context(), s, f, args) },
	}
	flags := c.Flags()
	flags.IntVar(&f.nodes, "nodes", embedded.DefaultNodes, "how many nodes the cluster has")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address to serve the Kubernetes API on; port 0 is any")
	flags.StringVar(&f.from, "from", "", "start from a snapshot `file` instead of an empty cluster")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "also write the kubeconfig to this `file`")
	flags.StringVar(&f.tmp, "tmpdir", "", "`directory` for temporary files (default $AIOPSLAB_TMPDIR, or the system's)")
	return c
}

func up(ctx context.Context, s *State, f *upFlags, command []string) (err error) {
	start := time.Now()
	if f.tmp == "" {
		f.tmp = tempDir(s)
	}
	opts, err := f.options()
	if err != nil {
		return err
	}
	if err := checkSpace(f.tmp); err != nil {
		return err
	}
	if _, err := environments(f.tmp); err != nil { // Cleans up after the killed.
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	verbose := len(command) == 0 || s.Terminal
	if verbose {
		fmt.Fprintf(s.Stderr, "Starting Kubernetes %s with %d %s\n", controlplane.Version, opts.Nodes, plural(opts.Nodes, "node"))
		opts.Progress = func(step string) { fmt.Fprintf(s.Stderr, "  %5.2f s  %s\n", time.Since(start).Seconds(), step) }
	}
	c, err := embedded.Start(ctx, opts)
	if err != nil {
		return startFailure(ctx, err)
	}
	defer func() {
		if cerr := c.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("take the cluster down: %w", cerr)
		}
	}()
	e, err := publish(ctx, c, f)
	if err != nil {
		return fail(ExitEnvironment, err, "")
	}
	if verbose {
		opts.Progress("waiting for cluster DNS and metrics")
	}
	ready, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := c.WaitReady(ready); err != nil {
		return startFailure(ctx, err)
	}
	c.Settle()
	if verbose {
		fmt.Fprintf(s.Stderr, "Ready in %.2f s\n", time.Since(start).Seconds())
	}
	if len(command) > 0 {
		return runCommand(ctx, s, e, command)
	}
	fmt.Fprintf(s.Stdout, `
  export KUBECONFIG=%s

  aiopslab kubectl get pods -A      finds this cluster by itself

Stop with Ctrl-C.
`, e.Kubeconfig)
	<-ctx.Done()
	if verbose {
		fmt.Fprintln(s.Stderr, "\nTaking the cluster down")
	}
	return nil
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// options turns the flags into options and refuses what cannot work.
func (f *upFlags) options() (embedded.Options, error) {
	opts := embedded.Options{Images: builtinImages(), Nodes: f.nodes, Listen: f.listen, Dir: f.tmp}
	if f.nodes < 1 || f.nodes > embedded.MaxNodes {
		return opts, fail(ExitUsage, fmt.Errorf("--nodes %d: a cluster has 1 to %d nodes", f.nodes, embedded.MaxNodes), "")
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return opts, fail(ExitUsage, fmt.Errorf("--listen %s: %w", f.listen, err), "Write it as 127.0.0.1:PORT.")
	}
	if addr, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return opts, fail(ExitUsage, fmt.Errorf("--listen %s is not a loopback address", f.listen), "Anybody who reaches the port could try to use the cluster; write it as 127.0.0.1:PORT.")
	}
	if f.from != "" {
		snap, err := readSnapshot(f.from)
		if err != nil {
			return opts, fail(ExitUsage, fmt.Errorf("--from: %w", err), "Save a snapshot with 'aiopslab snapshot FILE'.")
		}
		opts.Snapshot = snap
		opts.Nodes = len(snap.Nodes)
	}
	return opts, nil
}

// checkSpace refuses a temporary directory that cannot hold an environment.
func checkSpace(dir string) error {
	hint := "Choose another directory with --tmpdir or AIOPSLAB_TMPDIR."
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s: %w", dir, err), hint)
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < minFree {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s has %d MB free, an environment needs %d", dir, free>>20, minFree>>20), hint)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s: %w", dir, err), hint)
	}
	return nil
}

// startFailure explains why a cluster did not start.
func startFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exitStatus(ExitSignal + int(syscall.SIGINT))
	}
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "Another program has the port; leave --listen out to use any free one."
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EROFS):
		hint = "Choose another directory with --tmpdir or AIOPSLAB_TMPDIR."
	}
	return fail(ExitEnvironment, fmt.Errorf("start the cluster: %w", err), hint)
}

// publish writes what other processes need to use the environment.
func publish(ctx context.Context, c *embedded.Cloud, f *upFlags) (environment, error) {
	e := environment{
		Dir: c.Dir(), PID: os.Getpid(), Started: time.Now(),
		Kubeconfig: filepath.Join(c.Dir(), "kubeconfig"), Control: filepath.Join(c.Dir(), "control"),
	}
	b, err := c.Kubeconfig("aiopslab")
	if err != nil {
		return e, err
	}
	for _, file := range []string{e.Kubeconfig, f.kubeconfig} {
		if file != "" {
			if err := os.WriteFile(file, b, 0o600); err != nil {
				return e, fmt.Errorf("write the kubeconfig: %w", err)
			}
		}
	}
	if err := serveControl(ctx, c, e.Control); err != nil {
		return e, err
	}
	return e, announce(e)
}

// runCommand runs a command against the environment and takes over its exit status.
func runCommand(ctx context.Context, s *State, e environment, argv []string) error {
	bin := filepath.Join(e.Dir, "bin")
	if err := linkKubectl(bin); err != nil {
		return err
	}
	path := os.Getenv("PATH") + string(os.PathListSeparator) + bin
	if err := os.Setenv("PATH", path); err != nil { // Where the command itself is looked up.
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
	if err := cmd.Start(); err != nil {
		code := ExitNotRunnable
		if errors.Is(err, exec.ErrNotFound) || isNotExist(err) {
			code = ExitNotFound
		}
		return fail(code, fmt.Errorf("run %s: %w", argv[0], err), "")
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done(): // A terminal sends Ctrl-C to the command too; others get it from us.
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err = <-done
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return exitStatus(ExitSignal + int(st.Signal()))
	}
	return exitStatus(exit.ExitCode())
}

// linkKubectl makes this program available as kubectl, for who has none.
func linkKubectl(bin string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	name := "kubectl"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return os.Symlink(self, filepath.Join(bin, name))
}
