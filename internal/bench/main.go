// Command bench measures the lab and prints a table. A row has a name, the value, its ratio to the same work done
// the stock way in the same run, and the target. It is what `make bench` runs.
//
//	go run ./internal/bench                 everything but the cold build
//	go run ./internal/bench -list
//	go run ./internal/bench -run 'start|pods' -rounds 5
//	go run ./internal/bench -run build -cold
//	go run ./internal/bench -run campaign -suite all
//
// The lab is measured as users run it, bin/aiopslab in a process of its own. The stock way is
// Kubernetes' own kube-apiserver, kube-controller-manager and kube-scheduler and etcd, with the
// defaults of their commands, in one process too (see stock.go). Nothing here asserts: figures are
// read together with the machine's, which come first. The exit status is 0 unless something broke.
//
// To add a figure, write a bench in the file of its theme and list it in benches.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

// bench is a theme: a few rows that are measured together.
type bench struct {
	name string // selects it
	what string
	run  func(ctx context.Context, r *run) error
}

var benches = []bench{
	{"start", "process start to a usable cluster", benchStart},
	{"pods", "30-pod Deployment created to all Ready", benchPods},
	{"reset", "an environment with a 30-pod application brought back to a snapshot", benchReset},
	{"idle", "memory and CPU of an environment that does nothing", benchIdle},
	{"many", "environments with a 30-pod application each, side by side", benchMany},
	{"apps", "applications deployed, and the load one holds", benchApps},
	{"world", "an environment with application and past, ready for the fault", benchWorld},
	{"past", "memory and time that the past of an application costs", benchPast},
	{"social", "memory of an application under load", benchSocial},
	{"wire", "pod-to-pod HTTP requests over the cluster's network", benchWire},
	{"guard", "what the guard adds to an API call", benchGuard},
	{"keep", "a transaction with a command in a store, taken back", benchKeep},
	{"ways", "what each way for an agent to come in adds to an action", benchWays},
	{"shell", "commands in the agent's shell, and what its process takes", benchShell},
	{"gym", "episodes of a training loop", benchGym},
	{"vector", "resets of environments for training, side by side", benchVector},
	{"sessions", "sessions that one server holds at once, and more than it has places for", benchSessions},
	{"campaign", "problems an hour, and what a run costs, by how runs are kept apart", benchCampaign},
	{"kills", "campaigns of 100 runs whose processes are killed, for an hour or more", benchKills},
	{"group", "messages between the members of a group of agents", benchGroup},
	{"index", "the index of 10,000 runs, made and opened", benchIndex},
	{"page", "the pages of 10,000 runs, and of a run of 300 steps", benchPage},
	{"build", "size of the binary, what imports cost, cold build", benchBuild},
}

// run is one run of the program.
type run struct {
	binary string        // of the lab
	rounds int           // of what is measured more than once
	idle   time.Duration // for how long idle processes are watched
	envs   int           // side by side; 0 is as many as fit, 64 at most
	cold   bool          // build with an empty cache
	suite  string        // of campaigns; empty is ten problems

	dir   string // for temporary files
	table measure.Table
	extra [][][]string // further tables
}

// report adds a row to the table, and shows it at once.
func (r *run) report(row measure.Row) {
	fmt.Fprintf(os.Stderr, "  %s\n", row)
	r.table.Add(row)
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == stockCommand {
		exit(runStock(os.Args[2]))
	}
	if len(os.Args) == 2 && os.Args[1] == childCommand {
		exit(childAgent())
	}
	exit(mainRun())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func mainRun() error {
	r := &run{}
	pattern := flag.String("run", "", "measure only what matches this regular `expression`")
	list := flag.Bool("list", false, "list what can be measured")
	flag.StringVar(&r.binary, "binary", "bin/aiopslab", "the lab's `file`; make build writes it")
	flag.IntVar(&r.rounds, "rounds", 5, "how often to measure what takes seconds")
	flag.DurationVar(&r.idle, "idle", 20*time.Second, "for how long to watch idle processes")
	flag.IntVar(&r.envs, "envs", 0, "how many environments to run side by side (default 64, or what fits into memory)")
	flag.BoolVar(&r.cold, "cold", false, "also measure a build with an empty cache, which takes minutes")
	flag.StringVar(&r.suite, "suite", "",
		"the problems of 'campaign', as bench --suite names them, but for shifts; all takes hours "+
			"(default ten problems of the hotel)")
	flag.Parse()
	selected, err := regexp.Compile(*pattern)
	if err != nil {
		return err
	}
	if *list {
		for _, b := range benches {
			fmt.Printf("%-10s%s\n", b.name, b.what)
		}
		return nil
	}
	if _, err := os.Stat(r.binary); err != nil {
		return fmt.Errorf("%w: build it with 'make build'", err)
	}
	if r.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	m := measure.ThisMachine()
	fmt.Printf("%d cores of %s, %.1f GiB of memory (%.1f available), load %s, %s %s/%s\n",
		runtime.NumCPU(), cmp.Or(m.CPU, "an unknown CPU"), float64(m.Memory)/(1<<30), float64(m.Available)/(1<<30),
		cmp.Or(m.Load, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, b := range benches {
		if !selected.MatchString(b.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", b.name, b.what)
		if err := b.run(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	fmt.Println()
	if _, err := r.table.WriteTo(os.Stdout); err != nil {
		return err
	}
	for _, t := range r.extra {
		fmt.Println()
		if _, err := measure.Columns(os.Stdout, t); err != nil {
			return err
		}
	}
	fmt.Printf("\nload at the end %s\n", measure.ThisMachine().Load)
	return nil
}
