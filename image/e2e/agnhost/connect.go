package agnhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

// newConnect returns the sub-command that tries a connection. If that fails it says how, in a word that
// tests of network policies search for: DNS, TIMEOUT, REFUSED or OTHER.
func (p *program) newConnect() *cobra.Command {
	var timeout time.Duration
	var protocol string
	c := &cobra.Command{
		Use:   "connect HOST:PORT",
		Short: "Try a connection and say how it fails",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			try, ok := map[string]func(ctx context.Context, addr string) error{
				"tcp": p.tryTCP, "udp": p.tryUDP,
			}[protocol]
			if protocol == "sctp" {
				return p.noSCTP()
			}
			if !ok {
				return fmt.Errorf("--protocol=%s: it is tcp or udp", protocol)
			}
			addr, err := p.resolve(ctx, args[0])
			if err == nil {
				err = try(ctx, addr)
			} else {
				err = &net.DNSError{Name: args[0], Err: err.Error(), UnwrapErr: err}
			}
			if err == nil {
				return nil
			}
			fmt.Fprintf(p.env.Stderr, "%s: %v\n", failure(ctx, err), err)
			return kit.Exit(1)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "how long to try (default: as long as the system does)")
	c.Flags().StringVar(&protocol, "protocol", "tcp", "tcp or udp")
	return c
}

// failure is the word for how a connection failed.
func failure(ctx context.Context, err error) string {
	var lookup *net.DNSError
	var n net.Error
	switch {
	case errors.As(err, &lookup):
		return "DNS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "REFUSED"
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return "TIMEOUT"
	}
	return "OTHER"
}

func (p *program) tryTCP(ctx context.Context, addr string) error {
	conn, err := p.env.Net.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// tryUDP waits for an answer too, because sending a datagram proves nothing.
func (p *program) tryUDP(ctx context.Context, addr string) error {
	_, err := p.askUDP(ctx, addr, "hostname")
	return err
}
