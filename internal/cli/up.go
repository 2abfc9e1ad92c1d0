package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/workload"
)

const defaultLoad = "10" // requests a second

type upFlags struct {
	nodes       int
	nodesGiven  bool
	listen      string
	listenGiven bool
	from        string
	kubeconfig  string
	app         string
	load        string
	expose      string

	exposeGiven bool

	cloud cloudFlags
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
namespace observe, Jaeger beside the application), keeps it under load, and
prints the addresses at which a browser on this machine opens them: the ports
they are known by (5000, 9090, 16686), or free ones where those are taken. For
a command this is only done if --expose asks for it.

The last address is a page about all of it: who calls whom and what is red now,
metrics, logs, traces, alerts, workloads and events, as they change, at port 1820
or a free one. It is for who has the link: the key in it is drawn anew each time.
AIOPSLAB_TOKEN, if it is set, opens the page as well. docs/page.md tells more.

With --cloud kubeconfig the application is deployed in a cluster that you have,
in namespaces of its own, which are removed in the end.`,
		Example: `  aiopslab up
  aiopslab up -- kubectl get pods -A
  aiopslab up --nodes 5 -- ./my-test.sh
  aiopslab up --app hotel-reservation --load 50
  aiopslab up --app hotel-reservation --load '{rate: {daily: {mean: 50, amplitude: 0.8, period: 5m}}}'
  aiopslab up --app hotel-reservation --expose 8000 -- curl -s 127.0.0.1:8000
  aiopslab up --app hotel-reservation --cloud kubeconfig --context kind-lab`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return fail(ExitUsage, fmt.Errorf("unexpected argument %q", args[0]),
					"Put the command to run behind '--': aiopslab up -- "+strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.nodesGiven, f.exposeGiven = c.Flags().Changed("nodes"), c.Flags().Changed("expose")
			f.listenGiven = c.Flags().Changed("listen")
			return up(c.Context(), s, f, args)
		},
	}
	flags := c.Flags()
	flags.IntVar(&f.nodes, "nodes", usualNodes, "how many nodes the cluster has")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0",
		"loopback address to serve the Kubernetes API on; port 0 is any")
	flags.StringVar(&f.from, "from", "", "start from a snapshot `file` instead of an empty cluster")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"also add the cluster to this kubeconfig `file`, as its current context")
	flags.StringVar(&f.app, "app", "", "deploy an application `name`d by 'aiopslab apps'")
	completeFlag(c, "app", s.appNames)
	flags.StringVar(&f.load, "load", defaultLoad,
		"how many requests a second the application gets, 0 is none; or a `load` as problems have it")
	flags.StringVar(&f.expose, "expose", exposeAuto,
		"first `port` of 127.0.0.1 at which the application, Prometheus, Jaeger and the page about all of it can be "+
			"opened, or auto or off")
	f.cloud.add(c)
	f.cloud.addIKnow(c)
	f.cloud.addImages(c, s)
	f.cloud.addLoadFrom(c)
	return c
}

func up(ctx context.Context, s *State, f *upFlags, command []string) (err error) {
	start := time.Now()
	tmp := tempDir(s)
	w, err := f.wish()
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	a, err := f.application(s)
	if err != nil {
		return err
	}
	wanted, err := f.wanted(a)
	if err != nil {
		return err
	}
	if err := checkTemp(tmp); err != nil {
		return err
	}
	pages, err := f.pages(a, len(command) > 0)
	if err != nil {
		return err
	}
	defer closePages(pages)
	if _, err := environments(tmp); err != nil { // Cleans up after the killed.
		return err
	}
	w.log = s.logger(logs.Off)
	signals, release := catchSignals()
	defer release()
	if w.dir, err = newDir(tmp); err != nil {
		return fail(ExitEnvironment, err, tempHint)
	}
	defer func() {
		if rerr := os.RemoveAll(w.dir); err == nil && rerr != nil {
			err = fmt.Errorf("clean up: %w", rerr)
		}
	}()
	verbose := len(command) == 0 || s.Terminal
	say := func(format string, args ...any) {
		if verbose {
			fmt.Fprintf(s.Stderr, format, args...)
		}
	}
	w.progress = func(step string) { say("  %5.2f s  %s\n", time.Since(start).Seconds(), step) }
	begin := func(ctx context.Context) (*place, error) { return startCluster(ctx, s, w, f.kubeconfig, a) }
	if f.cloud.onCluster() {
		begin = func(ctx context.Context) (*place, error) {
			return settleIn(ctx, &f.cloud, w.dir, a, wanted, w.progress)
		}
	} else {
		say("Starting Kubernetes %s with %d %s\n", kubernetesVersion, w.nodes, plural(w.nodes, "node"))
	}
	p, err := interruptibly(ctx, signals, begin)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := p.close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	leadTo(pages, p)
	say("Ready in %.2f s\n", time.Since(start).Seconds())
	var load session.Load
	if a != nil && !wanted.None() {
		var stop func()
		if load, stop, err = putUnderLoad(ctx, p, wanted, say); err != nil {
			return err
		}
		defer stop()
	}
	leave, err := watch(s, pages, p, load)
	if err != nil {
		return err
	}
	defer leave()
	defer servePages(pages, p.cloud.Dial, logs.ErrorLog(w.log, slog.LevelDebug, "page"))()
	if len(command) > 0 {
		if verbose {
			printPages(s.Stderr, pages)
		}
		return runCommand(s, p, signals, command)
	}
	fmt.Fprintf(s.Stdout, "\n  %s\n\n", p.howTo())
	if len(pages) > 0 {
		printPages(s.Stdout, pages)
		fmt.Fprintln(s.Stdout)
	}
	fmt.Fprintln(s.Stdout, "Stop with Ctrl-C.")
	select {
	case <-signals:
		release() // Who is impatient can kill it with the next.
		if !f.cloud.onCluster() {
			say("\nTaking the cluster down\n")
		}
		return nil
	case <-p.broken:
		return p.why()
	case <-ctx.Done():
		return nil
	}
}

// putUnderLoad has an application get a load, and returns it with what ends it and tells what became of it.
func putUnderLoad(ctx context.Context, p *place, l *problem.Load, say func(format string, args ...any),
) (load session.Load, stop func(), err error) {
	load, err = session.StartLoad(ctx, p.cloud, p.app, l, 0)
	if err != nil {
		return nil, nil, fail(ExitEnvironment, err, "")
	}
	stop = func() {
		sli, err := load.Stop(context.WithoutCancel(ctx))
		if err != nil {
			say("%v\n", err)
			return
		}
		say("%s answered %d requests, %.2f %% of them well, half of them within %v\n", p.app.Name, sli.Requests,
			100*sli.Success, sli.P50.Round(100*time.Microsecond))
	}
	if err := load.Begin(ctx); err != nil {
		stop()
		return nil, nil, fail(ExitEnvironment, err, "")
	}
	where := ""
	if from := load.From(); from.Pod != "" {
		where = fmt.Sprintf(" from pod %s in %s", from.Pod, from.Namespace)
	}
	say("%s gets %v%s\n", p.app.Name, l, where)
	return load, stop, nil
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// count is a number with what it counts, as in "1 run" and "2 runs".
func count(n int, word string) string { return fmt.Sprintf("%d %s", n, plural(n, word)) }

// wish is the cluster that the flags ask for. It refuses what cannot work.
func (f *upFlags) wish() (wish, error) {
	w := wish{nodes: f.nodes, listen: f.listen}
	if f.nodes < 1 || f.nodes > mostNodes {
		return w, fail(ExitUsage, fmt.Errorf("--nodes %d: a cluster has 1 to %d nodes", f.nodes, mostNodes),
			"")
	}
	host, port, err := net.SplitHostPort(f.listen)
	if _, perr := strconv.ParseUint(port, 10, 16); err == nil && perr != nil {
		err = fmt.Errorf("%s is not a port", port)
	}
	if err != nil {
		return w, fail(ExitUsage, fmt.Errorf("--listen %s: %w", f.listen, err), "Write it as 127.0.0.1:PORT.")
	}
	if addr, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return w, fail(ExitUsage, fmt.Errorf("--listen %s is not a loopback address", f.listen),
			"Anybody who reaches the port could try to use the cluster; write it as 127.0.0.1:PORT.")
	}
	if f.from != "" {
		snap, err := readSnapshot(f.from)
		if err != nil {
			return w, fail(ExitUsage, fmt.Errorf("--from: %w", err),
				"Save a snapshot with 'aiopslab snapshot FILE'.")
		}
		if f.nodesGiven && f.nodes != snap.nodes() {
			return w, fail(ExitUsage, fmt.Errorf("--nodes %d: the snapshot has %d", f.nodes, snap.nodes()),
				"Leave --nodes out.")
		}
		w.from, w.nodes = snap, snap.nodes()
	}
	return w, nil
}

// application returns the one the flags name, or nil.
func (f *upFlags) application(s *State) (*app.App, error) {
	if f.app == "" {
		return nil, nil
	}
	return findApp(s, f.app)
}

// wanted is the load that the flags ask for.
func (f *upFlags) wanted(a *app.App) (*problem.Load, error) {
	l, err := problem.ParseLoad(f.load)
	if err == nil && a != nil {
		_, err = workload.FindMix(a.Mixes, cmp.Or(l.Mix, a.Mix))
	}
	if err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("--load %s: %w", f.load, err),
			"It is a number of requests a second, or a load such as '{rate: {burst: {base: 10, peak: 100, every: 1m, "+
				"lasting: 5s}}}'.")
	}
	return l, nil
}
