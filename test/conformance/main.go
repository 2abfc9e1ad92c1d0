// Command conformance runs Kubernetes' own conformance suite against the embedded cloud.
//
// The suite is test/e2e of the k8s.io/kubernetes module that the product links, so suite and control
// plane are of one version. It is built once, under bin/conformance, with a copy of go.mod: the
// suite's dependencies never enter the product's. The images that only the suite needs are not in the product
// either: the program that is tried, test/conformance/lab, adds them. Every group of specs, such as sig-cli, runs in an
// environment of its own. Specs mostly wait, so several run at a time; Ginkgo runs those marked
// [Serial] alone.
//
//	test/conformance/run                 # all groups
//	test/conformance/run sig-cli sig-apps
//
// It exits with 0 if every spec passed, 1 if not, and 2 if it was called wrongly.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// groups are Kubernetes' special interest groups that own conformance specs.
var groups = []string{
	"sig-api-machinery", "sig-apps", "sig-architecture", "sig-auth", "sig-cli",
	"sig-instrumentation", "sig-network", "sig-node", "sig-scheduling", "sig-storage",
}

const (
	exitFailed = 1
	exitUsage  = 2

	product = "bin/conformance/aiopslab" // with the images of the suite
	workDir = "bin/conformance"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	r := &runner{dir: workDir, product: product}
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&r.procs, "procs", 4, "how many specs run at a time")
	flags.StringVar(&r.focus, "focus", "", "run only specs whose name matches this `regexp`")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	selected, err := selectGroups(flags.Args())
	if err != nil {
		fmt.Fprintln(stderr, "conformance:", err)
		return exitUsage
	}
	if err := r.build(ctx, stderr); err != nil {
		fmt.Fprintln(stderr, "conformance:", err)
		return exitFailed
	}
	var all summary
	for _, group := range selected {
		if ctx.Err() != nil {
			return exitFailed
		}
		fmt.Fprintf(stderr, "Running %s; log in %s\n", group, r.file(group, ".log"))
		s, err := r.run(ctx, group)
		if err != nil {
			fmt.Fprintf(stderr, "conformance: %s: %v\n", group, err)
			s.broken = true
		}
		s.print(stdout, group)
		all.add(s)
	}
	for _, name := range all.failed {
		fmt.Fprintln(stdout, "FAIL", name)
	}
	all.print(stdout, "total")
	if !all.ok() {
		return exitFailed
	}
	return 0
}

// selectGroups checks the names of groups; none is all of them.
func selectGroups(names []string) ([]string, error) {
	if len(names) == 0 {
		return groups, nil
	}
	for _, name := range names {
		if !slices.Contains(groups, name) {
			return nil, fmt.Errorf("no group %q; the groups are %s", name, strings.Join(groups, ", "))
		}
	}
	return names, nil
}

// print writes one line of the table.
func (s *summary) print(w io.Writer, name string) {
	fmt.Fprintf(w, "%-20s passed %3d  failed %3d  skipped %3d  of %3d  in %s\n",
		name, s.passed, len(s.failed), s.skipped, s.total(), s.took.Round(time.Second))
}
