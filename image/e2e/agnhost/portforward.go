package agnhost

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

// newPortForwardTester returns the sub-command that takes one connection, checks what it is sent,
// and sends chunks of data. What and how much, its environment says; what went wrong, its exit code.
func (p *program) newPortForwardTester() *cobra.Command {
	return command("port-forward-tester", "Creates a TCP server that sends chunks of data", func(ctx context.Context) error {
		address := p.env.Getenv("BIND_ADDRESS")
		if address == "" {
			address = "localhost"
		}
		// A name may have more than one address; the numeric one is what is listened on.
		addr, err := p.resolve(ctx, net.JoinHostPort(address, p.env.Getenv("BIND_PORT")))
		if err != nil {
			p.printf("Error resolving: %v\n", err)
			return kit.Exit(1)
		}
		ln, err := p.env.Net.Listen("tcp", addr)
		if err != nil {
			p.printf("Error listening: %v\n", err)
			return kit.Exit(1)
		}
		stop := context.AfterFunc(ctx, func() { ln.Close() })
		defer stop()
		defer ln.Close()
		conn, err := ln.Accept()
		if err != nil {
			p.printf("Error accepting connection: %v\n", err)
			return kit.Exit(1)
		}
		stopConn := context.AfterFunc(ctx, func() { conn.Close() })
		defer stopConn()
		defer conn.Close()
		fmt.Fprintln(p.env.Stdout, "Accepted client connection")
		if err := p.expectData(conn, p.env.Getenv("EXPECTED_CLIENT_DATA")); err != nil {
			return err
		}
		return p.sendChunks(ctx, conn)
	})
}

func (p *program) expectData(conn net.Conn, want string) error {
	if want == "" {
		return nil
	}
	buf := make([]byte, len(want))
	n, err := conn.Read(buf)
	switch {
	case n != len(want):
		p.printf("Expected to read %d bytes from client, but got %d instead. err=%v\n", len(want), n, err)
		return kit.Exit(2)
	case want != string(buf):
		p.printf("Expect to read %q, but got %q. err=%v\n", want, buf, err)
		return kit.Exit(3)
	}
	fmt.Fprintln(p.env.Stdout, "Received expected client data")
	return nil
}

func (p *program) sendChunks(ctx context.Context, conn net.Conn) error {
	var numbers [3]int
	for i, name := range []string{"CHUNKS", "CHUNK_SIZE", "CHUNK_INTERVAL"} {
		n, err := strconv.Atoi(p.env.Getenv(name))
		if err != nil {
			p.printf("Error parsing %s %q: %v\n", name, p.env.Getenv(name), err)
			return kit.Exit(1)
		}
		numbers[i] = n
	}
	chunks, size, interval := numbers[0], numbers[1], time.Duration(numbers[2])*time.Millisecond
	data := []byte(strings.Repeat("x", size))
	for i := range chunks {
		if n, err := conn.Write(data); n != size {
			p.printf("Expected to write %d bytes from client, but wrote %d instead. err=%v\n", size, n, err)
			return kit.Exit(4)
		}
		if i+1 < chunks && sleep(ctx, interval) != nil {
			return ctx.Err()
		}
	}
	fmt.Fprintln(p.env.Stdout, "Shutting down connection")
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	// Closing with data unread would reset the connection before the client has seen its end.
	if err := sleep(ctx, lingering); err != nil {
		return err
	}
	_ = conn.Close()
	fmt.Fprintln(p.env.Stdout, "Done")
	return nil
}
