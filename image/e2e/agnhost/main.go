package agnhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/kit"
)

// Version is the release of agnhost that this behaves like.
const Version = "2.66.1"

// Main is the program. Its first argument names the sub-command.
func Main(ctx context.Context, env *kit.Env) error {
	p := newProgram(env)
	err := p.root().ExecuteContext(ctx)
	var exit kit.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return err
	default:
		fmt.Fprintf(p.env.Stderr, "Error: %v\n", err)
	}
	return kit.Exit(1)
}

// program is one run of agnhost.
type program struct {
	env *kit.Env
	log *log.Logger
}

func newProgram(env *kit.Env) *program {
	e := *env
	var mu sync.Mutex // One for both: they may lead to the same place.
	e.Stdout, e.Stderr = &lockedWriter{&mu, env.Stdout}, &lockedWriter{&mu, env.Stderr}
	return &program{env: &e, log: log.New(e.Stderr, "", log.LstdFlags)}
}

// lockedWriter lets the parts of a program write at the same time.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// root returns the command line. It is built for each run, since flags are its state.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "app",
		Version:       Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	// Usage is only of help to those who got a flag wrong.
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		c.SilenceUsage = false
		return err
	})
	// Like all of Kubernetes' programs it takes --file_mode for --file-mode.
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	root.PersistentFlags().IntP("v", "v", 0, "accepted and ignored: there is one level of logging")
	root.AddCommand(p.commands()...)
	root.SetArgs(append([]string{}, p.env.Args[1:]...)) // Not nil, or cobra takes the process's own.
	root.SetIn(p.env.Stdin)
	root.SetOut(p.env.Stdout)
	root.SetErr(p.env.Stderr)
	return root
}

func (p *program) commands() []*cobra.Command {
	return []*cobra.Command{
		p.newConnect(),
		p.newConversionWebhook(),
		p.newDNSServerList(),
		p.newDNSSuffix(),
		p.newEntrypointTester(),
		p.newEtcHosts(),
		p.newGRPCHealthChecking(),
		p.newGuestbook(),
		p.newIssuerDiscovery(),
		p.newLiveness(),
		p.newLogsGenerator(),
		p.newMounttest(),
		p.newMTLSClient(),
		p.newMTLSServer(),
		p.newNetexec(),
		p.newNettest(),
		p.newPause(),
		p.newPorter(),
		p.newServeHostname(),
		p.newStress(),
		p.newTestWebserver(),
		p.newWebhook(),
	}
}

// command returns a sub-command that takes flags but no arguments, as most do.
func command(use, short string, run func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.MaximumNArgs(0),
		RunE:  func(c *cobra.Command, _ []string) error { return run(c.Context()) },
	}
}

// fatal logs why the program cannot go on and returns the result it ends with.
func (p *program) fatal(v ...any) error {
	p.log.Print(v...)
	return kit.Exit(1)
}

func (p *program) fatalf(format string, args ...any) error {
	p.log.Printf(format, args...)
	return kit.Exit(1)
}

// noSCTP is the result of whatever needs the one protocol that only a kernel speaks.
func (p *program) noSCTP() error {
	return p.fatal("SCTP is not available: it needs the kernel's protocol stack")
}
