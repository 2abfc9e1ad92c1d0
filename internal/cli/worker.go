package cli

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/session/process"
)

// endTime is how long the process of an environment may take to end.
const endTime = 10 * time.Second

// newWorker is the command that is the process of an environment. It holds one cluster and all that an
// agent makes run there, does what its supervisor asks, and ends with it. It takes no arguments: what it
// is for is told to it alone.
func newWorker(s *State) *cobra.Command {
	apart, exposed := false, false
	c := &cobra.Command{
		Use: "worker", Short: "Hold an environment for another process", Hidden: true, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.own && exposed && (os.Geteuid() == 0 || cage.Possible()) {
				keepMemory()
			}
			if !apart {
				return work(c.Context(), s, process.Answers())
			}
			answers, err := process.Stdout()
			if err != nil {
				return err
			}
			return work(c.Context(), s, answers)
		},
	}
	c.Flags().BoolVar(&apart, apartFlag, false, "the supervisor is on another machine: answer on standard output")
	c.Flags().BoolVar(&exposed, exposedFlag, false, "an agent may be a process of this user that nobody confines")
	return c
}

// exposedFlag is of a worker that an agent's own process may look at, as the same user. It keeps its memory then. Who
// is not the superuser pays for it with the root directory that the agent's tools would have: the kernel lets no
// process that keeps its memory give one to what it starts. So they have what Landlock confines them to, where there is
// that.
const exposedFlag = "exposed"

// apartFlag is of a worker whose supervisor is on another machine.
const apartFlag = "apart"

func work(ctx context.Context, s *State, answers *os.File) error {
	library := sync.OnceValues(func() (*problem.Library, error) { return s.Parts.LibraryFrom(s.registry) })
	h := process.Host{Library: library, Apps: s.Parts.AllApps(), Hint: func(err error) string {
		if f, ok := errors.AsType[*failure](err); ok {
			return f.hint
		}
		return ""
	}}
	var c cloud.Cloud
	var dir string // that nobody else removes
	defer func() { _ = os.RemoveAll(dir) }()
	h.Open = func(ctx context.Context, o process.Opening) (*session.Local, error) {
		if o.Dir == "" {
			var err error
			if o.Dir, err = newDir(tempDir(s)); err != nil {
				return nil, fail(ExitEnvironment, err, tempHint)
			}
			dir = o.Dir
		}
		l := &session.Local{Scratch: o.Dir, Self: toolCommand(s)}
		var err error
		if l.Cloud, err = openCloud(ctx, s, o, l); err != nil {
			return nil, err
		}
		c = l.Cloud
		return l, nil
	}
	err := process.Serve(ctx, s.Stdin, answers, h)
	last := time.AfterFunc(endTime, func() { os.Exit(ExitEnvironment) }) // Nobody is left to wait for it.
	defer last.Stop()
	if c != nil {
		err = errors.Join(err, c.Close())
	}
	return err
}

// openCloud starts a cluster, or uses one that is there.
func openCloud(ctx context.Context, s *State, o process.Opening, l *session.Local) (cloud.Cloud, error) {
	if o.On == nil {
		return startFor(ctx, s, o, l)
	}
	l.Telemetry = o.On.Telemetry
	s.registry = o.On.Registry // Nobody has asked for the library yet.
	c, err := kube.Open(ctx, kube.Options{
		Config: o.On.Kubeconfig, Run: o.On.Run, Namespaces: o.On.Namespaces, Suffix: o.On.Suffix,
		Load: o.On.Load, Program: s.Parts.AllImages().Program,
	})
	if err != nil {
		return nil, fail(ExitEnvironment, err, clusterHint)
	}
	return c, nil
}

// workerWish is a cluster in a process of its own.
func workerWish(o process.Opening) wish {
	return wish{
		nodes: usualNodes, dir: o.Dir, log: o.Log,
		inward:   true, // All that comes from outside comes through the guard.
		progress: func(step string) { o.Log.Debug("cluster", "step", step) },
	}
}

// startBare starts a cluster with nothing in it.
func startBare(ctx context.Context, s *State, o process.Opening) (newCluster, error) {
	c, err := startNew(ctx, s, workerWish(o))
	if err != nil {
		return nil, startFailure(err)
	}
	ready, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	if err := c.WaitReady(ready); err != nil {
		return nil, startFailure(errors.Join(c.Err(), err, c.Close()))
	}
	if o.App == nil { // It may be a while until somebody needs it.
		c.Settle()
	}
	return c, nil
}
