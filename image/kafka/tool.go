package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/aiopslab/aiopslab/kit"
)

// toolTimeout is how long a tool waits for the broker, as default.api.timeout.ms has it.
const toolTimeout = 60 * time.Second

// tool is a command of /opt/kafka/bin.
type tool struct {
	env    *kit.Env
	flags  *pflag.FlagSet
	server *string
}

func newTool(env *kit.Env) *tool {
	t := &tool{env: env, flags: pflag.NewFlagSet(path.Base(env.Args[0]), pflag.ContinueOnError)}
	t.flags.SetOutput(io.Discard)
	t.flags.SortFlags = false
	t.server = t.flags.String("bootstrap-server", "", "the `host:port` of a broker")
	return t
}

// parse reads the command line. If it returns an error, the tool has said why.
func (t *tool) parse() error {
	err := t.flags.Parse(t.env.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(t.env.Stdout, "Usage: %s\n%s", path.Base(t.env.Args[0]), t.flags.FlagUsages())
		return kit.Exit(1)
	case err != nil:
		return t.misused("%v", err)
	case t.flags.NArg() > 0:
		return t.misused("%q is not an option", t.flags.Arg(0))
	case *t.server == "":
		return t.misused("Missing required argument \"[bootstrap-server]\"")
	}
	return nil
}

// misused says what is wrong with the command line.
func (t *tool) misused(format string, args ...any) error {
	fmt.Fprintf(t.env.Stderr, format+"\n", args...)
	fmt.Fprintf(t.env.Stderr, "Usage: %s\n%s", path.Base(t.env.Args[0]), t.flags.FlagUsages())
	return kit.Exit(1)
}

// failed says what went wrong while the command ran.
func (t *tool) failed(what string, err error) error {
	fmt.Fprintf(t.env.Stderr, "%s : %v\n", what, err)
	return kit.Exit(1)
}

// connect returns a client of the broker.
func (t *tool) connect(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(*t.server, ",")...), kgo.DisableClientMetrics(),
		kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return t.env.Net.DialContext(ctx, network, addr)
		}),
		kgo.RetryTimeout(toolTimeout),
	}, opts...)...)
}

// administer runs f with a client for administrators.
func (t *tool) administer(ctx context.Context, what string, f func(context.Context, *kadm.Client) error) error {
	client, err := t.connect()
	if err != nil {
		return t.failed(what, err)
	}
	defer client.Close()
	within, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	if err := f(within, kadm.NewClient(client)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return t.failed(what, err)
	}
	return nil
}
