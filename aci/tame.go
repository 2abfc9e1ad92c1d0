package aci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// What the agent's tools send to servers in the cluster leaves no trace in the API and cannot be taken back. So while a
// transaction is open, connections of its shell carry requests of HTTP that only read, and nothing else: no request
// with a body, no other protocol, nothing encrypted. Names can be resolved.

// tamer watches the connections of the agent's shell.
type tamer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	open func() bool // whether a transaction is
	dns  string      // address and port

	mu      sync.Mutex
	refused []string // addresses, until they are told
}

// maxRefused bounds what is told of refusals at once.
const maxRefused = 5

func (t *tamer) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address == t.dns {
		return t.dial(ctx, network, address)
	}
	if t.open() && !strings.HasPrefix(network, "tcp") {
		t.refuse(address)
		return nil, errTamed
	}
	conn, err := t.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &tamedConn{Conn: conn, tamer: t, address: address, http: strings.HasPrefix(network, "tcp")}, nil
}

var errTamed = errors.New("a transaction is open: only HTTP requests that read may be sent")

func (t *tamer) refuse(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.refused) < maxRefused && !slices.Contains(t.refused, address) {
		t.refused = append(t.refused, address)
	}
}

// told is what the agent has to know of what was refused since it was last told, or "".
func (t *tamer) told() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.refused) == 0 {
		return ""
	}
	list := strings.Join(t.refused, ", ")
	t.refused = nil
	return fmt.Sprintf("[Refused, because it cannot be taken back and a transaction is open: what was sent to %s. "+
		"Only HTTP requests that read may be sent; commit or abort the transaction first.]", list)
}

// tamedConn is a connection of the agent's shell.
type tamedConn struct {
	net.Conn
	tamer   *tamer
	address string

	mu     sync.Mutex
	http   bool   // so far nothing but requests that read were sent
	inside bool   // the line is one of a header
	line   []byte // as far as it has come
	held   []byte // what is not sent yet: a part of a line
}

// maxLine is the longest line of a request that is waited for.
const maxLine = 64 << 10

// Write sends, unless a transaction is open and it is more than a request that reads. Lines are sent when they are
// whole.
func (c *tamedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.http = c.http && c.scan(b)
	out := append(c.held, b...)
	c.held = nil
	if c.tamer.open() {
		if !c.http {
			c.tamer.refuse(c.address)
			c.Conn.Close()
			return 0, errTamed
		}
		whole := max(0, len(out)-len(c.line))
		c.held = bytes.Clone(out[whole:])
		out = out[:whole]
	}
	if len(out) == 0 {
		return len(b), nil
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite ends one direction, where the connection can.
func (c *tamedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

var (
	requestLine = regexp.MustCompile(`^(GET|HEAD|OPTIONS) \S+ HTTP/1\.[01]$`)
	headerLine  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+:")
)

// begins reports whether a request line may begin so: who speaks something else is not left waiting.
func begins(s string) bool {
	return slices.ContainsFunc([]string{"GET ", "HEAD ", "OPTIONS "}, func(method string) bool {
		return strings.HasPrefix(s, method) || strings.HasPrefix(method, s)
	})
}

// scan reports whether what is sent is lines of requests that read. A line that a server of another protocol could take
// for a command of its own is none: "GET a" is one of Redis.
func (c *tamedConn) scan(b []byte) bool {
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte("\n"))
		if c.line = append(c.line, part...); len(c.line) > maxLine {
			return false
		}
		if !ended {
			return c.inside || begins(string(c.line))
		}
		line := strings.TrimSuffix(string(c.line), "\r")
		c.line, b = nil, rest
		switch {
		case !c.inside && requestLine.MatchString(line):
			c.inside = true
		case c.inside && line == "":
			c.inside = false
		case !c.inside || !headerLine.MatchString(line):
			return false
		}
	}
	return true
}
