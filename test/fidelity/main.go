// Command fidelity plays situations that operators know on a cluster, and tells what can be seen of them through the
// API: states, conditions, events and logs, with what is never the same twice left out. What two clusters tell can be
// compared, line by line.
//
//	fidelity play > embedded.json                      # of the cluster that KUBECONFIG points to
//	fidelity play crash-loop quota                     # some of them
//	fidelity compare embedded.json real.json           # 0 only if every difference is explained
//
// The cluster should have one node. It needs the image busybox:1.36; see 'aiopslab images build'.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
)

// pulls is a situation that is played first, and once more with the others.
const pulls = "exit-zero"

// most is how long a situation may take to come about.
const most = 90 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "play":
		flags := flag.NewFlagSet("play", flag.ExitOnError)
		at := flags.Int("j", 4, "how many at a time")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return play(ctx, *at, flags.Args())
	case len(args) == 3 && args[0] == "compare":
		return compareFiles(os.Stdout, args[1], args[2])
	}
	return fmt.Errorf("say 'play [-j N] [SITUATION...]' or 'compare FILE FILE'")
}

// Seen is what can be seen of the situations of a cluster, by name.
type Seen map[string][]string

// play plays situations and prints what is seen.
func play(ctx context.Context, at int, names []string) error {
	all, err := readSituations()
	if err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	p, err := newPlayer(config)
	if err != nil {
		return err
	}
	// An image that is pulled has other events than one that is there.
	first := all[slices.IndexFunc(all, func(s situation) bool { return s.name == pulls })]
	first.name = "first"
	if _, err := p.play(ctx, first); err != nil {
		return fmt.Errorf("the cluster does not run a pod: %w", err)
	}
	seen := Seen{}
	lines := make(chan func(), 1) // Changes of seen, one at a time.
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(at)
	go func() {
		for _, s := range all {
			if len(names) > 0 && !slices.Contains(names, s.name) {
				continue
			}
			g.Go(func() error {
				began := time.Now()
				facts, err := p.play(gctx, s)
				if err != nil {
					facts = append(facts, "it did not come about: "+err.Error())
				}
				lines <- func() {
					seen[s.name] = facts
					fmt.Fprintf(os.Stderr, "%-22s %4.0f s  %d facts\n", s.name, time.Since(began).Seconds(), len(facts))
				}
				return nil
			})
		}
		_ = g.Wait()
		close(lines)
	}()
	for change := range lines {
		change()
	}
	b, err := json.MarshalIndent(seen, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(b))
	return err
}
