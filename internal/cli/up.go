package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
)

const (
	readyTimeout = 2 * time.Minute
	defaultLoad  = 10 // requests a second
	// minFree is the free space an environment needs to start: etcd allocates its files ahead.
	minFree = 64 << 20
	// maxTempLen is how long the temporary directory's name may be: the control socket's address
	// starts with it, and has room for 103 bytes on every system.
	maxTempLen = 103 - len("/aiopslab-env-4294967295/control")

	tempHint = "Choose another directory with AIOPSLAB_TMPDIR."
)

type upFlags struct {
	nodes      int
	listen     string
	from       string
	kubeconfig string
	app        string
	load       float64
}

func newUp(s *State) *cobra.Command {
	f := &upFlags{}
	c := &cobra.Command{
		Use:   "up [flags] [-- COMMAND [ARG...]]",
		Short: "Start a cluster and keep it until Ctrl-C, or for the time of a command",
		Long: `Start a Kubernetes cluster in this process.

Without a command it prints how to connect and stays until Ctrl-C. With one it
runs the command with KUBECONFIG set (and kubectl in PATH, if you have none),
takes the cluster down when the command ends, and exits with its status.

With --app it also deploys an application and its telemetry (Prometheus in
namespace observe, Jaeger beside the application) and keeps it under load.`,
		Example: `  aiopslab up
  aiopslab up -- kubectl get pods -A
  aiopslab up --nodes 5 -- ./my-test.sh
  aiopslab up --app hotel-reservation --load 50`,
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
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "also add the cluster to this kubeconfig `file`, as its current context")
	flags.StringVar(&f.app, "app", "", "deploy an application `name`d by 'aiopslab apps'")
	flags.Float64Var(&f.load, "load", defaultLoad, "how many requests a second the application gets; 0 is none")
	return c
}

func up(ctx context.Context, s *State, f *upFlags, command []string) (err error) {
	start := time.Now()
	tmp := tempDir(s)
	opts, err := f.options()
	if err != nil {
		return err
	}
	a, err := f.application()
	if err != nil {
		return err
	}
	if err := checkTemp(tmp); err != nil {
		return err
	}
	if _, err := environments(tmp); err != nil { // Cleans up after the killed.
		return err
	}
	signals, release := catchSignals()
	defer release()
	if opts.Dir, err = newDir(tmp); err != nil {
		return fail(ExitEnvironment, err, tempHint)
	}
	defer func() {
		if rerr := os.RemoveAll(opts.Dir); err == nil && rerr != nil {
			err = fmt.Errorf("clean up: %w", rerr)
		}
	}()
	verbose := len(command) == 0 || s.Terminal
	say := func(format string, args ...any) {
		if verbose {
			fmt.Fprintf(s.Stderr, format, args...)
		}
	}
	say("Starting Kubernetes %s with %d %s\n", controlplane.Version, opts.Nodes, plural(opts.Nodes, "node"))
	opts.Progress = func(step string) { say("  %5.2f s  %s\n", time.Since(start).Seconds(), step) }
	c, e, err := startInterruptibly(ctx, signals, opts, f.kubeconfig, a)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := c.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("take the cluster down: %w", cerr)
		}
	}()
	say("Ready in %.2f s\n", time.Since(start).Seconds())
	if a != nil && f.load > 0 {
		stop, err := startLoad(c, a, f.load)
		if err != nil {
			return err
		}
		say("%s gets %v requests/s at http://%s\n", a.Name, f.load, a.Host())
		defer func() {
			sli := stop()
			say("%s answered %d requests, %.2f %% of them well, half of them within %v\n", a.Name, sli.Requests, 100*sli.Success, sli.P50.Round(100*time.Microsecond))
		}()
	}
	if len(command) > 0 {
		return runCommand(s, c, e, signals, command)
	}
	fmt.Fprintf(s.Stdout, `
  export KUBECONFIG=%s

  aiopslab kubectl get pods -A      finds this cluster by itself

Stop with Ctrl-C.
`, e.Kubeconfig)
	select {
	case <-signals:
		release() // Who is impatient can kill it with the next.
		say("\nTaking the cluster down\n")
		return nil
	case <-c.Done():
		return brokenDown(c)
	case <-ctx.Done():
		return nil
	}
}

// startInterruptibly starts a cluster and returns when it is ready to use, or a signal comes.
func startInterruptibly(ctx context.Context, signals <-chan os.Signal, opts embedded.Options, kubeconfig string, a *app.App) (*embedded.Cloud, environment, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var c *embedded.Cloud
	var e environment
	done := make(chan error, 1)
	go func() {
		var err error
		c, e, err = startCluster(ctx, opts, kubeconfig, a)
		done <- err
	}()
	select {
	case err := <-done:
		return c, e, err
	case sig := <-signals:
		cancel()
		if err := <-done; err == nil {
			_ = c.Close()
		}
		return nil, e, statusOf(sig)
	}
}

// startCluster starts a cluster, makes it known and deploys the application, if there is one.
func startCluster(ctx context.Context, opts embedded.Options, kubeconfig string, a *app.App) (*embedded.Cloud, environment, error) {
	c, err := embedded.Start(ctx, opts)
	if err != nil {
		return nil, environment{}, startFailure(err)
	}
	e, err := publish(c, kubeconfig)
	if err != nil {
		_ = c.Close()
		return nil, e, startFailure(err)
	}
	opts.Progress("waiting for cluster DNS and metrics")
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		err = cmp.Or(c.Err(), err)
		_ = c.Close()
		return nil, e, startFailure(err)
	}
	if a != nil {
		opts.Progress("deploying " + a.Name)
		if err := deploy(ctx, c, a); err != nil {
			err = cmp.Or(c.Err(), err)
			_ = c.Close()
			return nil, e, fail(ExitEnvironment, fmt.Errorf("deploy %s: %w", a.Name, err), "")
		}
	}
	c.Settle()
	return c, e, nil
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// options turns the flags into options and refuses what cannot work.
func (f *upFlags) options() (embedded.Options, error) {
	opts := embedded.Options{Images: builtinImages(), Nodes: f.nodes, Listen: f.listen}
	if f.nodes < 1 || f.nodes > embedded.MaxNodes {
		return opts, fail(ExitUsage, fmt.Errorf("--nodes %d: a cluster has 1 to %d nodes", f.nodes, embedded.MaxNodes), "")
	}
	host, port, err := net.SplitHostPort(f.listen)
	if _, perr := strconv.ParseUint(port, 10, 16); err == nil && perr != nil {
		err = fmt.Errorf("%s is not a port", port)
	}
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

// application returns the one the flags name, or nil.
func (f *upFlags) application() (*app.App, error) {
	if f.load < 0 {
		return nil, fail(ExitUsage, fmt.Errorf("--load %v: requests a second cannot be negative", f.load), "")
	}
	if f.app == "" {
		return nil, nil
	}
	return findApp(f.app)
}

// checkTemp refuses a temporary directory that cannot hold an environment.
func checkTemp(dir string) error {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	if err == nil {
		err = unix.Access(dir+"/.", unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s: %w", dir, err), tempHint)
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < minFree {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s has %d MB free, an environment needs %d", dir, free>>20, minFree>>20), tempHint)
	}
	if len(dir) > maxTempLen {
		return fail(ExitEnvironment, fmt.Errorf("temporary directory %s: the name is longer than %d characters", dir, maxTempLen), tempHint)
	}
	return nil
}

// startFailure explains why a cluster did not start.
func startFailure(err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "Another program has the port; leave --listen out to use any free one."
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EROFS):
		hint = tempHint
	}
	return fail(ExitEnvironment, fmt.Errorf("start the cluster: %w", err), hint)
}

// brokenDown explains why a cluster has ended by itself.
func brokenDown(c *embedded.Cloud) error {
	hint := ""
	if errors.Is(c.Err(), syscall.ENOSPC) {
		hint = tempHint
	}
	return fail(ExitEnvironment, fmt.Errorf("the cluster broke down: %w", c.Err()), hint)
}

// publish writes what other processes need to use the environment.
func publish(c *embedded.Cloud, kubeconfig string) (environment, error) {
	e := environment{
		dir: c.Dir(), PID: os.Getpid(), Started: time.Now(), Server: "https://" + c.Address(),
		Kubeconfig: filepath.Join(c.Dir(), "kubeconfig"), Control: filepath.Join(c.Dir(), "control"),
	}
	b, err := c.Kubeconfig(contextName)
	if err != nil {
		return e, err
	}
	if err := os.WriteFile(e.Kubeconfig, b, 0o600); err != nil {
		return e, err
	}
	if kubeconfig != "" {
		if err := addToKubeconfig(kubeconfig, b); err != nil {
			return e, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	if err := serveControl(c, e.Control); err != nil {
		return e, err
	}
	return e, announce(e)
}
