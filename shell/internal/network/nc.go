package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var nc = tool.Tool{
	Name: "nc", Options: "l k e: p: s: u v n w: i: z 4 6 q: N o: C d t",
	Args: "[OPTIONS] HOST PORT  - connect\n" +
		"nc [OPTIONS] -l -p PORT [HOST] [PORT]  - listen",
	Help: "\t-e PROG\tRun PROG after connect\n" +
		"\t-l\tListen mode, for inbound connects\n" +
		"\t-k\tWith -l, handle multiple connections\n" +
		"\t-p PORT\tLocal port\n" +
		"\t-u\tUDP mode\n" +
		"\t-v\tVerbose\n" +
		"\t-w SEC\tTimeout for connects and final net reads\n" +
		"\t-z\tZero-I/O mode (scanning)",
	Run: func(ctx context.Context, c *tool.Call) error {
		n := &netcat{c: c, network: "tcp"}
		if c.Opts.Has("u") {
			n.network = "udp"
		}
		if text := c.Opts.Get("w", ""); text != "" {
			d, err := tool.ParseDuration(text)
			if err != nil {
				return c.Fail(1, "%v", err)
			}
			n.timeout = d
		}
		if c.Opts.Has("l") {
			return n.listen(ctx)
		}
		if len(c.Args) < 2 {
			return c.Usage()
		}
		return n.connect(ctx)
	},
}

// netcat is an nc under way.
type netcat struct {
	c       *tool.Call
	network string
	timeout time.Duration
}

// ports reads 80, 20-25 or a list of such.
func ports(args []string) (list []string, err error) {
	for _, a := range args {
		from, to, isRange := strings.Cut(a, "-")
		first, err := strconv.Atoi(from)
		if err != nil || first < 0 || first > 65535 {
			return nil, fmt.Errorf("invalid port '%s'", a)
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil || last > 65535 {
				return nil, fmt.Errorf("invalid port '%s'", a)
			}
		}
		for p := first; p <= last; p++ {
			list = append(list, strconv.Itoa(p))
		}
	}
	return list, nil
}

func (n *netcat) connect(ctx context.Context) error {
	c := n.c
	host := c.Args[0]
	list, err := ports(c.Args[1:])
	if err != nil {
		return c.Fail(1, "%v", err)
	}
	addrs, err := c.Env.Net.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		tool.Stopped(ctx)
		return c.Fail(1, "bad address '%s'", host)
	}
	failed := false
	for _, port := range list {
		conn, err := n.dial(ctx, net.JoinHostPort(addrs[0], port))
		if err != nil {
			tool.Stopped(ctx)
			failed = true
			if !c.Opts.Has("z") || c.Opts.Has("v") {
				c.Warn("%s (%s): %s", host, net.JoinHostPort(addrs[0], port), dialReason(err))
			}
			continue
		}
		if c.Opts.Has("v") {
			c.Note("%s (%s) open\n", host, net.JoinHostPort(addrs[0], port))
		}
		if c.Opts.Has("z") {
			conn.Close()
			continue
		}
		return n.converse(ctx, conn)
	}
	if failed {
		return kit.Exit(1)
	}
	return nil
}

// dialReason is why a connection failed, in the kernel's words.
func dialReason(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return "Connection timed out"
	}
	return tool.Reason(err)
}

func (n *netcat) dial(ctx context.Context, addr string) (net.Conn, error) {
	if n.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.timeout)
		defer cancel()
	}
	return n.c.Env.Net.DialContext(ctx, n.network, addr)
}

// sendGrace is how long nc goes on sending after the other side has ended.
const sendGrace = 50 * time.Millisecond

// converse copies standard input to a connection and the connection to standard output. It ends when
// the other side does; the end of the input is passed on.
func (n *netcat) converse(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	if program := n.c.Opts.Get("e", ""); program != "" {
		return n.execute(ctx, conn, program)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer guard(ctx, conn)()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		in := stream.Reader(n.c.Env.Stdin)
		buf := make([]byte, 16<<10)
		for {
			k, err := in.ReadContext(ctx, buf)
			if k > 0 {
				if _, err := conn.Write(buf[:k]); err != nil {
					return
				}
			}
			if err != nil {
				if half, ok := conn.(interface{ CloseWrite() error }); ok && ctx.Err() == nil {
					half.CloseWrite()
				}
				if n.network == "udp" && ctx.Err() == nil {
					n.lastWords(conn)
				}
				return
			}
		}
	}()
	err := n.receive(conn)
	// The other side may only have ended its half; what is at hand is still sent.
	grace := time.NewTimer(sendGrace)
	defer grace.Stop()
	select {
	case <-sent:
	case <-grace.C:
	case <-ctx.Done():
	}
	cancel()
	<-sent
	tool.Stopped(n.c.Context())
	return err
}

// lastWords gives a UDP peer a moment to answer; it cannot say that it is done.
func (n *netcat) lastWords(conn net.Conn) {
	wait := n.timeout
	if wait == 0 {
		wait = time.Second
	}
	conn.SetReadDeadline(time.Now().Add(wait))
}

func (n *netcat) receive(conn net.Conn) error {
	buf := make([]byte, 16<<10)
	for {
		if n.timeout > 0 {
			conn.SetReadDeadline(time.Now().Add(n.timeout))
		}
		k, err := conn.Read(buf)
		n.c.Out.Write(buf[:k])
		n.c.Out.Flush()
		switch {
		case err == nil:
		case err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed):
			return nil
		default:
			return n.c.Fail(1, "read error: %s", tool.Reason(err))
		}
	}
}

func (n *netcat) listen(ctx context.Context) error {
	c := n.c
	port, host := c.Opts.Get("p", ""), c.Opts.Get("s", "")
	operands := c.Args
	if port == "" && len(operands) > 0 {
		port = operands[len(operands)-1]
		if len(operands) > 1 {
			host = operands[0]
		}
	}
	if port == "" {
		return c.Fail(1, "no port to listen on")
	}
	if n.network == "udp" {
		return n.listenUDP(ctx, net.JoinHostPort(host, port))
	}
	ln, err := c.Env.Net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return c.Fail(1, "bind: %s", tool.Reason(err))
	}
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	if c.Opts.Has("v") {
		c.Note("listening on %s ...\n", ln.Addr())
	}
	if n.timeout > 0 {
		t := time.AfterFunc(n.timeout, func() { ln.Close() })
		defer t.Stop()
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			tool.Stopped(ctx)
			return kit.Exit(1)
		}
		if c.Opts.Has("v") {
			c.Note("connect to %s from %s\n", conn.LocalAddr(), conn.RemoteAddr())
		}
		if err := n.converse(ctx, conn); err != nil || !c.Opts.Has("k") {
			return err
		}
	}
}

// listenUDP prints the datagrams that arrive.
func (n *netcat) listenUDP(ctx context.Context, addr string) error {
	pc, err := n.c.Env.Net.ListenPacket("udp", addr)
	if err != nil {
		return n.c.Fail(1, "bind: %s", tool.Reason(err))
	}
	defer pc.Close()
	defer context.AfterFunc(ctx, func() { pc.Close() })()
	buf := make([]byte, 64<<10)
	for {
		if n.timeout > 0 {
			pc.SetReadDeadline(time.Now().Add(n.timeout))
		}
		k, _, err := pc.ReadFrom(buf)
		if err != nil {
			tool.Stopped(ctx)
			return nil
		}
		n.c.Out.Write(buf[:k])
		n.c.Out.Flush()
	}
}

// execute connects a program to the connection.
func (n *netcat) execute(ctx context.Context, conn net.Conn, program string) error {
	child := n.c.Env.Child(strings.Fields(program)...)
	child.Stdin, child.Stdout, child.Stderr, child.Terminal = conn, conn, conn, nil
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	p, err := n.c.Start(ctx, child)
	if err != nil {
		return err
	}
	return kit.Exit(p.Wait())
}

var telnet = tool.Tool{
	Name: "telnet", Options: "a l: E 4 6", Args: "[-a] [-l USER] HOST [PORT]", Help: "Connect to telnet server",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 || len(c.Args) > 2 {
			return c.Usage()
		}
		port := "23"
		if len(c.Args) == 2 {
			port = c.Args[1]
		}
		addrs, err := c.Env.Net.LookupHost(ctx, c.Args[0])
		if err != nil || len(addrs) == 0 {
			tool.Stopped(ctx)
			return c.Fail(1, "bad address '%s'", c.Args[0])
		}
		conn, err := c.Env.Net.DialContext(ctx, "tcp", net.JoinHostPort(addrs[0], port))
		if err != nil {
			tool.Stopped(ctx)
			return c.Fail(1, "can't connect to remote host (%s): %s", addrs[0], dialReason(err))
		}
		c.Out.Printf("Connected to %s\n\n\nEntering character mode\nEscape character is '^]'.\n\n", c.Args[0])
		c.Out.Flush()
		if err := (&netcat{c: c, network: "tcp"}).converse(ctx, conn); err != nil {
			return err
		}
		c.Out.Flush()
		c.Note("Connection closed by foreign host\n")
		return kit.Exit(1)
	},
}
