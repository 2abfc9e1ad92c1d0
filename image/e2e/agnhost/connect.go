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

// newConnect returns the sub-command that tries a connection and says, in one word tests look for,
// what became of it: UNKNOWN (it made no sense), DNS, TIMEOUT, REFUSED or OTHER.
func (p *program) newConnect() *cobra.Command {
	var timeout time.Duration
	var protocol, udpData string
	c := &cobra.Command{
		Use:   "connect [host:port]",
		Short: "Attempts a TCP or UDP connection and returns useful errors",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch protocol {
			case "", "tcp":
				return p.connectTCP(c.Context(), args[0], timeout)
			case "udp":
				return p.connectUDP(c.Context(), args[0], timeout, udpData)
			case "sctp":
				return p.noSCTP()
			}
			return p.fails("Unsupported protocol\n%s", protocol)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "Maximum time before returning an error")
	c.Flags().StringVar(&protocol, "protocol", "tcp", "The protocol to use to perform the connection, can be tcp or udp")
	c.Flags().StringVar(&udpData, "udp-data", "hostname", "The UDP payload send to the server")
	c.Flags().String("sctp-data", "hostname", "The SCTP payload send to the server")
	return c
}

// fails prints why a command failed and returns its result.
func (p *program) fails(format string, args ...any) error {
	fmt.Fprintf(p.env.Stderr, format+"\n", args...)
	return kit.Exit(1)
}

func (p *program) connectTCP(ctx context.Context, dest string, timeout time.Duration) error {
	if _, _, err := net.SplitHostPort(dest); err != nil {
		return p.fails("UNKNOWN: %v", err)
	}
	if _, err := p.resolve(ctx, dest); err != nil {
		return p.fails("DNS: %v", err)
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	conn, err := p.env.Net.DialContext(ctx, "tcp", dest)
	switch {
	case err == nil:
		return conn.Close()
	case isTimeout(err):
		return p.fails("TIMEOUT")
	case errors.Is(err, syscall.ECONNREFUSED):
		return p.fails("REFUSED")
	}
	return p.fails("OTHER: %v", err)
}

// connectUDP sends a datagram and waits for the answer, since sending alone proves nothing.
func (p *program) connectUDP(ctx context.Context, dest string, timeout time.Duration, data string) error {
	if _, err := p.resolve(ctx, dest); err != nil {
		return p.fails("DNS: %v", err)
	}
	conn, err := p.env.Net.DialContext(ctx, "udp", dest)
	if err != nil {
		return p.fails("OTHER: %v", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if timeout > 0 {
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			return p.fails("OTHER: %v", err)
		}
	}
	buf := make([]byte, 1024)
	n := 0
	if _, err = conn.Write([]byte(data + "\n")); err == nil {
		n, err = conn.Read(buf)
	}
	switch {
	case isTimeout(err):
		return p.fails("TIMEOUT: %v", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return p.fails("REFUSED: %v", err)
	case err != nil:
		return p.fails("UNKNOWN: %v", err)
	case n == 0:
		return p.fails("OTHER: No data received from the server. Cannot guarantee the server received the request.")
	}
	return nil
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
