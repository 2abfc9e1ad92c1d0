package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/aiopslab/aiopslab/session/process"
)

// interrupted is what a command returns that was stopped before it had anything to tell.
const interrupted = exitStatus(ExitSignal + int(syscall.SIGINT))

// hosting is how the process of an environment is started.
type hosting struct {
	ceiling int64 // of its memory
	exposed bool  // see exposedFlag
	// keeps reports whether it needs a variable of this process that is private otherwise. It may be nil.
	keeps func(variable string) bool
	// place is where it runs, if that is not this machine.
	place process.Place
	// worlds are what it may start from, if that is not up to it.
	worlds process.Worlds
}

// withEnvironment calls f with an environment in a process of its own, which open opens, and takes it down. The context
// that f gets ends with the first signal; the second kills this process, and the environment with it.
func withEnvironment(ctx context.Context, s *State, h hosting, log *slog.Logger, progress func(string),
	open, f func(ctx context.Context, env *process.Environment) error,
) (err error) {
	ctx, cancel := untilSignal(ctx, func() { progress("stopping; press Ctrl-C again to stop at once") })
	defer cancel()
	tmp := tempDir(s)
	if err := checkTemp(tmp); err != nil {
		return err
	}
	if _, err := environments(tmp); err != nil { // Cleans up after the killed.
		return err
	}
	dir, err := newDir(tmp)
	if err != nil {
		return fail(ExitEnvironment, err, tempHint)
	}
	defer func() {
		if rerr := os.RemoveAll(dir); err == nil && rerr != nil {
			err = fmt.Errorf("clean up: %w", rerr)
		}
	}()
	env, err := startEnvironment(s, dir, h, log)
	if err != nil {
		return fail(ExitEnvironment, err, "")
	}
	defer env.Close()
	if err := openEnvironment(ctx, env, open); err != nil {
		return err
	}
	return f(ctx, env)
}

// startEnvironment starts the process of an environment, with its files in a directory.
func startEnvironment(s *State, dir string, h hosting, log *slog.Logger) (*process.Environment, error) {
	withheld := func(variable string) bool { return private(variable) && (h.keeps == nil || !h.keeps(variable)) }
	args := []string{"worker"}
	if h.exposed {
		args = append(args, "--"+exposedFlag)
	}
	env, err := process.Start(process.Options{
		Program: self(s), Args: args, Dir: dir, Ceiling: h.ceiling,
		Env: slices.DeleteFunc(os.Environ(), withheld), Log: log, Place: h.place, Worlds: h.worlds,
	})
	if err != nil {
		return nil, fmt.Errorf("start the process of the environment: %w", err)
	}
	return env, nil
}

// private reports whether a variable is of no concern to an environment. It asks no model and serves
// nobody, so what opens models and servers is not there for an agent to find.
func private(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return confidential(name) || strings.Contains(strings.ToUpper(name), "KUBECONFIG") || name == "GOMEMLIMIT"
}

// confidential reports whether a variable of this name mostly has a secret.
func confidential(name string) bool {
	for _, part := range []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL"} {
		if strings.Contains(strings.ToUpper(name), part) {
			return true
		}
	}
	return false
}

// openEnvironment starts the cluster. Who stops it meanwhile need not wait for it.
func openEnvironment(ctx context.Context, env *process.Environment,
	open func(context.Context, *process.Environment) error,
) error {
	opened := make(chan error, 1)
	go func() { opened <- open(ctx, env) }()
	select {
	case err := <-opened:
		if ctx.Err() != nil {
			return interrupted
		}
		if f, ok := errors.AsType[*process.Failure](err); ok {
			return fail(ExitEnvironment, err, f.Hint)
		}
		if _, ok := errors.AsType[*failure](err); ok {
			return err
		}
		return fail(ExitEnvironment, err, "")
	case <-ctx.Done():
		return interrupted
	}
}

// minResults is the free space that records need.
const minResults = 16 << 20

// checkResults refuses a directory that no record can be written to, before anything is started.
func checkResults(dir string) error {
	hint := "Choose another directory with --results."
	if dir == "" {
		return fail(ExitUsage, errors.New("--results: there is no name of a directory"), "")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(ExitUsage, fmt.Errorf("--results: %w", err), hint)
	}
	if err := unix.Access(filepath.Join(dir, "."), unix.W_OK|unix.X_OK); err != nil {
		return fail(ExitUsage, fmt.Errorf("--results %s cannot be written to: %w", dir, err), hint)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fail(ExitUsage, fmt.Errorf("--results %s: %w", dir, err), hint)
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < minResults {
		return fail(ExitUsage, fmt.Errorf("--results %s has %d MB free, records need %d", dir, free>>20,
			minResults>>20), hint)
	}
	return nil
}

// memoryFlag is --max-memory.
type memoryFlag struct{ bytes int64 }

func (m *memoryFlag) add(c *cobra.Command) {
	m.bytes = process.DefaultCeiling
	c.Flags().Var(m, "max-memory", "how much `memory` an environment may take; one that takes more is ended, and the "+
		"agent has failed if it had begun")
}

func (m *memoryFlag) String() string {
	return resource.NewQuantity(m.bytes, resource.BinarySI).String()
}
func (m *memoryFlag) Type() string { return "size" }

// minMemory is less than any environment takes.
const minMemory = 512 << 20

func (m *memoryFlag) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return errors.New("write it as 4Gi or 2500M")
	}
	if q.Value() < minMemory {
		return fmt.Errorf("an environment needs %dMi at least", minMemory>>20)
	}
	m.bytes = q.Value()
	return nil
}
